/* bench/shapes.h -- the convolutions of Table 2 of the TVM paper (OSDI 2018): C1 to C12 are those of
 * ResNet-18, D1 to D9 the depthwise ones of MobileNet. Batch 1, float; the output has ceil(extent / stride)
 * rows and columns, an odd row or column of padding is the last.
 *
 *     const bench_conv *c = bench_conv_named("C2");
 */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t extent, in, out, kernel, stride;
    int depthwise;
} bench_conv;

static const bench_conv bench_convs[] = {
    {"C1", 224, 3, 64, 7, 2, 0},    {"C2", 56, 64, 64, 3, 1, 0},    {"C3", 56, 64, 64, 1, 1, 0},
    {"C4", 56, 64, 128, 3, 2, 0},   {"C5", 56, 64, 128, 1, 2, 0},   {"C6", 28, 128, 128, 3, 1, 0},
    {"C7", 28, 128, 256, 3, 2, 0},  {"C8", 28, 128, 256, 1, 2, 0},  {"C9", 14, 256, 256, 3, 1, 0},
    {"C10", 14, 256, 512, 3, 2, 0}, {"C11", 14, 256, 512, 1, 2, 0}, {"C12", 7, 512, 512, 3, 1, 0},
    {"D1", 112, 32, 32, 3, 1, 1},   {"D2", 112, 64, 64, 3, 2, 1},   {"D3", 56, 128, 128, 3, 1, 1},
    {"D4", 56, 128, 128, 3, 2, 1},  {"D5", 28, 256, 256, 3, 1, 1},  {"D6", 28, 256, 256, 3, 2, 1},
    {"D7", 14, 512, 512, 3, 1, 1},  {"D8", 14, 512, 512, 3, 2, 1},  {"D9", 7, 1024, 1024, 3, 1, 1},
};

static inline const bench_conv *bench_conv_named(const char *name)
{
    for (size_t i = 0; i < sizeof bench_convs / sizeof *bench_convs; i++)
        if (strcmp(bench_convs[i].name, name) == 0)
            return &bench_convs[i];
    fprintf(stderr, "no convolution is called '%s'; there are C1 to C12 and D1 to D9\n", name);
    return NULL;
}

static inline int64_t bench_conv_out(const bench_conv *c)
{
    return (c->extent + c->stride - 1) / c->stride;
}

/* In front of the first row and column; `after` gets what is behind the last. */
static inline int64_t bench_conv_pad(const bench_conv *c, int64_t *after)
{
    int64_t pad = (bench_conv_out(c) - 1) * c->stride + c->kernel - c->extent;

    pad = pad > 0 ? pad : 0;
    *after = pad - pad / 2;
    return pad / 2;
}

/* Input channels that one output channel sees. */
static inline int64_t bench_conv_depth(const bench_conv *c)
{
    return c->depthwise ? 1 : c->in;
}

/* A multiply-add is two; taps on padding count. */
static inline double bench_conv_flops(const bench_conv *c)
{
    int64_t o = bench_conv_out(c);

    return 2.0 * (double)(o * o * c->kernel * c->kernel * bench_conv_depth(c) * c->out);
}

/* Seeded numbers between -0.5 and 0.5. */
static inline void bench_fill(float *x, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

/* What relu(bias[o] + sum in[c][y][x] * w[o][c][ky][kx]) is, tensors plain: nested loops. */
static inline void bench_conv_reference(const bench_conv *c, const float *in, const float *w,
                                        const float *bias, float *out)
{
    int64_t n = bench_conv_out(c), after, pad = bench_conv_pad(c, &after), depth = bench_conv_depth(c);

    for (int64_t o = 0; o < c->out; o++)
        for (int64_t y = 0; y < n; y++)
            for (int64_t x = 0; x < n; x++) {
                float sum = bias[o];

                for (int64_t i = 0; i < depth; i++)
                    for (int64_t ky = 0; ky < c->kernel; ky++)
                        for (int64_t kx = 0; kx < c->kernel; kx++) {
                            int64_t py = y * c->stride + ky - pad, px = x * c->stride + kx - pad;

                            if (py >= 0 && py < c->extent && px >= 0 && px < c->extent)
                                sum += in[((c->depthwise ? o : i) * c->extent + py) * c->extent + px] *
                                       w[((o * depth + i) * c->kernel + ky) * c->kernel + kx];
                        }
                out[(o * n + y) * n + x] = sum > 0 ? sum : 0;
            }
}

#endif
