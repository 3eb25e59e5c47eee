/* autotune/ranges.c -- see ranges.h. The best k pieces follow from the best k - 1 (dynamic programming):
 *
 *     extent      1     2     4     8           loss of schedules A and B
 *     A           0     0    50 %  90 %         one piece: A loses 35 %, B 30 %
 *     B          80 %  40 %   0     0           two: A up to 2, B from 4 on: nothing is lost
 *
 *     least(k, j): the first j extents in k pieces = min over i < j of least(k - 1, i) + cost(i, j)
 *     cost(i, j): extents i to j - 1 by the one schedule that loses least there
 */
#include "autotune/ranges.h"

#include <math.h>

typedef struct {
    const tune_extents *extents;
    const double *loss;
    int count;
    double least[TUNE_MOST_PIECES + 1][TUNE_MOST_EXTENTS + 1]; /* [k][j] */
    int begin[TUNE_MOST_PIECES + 1][TUNE_MOST_EXTENTS + 1];    /* of the last piece */
    int trace[TUNE_MOST_PIECES + 1][TUNE_MOST_EXTENTS + 1];
} chooser;

/* Also at an extent without weight a schedule has to run. */
static double cost(const chooser *self, int trace, int from, int to)
{
    double sum = 0;

    for (int e = from; e < to; e++) {
        double loss = self->loss[trace * self->extents->n + e];

        if (isinf(loss))
            return INFINITY;
        sum += self->extents->weight[e] * loss;
    }
    return sum;
}

/* Ties go to the first schedule, which is the one that stands. */
static void extend(chooser *self, int k, int j)
{
    self->least[k][j] = INFINITY;
    self->begin[k][j] = self->trace[k][j] = 0;
    for (int i = k - 1; i < j; i++)
        for (int t = 0; t < self->count; t++) {
            double sum = self->least[k - 1][i] + cost(self, t, i, j);

            if (sum < self->least[k][j]) {
                self->least[k][j] = sum;
                self->begin[k][j] = i;
                self->trace[k][j] = t;
            }
        }
}

static tune_pieces read_back(const chooser *self, int k)
{
    tune_pieces out = {.n = k, .loss = self->least[k][self->extents->n]};

    for (int j = self->extents->n; k > 0; j = self->begin[k][j], k--) {
        out.first[k - 1] = self->begin[k][j];
        out.trace[k - 1] = self->trace[k][j];
    }
    return out;
}

/* One piece more is worth a percent at least. */
tune_pieces tune_choose_pieces(tec_context *cx, const tune_extents *extents, const double *loss, int count)
{
    chooser *c = base_new(cx, chooser);
    const double worth = 0.01;
    int n = extents->n, chosen = 1;

    *c = (chooser){.extents = extents, .loss = loss, .count = count};
    for (int j = 0; j <= n; j++)
        c->least[0][j] = j ? INFINITY : 0;
    for (int k = 1; k <= TUNE_MOST_PIECES && k <= n; k++) {
        for (int j = 0; j <= n; j++)
            if (j >= k)
                extend(c, k, j);
            else
                c->least[k][j] = INFINITY;
        if (k > 1 && c->least[chosen][n] > TUNE_ENOUGH && c->least[k][n] + worth < c->least[chosen][n])
            chosen = k;
    }
    return read_back(c, chosen);
}

double tune_pieces_loss(const tune_extents *extents, const tune_pieces *pieces, const double *loss)
{
    double mean = 0;

    for (int e = 0, k = 0; e < extents->n; e++) {
        k += k + 1 < pieces->n && e == pieces->first[k + 1];
        mean += extents->weight[e] > 0 ? extents->weight[e] * loss[pieces->trace[k] * extents->n + e] : 0;
    }
    return mean;
}

/* Each piece as a range with the text of its schedule; the last one is open. */
const space_ranges *tune_pieces_ranges(tec_context *cx, const tune_extents *extents,
                                       const tune_pieces *pieces, const char *const *trace)
{
    space_ranges *out = base_new(cx, space_ranges);
    space_range *range = base_array(cx, space_range, pieces->n);

    for (int k = 0; k < pieces->n; k++) {
        int next = k + 1 < pieces->n ? pieces->first[k + 1] : 0;

        range[k].trace = trace[pieces->trace[k]];
        range[k].to = next ? base_ratio_middle(extents->at[next - 1], extents->at[next]) : INT64_MAX;
    }
    *out = (space_ranges){.symbol = extents->symbol, .at = range, .n = pieces->n};
    return out;
}
