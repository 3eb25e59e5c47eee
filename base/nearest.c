/* nearest.c -- the name that somebody may have meant who wrote another: "did you mean 'batch'?".
 *
 * The distance is the least number of letters to insert, drop, replace or swap with their neighbour
 * (Damerau's "optimal string alignment", CACM 7(3), 1964). Example: 'bacth' is 1 from 'batch' (one swap),
 * 'k.0' is 2 from 'k.1.i'.
 */
#include <ctype.h>
#include <string.h>

#include "base/base.h"

enum { LONGEST = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The distance of two names; LONGEST where one of them is longer than that. Row i of the table holds the
 * distances of the first i letters of `left`. */
static int distance(const char *left, const char *right)
{
    int n = (int)strlen(left), m = (int)strlen(right), row[3][LONGEST + 1];

    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (int i = 0; i <= n; i++) {
        int *now = row[i % 3], *above = row[(i + 2) % 3], *two_above = row[(i + 1) % 3];

        now[0] = i;
        for (int j = 1; j <= m; j++) {
            if (i == 0) {
                now[j] = j;
                continue;
            }
            now[j] = least(least(above[j], now[j - 1]) + 1,
                           above[j - 1] + !same_letter(left[i - 1], right[j - 1]));
            if (i > 1 && j > 1 && same_letter(left[i - 1], right[j - 2]) &&
                same_letter(left[i - 2], right[j - 1]))
                now[j] = least(now[j], two_above[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

/* NULL where no name is close enough to have been meant: a third of the letters may differ. */
const char *base_nearest(const char *name, const base_vec *names)
{
    int most = (int)strlen(name) / 3 + 1, best = most + 1;
    const char *nearest = NULL;

    for (int i = 0; name[0] && i < names->n; i++) {
        const char *other = names->at[i];
        int d = distance(name, other);

        /* A name of which nothing is left is no slip of the pen. */
        if (d < best && d < (int)strlen(other)) {
            best = d;
            nearest = other;
        }
    }
    return nearest;
}

const char *base_did_you_mean(tec_context *cx, const char *name, const base_vec *names)
{
    const char *nearest = base_nearest(name, names);

    return nearest ? base_format(cx, "; did you mean '%s'?", nearest) : "";
}
