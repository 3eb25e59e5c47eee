/* tests/targets/llvm/walkers.c -- pointers that walk with a loop: random innermost loops against the
 * interpreter, and the text that comes of one.
 *
 * Indices are sums of the loop's variable, of one around it and of an opaque one (a remainder), with factors
 * of both signs, so that some accesses share a pointer, some have their own, and some cannot have any.
 */
#include "ir/interp/interp.h"
#include "ir/reason/facts.h"
#include "ir/text.h"
#include "tests/targets/llvm/run.h"

enum { SIZE = 512, CASES = 60 };

static tec_context *cx;
static uint64_t state;

static void set_up(void)
{
    cx = tec_context_new();
    state = 7;
}

static void tear_down(void)
{
    tec_context_free(cx);
}

TestSuite(walkers, .init = set_up, .fini = tear_down);

static int64_t below(int64_t n)
{
    return base_random_below(&state, n);
}

static const ir_expr *times(const ir_expr *v, int64_t factor)
{
    return ir_mul(cx, v, ir_int(cx, factor));
}

/* Anywhere in the arrays: factors are small and the middle is far from both ends. */
static const ir_expr *random_index(const ir_expr *i, const ir_expr *k)
{
    const ir_expr *e = ir_int(cx, SIZE / 2 + 8 * (below(5) - 2));

    e = ir_add(cx, e, times(k, below(7) - 3));
    e = below(2) ? ir_add(cx, e, times(i, below(9) - 4)) : e;
    if (below(4) == 0)
        e = ir_add(cx, e, ir_floormod(cx, below(2) ? i : k, ir_int(cx, 3)));
    return e;
}

static const ir_expr *random_value(const ir_buffer *a, const ir_buffer *b, const ir_expr *i, const ir_expr *k)
{
    const ir_expr *v = ir_imm(cx, BASE_F32, 1);

    for (int64_t n = 1 + below(4); n > 0; n--)
        v = ir_add(cx, v, load_at(cx, below(2) ? a : b, random_index(i, k)));
    return v;
}

/* Four lanes at once. */
static const ir_stmt *random_copy(const ir_buffer *from, const ir_buffer *to, const ir_expr *i,
                                  const ir_expr *k)
{
    const ir_expr *at = random_index(i, k);

    return store_at(cx, to, lanes_from(cx, at, 4),
                    load_at(cx, from, ir_ramp(cx, random_index(i, k), ir_int(cx, below(3)), 4)));
}

/* C = A; for i { for k in first..last { A or B or C [index] = ... } [and once more] }; some loops do not
 * run. */
static const ir_stmt *random_loops(const ir_buffer *const *buffers)
{
    const ir_expr *i = ir_var(cx, "i", BASE_I64), *k = ir_var(cx, "k", BASE_I64),
                  *x = ir_var(cx, "x", BASE_I64);
    const ir_stmt *body =
        store_at(cx, buffers[2], random_index(i, k), random_value(buffers[0], buffers[1], i, k));

    if (below(2))
        body = ir_seq(cx,
                      (const ir_stmt *const[]){body, store_at(cx, buffers[2], random_index(i, k),
                                                              random_value(buffers[0], buffers[2], i, k))},
                      2);
    if (below(2))
        body =
            ir_seq(cx, (const ir_stmt *const[]){body, random_copy(buffers[below(2)], buffers[2], i, k)}, 2);
    if (below(3) == 0)
        body = ir_let_stmt(cx, x, ir_add(cx, k, ir_int(cx, 5)),
                           ir_seq(cx,
                                  (const ir_stmt *const[]){body, store_at(cx, buffers[2], times(x, 3),
                                                                          load_at(cx, buffers[1], x))},
                                  2));
    if (below(3) == 0)
        body = ir_if(cx, ir_lt(cx, k, ir_int(cx, below(12))), body, NULL);
    body = ir_for(cx, k, ir_int(cx, below(3)), ir_add(cx, times(i, below(2)), ir_int(cx, below(9))),
                  IR_SERIAL, body);
    body = ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 6), IR_SERIAL, body);
    const ir_stmt *whole = ir_for(cx, x, ir_int(cx, 0), ir_int(cx, SIZE), IR_SERIAL,
                                  store_at(cx, buffers[2], x, load_at(cx, buffers[0], x)));
    return ir_seq(cx, (const ir_stmt *const[]){whole, body}, 2);
}

static void fill(float *data, int seed)
{
    for (int i = 0; i < SIZE; i++)
        data[i] = (float)((i * 7 + seed) % 13 - 6);
}

Test(walkers, reach_what_indices_say)
{
    static float data[2][3][SIZE];

    for (int c = 0; c < CASES; c++) {
        const ir_buffer *buffers[3] = {array(cx, "A", BASE_F32, SIZE), array(cx, "B", BASE_F32, SIZE),
                                       array(cx, "C", BASE_F32, SIZE)};
        const ir_program *p = program_of(cx, "walk", buffers, 3, random_loops(buffers));
        ir_array arrays[3];
        ir_arg args[3];

        for (int side = 0; side < 2; side++)
            for (int b = 0; b < 3; b++)
                fill(data[side][b], b);
        for (int b = 0; b < 3; b++) {
            arrays[b] = (ir_array){.data = data[0][b], .dtype = BASE_F32, .n = 1, .shape = {SIZE}};
            args[b] = (ir_arg){.array = &arrays[b]};
        }
        cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s\n%s", tec_context_error(cx),
                  ir_program_text(cx, p));
        kernel k = compile(cx, p, "native");
        cr_assert_eq(call(&k, (void *[]){data[1][0], data[1][1], data[1][2]}, NULL), 0);
        cr_assert(memcmp(data[0], data[1], sizeof data[0]) == 0, "case %d differs:\n%s", c,
                  ir_program_text(cx, p));
        close_kernel(&k);
    }
}

/* Six displacements of one pointer: neither six pointers nor a sum for each. */
Test(walkers, share_a_pointer_where_indices_differ_by_a_constant)
{
    const ir_expr *k = ir_var(cx, "k", BASE_I64), *sum = NULL;
    const ir_buffer *buffers[2] = {array(cx, "A", BASE_F32, SIZE), array(cx, "C", BASE_F32, SIZE)};

    for (int j = 0; j < 6; j++) {
        const ir_expr *x = load_at(cx, buffers[0], ir_add(cx, times(k, 4), ir_int(cx, 40 * j)));

        sum = sum ? ir_add(cx, sum, x) : x;
    }
    const ir_program *p =
        program_of(cx, "six", buffers, 2,
                   ir_for(cx, k, ir_int(cx, 0), ir_int(cx, 64), IR_SERIAL, store_at(cx, buffers[1], k, sum)));
    kernel six = compile(cx, p, "llvm -mcpu=x86-64-v3");
    const char *loop = strstr(target_code_text(six.code, "asm"), "\tvaddss"), *end = strstr(loop, "\tj");
    int adds = 0;

    for (const char *s = strstr(loop, "\taddq"); s && s < end; s = strstr(s + 1, "\taddq"))
        adds++;
    cr_assert_leq(adds, 2, "%d additions:\n%.*s", adds, (int)(end - loop), loop);
    close_kernel(&six);
}
