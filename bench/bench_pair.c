/* bench/bench_pair.c -- two modules of one function each, timed in turns, so that what disturbs the machine
 * disturbs both.
 *
 *     bench_pair A.tec B.tec THREADS PAIRS SECONDS [N]      // N: every extent that is no number
 *     // milliseconds of one call of A and of B, PAIRS lines; SECONDS for each number
 *     > 0.03125 0.02913
 *
 * Both get the same seeded numbers, f32, and must compute the same. It links the runtime
 * alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/runtime.h"

enum { MOST = 16 };

typedef struct {
    tec_module *m;
    tec_function *f;
    tec_array *array[MOST];
    DLTensor *arg[MOST];
    int n;
    tec_error err;
} kernel;

static void fill(DLTensor *t, uint32_t state)
{
    for (int64_t i = 0; i < tec_tensor_elements(t); i++) {
        state = state * 1664525 + 1013904223;
        ((float *)t->data)[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
}

/* "X: f32[3, n]": its extents, with `symbol` for those that are no numbers (0: none may be); -1 where it is
 * anything else. */
static int read_shape(const char *text, int64_t symbol, int64_t shape[8])
{
    const char *p = strstr(text, ": f32[");
    int n = 0;

    for (p = p ? p + strlen(": f32") : NULL; p && (*p == '[' || *p == ',') && n < 8; n++) {
        char *end;

        shape[n] = strtoll(p + 1, &end, 10);
        if (end == p + 1) {
            shape[n] = symbol;
            end += strcspn(end, ",]");
        }
        if (shape[n] <= 0)
            return -1;
        p = end;
    }
    return p && *p == ']' ? n : -1;
}

static bool add_argument(kernel *k, int i, int64_t symbol)
{
    char text[256];
    int64_t shape[8];
    int rank = read_shape(tec_function_param_text(k->f, i, text, sizeof text), symbol, shape);

    if (rank < 0)
        return snprintf(k->err.text, sizeof k->err.text, "'%s' is no f32 of known shape", text), false;
    k->array[i] = tec_array_new((DLDataType){kDLFloat, 32, 1}, rank, shape, &k->err);
    if (!k->array[i])
        return false;
    k->arg[i] = (DLTensor *)tec_array_tensor(k->array[i]);
    fill(k->arg[i], (uint32_t)i + 1);
    return true;
}

static bool start(kernel *k, const char *path, int threads, int64_t symbol)
{
    k->m = tec_module_open(path, NULL, &k->err);
    k->f = k->m ? tec_function_new(k->m, NULL, &(tec_run_options){.threads = threads}, &k->err) : NULL;
    k->n = k->f ? tec_function_n_params(k->f) : 0;
    if (!k->f || k->n > MOST)
        return false;
    for (int i = 0; i < k->n; i++)
        if (!add_argument(k, i, symbol))
            return false;
    return tec_function_call(k->f, k->arg, k->n, &k->err);
}

static bool are_equal(const kernel *a, const kernel *b)
{
    for (int i = 0; i < a->n; i++)
        for (int64_t e = 0; e < tec_tensor_elements(a->arg[i]); e++) {
            double x = (double)((const float *)a->arg[i]->data)[e],
                   y = (double)((const float *)b->arg[i]->data)[e];

            if (!(fabs(x - y) <= 1e-3 * fabs(y) + 1e-4))
                return fprintf(stderr, "bench_pair: argument %d differs at %lld: %g and %g\n", i,
                               (long long)e, x, y),
                       false;
        }
    return true;
}

static tec_status call(void *user)
{
    kernel *k = user;

    return tec_function_call(k->f, k->arg, k->n, &k->err) ? TEC_OK : k->err.status;
}

static bool take_turns(kernel *k, int pairs, double seconds)
{
    for (int i = 0; i < pairs; i++) {
        double ms[2];

        for (int turn = 0; turn < 2; turn++) {
            int which = (turn + i) % 2; /* who goes first changes */
            tec_timing t;

            if (!tec_time(call, &k[which], &(tec_time_options){.min_seconds = seconds, .repeats = 3}, &t,
                          &k[which].err))
                return false;
            ms[which] = t.median_s * 1e3;
        }
        printf("%.9g %.9g\n", ms[0], ms[1]);
    }
    return true;
}

static void end(kernel *k)
{
    for (int i = 0; i < k->n; i++)
        tec_array_free(k->array[i]);
    tec_function_free(k->f);
    tec_module_free(k->m);
}

int main(int argc, char **argv)
{
    kernel k[2] = {0};

    int64_t symbol = argc == 7 ? atoll(argv[6]) : 0;

    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: bench_pair A.tec B.tec THREADS PAIRS SECONDS [N]\n");
        return 2;
    }
    bool good = start(&k[0], argv[1], atoi(argv[3]), symbol) &&
                start(&k[1], argv[2], atoi(argv[3]), symbol) && are_equal(&k[0], &k[1]) &&
                take_turns(k, atoi(argv[4]), atof(argv[5]));
    for (int i = 0; i < 2; i++) {
        if (k[i].err.status != TEC_OK || *k[i].err.text)
            fprintf(stderr, "bench_pair: %s: %s\n", argv[1 + i], k[i].err.text);
        end(&k[i]);
    }
    return good ? 0 : 1;
}
