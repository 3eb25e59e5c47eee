/* bench/write_conv.c -- a convolution with bias and ReLU as a module, on packed channels as inside a network,
 * checked against plain loops.
 *
 *     write_conv C6 THREADS conv-C6.tec            // by the default schedule, or
 *     write_conv C6 THREADS conv-C6.tec tuning.db  // by the one that a tuner recorded; there must be one
 */
#include <math.h>
#include <stdlib.h>

#include "bench/conv_graph.h"
#include "tec/records.h"

typedef struct {
    const bench_conv *shape;
    int64_t in_block, out_block, n_in, n_out, n_weights;
    float *in, *weights, *bias, *out; /* plain */
} problem;

static void *room(int64_t n)
{
    void *p = calloc((size_t)n, sizeof(float));

    if (!p) {
        fprintf(stderr, "write_conv: out of memory\n");
        exit(1);
    }
    return p;
}

static problem make_problem(const bench_conv *c)
{
    int64_t o = bench_conv_out(c);
    problem p = {.shape = c,
                 .in_block = bench_conv_in_block(c),
                 .out_block = BENCH_BLOCK,
                 .n_in = c->in * c->extent * c->extent,
                 .n_out = c->out * o * o,
                 .n_weights = bench_conv_weights(c)};

    p.in = room(p.n_in);
    p.weights = room(p.n_weights);
    p.bias = room(c->out);
    p.out = room(p.n_out);
    bench_fill(p.in, p.n_in, 1);
    bench_fill(p.weights, p.n_weights, 2);
    bench_fill(p.bias, c->out, 3);
    bench_conv_reference(c, p.in, p.weights, p.bias, p.out);
    return p;
}

static void free_problem(problem *p)
{
    free(p->in);
    free(p->weights);
    free(p->bias);
    free(p->out);
}

/* Between [c][plane] and [c / block][plane][block]. */
static void repack(float *plain, float *packed, int64_t channels, int64_t plane, int64_t block, bool back)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < plane; i++) {
            float *a = &plain[c * plane + i], *b = &packed[(c / block * plane + i) * block + c % block];

            *(back ? a : b) = *(back ? b : a);
        }
}

static bool check(const problem *p, tec_module *m, tec_error *err)
{
    const bench_conv *c = p->shape;
    int64_t o = bench_conv_out(c), in_shape[] = {1, c->in / p->in_block, c->extent, c->extent, p->in_block};
    tec_array *x = tec_array_new((DLDataType){kDLFloat, 32, 1}, p->in_block == 1 ? 4 : 5, in_shape, err);
    tec_executor *ex = x ? tec_executor_new(m, NULL, NULL, err) : NULL;
    float *y = room(p->n_out);
    double worst = 0;

    if (ex)
        repack(p->in, tec_array_tensor(x)->data, c->in, c->extent * c->extent, p->in_block, false);
    bool good = ex && tec_executor_set_input(ex, 0, tec_array_tensor(x), err) && tec_executor_run(ex, err);
    if (good)
        repack(y, tec_executor_output(ex, 0)->data, c->out, o * o, p->out_block, true);
    for (int64_t i = 0; good && i < p->n_out; i++)
        worst = fmax(worst, fabs((double)y[i] - (double)p->out[i]) / (1 + fabs((double)p->out[i])));
    if (good && worst > 1e-4)
        fprintf(stderr, "write_conv: %s differs from plain loops by %g\n", c->name, worst);
    free(y);
    tec_executor_free(ex);
    tec_array_free(x);
    return good && worst <= 1e-4;
}

static bool build(tec_context *cx, const problem *p, int threads, const char *path, const char *records)
{
    tec_graph *g = tec_graph_new(cx, p->shape->name);
    tec_records *r = records ? tec_records_open(cx, records) : NULL;

    bench_conv_add(cx, g, p->shape, p->weights, p->bias);
    bool built = (r || !records) &&
                 tec_graph_build_file(g, &(tec_build_options){.threads = threads, .records = r}, path);
    tec_records_close(r);
    return built;
}

/* That the default schedule stood in would go unseen otherwise. */
static bool is_from_record(tec_module *m, tec_error *err)
{
    tec_executor *ex = tec_executor_new(m, NULL, &(tec_run_options){.profile = true}, err);
    tec_profile_row row;
    bool recorded = tec_executor_n_steps(ex) == 1 && tec_executor_profile(ex, 0, &row) && row.origin &&
                    strcmp(row.origin, "record") == 0;

    if (ex && !recorded)
        fprintf(stderr, "write_conv: there is no record of this kernel\n");
    tec_executor_free(ex);
    return recorded;
}

int main(int argc, char **argv)
{
    const bench_conv *c = argc == 4 || argc == 5 ? bench_conv_named(argv[1]) : NULL;
    tec_error err = {0};

    if (!c) {
        fprintf(stderr, "usage: write_conv NAME THREADS MODULE [RECORDS]\n");
        return 2;
    }
    problem p = make_problem(c);
    tec_context *cx = tec_context_new();
    bool built = build(cx, &p, atoi(argv[2]), argv[3], argc == 5 ? argv[4] : NULL);
    if (!built)
        fprintf(stderr, "write_conv: %s\n", tec_context_error(cx));
    tec_module *m = built ? tec_module_open(argv[3], NULL, &err) : NULL;
    bool good = m && check(&p, m, &err) && (argc < 5 || is_from_record(m, &err));
    if (err.status != TEC_OK)
        fprintf(stderr, "write_conv: %s\n", err.text);
    tec_module_free(m);
    tec_context_free(cx);
    free_problem(&p);
    return good ? 0 : 1;
}
