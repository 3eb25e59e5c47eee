/* tests/ir/interp/run.h -- small programs in a few lines, run by the interpreter, for the tests of it. */
#ifndef TESTS_IR_RUN_H
#define TESTS_IR_RUN_H

#include <criterion/criterion.h>
#include <string.h>

#include "ir/build.h"
#include "ir/calls.h"
#include "ir/interp/interp.h"

static tec_context *cx;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

/* A list of expressions and its length, as the constructors take them. */
#define LIST(...)                                                                                            \
    (const ir_expr *[]){__VA_ARGS__}, (int)(sizeof((const ir_expr *[]){__VA_ARGS__}) / sizeof(ir_expr *))
#define INT(v) ir_int(cx, v)
#define FLT(v) ir_imm(cx, BASE_F32, v)
#define VAR(name) ir_var(cx, name, BASE_I64)
#define ADD(a, b) ir_add(cx, a, b)
#define MUL(a, b) ir_mul(cx, a, b)
#define LT(a, b) ir_lt(cx, a, b)
#define LOAD(b, ...) ir_load(cx, b, LIST(__VA_ARGS__))
#define STORE(b, value, ...) ir_store(cx, b, value, LIST(__VA_ARGS__))
#define FOR(var, n, how, body) ir_for(cx, var, INT(0), n, how, body)
#define SEQ(a, b) ir_seq2(cx, a, b)
#define BUFFER(name, t, ...) ir_buffer_new(cx, name, t, LIST(__VA_ARGS__))
#define BARRIER(over)                                                                                        \
    ir_evaluate(cx, ir_call(cx, BASE_I32, IR_CALL_BARRIER, NULL, (const ir_expr *[]){ir_string(cx, over)},   \
                            1, NULL, 0, false))

static inline const ir_buffer *scoped(const ir_buffer *b, ir_scope scope)
{
    ir_buffer *copy = ir_buffer_copy(cx, b);

    copy->scope = scope;
    return copy;
}

/* ---- programs ---- */

enum { MAX_ITEMS = 8 };

static inline ir_program *program(const ir_stmt *body)
{
    ir_program *p = base_new(cx, ir_program);

    p->name = "test";
    p->params = base_array(cx, ir_param, MAX_ITEMS);
    p->buffers = base_array(cx, const ir_buffer *, MAX_ITEMS);
    p->symbols = base_array(cx, const ir_expr *, MAX_ITEMS);
    p->facts = base_array(cx, const ir_expr *, MAX_ITEMS);
    p->body = body;
    cr_assert(body, "%s", tec_context_error(cx));
    return p;
}

static inline void param(ir_program *p, const ir_buffer *b, bool output)
{
    ((ir_param *)p->params)[p->n_params++] = (ir_param){.buffer = b, .output = output};
}
static inline void scalar(ir_program *p, const ir_expr *var)
{
    ((ir_param *)p->params)[p->n_params++] = (ir_param){.scalar = var};
}
static inline void listed(ir_program *p, const ir_buffer *b)
{
    ((const ir_buffer **)p->buffers)[p->n_buffers++] = b;
}
static inline void symbol(ir_program *p, const ir_expr *var)
{
    ((const ir_expr **)p->symbols)[p->n_symbols++] = var;
}
static inline void fact(ir_program *p, const ir_expr *e)
{
    ((const ir_expr **)p->facts)[p->n_facts++] = e;
}

/* Iterations: VAR, extent and kind of each; bindings and predicate stand on the statement. */
#define ITER(v, n, how)                                                                                      \
    (ir_iter)                                                                                                \
    {                                                                                                        \
        .var = v, .extent = n, .kind = how                                                                   \
    }
#define ITERS(...) (ir_iter[]){__VA_ARGS__}, (int)(sizeof((ir_iter[]){__VA_ARGS__}) / sizeof(ir_iter))

static inline const ir_block *block_of(const char *name, const ir_iter *iters, int n, const ir_stmt *init,
                                       const ir_stmt *body)
{
    ir_block *b = base_new(cx, ir_block);

    cr_assert(body, "%s", tec_context_error(cx));
    b->name = name;
    b->n_iters = n;
    b->iters = base_copy(cx, iters, (size_t)n * sizeof *iters);
    b->init = init;
    b->body = body;
    return b;
}
#define BLOCK(b, where, ...) ir_block_stmt(cx, b, (const ir_expr *[]){__VA_ARGS__}, where)

/* ---- runs ---- */

#define ARRAY(t, values, ...)                                                                                \
    (ir_arg)                                                                                                 \
    {                                                                                                        \
        .array = &(ir_array)                                                                                 \
        {                                                                                                    \
            .dtype = t, .n = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .shape = {__VA_ARGS__},      \
            .data = values                                                                                   \
        }                                                                                                    \
    }
#define F32(values, ...) ARRAY(BASE_F32, values, __VA_ARGS__)
#define RUN(p, ...) ir_interpret(cx, p, &(ir_run){.args = (ir_arg[]){__VA_ARGS__}})

#define RUNS(p, ...) cr_assert(RUN(p, __VA_ARGS__), "%s", tec_context_error(cx))
/* The message, whatever place in a file stands before it and whatever notes follow. */
#define FAILS(text, p, ...)                                                                                  \
    do {                                                                                                     \
        cr_assert_not(RUN(p, __VA_ARGS__), "it ran");                                                        \
        cr_assert(strstr(tec_context_error(cx), text), "expected: %s\nfound:    %s", text,                   \
                  tec_context_error(cx));                                                                    \
    } while (0)

#endif
