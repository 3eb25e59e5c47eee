/* bench/models/compare_scores.c -- holds a network's scores against reference scores, and both against true
 * labels.
 *
 *     compare_scores OURS.pb REFERENCE.pb [LABELS.txt]
 *
 * Exit 1 where they differ by more than |a-b| <= 1e-3*|b| + max(1e-7, 1e-6*max|b|), the tolerance of `tec
 * check`, or where fewer labels are right than with the reference. A label is right where its score is the
 * largest of its row.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/onnx/onnx.h"

typedef struct {
    const float *at;
    int64_t rows, columns;
} scores;

static bool read_scores(tec_context *cx, const char *path, scores *out)
{
    const char *name;
    const op_constant *c = onnx_read_tensor(cx, path, &name);

    if (!c)
        return false;
    if (c->type.n != 2 || !base_dtype_same(c->type.dtype, BASE_F32) ||
        !ir_is_int(c->type.dim[0], &out->rows) || !ir_is_int(c->type.dim[1], &out->columns)) {
        base_fail(cx, TEC_INVALID, (base_loc){.file = path}, "expected f32[images, classes], found %s",
                  op_type_text(cx, &c->type));
        return false;
    }
    out->at = c->data;
    return true;
}

static bool compare(const scores *ours, const scores *reference)
{
    int64_t n = ours->rows * ours->columns, worst = 0;
    double most = 0, over = -1;

    if (ours->rows != reference->rows || ours->columns != reference->columns) {
        printf("scores   %lld x %lld, the reference has %lld x %lld\n", (long long)ours->rows,
               (long long)ours->columns, (long long)reference->rows, (long long)reference->columns);
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)reference->at[i]));
    for (int64_t i = 0; i < n; i++) {
        double b = reference->at[i],
               excess = fabs((double)ours->at[i] - b) / (1e-3 * fabs(b) + fmax(1e-7, 1e-6 * most));

        if (!(excess <= over)) {
            over = excess;
            worst = i;
        }
    }
    printf("scores   %lld numbers up to %.4g; the worst is %.9g where the reference has %.9g: %s\n",
           (long long)n, most, (double)ours->at[worst], (double)reference->at[worst],
           over <= 1 ? "equal within the tolerance" : "DIFFERENT");
    return over <= 1;
}

static int count_right(const scores *s, const int *label)
{
    int right = 0;

    for (int64_t r = 0; r < s->rows; r++) {
        const float *row = s->at + r * s->columns;
        int64_t best = 0;

        for (int64_t c = 1; c < s->columns; c++)
            best = row[c] > row[best] ? c : best;
        right += best == label[r];
    }
    return right;
}

static bool compare_labels(tec_context *cx, const char *path, const scores *ours, const scores *reference)
{
    int *label = base_array(cx, int, ours->rows);
    FILE *f = fopen(path, "r");
    bool good = f != NULL;

    for (int64_t r = 0; good && r < ours->rows; r++)
        good = fscanf(f, "%d", &label[r]) == 1;
    if (f)
        fclose(f);
    if (!good) {
        fprintf(stderr, "compare_scores: %s: expected %lld labels\n", path, (long long)ours->rows);
        return false;
    }
    int right = count_right(ours, label), before = count_right(reference, label);
    printf("labels   %d of %lld right; the reference has %d\n", right, (long long)ours->rows, before);
    return right >= before;
}

int main(int argc, char **argv)
{
    tec_context *cx = tec_context_new();
    scores ours, reference;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: compare_scores OURS.pb REFERENCE.pb [LABELS.txt]\n");
        return 2;
    }
    if (!read_scores(cx, argv[1], &ours) || !read_scores(cx, argv[2], &reference)) {
        fprintf(stderr, "compare_scores: %s\n", tec_context_error(cx));
        return 1;
    }
    bool good = compare(&ours, &reference);
    if (good && argc > 3)
        good = compare_labels(cx, argv[3], &ours, &reference);
    tec_context_free(cx);
    return good ? 0 : 1;
}
