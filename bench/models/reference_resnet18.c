/* bench/models/reference_resnet18.c -- what ResNet-18 gives, by plain loops: the reference that shares no
 * code with the compiler.
 *
 *     reference_resnet18 DIR       // writes DIR/resnet18/test_data_set_0/output_0.pb
 *
 * Activations are float, sums are double. The weights come from weights.h, as those of the model that
 * write_resnet18 writes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/models/weights.h"

typedef struct {
    int channels, height, width;
    float *at; /* [channels][height][width] */
} image;

static void *get(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (!p) {
        fprintf(stderr, "reference_resnet18: out of memory\n");
        exit(1);
    }
    return p;
}

static size_t area(const image *x)
{
    return (size_t)x->height * (size_t)x->width;
}

static image new_image(int channels, int height, int width)
{
    image x = {channels, height, width, NULL};

    x.at = get((size_t)channels * area(&x), sizeof *x.at);
    return x;
}

static const char *join(char *buffer, size_t size, const char *a, const char *b)
{
    snprintf(buffer, size, "%s%s", a, b);
    return buffer;
}

/* ---- layers ---- */

/* sum += w * x, over the window's tap (ky, kx): output row y reads input row y*stride + ky - pad. */
static void add_tap(double *sum, const image *out, const float *x, const image *in, double w, int ky, int kx,
                    int stride, int pad)
{
    for (int y = 0; y < out->height; y++) {
        int row = y * stride + ky - pad;

        if (row < 0 || row >= in->height)
            continue;
        for (int c = 0; c < out->width; c++) {
            int column = c * stride + kx - pad;

            if (column >= 0 && column < in->width)
                sum[(size_t)y * (size_t)out->width + (size_t)c] +=
                    w * (double)x[(size_t)row * (size_t)in->width + (size_t)column];
        }
    }
}

static image convolve(image in, const char *name, int channels, int kernel, int stride)
{
    int pad = kernel / 2, taps = kernel * kernel;
    image out = new_image(channels, (in.height + 2 * pad - kernel) / stride + 1,
                          (in.width + 2 * pad - kernel) / stride + 1);
    size_t n = (size_t)channels * (size_t)in.channels * (size_t)taps;
    float *weight = get(n, sizeof *weight);
    double *sum = get(area(&out), sizeof *sum);

    weights_normal(name, weight, n, 0, sqrt(2.0 / (in.channels * taps)));
    for (int o = 0; o < channels; o++) {
        memset(sum, 0, area(&out) * sizeof *sum);
        for (int i = 0; i < in.channels; i++)
            for (int t = 0; t < taps; t++)
                add_tap(
                    sum, &out, in.at + (size_t)i * area(&in), &in,
                    (double)weight[((size_t)o * (size_t)in.channels + (size_t)i) * (size_t)taps + (size_t)t],
                    t / kernel, t % kernel, stride, pad);
        for (size_t k = 0; k < area(&out); k++)
            out.at[(size_t)o * area(&out) + k] = (float)sum[k];
    }
    free(weight);
    free(sum);
    return out;
}

static void normalise(image x, const char *name)
{
    size_t n = (size_t)x.channels;
    float *p = get(4 * n, sizeof *p);
    char buffer[64];

    weights_uniform(join(buffer, sizeof buffer, name, ".weight"), p, n, 0.5, 1.0);
    weights_normal(join(buffer, sizeof buffer, name, ".bias"), p + n, n, 0, 0.1);
    weights_normal(join(buffer, sizeof buffer, name, ".running_mean"), p + 2 * n, n, 0, 0.1);
    weights_uniform(join(buffer, sizeof buffer, name, ".running_var"), p + 3 * n, n, 0.5, 1.5);
    for (size_t c = 0; c < n; c++) {
        double scale = (double)p[c] / sqrt((double)p[3 * n + c] + (double)1e-5f);

        for (size_t k = c * area(&x); k < (c + 1) * area(&x); k++)
            x.at[k] = (float)(((double)x.at[k] - (double)p[2 * n + c]) * scale + (double)p[n + c]);
    }
    free(p);
}

static void rectify(image x)
{
    for (size_t k = 0; k < (size_t)x.channels * area(&x); k++)
        x.at[k] = x.at[k] > 0 ? x.at[k] : 0;
}

/* The largest of the 3x3 window around (y, x); outside there is nothing. */
static float largest(const image *in, int c, int y, int x)
{
    float most = -INFINITY;

    for (int row = y > 0 ? y - 1 : 0; row <= y + 1 && row < in->height; row++)
        for (int column = x > 0 ? x - 1 : 0; column <= x + 1 && column < in->width; column++) {
            float v = in->at[(size_t)c * area(in) + (size_t)row * (size_t)in->width + (size_t)column];

            most = v > most ? v : most;
        }
    return most;
}

static image pool(image in)
{
    image out = new_image(in.channels, (in.height - 1) / 2 + 1, (in.width - 1) / 2 + 1);

    for (int c = 0; c < out.channels; c++)
        for (int k = 0; k < out.height * out.width; k++)
            out.at[(size_t)c * area(&out) + (size_t)k] =
                largest(&in, c, 2 * (k / out.width), 2 * (k % out.width));
    return out;
}

/* Two 3x3 convolutions and what goes around them. Takes x. */
static image block(image x, const char *name, int channels, int stride)
{
    char part[64];
    image a = convolve(x, join(part, sizeof part, name, ".conv1.weight"), channels, 3, stride), skip = x;

    normalise(a, join(part, sizeof part, name, ".bn1"));
    rectify(a);
    image b = convolve(a, join(part, sizeof part, name, ".conv2.weight"), channels, 3, 1);
    normalise(b, join(part, sizeof part, name, ".bn2"));
    if (stride != 1) {
        skip = convolve(x, join(part, sizeof part, name, ".downsample.0.weight"), channels, 1, stride);
        normalise(skip, join(part, sizeof part, name, ".downsample.1"));
        free(x.at);
    }
    for (size_t k = 0; k < (size_t)b.channels * area(&b); k++)
        b.at[k] += skip.at[k];
    rectify(b);
    free(a.at);
    free(skip.at);
    return b;
}

static void classify(image x, float *scores, int n)
{
    size_t channels = (size_t)x.channels;
    float *weight = get((size_t)n * channels, sizeof *weight), *bias = get((size_t)n, sizeof *bias);
    double *mean = get(channels, sizeof *mean);

    weights_normal("fc.weight", weight, (size_t)n * channels, 0, sqrt(2.0 / (double)channels));
    weights_normal("fc.bias", bias, (size_t)n, 0, 0.1);
    for (size_t k = 0; k < channels * area(&x); k++)
        mean[k / area(&x)] += (double)x.at[k] / (double)area(&x);
    for (size_t o = 0; o < (size_t)n; o++) {
        double sum = (double)bias[o];

        for (size_t c = 0; c < channels; c++)
            sum += mean[c] * (double)weight[o * channels + c];
        scores[o] = (float)sum;
    }
    free(weight);
    free(bias);
    free(mean);
}

static void run(float *scores, int n)
{
    image x = new_image(3, 224, 224);

    weights_normal("input", x.at, 3 * area(&x), 0, 1);
    image a = convolve(x, "conv1.weight", 64, 7, 2);
    normalise(a, "bn1");
    rectify(a);
    image y = pool(a);
    free(x.at);
    free(a.at);
    for (int stage = 1; stage <= 4; stage++)
        for (int k = 0; k < 2; k++) {
            char name[32];

            snprintf(name, sizeof name, "layer%d.%d", stage, k);
            y = block(y, name, 32 << stage, stage > 1 && k == 0 ? 2 : 1);
        }
    classify(y, scores, n);
    free(y.at);
}

/* ---- a TensorProto by hand: dims (1), data_type (2) float, name (8), raw_data (9) ---- */

static void put_number(FILE *f, unsigned long n)
{
    for (; n >= 128; n >>= 7)
        fputc((int)(n & 127) | 128, f);
    fputc((int)n, f);
}

static void put_bytes(FILE *f, int field, const void *data, size_t size)
{
    put_number(f, (unsigned long)field << 3 | 2);
    put_number(f, size);
    fwrite(data, 1, size, f);
}

static void put_int(FILE *f, int field, unsigned long n)
{
    put_number(f, (unsigned long)field << 3);
    put_number(f, n);
}

static int write_scores(const char *path, const float *scores, int n)
{
    FILE *f = fopen(path, "wb");

    if (f) {
        put_int(f, 1, 1);
        put_int(f, 1, (unsigned long)n);
        put_int(f, 2, 1);
        put_bytes(f, 8, "output", 6);
        put_bytes(f, 9, scores, (size_t)n * sizeof *scores);
    }
    if (!f || ferror(f) || fclose(f) != 0) {
        fprintf(stderr, "reference_resnet18: %s: %s\n", path, strerror(errno));
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static float scores[1000];
    char path[4096];

    if (argc != 2) {
        fprintf(stderr, "usage: reference_resnet18 DIR\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/resnet18/test_data_set_0/output_0.pb", argv[1]);
    run(scores, 1000);
    return write_scores(path, scores, 1000);
}
