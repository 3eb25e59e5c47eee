/* bench/peers/conv_dnnl.c -- a worker of bench/run: a convolution with bias and ReLU by oneDNN, in the
 * layouts that it asks for.
 *
 *     conv_dnnl C6 direct       // or winograd; threads: OMP_NUM_THREADS
 *     > ready 231211008 jit:avx512_core
 *     < sample 0.2
 *     > 1.55
 *
 * oneDNN has several implementations of one algorithm, and the one that it ranks first is not always the
 * fastest: all are timed at the start and the best is kept; which one it is, it says when it is ready. Its
 * result is checked against plain loops.
 */
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

#include "bench/shapes.h"
#include "tec/runtime.h"

enum { MAX_ARGS = 4, NAME = 128 };

typedef struct {
    dnnl_primitive_t run;
    dnnl_exec_arg_t args[MAX_ARGS];
} job;

typedef struct {
    const bench_conv *shape;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    float *in, *weights, *bias, *out, *expected;
    int64_t n_out;
} problem;

static void must(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return;
    fprintf(stderr, "conv_dnnl: %s: oneDNN status %d\n", what, status);
    exit(1);
}

static float *room(int64_t n)
{
    float *p = aligned_alloc(64, (size_t)(n + 15) / 16 * 64);

    if (!p) {
        fprintf(stderr, "conv_dnnl: out of memory\n");
        exit(1);
    }
    return p;
}

/* ---- memory ---- */

static dnnl_memory_desc_t describe(int n, const dnnl_dims_t dim, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;

    must(dnnl_memory_desc_init_by_tag(&d, n, dim, dnnl_f32, tag), "a memory descriptor");
    return d;
}

static dnnl_memory_t memory_at(const problem *p, const dnnl_memory_desc_t *d, void *data)
{
    dnnl_memory_t m;

    must(dnnl_memory_create(&m, d, p->engine, data), "memory");
    return m;
}

static void copy(const problem *p, dnnl_memory_t from, dnnl_memory_t to)
{
    const dnnl_memory_desc_t *a, *b;
    dnnl_primitive_desc_t d;
    dnnl_primitive_t run;

    must(dnnl_memory_get_memory_desc(from, &a), "a descriptor");
    must(dnnl_memory_get_memory_desc(to, &b), "a descriptor");
    must(dnnl_reorder_primitive_desc_create(&d, a, p->engine, b, p->engine, NULL), "a reorder");
    must(dnnl_primitive_create(&run, d), "a reorder");
    must(dnnl_primitive_execute(run, p->stream, 2,
                                (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}),
         "a reorder");
    must(dnnl_stream_wait(p->stream), "a reorder");
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(d);
}

/* In the layout that the primitive asks for, filled from plain data. */
static dnnl_memory_t operand(const problem *p, const_dnnl_primitive_desc_t d, dnnl_query_t which, int n,
                             const dnnl_dims_t dim, dnnl_format_tag_t tag, float *plain)
{
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(d, which, 0);
    dnnl_memory_t m = memory_at(p, wanted, DNNL_MEMORY_ALLOCATE);

    if (plain) {
        dnnl_memory_desc_t as = describe(n, dim, tag);
        dnnl_memory_t from = memory_at(p, &as, plain);

        copy(p, from, m);
        dnnl_memory_destroy(from);
    }
    return m;
}

/* ---- one implementation ---- */

static void execute(const problem *p, const job *j)
{
    must(dnnl_primitive_execute(j->run, p->stream, MAX_ARGS, j->args), "a convolution");
    must(dnnl_stream_wait(p->stream), "a convolution");
}

typedef struct {
    const problem *p;
    const job *j;
} call;

static tec_status run_call(void *user)
{
    const call *c = user;

    execute(c->p, c->j);
    return TEC_OK;
}

/* The median, in seconds, as ours is measured. */
static double time_job(const problem *p, const job *j, double seconds)
{
    call c = {p, j};
    tec_timing t;
    tec_error err = {0};

    if (tec_time(run_call, &c, &(tec_time_options){.min_seconds = seconds, .repeats = 3}, &t, &err))
        return t.median_s;
    fprintf(stderr, "conv_dnnl: %s\n", err.text);
    exit(1);
}

/* The least of a few: what disturbs the machine must not decide which implementation is kept. */
static double least_time(const problem *p, const job *j)
{
    enum { TRIES = 4 };
    double least = INFINITY;

    for (int i = 0; i < TRIES; i++)
        least = fmin(least, time_job(p, j, 0.05));
    return least;
}

typedef struct {
    dnnl_dims_t in, weights, bias, out;
    int n_weights;
} shapes;

static shapes shapes_of(const bench_conv *c)
{
    dnnl_dim_t o = bench_conv_out(c);

    if (c->depthwise)
        return (shapes){{1, c->in, c->extent, c->extent},
                        {c->in, 1, 1, c->kernel, c->kernel},
                        {c->out},
                        {1, c->out, o, o},
                        5};
    return (shapes){{1, c->in, c->extent, c->extent},
                    {c->out, c->in, c->kernel, c->kernel},
                    {c->out},
                    {1, c->out, o, o},
                    4};
}

static job make_job(const problem *p, const_dnnl_primitive_desc_t d)
{
    shapes s = shapes_of(p->shape);
    job j;

    must(dnnl_primitive_create(&j.run, d), "a convolution");
    j.args[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, operand(p, d, dnnl_query_src_md, 4, s.in, dnnl_nchw, p->in)};
    j.args[1] =
        (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, operand(p, d, dnnl_query_weights_md, s.n_weights, s.weights,
                                                    s.n_weights == 5 ? dnnl_goihw : dnnl_oihw, p->weights)};
    dnnl_memory_desc_t bias = describe(1, s.bias, dnnl_x);
    j.args[2] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, memory_at(p, &bias, p->bias)};
    j.args[3] = (dnnl_exec_arg_t){DNNL_ARG_DST, operand(p, d, dnnl_query_dst_md, 4, s.out, dnnl_nchw, NULL)};
    return j;
}

static void free_job(job *j)
{
    for (int i = 0; i < MAX_ARGS; i++)
        dnnl_memory_destroy(j->args[i].memory);
    dnnl_primitive_destroy(j->run);
}

static void check(const problem *p, const job *j)
{
    shapes s = shapes_of(p->shape);
    dnnl_memory_desc_t plain = describe(4, s.out, dnnl_nchw);
    dnnl_memory_t out = memory_at(p, &plain, p->out);

    execute(p, j);
    copy(p, j->args[3].memory, out);
    dnnl_memory_destroy(out);
    for (int64_t i = 0; i < p->n_out; i++)
        if (!(fabsf(p->out[i] - p->expected[i]) <= 1e-3f * (1 + fabsf(p->expected[i])))) {
            fprintf(stderr, "conv_dnnl: %s: element %lld is %g, plain loops give %g\n", p->shape->name,
                    (long long)i, (double)p->out[i], (double)p->expected[i]);
            exit(1);
        }
}

/* ---- choosing ---- */

static dnnl_primitive_attr_t with_relu(void)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;

    must(dnnl_primitive_attr_create(&attr), "attributes");
    must(dnnl_post_ops_create(&ops), "attributes");
    must(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0), "attributes");
    must(dnnl_primitive_attr_set_post_ops(attr, ops), "attributes");
    dnnl_post_ops_destroy(ops);
    return attr;
}

/* The iterator reads the description and the attributes as long as it lives. */
static dnnl_primitive_desc_iterator_t implementations(const problem *p, dnnl_alg_kind_t algorithm,
                                                      dnnl_convolution_desc_t *d, dnnl_primitive_attr_t attr)
{
    const bench_conv *c = p->shape;
    shapes s = shapes_of(c);
    int64_t after, pad = bench_conv_pad(c, &after);
    dnnl_dims_t strides = {c->stride, c->stride}, before = {pad, pad}, behind = {after, after};
    dnnl_memory_desc_t in = describe(4, s.in, dnnl_format_tag_any),
                       weights = describe(s.n_weights, s.weights, dnnl_format_tag_any);
    dnnl_memory_desc_t bias = describe(1, s.bias, dnnl_x), out = describe(4, s.out, dnnl_format_tag_any);
    dnnl_primitive_desc_iterator_t it;

    must(dnnl_convolution_forward_desc_init(d, dnnl_forward_inference, algorithm, &in, &weights, &bias, &out,
                                            strides, before, behind),
         "a convolution");
    must(dnnl_primitive_desc_iterator_create(&it, d, attr, p->engine, NULL),
         "no implementation of this convolution");
    return it;
}

/* The fastest of those that are not written for testing. */
static job choose(const problem *p, dnnl_alg_kind_t algorithm, char name[NAME])
{
    dnnl_convolution_desc_t described;
    dnnl_primitive_attr_t attr = with_relu();
    dnnl_primitive_desc_iterator_t it = implementations(p, algorithm, &described, attr);
    job best = {NULL};
    double best_time = INFINITY;

    do {
        dnnl_primitive_desc_t d = dnnl_primitive_desc_iterator_fetch(it);
        const char *what = "";

        dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &what);
        if (!strstr(what, "ref") || !best.run) {
            job j = make_job(p, d);

            check(p, &j);
            double t = least_time(p, &j);
            if (t < best_time) {
                if (best.run)
                    free_job(&best);
                best = j;
                best_time = t;
                snprintf(name, NAME, "%s", what);
            } else {
                free_job(&j);
            }
        }
        dnnl_primitive_desc_destroy(d);
    } while (dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
    dnnl_primitive_attr_destroy(attr);
    return best;
}

static int serve(const problem *p, const job *j, const char *name)
{
    char line[64];
    double seconds;

    printf("ready %.0f %s\n", bench_conv_flops(p->shape), name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "sample %lf", &seconds) != 1)
            return 1;
        printf("%.6f\n", time_job(p, j, seconds) * 1e3);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    problem p = {.shape = argc == 3 ? bench_conv_named(argv[1]) : NULL};

    if (!p.shape || (strcmp(argv[2], "direct") && strcmp(argv[2], "winograd"))) {
        fprintf(stderr, "usage: conv_dnnl NAME direct|winograd\n");
        return 2;
    }
    const bench_conv *c = p.shape;
    int64_t o = bench_conv_out(c), n_in = c->in * c->extent * c->extent,
            n_weights = c->out * bench_conv_depth(c) * c->kernel * c->kernel;
    p.n_out = c->out * o * o;
    p.in = room(n_in);
    p.weights = room(n_weights);
    p.bias = room(c->out);
    p.out = room(p.n_out);
    p.expected = room(p.n_out);
    bench_fill(p.in, n_in, 1);
    bench_fill(p.weights, n_weights, 2);
    bench_fill(p.bias, c->out, 3);
    bench_conv_reference(c, p.in, p.weights, p.bias, p.expected);
    must(dnnl_engine_create(&p.engine, dnnl_cpu, 0), "an engine");
    must(dnnl_stream_create(&p.stream, p.engine, dnnl_stream_default_flags), "a stream");
    char name[NAME] = "";
    job j = choose(&p, strcmp(argv[2], "direct") == 0 ? dnnl_convolution_direct : dnnl_convolution_winograd,
                   name);
    int result = serve(&p, &j, name);
    free_job(&j);
    return result;
}
