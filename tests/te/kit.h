/* tests/te/kit.h -- definitions from text, their trees, and runs of those. */
#ifndef TESTS_TE_KIT_H
#define TESTS_TE_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "ir/text.h"
#include "te/text.h"
#include "tests/plain.h"

static tec_context *cx;

static inline void open_context(void)
{
    cx = tec_context_new();
}
static inline void close_context(void)
{
    tec_context_free(cx);
}

static inline te_def *defined(const char *text)
{
    te_file *f = te_parse(cx, "test.te", text);

    cr_assert(f, "%s\n%s", tec_context_error(cx), text);
    return f->defs.at[0];
}

static inline void round_trips(const char *text, const char *printed)
{
    const char *once = te_text(cx, defined(text)), *twice = te_text(cx, defined(once));

    cr_assert_str_eq(once, printed, "expected:\n%s\nfound:\n%s", printed, once);
    cr_assert_str_eq(twice, once);
}

static inline void refuses(const char *text, const char *message)
{
    cr_assert_null(te_parse(cx, "t", text), "expected: %s", message);
    cr_assert_str_eq(plain(cx, tec_context_error(cx)), message);
    tec_context_clear(cx);
}

static inline void fails_with(const char *message)
{
    cr_assert(base_failed(cx), "expected: %s", message);
    cr_assert_str_eq(plain(cx, tec_context_error(cx)), message);
    tec_context_clear(cx);
}

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
#define I64(values, ...) ARRAY(BASE_I64, values, __VA_ARGS__)

static inline void run_args(const te_def *d, ir_arg *args)
{
    const ir_program *p = te_tree(cx, d);

    cr_assert(p, "%s", tec_context_error(cx));
    cr_assert(ir_interpret(cx, p, &(ir_run){.args = args}), "%s\n%s", tec_context_error(cx),
              ir_program_text(cx, p));
}
#define RUN(d, ...) run_args(d, (ir_arg[]){__VA_ARGS__})

#endif
