/* bench/bench_lower.c -- what a candidate costs a tuner before code generation: the time and the memory of
 * scheduling and lowering.
 *
 *     bench_lower C2 400           400 random tilings of a convolution of ResNet-18; the median of each pass
 *     bench_lower C6 100000 rss    the resident size after 1000, 10000, 100000 candidates
 *
 * A candidate tiles the convolution (tails guarded where a tile does not divide), packs its weights and its
 * padded input at random levels, keeps the tile of the result in registers, vectorises and unrolls. Each is
 * scheduled and lowered on one core, without verification, in a scratch context that reads the definition and
 * is reset afterwards, as a tuner does it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lower/pass.h"
#include "schedule/sched.h"
#include "te/te.h"
#include "te/text.h"

enum { MAX_PASSES = 64, MAX_KEPT = 100000 };

typedef struct {
    const char *name;
    int channels, size; /* as many channels out as in; 3 x 3, stride 1, padding 1 */
} shape;

static const shape shapes[] = {{"C2", 64, 56}, {"C6", 128, 28}};

typedef struct {
    const char *name[MAX_PASSES];
    float *ms[MAX_PASSES]; /* of each candidate */
    int n, candidate;
    double last;
} profile;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- candidates ---- */

static const ir_program *define(tec_context *cx, const shape *s)
{
    const char *text = base_format(
        cx,
        "def conv2d(X: f32[%d, %d, %d], W: f32[%d, %d, 3, 3]) {\n"
        "  P[c: %d, h: %d, w: %d] = select(h >= 1 && h < %d && w >= 1 && w < %d, X[c, h - 1, w - 1], 0.0)\n"
        "  V[ob: %d, c: %d, ky: 3, kx: 3, oi: 16] = W[ob*16 + oi, c, ky, kx]\n"
        "  Y[o: %d, y: %d, x: %d] = sum[c: %d, ky: 3, kx: 3](P[c, y + ky, x + kx] * V[floordiv(o, 16), c, "
        "ky, kx, o %% 16])\n"
        "  return Y\n}\n",
        s->channels, s->size, s->size, s->channels, s->channels, s->channels, s->size + 2, s->size + 2,
        s->size + 1, s->size + 1, s->channels / 16, s->channels, s->channels, s->size, s->size, s->channels);
    te_file *file = te_parse(cx, "conv2d.te", text);

    return file ? te_tree(cx, file->defs.at[0]) : NULL;
}

static int64_t pick(uint64_t *state, const int64_t *from, int n)
{
    return from[base_random_below(state, (uint64_t)n)];
}
#define PICK(state, ...)                                                                                     \
    pick(state, (const int64_t[]){__VA_ARGS__},                                                              \
         (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* At most 28 vectors of the result in registers. */
static const char *random_trace(tec_context *cx, const shape *s, uint64_t *state)
{
    int64_t vectors, rows, columns, channels = PICK(state, 4, 8, 16, 32);
    const char *weights_at = PICK(state, 0, 1) ? "Y.o.0" : "Y.c.0";
    const char *const input[] = {"parallel(Y.o.0)\nparallel(P.c)", "compute_at(P, Y.y.0)",
                                 "compute_at(P, Y.c.0)"};

    do {
        vectors = PICK(state, 1, 2, s->channels / 32);
        rows = PICK(state, 1, 2, 3, 4);
        columns = PICK(state, 2, 4, 6, 7, 8, 14, 28);
    } while (vectors * rows * columns > 28 || vectors * rows * columns < 6);
    return base_format(cx,
                       "Y.o.0, Y.o.1, Y.o.2 = split(Y.o, _, %lld, 16)\n"
                       "Y.y.0, Y.y.1 = split(Y.y, _, %lld)\n"
                       "Y.x.0, Y.x.1 = split(Y.x, _, %lld)\n"
                       "Y.c.0, Y.c.1 = split(Y.c, _, %lld)\n"
                       "reorder(Y.o.0, Y.y.0, Y.x.0, Y.c.0, Y.c.1, Y.ky, Y.kx, Y.o.1, Y.y.1, Y.x.1, Y.o.2)\n"
                       "Y.cache.local = cache_write(Y, local, Y.x.0)\n"
                       "Y.init = decompose_reduction(Y, Y.c.0)\n"
                       "compute_at(V, %s)\n"
                       "vectorize(V.oi)\n"
                       "%s\n"
                       "P.w.0, P.w.1 = split(P.w, _, 16)\n"
                       "vectorize(P.w.1)\n"
                       "unroll(Y.o.1)\nunroll(Y.y.1)\nunroll(Y.x.1)\nvectorize(Y.o.2)\n"
                       "unroll(Y.init.o.1)\nunroll(Y.init.y.1)\nunroll(Y.init.x.1)\nvectorize(Y.init.o.2)\n"
                       "%s"
                       "Y.cache.local.o.0, Y.cache.local.o.1 = split(Y.cache.local.o, _, 16)\n"
                       "unroll(Y.cache.local.y)\nunroll(Y.cache.local.x)\nunroll(Y.cache.local.o.0)"
                       "\nvectorize(Y.cache.local.o.1)\n",
                       (long long)vectors, (long long)rows, (long long)columns, (long long)channels,
                       weights_at, input[PICK(state, 0, 1, 2)], PICK(state, 0, 1) ? "unroll(Y.kx)\n" : "");
}

static void note_pass(void *user, const char *pass, const ir_program *before, const ir_program *after)
{
    profile *p = user;
    double t = now();

    (void)before, (void)after;
    if (p->n < MAX_PASSES) {
        p->name[p->n] = pass;
        if (!p->ms[p->n])
            p->ms[p->n] = calloc(MAX_KEPT, sizeof(float));
        p->ms[p->n++][p->candidate] = (float)(t - p->last);
    }
    p->last = now();
}

/* Schedules and lowers the candidate of this seed; false with a message. */
static bool try_candidate(tec_context *scratch, const shape *of, const ir_program *tree, const target *t,
                          uint64_t seed, profile *p, float *schedule, float *lower)
{
    uint64_t state = seed;
    double start = now();
    sched *s = sched_new(scratch, tree, t);
    bool good = sched_replay(s, "trace", random_trace(scratch, of, &state));

    *schedule = (float)(now() - start);
    if (!good) {
        fprintf(stderr, "bench_lower: %s\n%s", sched_error(s), random_trace(scratch, of, &(uint64_t){seed}));
    } else {
        lower_options o = {.cx = scratch, .target = t, .no_verify = true, .watch = note_pass, .user = p};

        p->n = 0;
        p->last = start = now();
        good = lower_run(&o, sched_tree(s)) != NULL;
        *lower = (float)(now() - start);
        if (!good)
            fprintf(stderr, "bench_lower: %s\n", tec_context_error(scratch));
    }
    base_reset(scratch);
    return good;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

static float percentile(float *values, int n, int percent)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[(int64_t)(n - 1) * percent / 100];
}

static double resident_mb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f) {
        if (fscanf(f, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void print_times(profile *p, float *schedule, float *lower, int n)
{
    printf("%-12s %8s %8s\n", "", "median", "90%");
    printf("%-12s %8.3f %8.3f\n", "schedule", percentile(schedule, n, 50), percentile(schedule, n, 90));
    printf("%-12s %8.3f %8.3f\n", "lower", percentile(lower, n, 50), percentile(lower, n, 90));
    for (int i = 0; i < p->n; i++)
        printf("  %-10s %8.3f %8.3f\n", p->name[i], percentile(p->ms[i], n, 50), percentile(p->ms[i], n, 90));
}

static int run(tec_context *cx, const shape *s, int n, bool rss)
{
    profile *p = calloc(1, sizeof *p);
    const ir_program *tree = define(cx, s);
    tec_context *scratch = base_child(cx);
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v4");
    float *schedule = calloc((size_t)n, sizeof *schedule), *lower = calloc((size_t)n, sizeof *lower);

    if (!tree || !t) {
        fprintf(stderr, "bench_lower: %s\n", tec_context_error(cx));
        return 1;
    }
    for (int i = 0; i < n; i++) {
        int at = rss ? 0 : i; /* a table of times would grow with the candidates */

        p->candidate = at;
        if (!try_candidate(scratch, s, tree, t, (uint64_t)i + 1, p, &schedule[at], &lower[at]))
            return 1;
        if (rss && (i + 1 == 1000 || i + 1 == 10000 || i + 1 == 100000))
            printf("%s: %d candidates, resident %.1f MB\n", s->name, i + 1, resident_mb());
    }
    if (!rss) {
        printf("%s: %d candidates, milliseconds each\n", s->name, n);
        print_times(p, schedule, lower, n);
    }
    tec_context_free(scratch);
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 0;

    for (int i = 0; i < BASE_COUNT(shapes) && n > 0 && n <= MAX_KEPT; i++)
        if (strcmp(argv[1], shapes[i].name) == 0) {
            tec_context *cx = tec_context_new();
            int status = run(cx, &shapes[i], n, argc > 3);

            tec_context_free(cx);
            return status;
        }
    fprintf(stderr, "usage: bench_lower C2|C6 CANDIDATES [rss], at most %d\n", MAX_KEPT);
    return 2;
}
