/* tests/graph/pieces.c -- results that are chosen by their place along one axis: each piece has loops of its
 * own, and none of them chooses.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "lower/pass.h"
#include "space/space.h"
#include "te/text.h"

static const char *const avx512 = "llvm -mcpu=x86-64-v4 -num-cores=2";
static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(pieces, .init = open_context, .fini = close_context);

static const ir_program *tree_of(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    return te_tree(cx, f->defs.at[0]);
}

static const sched *default_of(const char *text)
{
    const sched *s = space_default(cx, tree_of(text), target_parse(cx, avx512));

    cr_assert(s, "%s", tec_context_error(cx));
    cr_assert_not(sched_failed(s), "%s", sched_error(s));
    return s;
}

static const char *lowered(const sched *s)
{
    lower_options o = {.cx = cx, .target = target_parse(cx, avx512)};
    const ir_program *p = lower_run(&o, sched_tree(s));

    cr_assert(p, "%s", tec_context_error(cx));
    return ir_program_text(cx, p);
}

/* `n` operands of `rows` x `length` elements, one beside another. */
static const char *beside(int n, int rows, int length)
{
    base_text head = {0}, body = {0};

    for (int k = 0; k < n; k++) {
        base_addf(cx, &head, "%sA%d: f32[%d, %d]", k ? ", " : "", k, rows, length);
        if (k < n - 1)
            base_addf(cx, &body, "select(x < %d, A%d[y, x - %d], ", (k + 1) * length, k, k * length);
        else
            base_addf(cx, &body, "A%d[y, x - %d]", k, k * length);
    }
    for (int k = 0; k < n - 1; k++)
        base_addf(cx, &body, ")");
    return base_format(cx, "def f(%s) {\n  Y[y: %d, x: %d] = %s\n  return Y\n}\n", base_text_str(cx, &head),
                       rows, n * length, base_text_str(cx, &body));
}

/* The trace of the default schedule has these steps, and no loop of the lowered program chooses. */
static void cuts(const char *text, const char *steps)
{
    const sched *s = default_of(text);
    const char *trace = sched_trace_text(cx, s), *low = lowered(s);

    for (char *step = strtok(base_strdup(cx, steps), "\n"); step; step = strtok(NULL, "\n"))
        cr_assert(strstr(trace, step), "expected '%s' in\n%s", step, trace);
    cr_assert_not(strstr(low, "select"), "%s", low);
}

/* The trace of the default schedule has the step, and some loop of the lowered program chooses nothing: it
 * stores vectors of operand A as they are. */
static void copies(const char *text, const char *step)
{
    const sched *s = default_of(text);
    const char *low = lowered(s);

    cr_assert(strstr(sched_trace_text(cx, s), step), "expected '%s' in\n%s", step, sched_trace_text(cx, s));
    cr_assert(strstr(low, ", 1, 16)] = A[ramp("), "%s", low);
}

Test(pieces, of_many_rows_are_inside_of_the_parallel_loop_over_rows)
{
    cuts(beside(4, 512, 250),
         "parallel(Y.y)\nY.x.0, Y.x.1 = cut(Y.x, 500)\nY.x.0.0, Y.x.0.1 = cut(Y.x.0, 250)\n"
         "Y.x.1.0, Y.x.1.1 = cut(Y.x.1, 250)");
    cuts(beside(20, 512, 16), "parallel(Y.y)\n");
}

Test(pieces, of_few_long_rows_are_apart_and_go_through_memory_as_one_loop)
{
    cuts(
        "def f(A: f32[8, 64, 56, 56], B: f32[8, 32, 56, 56]) {\n"
        "  Y[n: 8, c: 96, h: 56, w: 56] = select(c < 64, A[n, c, h, w], B[n, c - 64, h, w])\n  return Y\n}\n",
        "reorder(Y.c, Y.n)\nY.c.0, Y.c.1 = cut(Y.c, 64)\nreorder(Y.n, Y.c.0)\nY.h~Y.w = fuse(Y.h, Y.w)\n"
        "parallel(Y.n~Y.c.0)");
}

/* A bias makes the index data: the loops over the image stay what they are. */
Test(pieces, that_use_their_place_as_data_keep_their_loops)
{
    const char *text = "def f(A: f32[8, 64, 56, 56], B: f32[8, 32, 56, 56], b: f32[56]) {\n"
                       "  Y[n: 8, c: 96, h: 56, w: 56] = select(c < 64, A[n, c, h, w], B[n, c - 64, h, w]) + "
                       "b[w]\n  return Y\n}\n";

    cuts(text, "cut(Y.c, 64)");
    cr_assert_not(strstr(sched_trace_text(cx, default_of(text)), "fuse(Y.h, Y.w"));
}

Test(pieces, along_the_first_axis_have_nests_of_their_own)
{
    cuts("def f(A: f32[3, 40], B: f32[2, 40]) {\n"
         "  Y[y: 5, x: 40] = select(y >= 3, B[y - 3, x], A[y, x])\n  return Y\n}\n",
         "Y.y.0, Y.y.1 = cut(Y.y, 3)");
}

/* Rows of unknown number are many. */
Test(pieces, stand_beside_symbolic_extents)
{
    cuts("def f(n, A: f32[n, 40], B: f32[n, 7]) {\n"
         "  Y[y: n, x: 47] = select(x <= 39, A[y, x], B[y, x - 40])\n  return Y\n}\n",
         "parallel(Y.y)\nY.x.0, Y.x.1 = cut(Y.x, 40)");
    cuts("def f(n, A: f32[8, 40, n], B: f32[8, 7, n]) {\n"
         "  Y[y: 8, x: 47, z: n] = select(x < 40, A[y, x, z], B[y, x - 40, z])\n  return Y\n}\n",
         "Y.x.0, Y.x.1 = cut(Y.x, 40)");
}

/* The edges of padding are cut off by a pass, which finds them in any schedule; a condition that always or
 * never holds chooses nothing. */
Test(pieces, are_no_padding)
{
    cr_assert_not(
        strstr(sched_trace_text(cx, default_of("def f(A: f32[64, 40]) {\n  Y[y: 64, x: 50] = select(x < "
                                               "40, A[y, x], 0.0)\n  return Y\n}\n")),
               "cut("));
    cr_assert_not(
        strstr(sched_trace_text(cx, default_of("def f(A: f32[64, 40], B: f32[64, 40]) {\n  Y[y: 64, x: "
                                               "40] = select(x < 40, A[y, x], B[y, x])\n  return Y\n}\n")),
               "cut("));
}

/* Each piece is code: of more than 64, two or more stay together. */
Test(pieces, are_not_more_than_64)
{
    const char **name;

    cr_assert_eq(sched_blocks(default_of(beside(66, 16, 2)), &name), 33);
}

/* Those that stay together are chosen between by loops, not by elements. */
Test(pieces, of_which_some_stay_together_are_copied_by_loops)
{
    cuts(beside(66, 16, 16), "parallel(Y.y)");
}

/* Where an operand of unknown length ends a schedule cannot cut. The pass `partition` does, as long as the
 * loop over the axis is not fused with the loops around it. */
Test(pieces, of_unknown_length_are_copied_by_loops)
{
    copies("def f(b, n, m, A: f32[b, n, 64], B: f32[b, m, 64]) {\n"
           "  Y[y: b, x: n + m, z: 64] = select(x < n, A[y, x, z], B[y, x - n, z])\n  return Y\n}\n",
           "parallel(Y.y)\n");
    copies("def f(n, A: f32[1, 8, n, 64], B: f32[1, 8, 1, 64]) {\n"
           "  Y[b: 1, h: 8, x: n + 1, z: 64] = select(x < n, A[b, h, x, z], B[b, h, x - n, z])\n"
           "  return Y\n}\n",
           "parallel(Y.b~Y.h)\n");
    /* Without rows the axis itself runs in parallel. */
    copies("def f(n, m, A: f32[1, n, 64], B: f32[1, m, 64]) {\n"
           "  Y[b: 1, x: n + m, z: 64] = select(x >= n, B[b, x - n, z], A[b, x, z])\n  return Y\n}\n",
           "parallel(Y.b~Y.x)\n");
}

/* `many` operands of unknown length along the last axis, f32[y, p0], f32[y, p1], ...; along the first axis,
 * f32[p0, y], f32[p1, y], ... */
static const char *joined(int many, bool last)
{
    base_text head = {0}, body = {0}, start = {0};

    base_add(cx, &head, "def f(y");
    for (int k = 0; k < many; k++)
        base_addf(cx, &head, ", p%d", k);
    for (int k = 0; k < many; k++) {
        base_addf(cx, &head, last ? ", A%d: f32[y, p%d]" : ", A%d: f32[p%d, y]", k, k);
        const char *from = k ? base_text_str(cx, &start) : "0";
        const char *read = base_format(cx, last ? "A%d[i, j - (%s)]" : "A%d[j - (%s), i]", k, from);

        base_addf(cx, &start, "%sp%d", k ? " + " : "", k);
        base_addf(cx, &body, k < many - 1 ? "select(j < %s, %s, " : "%.0s%s", base_text_str(cx, &start),
                  read);
    }
    for (int k = 0; k < many - 1; k++)
        base_add(cx, &body, ")");
    return base_format(
        cx, "%s) {\n  Y[%s%s] = %s\n  return Y\n}\n", base_text_str(cx, &head),
        last ? "i: y, j: " : "j: ", base_format(cx, last ? "%s" : "%s, i: y", base_text_str(cx, &start)),
        base_text_str(cx, &body));
}

/* Several operands of unknown length: the schedule cuts at symbols, and no loop chooses. */
Test(pieces, of_unknown_length_are_cut_apart)
{
    cuts(joined(4, true),
         "parallel(Y.i)\nY.j.0, Y.j.1 = cut(Y.j, p0 + p1)\nY.j.0.0, Y.j.0.1 = cut(Y.j.0, p0)\n"
         "Y.j.1.0, Y.j.1.1 = cut(Y.j.1, p2)");
    cuts(joined(3, false), "Y.j.0, Y.j.1 = cut(Y.j, p0 + p1)\nparallel(Y.j.0.0)\nparallel(Y.j.0.1)\n"
                           "parallel(Y.j.1)");
    /* Vectors along the axis: one in the middle would be of both pieces. */
    cuts(joined(2, true), "cut(Y.j, p0)");
    cuts("def f(n, A: f32[64, 3], B: f32[64, n], C: f32[64, n]) {\n"
         "  Y[y: 64, x: 2 * n + 3] = select(x >= n + 3, C[y, x - n - 3], select(x <= 2, A[y, x], B[y, x - "
         "3]))\n"
         "  return Y\n}\n",
         "Y.x.0, Y.x.1 = cut(Y.x, n + 3)\nY.x.0.0, Y.x.0.1 = cut(Y.x.0, 3)");
}

/* A place that may lie outside, or that memory decides, is none to cut at. */
Test(pieces, end_where_a_proof_says_so)
{
    static const char *const texts[] = {
        "def f(n, m, A: f32[64, n], B: f32[64, n]) {\n"
        "  Y[y: 64, x: n] = select(x < m, A[y, x], B[y, x])\n  return Y\n}\n",
        "def f(n, I: i64[1], A: f32[64, n], B: f32[64, n]) {\n"
        "  Y[y: 64, x: n] = select(x < I[0], A[y, x], B[y, x])\n  return Y\n}\n"};

    for (int i = 0; i < BASE_COUNT(texts); i++)
        cr_assert_not(strstr(sched_trace_text(cx, default_of(texts[i])), "cut("), "%s", texts[i]);
}

/* ---- values ---- */

static ir_array array_for(const ir_buffer *buffer, int first)
{
    ir_array a = {.dtype = buffer->dtype, .n = buffer->n};
    int64_t size = 1;

    for (int i = 0; i < a.n; i++) {
        cr_assert(ir_is_int(buffer->shape[i], &a.shape[i]));
        size *= a.shape[i];
    }
    float *data = base_array(cx, float, size);
    for (int64_t i = 0; i < size; i++)
        data[i] = (float)(first + i);
    a.data = data;
    return a;
}

/* Runs the tree on operands whose elements are all different; gives the result's elements. */
static const float *result_of(const ir_program *tree, int64_t *size)
{
    ir_array *array = base_array(cx, ir_array, tree->n_params);
    ir_arg *arg = base_array(cx, ir_arg, tree->n_params);

    for (int i = 0; i < tree->n_params; i++) {
        array[i] = array_for(tree->params[i].buffer, i == tree->n_params - 1 ? -1 : i * 1000);
        arg[i].array = &array[i];
    }
    cr_assert(ir_interpret(cx, tree, &(ir_run){.args = arg}), "%s", tec_context_error(cx));
    *size = 1;
    for (int d = 0; d < array[tree->n_params - 1].n; d++)
        *size *= array[tree->n_params - 1].shape[d];
    return array[tree->n_params - 1].data;
}

/* Every point of the space is a schedule that computes what the definition says. */
static void all_points_agree(const char *text)
{
    const ir_program *tree = tree_of(text);
    space *sp = space_master(cx, tree, target_parse(cx, avx512));
    int64_t size, same;
    const float *expected = result_of(tree, &size);
    space_number at = 0;
    space_point p;
    int n = 0;

    cr_assert_geq(space_knob_named(sp, "Y.pieces"), 0);
    for (; space_next(cx, sp, &at, &p); n++) {
        sched *s = space_apply(cx, sp, &p);

        cr_assert_not(sched_failed(s), "%s at %s", sched_error(s), space_point_text(cx, sp, &p));
        const float *found = result_of(sched_tree(s), &same);
        cr_assert_eq(memcmp(found, expected, (size_t)size * sizeof *found), 0, "%s\n%s",
                     space_point_text(cx, sp, &p), ir_program_text(cx, sched_tree(s)));
    }
    cr_assert_gt(n, 10);
}

Test(pieces, of_every_point_compute_the_same)
{
    all_points_agree(beside(3, 4, 21));
    all_points_agree("def f(A: f32[2, 3, 2, 17], B: f32[2, 4, 2, 17]) {\n"
                     "  Y[n: 2, c: 7, h: 2, w: 17] = select(c < 3, A[n, c, h, w], B[n, c - 3, h, w])\n"
                     "  return Y\n}\n");
    all_points_agree("def f(A: f32[3, 19], B: f32[2, 19]) {\n"
                     "  Y[y: 5, x: 19] = select(y < 3, A[y, x], B[y - 3, x])\n  return Y\n}\n");
}

/* More than 64 pieces, of which two stay together, in vectors that reach over their ends. */
Test(pieces, that_stay_together_compute_the_same)
{
    const char *text = beside(70, 3, 7);
    int64_t size, same;
    const float *expected = result_of(tree_of(text), &size),
                *found = result_of(sched_tree(default_of(text)), &same);

    cr_assert_eq(size, 3 * 70 * 7);
    cr_assert_eq(memcmp(found, expected, (size_t)size * sizeof *found), 0);
}

/* Operands f32[b, n, 5] and f32[b, m, 5], and their concatenation along the second axis, by the program;
 * `flat`: it is lowered, and its buffers have one dimension. */
static void joins(const ir_program *program, bool flat, int b, int n, int m)
{
    enum { LAST = 5 };
    static const char *const names[] = {"b", "n", "m"};
    const int lengths[] = {n, m, n + m};
    ir_array array[3];
    ir_arg arg[3] = {0};
    float *x[3];

    for (int k = 0; k < 3; k++) {
        int64_t size = (int64_t)b * lengths[k] * LAST;

        x[k] = base_array(cx, float, size + 1);
        for (int64_t i = 0; i < size; i++)
            x[k][i] = k < 2 ? (float)(1000 * k + i) : -1.0F;
        array[k] = flat ? (ir_array){.dtype = BASE_F32, .n = 1, .shape = {size}, .data = x[k]}
                        : (ir_array){.dtype = BASE_F32, .n = 3, .shape = {b, lengths[k], LAST}, .data = x[k]};
        arg[k].array = &array[k];
    }
    cr_assert(ir_interpret(cx, program,
                           &(ir_run){.args = arg,
                                     .symbol_name = names,
                                     .symbol_value = (const int64_t[]){b, n, m},
                                     .n_symbols = 3}),
              "%d, %d, %d: %s", b, n, m, tec_context_error(cx));
    for (int y = 0; y < b; y++)
        for (int at = 0; at < n + m; at++)
            for (int z = 0; z < LAST; z++)
                cr_assert_eq(x[2][(y * (n + m) + at) * LAST + z],
                             at < n ? x[0][(y * n + at) * LAST + z] : x[1][(y * m + at - n) * LAST + z],
                             "%d, %d, %d at %d, %d, %d", b, n, m, y, at, z);
}

enum { MOST_OPERANDS = 5 };

/* Operands with these lengths along one axis and `rows` along the other, and their concatenation, by the
 * program; `flat` as above. */
static void joins_all(const ir_program *program, bool flat, bool last, int rows, const int *length, int many)
{
    const char *names[MOST_OPERANDS + 1] = {"y"};
    int64_t values[MOST_OPERANDS + 1] = {rows};
    ir_array array[MOST_OPERANDS + 1];
    ir_arg arg[MOST_OPERANDS + 1] = {0};
    float *x[MOST_OPERANDS + 1];
    int sum = 0;

    for (int k = 0; k <= many; k++) {
        int n = k < many ? length[k] : sum;
        int64_t size = (int64_t)rows * n;

        sum += n;
        x[k] = base_array(cx, float, size + 1);
        for (int64_t i = 0; i < size; i++)
            x[k][i] = k < many ? (float)(1000 * k + i) : -1.0F;
        array[k] =
            flat ? (ir_array){.dtype = BASE_F32, .n = 1, .shape = {size}, .data = x[k]}
                 : (ir_array){
                       .dtype = BASE_F32, .n = 2, .shape = {last ? rows : n, last ? n : rows}, .data = x[k]};
        arg[k].array = &array[k];
        if (k < many) {
            names[k + 1] = base_format(cx, "p%d", k);
            values[k + 1] = n;
        }
    }
    sum /= 2;
    cr_assert(
        ir_interpret(
            cx, program,
            &(ir_run){.args = arg, .symbol_name = names, .symbol_value = values, .n_symbols = many + 1}),
        "%s", tec_context_error(cx));
    for (int i = 0; i < rows; i++)
        for (int k = 0, at = 0; k < many; at += length[k++])
            for (int j = 0; j < length[k]; j++)
                cr_assert_eq(x[many][last ? i * sum + at + j : (at + j) * rows + i],
                             x[k][last ? i * length[k] + j : j * rows + i], "operand %d at %d, %d", k, i, j);
}

Test(pieces, of_unknown_length_that_are_cut_apart_compute_the_same)
{
    static const int lengths[][MOST_OPERANDS] = {
        {1, 1, 1, 1, 1}, {3, 0, 16, 17, 2}, {0, 0, 0, 0, 7}, {40, 1, 0, 5, 0}, {16, 16, 16, 16, 16}};

    for (int many = 2; many <= MOST_OPERANDS; many++)
        for (int last = 0; last < 2; last++) {
            const sched *s = default_of(joined(many, last));
            lower_options o = {.cx = cx, .target = target_parse(cx, avx512)};
            const ir_program *low = lower_run(&o, sched_tree(s));

            cr_assert(low, "%s", tec_context_error(cx));
            for (int i = 0; i < BASE_COUNT(lengths); i++)
                for (int rows = 0; rows <= 18; rows += 9) {
                    joins_all(sched_tree(s), false, last, rows, lengths[i], many);
                    joins_all(low, true, last, rows, lengths[i], many);
                }
        }
}

Test(pieces, of_unknown_length_compute_the_same)
{
    const char *text =
        "def f(b, n, m, A: f32[b, n, 5], B: f32[b, m, 5]) {\n"
        "  Y[y: b, x: n + m, z: 5] = select(x < n, A[y, x, z], B[y, x - n, z])\n  return Y\n}\n";
    static const int sizes[][3] = {{1, 1, 1}, {3, 7, 2}, {2, 0, 5}, {2, 5, 0}, {4, 16, 17}, {1, 33, 1}};
    const sched *s = default_of(text);
    lower_options o = {.cx = cx, .target = target_parse(cx, avx512)};
    const ir_program *low = lower_run(&o, sched_tree(s));

    cr_assert(low, "%s", tec_context_error(cx));
    for (int i = 0; i < (int)(sizeof sizes / sizeof sizes[0]); i++) {
        joins(sched_tree(s), false, sizes[i][0], sizes[i][1], sizes[i][2]);
        joins(low, true, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
}
