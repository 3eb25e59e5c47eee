/* tests/graph/onnx/transposed.c -- ConvTranspose at random, compiled and run, against plain loops: strides,
 * dilations, groups, padding that is cut off or added, a bias, 1 to 3 spatial dimensions, a symbolic batch.
 */
#include "graph/pass.h"
#include "tests/graph/onnx/run.h"

TestSuite(transposed, .init = open_context, .fini = close_context, .timeout = 300);

enum { MOST_SPACE = 3 };

typedef struct {
    int rank;
    int64_t batch, group, in, out; /* channels of one group */
    int64_t extent[MOST_SPACE], kernel[MOST_SPACE], stride[MOST_SPACE], dilation[MOST_SPACE],
        extra[MOST_SPACE], pads[2 * MOST_SPACE], result[MOST_SPACE];
    bool bias;
    float *x, *w, *b, *y;
} transposed;

static uint64_t seed;

static float *random_floats(int64_t n)
{
    float *v = base_array(cx, float, n);

    for (int64_t i = 0; i < n; i++)
        v[i] = (float)base_random_below(&seed, 9) - 4;
    return v;
}

static int64_t product(const int64_t *v, int n)
{
    int64_t p = 1;

    for (int i = 0; i < n; i++)
        p *= v[i];
    return p;
}

static int64_t between(int64_t least, int64_t most)
{
    return least + base_random_below(&seed, most - least + 1);
}

/* One case; the result has at least one element in each dimension. */
static transposed random_case(void)
{
    transposed t = {.rank = (int)between(1, MOST_SPACE), .batch = between(1, 2), .bias = between(0, 1)};

    t.group = between(0, 2) ? 1 : between(2, 3);
    t.in = between(1, 4);
    t.out = between(0, 3) ? between(1, 5) : 16;
    for (int i = 0; i < t.rank; i++) {
        t.extent[i] = between(1, 6);
        t.kernel[i] = between(1, 4);
        t.stride[i] = between(1, 4);
        t.dilation[i] = between(0, 2) ? 1 : between(2, 4);
        t.extra[i] = between(0, t.stride[i] - 1);
        int64_t whole = t.stride[i] * (t.extent[i] - 1) + t.extra[i] + (t.kernel[i] - 1) * t.dilation[i] + 1;
        t.pads[i] = between(0, whole - 1 < 3 ? whole - 1 : 3);
        t.pads[t.rank + i] = between(0, whole - 1 - t.pads[i] < 3 ? whole - 1 - t.pads[i] : 3);
        t.result[i] = whole - t.pads[i] - t.pads[t.rank + i];
    }
    t.x = random_floats(t.batch * t.group * t.in * product(t.extent, t.rank));
    t.w = random_floats(t.group * t.in * t.out * product(t.kernel, t.rank));
    t.b = random_floats(t.group * t.out);
    t.y = base_array(cx, float, t.batch *t.group *t.out *product(t.result, t.rank));
    return t;
}

/* ---- plain loops ---- */

/* The place that element `at` of x and element `k` of the kernel add to, in one channel; -1: cut off. */
static int64_t place_of(const transposed *self, int64_t at, int64_t k)
{
    int64_t where = 0, factor = 1;

    for (int i = self->rank - 1; i >= 0; i--) {
        int64_t o =
            at % self->extent[i] * self->stride[i] + k % self->kernel[i] * self->dilation[i] - self->pads[i];

        if (o < 0 || o >= self->result[i])
            return -1;
        where += o * factor;
        factor *= self->result[i];
        at /= self->extent[i];
        k /= self->kernel[i];
    }
    return where;
}

static void add_channel(const transposed *self, const float *x, const float *w, float *y)
{
    int64_t n = product(self->extent, self->rank), taps = product(self->kernel, self->rank);

    for (int64_t at = 0; at < n; at++)
        for (int64_t k = 0; k < taps; k++) {
            int64_t where = place_of(self, at, k);

            if (where >= 0)
                y[where] += x[at] * w[k];
        }
}

static void compute(const transposed *self)
{
    int64_t n = product(self->extent, self->rank), taps = product(self->kernel, self->rank),
            size = product(self->result, self->rank);

    for (int64_t b = 0; b < self->batch * self->group; b++)
        for (int64_t m = 0; m < self->out; m++) {
            float *y = self->y + (b * self->out + m) * size;
            int64_t which = b % self->group;

            for (int64_t i = 0; i < size; i++)
                y[i] = self->bias ? self->b[which * self->out + m] : 0;
            for (int64_t c = 0; c < self->in; c++)
                add_channel(self, self->x + (b * self->in + c) * n,
                            self->w + ((which * self->in + c) * self->out + m) * taps, y);
        }
}

/* ---- the model ---- */

static void weights(const char *name, const int64_t *dims, int n, const float *data)
{
    raw(tensor(name, 1, dims, (size_t)n), data, (size_t)product(dims, n) * sizeof *data);
}

static graph_module *model_of(const transposed *self)
{
    const char *dim[MOST_SPACE + 3] = {"n", base_format(cx, "%lld", (long long)(self->group * self->in))};
    int64_t shape[MOST_SPACE + 2] = {self->group * self->in, self->out}, channels = self->group * self->out;
    size_t rank = (size_t)self->rank;

    open_model(13);
    for (int i = 0; i < self->rank; i++) {
        dim[2 + i] = base_format(cx, "%lld", (long long)self->extent[i]);
        shape[2 + i] = self->kernel[i];
    }
    input_of("x", 1, dim);
    weights("w", shape, 2 + self->rank, self->w);
    weights("b", &channels, 1, self->b);
    node("ConvTranspose", self->bias ? "x,w,b" : "x,w", "y", attr_ints("strides", self->stride, rank),
         attr_ints("dilations", self->dilation, rank), attr_ints("output_padding", self->extra, rank),
         attr_ints("pads", self->pads, 2 * rank), attr_int("group", self->group));
    output("y");
    return imported();
}

static const char *text_of(const transposed *self)
{
    base_text t = {0};

    base_addf(cx, &t, "group %lld, %lld to %lld channels", (long long)self->group, (long long)self->in,
              (long long)self->out);
    for (int i = 0; i < self->rank; i++)
        base_addf(cx, &t, "; %lld kernel %lld stride %lld dilation %lld pads %lld %lld extra %lld",
                  (long long)self->extent[i], (long long)self->kernel[i], (long long)self->stride[i],
                  (long long)self->dilation[i], (long long)self->pads[i],
                  (long long)self->pads[self->rank + i], (long long)self->extra[i]);
    return base_text_str(cx, &t);
}

static void compare(const transposed *self, const char *by, const float *found)
{
    int64_t n = self->batch * self->group * self->out * product(self->result, self->rank);

    for (int64_t i = 0; i < n; i++)
        cr_assert(fabsf(found[i] - self->y[i]) <= 1e-4f * (1 + fabsf(self->y[i])),
                  "%s, seed %llu: element %lld is %g, expected %g\n%s", by, (unsigned long long)seed,
                  (long long)i, (double)found[i], (double)self->y[i], text_of(self));
}

/* Compiled; the batch becomes known when it runs. */
static void run_case(const transposed *self, graph_module *module)
{
    int64_t shape[MOST_SPACE + 2] = {self->batch, self->group * self->in};
    tec_error err = {0};
    compiled c = compile_model(module);

    for (int i = 0; i < self->rank; i++)
        shape[2 + i] = self->extent[i];
    const DLTensor in = tensor_of(f32, self->x, 2 + self->rank, shape);
    cr_assert(tec_executor_set_input(c.executor, 0, &in, &err) && tec_executor_run(c.executor, &err), "%s",
              err.text);
    const DLTensor *y = tec_executor_output(c.executor, 0);
    for (int i = 0; i < self->rank; i++)
        cr_assert_eq(y->shape[2 + i], self->result[i], "dimension %d has %lld elements, expected %lld\n%s",
                     2 + i, (long long)y->shape[2 + i], (long long)self->result[i], text_of(self));
    compare(self, "compiled", y->data);
    discard(&c);
}

Test(transposed, random_cases)
{
    for (uint64_t k = 1; k <= 60; k++) {
        seed = k * 104729;
        transposed t = random_case();

        compute(&t);
        run_case(&t, model_of(&t));
    }
}

/* The bias is read as a list of channels before a convolution would hold it against them. */
Test(transposed, a_bias_without_a_dimension_is_refused)
{
    open_model(13);
    input("x", 1, "1", "2", "4");
    input("w", 1, "2", "3", "2");
    input_of("b", 1, (const char *const[]){NULL});
    node("ConvTranspose", "x,w,b", "y", INTS("strides", 2));
    output("y");
    refused(TEC_INVALID,
            "m.onnx: error: node 'the_y' (ConvTranspose): the bias is f32[], expected one dimension");
}
