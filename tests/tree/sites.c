/* tests/tree/sites.c -- the blocks of a loop tree: what stands around each, and which is listed once. */
#include <criterion/criterion.h>

#include "ir/text.h"
#include "tree/sites.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}
TestSuite(sites, .init = setup, .fini = teardown);

static const ir_program *parse(const char *text)
{
    const ir_program *p = ir_parse_program(cx, "test.tir", text);

    cr_assert(p, "%s", tec_context_error(cx));
    return p;
}

#define TWO_BLOCKS                                                                                           \
    "program p(A: f32[4], out B: f32[4, 8]) {\n"                                                             \
    "  buffer P: f32[4]\n"                                                                                   \
    "  for i in 0..4 {\n"                                                                                    \
    "    block P(v = i in 0..4) { reads A[v] writes P[v] P[v] = A[v] }\n"                                    \
    "    if i < 3 { for j in 0..8 {\n"                                                                       \
    "      block B(v = i in 0..4, w = j in 0..8) { reads P[v] writes B[v, w] B[v, w] = P[v] } } }\n"         \
    "  }\n"                                                                                                  \
    "}\n"

Test(sites, knows_the_loops_and_statements_around_each_block)
{
    const ir_program *p = parse(TWO_BLOCKS);
    tree_sites all = tree_all_sites(cx, p->body);
    const tree_site *first = &all.at[0], *second = &all.at[1];

    cr_assert_eq(all.n, 2);
    cr_assert_str_eq(first->block->name, "P");
    cr_assert_eq(first->n_loops, 1);
    cr_assert_eq(first->n, 2); /* the loop and the sequence */
    cr_assert_not(first->branches);

    cr_assert_eq(tree_site_named(&all, "B"), second);
    cr_assert_eq(tree_site_named(&all, "C"), NULL);
    cr_assert_eq(second->n_loops, 2);
    cr_assert_eq(second->n, 4); /* the loop, the sequence, the condition, the inner loop */
    cr_assert_eq(second->path[0], second->loop[0]);
    cr_assert_eq(second->path[2]->kind, IR_IF);
    cr_assert_eq(second->path[3], second->loop[1]);
    cr_assert(second->branches);
    cr_assert_eq(second->order, 1);
}

Test(sites, tells_how_deep_a_block_stands_under_a_loop)
{
    tree_sites all = tree_all_sites(cx, parse(TWO_BLOCKS)->body);
    const ir_expr *inner = all.at[1].loop[1]->loop.var, *outer = all.at[0].loop[0]->loop.var;

    cr_assert_eq(tree_depth_under(&all.at[0], outer), 1);
    cr_assert_eq(tree_depth_under(&all.at[1], inner), 2);
    cr_assert_eq(tree_depth_under(&all.at[0], inner), 0);
}

/* A pass may share a statement between two places of the tree. */
Test(sites, lists_a_shared_statement_once)
{
    const ir_stmt *body = parse(TWO_BLOCKS)->body;

    cr_assert_eq(tree_all_sites(cx, ir_seq2(cx, body, body)).n, 2);
}

Test(sites, tells_who_touches_a_buffer)
{
    const ir_program *p = parse(TWO_BLOCKS);
    tree_sites all = tree_all_sites(cx, p->body);
    const ir_buffer *P = p->buffers[0], *B = p->params[1].buffer;

    cr_assert(tree_writes(all.at[0].block, P) && !tree_reads(all.at[0].block, P));
    cr_assert(tree_reads(all.at[1].block, P) && !tree_writes(all.at[1].block, P));
    cr_assert(tree_is_parameter(p, B) && !tree_is_parameter(p, P));
}
