/* tests/ir/text.c -- printing and parsing: exact round trips of the documented examples and of random trees,
 * messages, hostile texts. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "ir/build.h"
#include "ir/make.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "tests/plain.h"

static const ir_program *parse(tec_context *cx, const char *text)
{
    return ir_parse_program(cx, "t.tir", text);
}

static const char *error_of(tec_context *cx, const char *text)
{
    const ir_program *p = parse(cx, text);
    return p ? "" : tec_context_error(cx);
}

Test(text, gives_the_documented_examples_back)
{
    tec_context *cx = tec_context_new();
    size_t size;
    const char *text = base_read_file(cx, TEC_SOURCE_DIR "/tests/ir/examples.tir", &size);
    const ir_program *p = parse(cx, text);

    cr_assert(p != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(str, (char *)ir_program_text(cx, p), (char *)text));
    cr_assert(ir_same_program(cx, p, parse(cx, ir_program_text(cx, p))));
    tec_context_free(cx);
}

Test(text, shows_the_documented_examples_in_the_manual)
{
    tec_context *cx = tec_context_new();
    size_t size;
    const char *text = base_read_file(cx, TEC_SOURCE_DIR "/tests/ir/examples.tir", &size);
    const char *manual = base_read_file(cx, TEC_SOURCE_DIR "/docs/ir.md", &size);

    cr_assert(strstr(manual, text) != NULL);
    tec_context_free(cx);
}

/* part'k = part'(k-1) * part'(k-1) + part'(k-1): in full, the value would have more than 3^k nodes. Bodies of
 * lets and reductions use the names of parts, but get none of their own. */
Test(text, has_parts_that_are_used_often_once)
{
    enum { PARTS = 24 };
    tec_context *cx = tec_context_new();
    base_text text = {0};
    const char *name = "part";

    base_add(cx, &text, "program f(x: f32, out C: f32[1]) {\n  C[0] = (share part = x * x * x + x in ");
    for (int i = 2; i <= PARTS; i++) {
        const char *next = base_format(cx, "part'%d", i);

        base_addf(cx, &text, "share %s = %s * %s + %s in ", next, name, name, name);
        name = next;
    }
    base_addf(cx, &text,
              "%s * %s + (let y = %s in (y + x + x) * (y + x + x) + part) + sum[k in 0..4](%s))\n}\n", name,
              name, name, name);
    const char *before = base_text_str(cx, &text);
    const ir_program *p = parse(cx, before);
    cr_assert(p != NULL, "%s", tec_context_error(cx));
    const char *after = ir_program_text(cx, p);
    cr_assert(eq(str, (char *)after, (char *)before));
    cr_assert(ir_same_program(cx, p, parse(cx, after)));
    tec_context_free(cx);
}

Test(text, refuses_a_part_without_a_name_or_an_end)
{
    static const char *const faults[][2] = {{"share = 1.0 in 2.0", "the name of a variable"},
                                            {"share a = 1.0", "'in'"},
                                            {"(share a = 1.0 in a) + a", "unknown variable 'a'"}};
    tec_context *cx = tec_context_new();

    for (int i = 0; i < 3; i++) {
        const char *text = base_format(cx, "program f(out C: f32[1]) { C[0] = %s }", faults[i][0]);

        cr_assert(strstr(error_of(cx, text), faults[i][1]) != NULL, "%s: %s", text, tec_context_error(cx));
        tec_context_clear(cx);
    }
    tec_context_free(cx);
}

/* ---- single expressions ---- */

typedef struct {
    tec_context *cx;
    ir_scope_table scope;
    const ir_expr *ints[3], *floats[2], *bools[2];
    const ir_buffer *A, *B;
} world;

static const ir_expr *add_var(world *w, const char *name, base_dtype t)
{
    const ir_expr *v = ir_var(w->cx, name, t);

    base_dict_put(w->cx, &w->scope.vars, name, v);
    return v;
}

static world make_world(void)
{
    world w = {.cx = tec_context_new()};

    w.ints[0] = add_var(&w, "i", BASE_I64);
    w.ints[1] = add_var(&w, "j", BASE_I64);
    w.ints[2] = add_var(&w, "C.x.0", BASE_I64);
    w.floats[0] = add_var(&w, "f", BASE_F32);
    w.floats[1] = add_var(&w, "g", BASE_F32);
    w.bools[0] = add_var(&w, "p", BASE_BOOL);
    w.bools[1] = add_var(&w, "q", BASE_BOOL);
    const ir_expr *shape[2] = {w.ints[0], w.ints[1]};
    w.A = ir_buffer_new(w.cx, "A", BASE_F32, shape, 2);
    w.B = ir_buffer_new(w.cx, "B", BASE_I64, shape, 1);
    base_dict_put(w.cx, &w.scope.buffers, "A", w.A);
    base_dict_put(w.cx, &w.scope.buffers, "B", w.B);
    return w;
}

static const ir_expr *parse_expr(world *w, const char *text)
{
    base_lexer *lx = base_lexer_new(w->cx, "t.tir", text);
    const ir_expr *e = ir_parse_expr(lx, &w->scope);

    return e && lx->tok.kind == BASE_TOK_END ? e : NULL;
}

static void check_text(world *w, const ir_expr *e, const char *text)
{
    const char *printed = ir_expr_text(w->cx, e);

    cr_expect(eq(str, (char *)printed, (char *)text));
    const ir_expr *back = parse_expr(w, printed);
    cr_assert(back != NULL, "%s: %s", text, tec_context_error(w->cx));
    cr_expect(ir_same(back, e), "%s", text);
}

static const ir_expr *raw2(world *w, ir_op op, const ir_expr *a, const ir_expr *b)
{
    return ir_op_raw(w->cx, op, (const ir_expr *[]){a, b});
}

static const ir_expr *raw1(world *w, ir_op op, const ir_expr *a)
{
    return ir_op_raw(w->cx, op, &a);
}

Test(text, keeps_the_shape_of_trees_by_parentheses)
{
    world w = make_world();
    const ir_expr *i = w.ints[0], *j = w.ints[1];

    check_text(&w, raw2(&w, IR_SUB, i, raw2(&w, IR_SUB, j, i)), "i - (j - i)");
    check_text(&w, raw2(&w, IR_SUB, raw2(&w, IR_SUB, i, j), i), "i - j - i");
    check_text(&w, raw2(&w, IR_MUL, raw2(&w, IR_ADD, i, j), i), "(i + j) * i");
    check_text(&w, raw1(&w, IR_NEG, raw2(&w, IR_ADD, i, j)), "-(i + j)");
    check_text(&w, raw1(&w, IR_NEG, raw1(&w, IR_NEG, i)), "--i");
    check_text(&w, raw1(&w, IR_NEG, ir_int(w.cx, 7)), "-(7)");
    check_text(&w, raw1(&w, IR_NEG, ir_int(w.cx, -7)), "-(-7)");
    check_text(&w, raw2(&w, IR_SUB, i, ir_int(w.cx, -7)), "i - -7");
    check_text(&w, raw2(&w, IR_AND, raw2(&w, IR_LT, i, j), raw2(&w, IR_OR, w.bools[0], w.bools[1])),
               "i < j && (p || q)");
    tec_context_free(w.cx);
}

Test(text, writes_immediates_exactly)
{
    world w = make_world();
    tec_context *cx = w.cx;

    check_text(&w, ir_int(cx, INT64_MIN), "-9223372036854775808");
    check_text(&w, ir_imm_int(cx, BASE_U64, -1), "u64(18446744073709551615)");
    check_text(&w, ir_imm_int(cx, BASE_I8, -128), "i8(-128)");
    check_text(&w, ir_imm(cx, BASE_F32, 0.1), "0.1");
    check_text(&w, ir_imm(cx, BASE_F32, -0.0), "-0.0");
    check_text(&w, ir_imm(cx, BASE_F32, (double)(1.0f / 3)), "0x1.555556p-2");
    check_text(&w, ir_imm(cx, BASE_F64, 1.0 / 3), "f64(0x1.5555555555555p-2)");
    check_text(&w, ir_imm(cx, BASE_F16, 65504), "f16(65504.0)");
    check_text(&w, ir_imm(cx, BASE_F32, -HUGE_VAL), "f32(-inf)");
    check_text(&w, ir_imm(cx, BASE_BF16, NAN), "bf16(nan)");
    check_text(&w, ir_cast_raw(cx, BASE_F32, ir_int(cx, 7)), "f32((7))");
    check_text(&w, ir_cast_raw(cx, BASE_F32, raw2(&w, IR_ADD, ir_int(cx, INT64_MIN), w.ints[0])),
               "f32(-9223372036854775808 + i)");
    check_text(&w, ir_bool(cx, true), "true");
    tec_context_free(w.cx);
}

Test(text, tells_variables_of_one_name_apart)
{
    world w = make_world();
    const ir_expr *other = ir_var(w.cx, "i", BASE_I64), *odd = ir_var(w.cx, "/conv 1", BASE_I64),
                  *word = ir_var(w.cx, "for", BASE_I64);

    cr_assert(eq(str, (char *)ir_expr_text(w.cx, ir_add(w.cx, w.ints[0], other)), "i + i'2"));
    cr_assert(eq(str, (char *)ir_expr_text(w.cx, ir_add(w.cx, odd, word)), "_conv_1 + for'2"));
    tec_context_free(w.cx);
}

Test(text, cuts_what_would_be_exponentially_long)
{
    world w = make_world();
    const ir_expr *e = w.ints[0];

    for (int k = 0; k < 200; k++)
        e = raw2(&w, IR_ADD, e, e);
    const char *text = ir_expr_text_cut(w.cx, e, 50);
    cr_assert(strlen(text) == 53);
    cr_assert(strcmp(text + 50, "...") == 0);
    tec_context_free(w.cx);
}

/* ---- random trees ---- */

static const ir_expr *random_int(world *w, uint64_t *seed, int depth);
static const ir_expr *random_float(world *w, uint64_t *seed, int depth);

static const ir_expr *random_bool(world *w, uint64_t *seed, int depth)
{
    static const ir_op compare[] = {IR_EQ, IR_NE, IR_LT, IR_LE, IR_GT, IR_GE};

    if (depth == 0)
        return base_random_below(seed, 2) ? w->bools[base_random_below(seed, 2)]
                                          : ir_bool(w->cx, base_random_below(seed, 2));
    switch (base_random_below(seed, 5)) {
    case 0: return raw2(w, IR_AND, random_bool(w, seed, depth - 1), random_bool(w, seed, depth - 1));
    case 1: return raw2(w, IR_OR, random_bool(w, seed, depth - 1), random_bool(w, seed, depth - 1));
    case 2: return raw1(w, IR_NOT, random_bool(w, seed, depth - 1));
    case 3:
        return raw2(w, compare[base_random_below(seed, 6)], random_int(w, seed, depth - 1),
                    random_int(w, seed, depth - 1));
    default:
        return raw2(w, compare[base_random_below(seed, 6)], random_float(w, seed, depth - 1),
                    random_float(w, seed, depth - 1));
    }
}

/* A let over a random value: the body may use the variable. */
static const ir_expr *random_let(world *w, uint64_t *seed, int depth)
{
    const ir_expr *value = random_int(w, seed, depth - 1), *old = w->ints[1],
                  *var = ir_var(w->cx, "i", BASE_I64);

    w->ints[1] = var;
    const ir_expr *body = random_int(w, seed, depth - 1);
    w->ints[1] = old;
    return ir_let(w->cx, var, value, body);
}

static const ir_expr *random_int(world *w, uint64_t *seed, int depth)
{
    static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL,    IR_DIV,   IR_MOD,    IR_FLOORDIV, IR_FLOORMOD,
                                IR_MIN, IR_MAX, IR_BITAND, IR_BITOR, IR_BITXOR, IR_SHL,      IR_SHR};
    static const ir_op one[] = {IR_NEG, IR_BITNOT, IR_ABS, IR_POPCOUNT};
    int64_t value = (int64_t)base_random(seed);

    if (depth == 0)
        return base_random_below(seed, 2) ? w->ints[base_random_below(seed, 3)]
                                          : ir_int(w->cx, base_random_below(seed, 4) ? value % 9 : value);
    switch (base_random_below(seed, 8)) {
    case 0: return raw1(w, one[base_random_below(seed, 4)], random_int(w, seed, depth - 1));
    case 1: {
        const ir_expr *index = random_int(w, seed, depth - 1);
        return ir_load(w->cx, w->B, &index, 1);
    }
    case 2: return ir_cast_raw(w->cx, BASE_I64, random_float(w, seed, depth - 1));
    case 3: return random_let(w, seed, depth);
    default:
        return raw2(w, two[base_random_below(seed, 14)], random_int(w, seed, depth - 1),
                    random_int(w, seed, depth - 1));
    }
}

/* A tree of at most `depth` levels over the world's variables and buffers, of every kind of node. */
static const ir_expr *random_float(world *w, uint64_t *seed, int depth)
{
    static const ir_op two[] = {IR_ADD, IR_SUB, IR_MUL, IR_DIV, IR_FLOORMOD, IR_MIN, IR_MAX, IR_POW};

    if (depth == 0)
        return base_random_below(seed, 2)
                   ? w->floats[base_random_below(seed, 2)]
                   : ir_imm(w->cx, BASE_F32,
                            ldexp(base_random_unit(seed) - 0.5, (int)base_random_below(seed, 200) - 100));
    switch (base_random_below(seed, 7)) {
    case 0: return raw1(w, IR_NEG, random_float(w, seed, depth - 1));
    case 1: return raw1(w, IR_SQRT, random_float(w, seed, depth - 1));
    case 2: {
        const ir_expr *index[2] = {random_int(w, seed, depth - 1), random_int(w, seed, depth - 1)};
        return ir_load_masked(w->cx, w->A, index, 2,
                              base_random_below(seed, 2) ? random_bool(w, seed, depth - 1) : NULL);
    }
    case 3: return ir_cast_raw(w->cx, BASE_F32, random_int(w, seed, depth - 1));
    case 4:
        return ir_op_raw(w->cx, IR_SELECT,
                         (const ir_expr *[]){random_bool(w, seed, depth - 1),
                                             random_float(w, seed, depth - 1),
                                             random_float(w, seed, depth - 1)});
    default:
        return raw2(w, two[base_random_below(seed, 8)], random_float(w, seed, depth - 1),
                    random_float(w, seed, depth - 1));
    }
}

Test(text, round_trips_thousands_of_random_expressions)
{
    for (uint64_t start = 1; start <= 3000; start++) {
        world w = make_world();
        uint64_t seed = start;
        const ir_expr *e = start % 3 == 0   ? random_bool(&w, &seed, 5)
                           : start % 3 == 1 ? random_int(&w, &seed, 5)
                                            : random_float(&w, &seed, 5);
        const char *text = ir_expr_text(w.cx, e);
        /* A free name may have been numbered behind a let of the same name; alone, the parser cannot know
         * it. */
        if (!strstr(text, "'")) {
            const ir_expr *back = parse_expr(&w, text);
            cr_assert(back != NULL, "seed %d: %s: %s", (int)start, text, tec_context_error(w.cx));
            cr_assert(ir_same(back, e), "seed %d: %s", (int)start, text);
            cr_assert(ir_hash(back) == ir_hash(e), "seed %d: %s", (int)start, text);
            cr_assert(base_same(ir_expr_text(w.cx, back), text), "seed %d: %s", (int)start, text);
        }
        tec_context_free(w.cx);
    }
}

/* ---- random statements, in programs ---- */

static const ir_stmt *random_stmt(world *w, uint64_t *seed, int depth);

static const ir_stmt *random_store(world *w, uint64_t *seed)
{
    const ir_expr *index[2] = {random_int(w, seed, 1), random_int(w, seed, 1)};
    const ir_combiner *max = ir_combiner_named(w->cx, "max", BASE_F32, BASE_I64);
    const ir_expr *value = random_float(w, seed, 2);

    if (base_random_below(seed, 3) == 0)
        return ir_update(w->cx, max, &w->A, index, 2, &value);
    return ir_store_masked(w->cx, w->A, value, index, 2,
                           base_random_below(seed, 3) ? NULL : random_bool(w, seed, 1));
}

static const ir_stmt *random_loop(world *w, uint64_t *seed, int depth)
{
    const ir_expr *min = random_int(w, seed, 1), *extent = random_int(w, seed, 1), *old = w->ints[2],
                  *var = ir_var(w->cx, "i", BASE_I64);

    w->ints[2] = var;
    const ir_stmt *body = random_stmt(w, seed, depth - 1);
    w->ints[2] = old;
    return ir_for(w->cx, var, min, extent, (ir_how)base_random_below(seed, IR_N_HOWS), body);
}

static const ir_stmt *random_allocate(world *w, uint64_t *seed, int depth)
{
    const ir_expr *shape[2] = {random_int(w, seed, 1), w->ints[1]};
    ir_buffer *b = ir_buffer_copy(w->cx, ir_buffer_new(w->cx, "A", BASE_F32, shape, 2));
    const ir_buffer *old = w->A;

    b->scope = IR_SHARED;
    b->align = 16;
    b->offset = random_int(w, seed, 1);
    w->A = b;
    const ir_stmt *body = random_stmt(w, seed, depth - 1);
    w->A = old;
    return ir_allocate(w->cx, b, body);
}

static const ir_stmt *random_block(world *w, uint64_t *seed, int depth)
{
    ir_block *b = base_new(w->cx, ir_block);
    ir_iter *iter = base_array(w->cx, ir_iter, 1);
    const ir_expr *bind = random_int(w, seed, 1), *where = random_bool(w, seed, 1), *old = w->ints[2];

    *iter = (ir_iter){ir_var(w->cx, "i", BASE_I64), random_int(w, seed, 0),
                      (ir_iter_kind)base_random_below(seed, 4)};
    w->ints[2] = iter->var;
    *b = (ir_block){.name = "B.x",
                    .role = IR_ROLE_CACHE,
                    .n_iters = 1,
                    .iters = iter,
                    .init = random_store(w, seed),
                    .body = random_stmt(w, seed, depth - 1)};
    w->ints[2] = old;
    return ir_block_stmt(w->cx, b, &bind, where);
}

static const ir_stmt *random_stmt(world *w, uint64_t *seed, int depth)
{
    if (depth == 0)
        return random_store(w, seed);
    switch (base_random_below(seed, 9)) {
    case 0: return random_loop(w, seed, depth);
    case 1: return random_allocate(w, seed, depth);
    case 2: return random_block(w, seed, depth);
    case 3:
        return ir_if(w->cx, random_bool(w, seed, 1), random_stmt(w, seed, depth - 1),
                     base_random_below(seed, 2) ? NULL : random_stmt(w, seed, depth - 1));
    case 4: return ir_attribute(w->cx, "a key", random_int(w, seed, 1), random_stmt(w, seed, depth - 1));
    case 5:
        return ir_seq2(w->cx, ir_assert(w->cx, random_bool(w, seed, 1), "no \"way\""),
                       ir_evaluate(w->cx, random_int(w, seed, 1)));
    case 6: {
        const ir_expr *v = ir_var(w->cx, "x", BASE_I64), *value = random_int(w, seed, 1), *old = w->ints[1];
        w->ints[1] = v;
        const ir_stmt *body = random_stmt(w, seed, depth - 1);
        w->ints[1] = old;
        return ir_let_stmt(w->cx, v, value, body);
    }
    default: return ir_seq2(w->cx, random_stmt(w, seed, depth - 1), random_stmt(w, seed, depth - 1));
    }
}

static ir_program *random_program(world *w, uint64_t *seed)
{
    ir_program *p = base_new(w->cx, ir_program);
    ir_param *params = base_array(w->cx, ir_param, 6);
    const ir_expr **symbols = base_array(w->cx, const ir_expr *, 3);

    for (int i = 0; i < 3; i++)
        symbols[i] = w->ints[i];
    params[0] = (ir_param){.buffer = w->A, .output = true};
    params[1] = (ir_param){.buffer = w->B};
    for (int i = 0; i < 2; i++) {
        params[2 + i].scalar = w->floats[i];
        params[4 + i].scalar = w->bools[i];
    }
    *p = (ir_program){.name = "p", .n_params = 6, .params = params, .n_symbols = 3, .symbols = symbols};
    p->body = random_stmt(w, seed, 5);
    return p;
}

Test(text, round_trips_hundreds_of_random_programs)
{
    for (uint64_t start = 1; start <= 400; start++) {
        world w = make_world();
        uint64_t seed = start;
        const ir_program *p = random_program(&w, &seed);
        const char *text = ir_program_text(w.cx, p);
        const ir_program *back = parse(w.cx, text);
        cr_assert(back != NULL, "seed %d: %s\n%s", (int)start, tec_context_error(w.cx), text);
        cr_assert(ir_same_program(w.cx, p, back), "seed %d\n%s", (int)start, text);
        cr_assert(base_same(ir_program_text(w.cx, back), text), "seed %d\n%s", (int)start, text);
        cr_assert(ir_hash_program(w.cx, p) == ir_hash_program(w.cx, back), "seed %d", (int)start);
        tec_context_free(w.cx);
    }
}

/* ---- what is wrong with a text ---- */

static void check_error(const char *text, const char *message)
{
    tec_context *cx = tec_context_new();

    cr_expect(eq(str, (char *)plain(cx, error_of(cx, text)), (char *)message));
    tec_context_free(cx);
}

Test(text, says_what_was_expected_and_found)
{
    check_error("program p(symbol n) {\n  for i in 0..n\n    x\n}",
                "t.tir:3: error: expected '{', found 'x'");
    check_error("program p() { A[0] = 1 }", "t.tir:1: error: unknown buffer 'A'");
    check_error("program p(A: f32[4]) { A[i] = 1.0 }", "t.tir:1: error: unknown variable 'i'");
    check_error("program p(A: f32[4]) {\n A[0] = frob(1)\n}", "t.tir:2: error: unknown function 'frob'");
    check_error("program p(A: f32[4]) { A[0] = max(1.0) }",
                "t.tir:1: error: 'max' takes 2 operands, and 1 is given");
    check_error("program p(A: f32[4]) { A[0] = 1.0 + true }",
                "t.tir:1: error: '+' of '1.0' (f32) and 'true' (bool): the operands must have one type");
    check_error("program p(A: f32[4]) { A[0, 1] = 1.0 }",
                "t.tir:1: error: 'A' has 1 dimension, and 2 indices are given");
    check_error("program p(A: f32[4], A: f32[4]) { }", "t.tir:1: error: 'A' is declared twice");
    check_error("program p(A: i8[4]) { A[0] = i8(200) }", "t.tir:1: error: 200 does not fit i8");
    check_error("program p(A: f32[4]) { A[0] foo= 1.0 }", "t.tir:1: error: unknown combiner 'foo'");
    check_error("program p(A: f32[4]) { A[0] = 1.0",
                "t.tir:1: error: expected a statement, found the end of the text");
    check_error("program p(A: f32[4]) { } }", "t.tir:1: error: expected the end of the text, found '}'");
}

static void check_nested(const char *open, int n)
{
    tec_context *cx = tec_context_new();
    base_text t = {0};

    base_add(cx, &t, "program p(A: f32[4]) { A[");
    for (int i = 0; i < n; i++)
        base_add(cx, &t, open);
    cr_expect(strstr(error_of(cx, t.data), "too deep") != NULL, "%s: %s", open, tec_context_error(cx));
    tec_context_free(cx);
}

Test(text, refuses_bottomless_nesting)
{
    check_nested("(", 100000);
    check_nested("-(", 100000);
    check_nested("!", 100000);
    check_nested("A[", 100000);
    check_nested("1 + ", 100000);
    check_nested("let x = 1 in ", 100000);
}

/* Texts that are nearly right: a byte changed, a piece left out, doubled or moved. */
static char *mutate(tec_context *cx, const char *text, uint64_t *seed)
{
    size_t n = strlen(text), at = (size_t)base_random_below(seed, (int64_t)n),
           len = (size_t)base_random_below(seed, 40);
    static const char bytes[] = "()[]{}<>=+-*/%&|^~!@\"'.,:;0123456789abcxyz \n\x01\xff";
    char *copy = base_strdup(cx, text);

    len = at + len > n ? n - at : len;
    switch (base_random_below(seed, 4)) {
    case 0: copy[at] = bytes[base_random_below(seed, sizeof bytes - 1)]; return copy;
    case 1: return base_format(cx, "%.*s%s", (int)at, text, text + at + len);
    case 2: return base_format(cx, "%.*s%s", (int)(at + len), text, text + at);
    default:
        return base_format(cx, "%.*s%.*s%s", (int)at, text, (int)len,
                           text + (size_t)base_random_below(seed, (int64_t)(n - len)), text + at);
    }
}

Test(text, survives_mutated_texts)
{
    tec_context *outer = tec_context_new();
    size_t size;
    const char *text = base_read_file(outer, TEC_SOURCE_DIR "/tests/ir/examples.tir", &size);
    int accepted = 0;

    for (uint64_t start = 1; start <= 3000; start++) {
        tec_context *cx = tec_context_new();
        uint64_t seed = start;
        const char *bad = text;
        for (int64_t k = base_random_below(&seed, 3); k >= 0; k--)
            bad = mutate(cx, bad, &seed);
        const ir_program *p = parse(cx, bad);
        cr_assert(p ? tec_context_status(cx) == TEC_OK : tec_context_status(cx) == TEC_INVALID, "seed %d",
                  (int)start);
        if (p) {
            const ir_program *back = parse(cx, ir_program_text(cx, p));
            cr_assert(back != NULL && ir_same_program(cx, p, back), "seed %d", (int)start);
            accepted++;
        }
        tec_context_free(cx);
    }
    cr_assert(accepted > 50 && accepted < 2500);
    tec_context_free(outer);
}
