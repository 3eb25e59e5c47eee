/* tests/ir/verify/verify.c -- one program for each rule that the verifier holds. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "ir/build.h"
#include "ir/text.h"
#include "ir/verify/verify.h"
#include "ir/walk.h"

static void check(ir_verify_level level, const char *text, const char *fault)
{
    tec_context *cx = tec_context_new();
    const ir_program *p = ir_parse_program(cx, "t.tir", text);

    cr_assert(p != NULL, "%s", tec_context_error(cx));
    bool good = ir_verify(cx, p, level);
    cr_expect(good == !fault, "%s", fault ? fault : tec_context_error(cx));
    if (fault && !good) {
        cr_expect(strstr(tec_context_error(cx), fault) != NULL, "%s", tec_context_error(cx));
        cr_expect(tec_context_status(cx) == TEC_INTERNAL);
    }
    tec_context_free(cx);
}

#define MM(reads, body)                                                                                      \
    "program mm(symbol n, A: f32[n, 64], B: f32[64, 32], out C: f32[n, 32]) where n >= 1 {\n"                \
    "  for i in 0..n { for j in 0..32 { for k in 0..64 {\n"                                                  \
    "    block C(y = i in 0..n, x = j in 0..32, z reduce = k in 0..64) {\n"                                  \
    "      reads " reads " writes C[y, x]\n"                                                                 \
    "      init { C[y, x] = 0.0 }\n"                                                                         \
    "      " body "\n"                                                                                       \
    "    }\n  } } }\n}"

Test(verify, accepts_a_loop_tree)
{
    check(IR_VERIFY_TREE, MM("A[y, z], B[z, x]", "C[y, x] sum= A[y, z] * B[z, x]"), NULL);
    check(IR_VERIFY_TREE, MM("A[y, 0:64], B[0:64, x]", "C[y, x] sum= A[y, z] * B[z, x]"), NULL);
}

Test(verify, wants_every_access_in_the_regions)
{
    check(IR_VERIFY_TREE, MM("A[y, z]", "C[y, x] sum= A[y, z] * B[z, x]"),
          "block 'C' reads B[z, x], which its reads are not proven to contain");
    check(IR_VERIFY_TREE, MM("A[y, 0:32], B[z, x]", "C[y, x] sum= A[y, z] * B[z, x]"),
          "block 'C' reads A[y, z]");
    check(IR_VERIFY_TREE, MM("A[y, z], B[z, x]", "C[y, 0] sum= A[y, z] * B[z, x]"), "block 'C' writes C[y, ");
}

Test(verify, keeps_enclosing_loops_out_of_blocks)
{
    check(IR_VERIFY_TREE, MM("A[y, z], B[z, x]", "C[y, x] sum= A[y, k] * B[z, x]"),
          "'k' is used inside block 'C', which does not bind it");
}

Test(verify, wants_unique_names_of_blocks)
{
    check(IR_VERIFY_TREE,
          "program p(out C: f32[4]) { block a(i = 0 in 0..4) { writes C[i] C[i] = 1.0 } block a(i = 0 in "
          "0..4) { writes C[i] C[i] = 1.0 } }",
          "two blocks are called 'a'");
}

Test(verify, forbids_at_each_level_what_later_passes_rely_on)
{
    const char *block = "program p(out C: f32[4]) { block a(i = 0 in 0..4) { writes C[i] C[i] = 1.0 } }";
    const char *update = "program p(out C: f32[4]) { C[0] sum= 1.0 }";
    const char *allocate = "program p(out C: f32[4]) { allocate T: f32[4] { T[0] = 1.0 C[0] = T[0] } }";
    const char *listed = "program p(out C: f32[4]) { buffer T: f32[4] T[0] = 1.0 C[0] = T[0] }";
    const char *two = "program p(out C: f32[4, 4]) { C[0, 0] = 1.0 }";
    const char *unrolled = "program p(out C: f32[4]) { for i in 0..4 unrolled { C[i] = 1.0 } }";
    const char *reduce = "program p(A: f32[4], out C: f32[4]) { C[0] = sum[k in 0..4](A[k]) }";

    check(IR_VERIFY_TREE, block, NULL);
    check(IR_VERIFY_LOOPS, block, "block 'a' is left");
    check(IR_VERIFY_TREE, update, NULL);
    check(IR_VERIFY_LOOPS, update, "an update by 'sum' is left");
    check(IR_VERIFY_TREE, allocate, "buffer 'T' is allocated in a loop tree");
    check(IR_VERIFY_LOOPS, allocate, NULL);
    check(IR_VERIFY_TREE, listed, NULL);
    check(IR_VERIFY_LOOPS, listed, "buffer 'T' is neither a parameter nor allocated");
    check(IR_VERIFY_TREE, reduce, NULL);
    check(IR_VERIFY_LOOPS, reduce, "a reduction by 'sum' is left");
    check(IR_VERIFY_LOOPS, two, NULL);
    check(IR_VERIFY_FLAT, two, "'C' is accessed with 2 indices after flattening");
    check(IR_VERIFY_FLAT, unrolled, NULL);
    check(IR_VERIFY_SCALAR, unrolled, "loop 'i' is still unrolled");
}

/* ---- what no text can say ---- */

static const char *fault_of(tec_context *cx, const ir_stmt *body)
{
    ir_program p = {.name = "p", .body = body};

    cr_assert(body != NULL);
    return ir_verify(cx, &p, IR_VERIFY_LOOPS) ? "" : tec_context_error(cx);
}

Test(verify, finds_data_that_is_bound_to_an_index_variable)
{
    tec_context *cx = tec_context_new();
    const ir_buffer *b = ir_buffer_new(cx, "B", BASE_I64, NULL, 0);
    const ir_expr *load = ir_load(cx, b, NULL, 0), *i = ir_var(cx, "i", BASE_I64),
                  *x = ir_let_var(cx, "x", load);
    const ir_stmt *bad = ir_let_stmt(cx, i, load, ir_evaluate(cx, i)),
                  *good = ir_let_stmt(cx, x, load, ir_evaluate(cx, x));

    cr_assert(strstr(fault_of(cx, ir_allocate(cx, b, bad)),
                     "the index variable 'i' is bound to data: 'B[]'") != NULL,
              "%s", tec_context_error(cx));
    tec_context_clear(cx);
    cr_assert_str_eq(fault_of(cx, ir_allocate(cx, b, good)), "");
    tec_context_free(cx);
}

Test(verify, finds_variables_outside_their_binding)
{
    tec_context *cx = tec_context_new();
    const ir_expr *i = ir_var(cx, "i", BASE_I64);
    const ir_stmt *loop = ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 4), IR_SERIAL, ir_evaluate(cx, i));

    cr_expect(eq(str, (char *)fault_of(cx, ir_seq2(cx, loop, loop)), ""));
    cr_expect(strstr(fault_of(cx, ir_seq2(cx, loop, ir_evaluate(cx, i))),
                     "'i' is used outside its binding") != NULL);
    tec_context_free(cx);
}

Test(verify, finds_binders_inside_their_own_scope)
{
    tec_context *cx = tec_context_new();
    const ir_expr *i = ir_var(cx, "i", BASE_I64);
    const ir_stmt *loop = ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 4), IR_SERIAL, ir_evaluate(cx, i));

    cr_expect(strstr(fault_of(cx, ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 4), IR_SERIAL, loop)),
                     "'i' is bound inside its own scope") != NULL);
    tec_context_free(cx);
}

Test(verify, finds_buffers_that_nobody_made)
{
    tec_context *cx = tec_context_new();
    const ir_expr *zero = ir_int(cx, 0);
    const ir_buffer *b = ir_buffer_new(cx, "T", BASE_F32, &zero, 1);

    cr_expect(strstr(fault_of(cx, ir_store(cx, b, zero, &zero, 1)), "buffer 'T' is neither a parameter") !=
              NULL);
    tec_context_free(cx);
}

Test(verify, finds_types_that_a_hand_made_node_got_wrong)
{
    tec_context *cx = tec_context_new();
    const ir_expr *i = ir_var(cx, "i", BASE_I64);
    ir_stmt *loop =
        ir_stmt_copy(cx, ir_for(cx, i, ir_int(cx, 0), ir_int(cx, 4), IR_SERIAL, ir_evaluate(cx, i)));

    loop->loop.extent = ir_imm(cx, BASE_F32, 4);
    cr_expect(strstr(fault_of(cx, loop), "integers of one type are needed") != NULL);
    tec_context_free(cx);
}
