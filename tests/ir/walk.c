/* tests/ir/walk.c -- walking, rewriting and substituting: sharing, locations, capture, and chains that are
 * exponential as trees. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "ir/build.h"
#include "ir/intern.h"
#include "ir/text.h"
#include "ir/walk.h"

static tec_context *cx;
static const ir_expr *i, *j, *n;
static const ir_buffer *A, *B;

static void setup(void)
{
    cx = tec_context_new();
    i = ir_var(cx, "i", BASE_I64);
    j = ir_var(cx, "j", BASE_I64);
    n = ir_var(cx, "n", BASE_I64);
    A = ir_buffer_new(cx, "A", BASE_F32, &n, 1);
    B = ir_buffer_new(cx, "B", BASE_F32, &n, 1);
}

static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(walk, .init = setup, .fini = teardown);

static const ir_stmt *copy_loop(const ir_expr *var, const ir_expr *extent)
{
    return ir_for(cx, var, ir_int(cx, 0), extent, IR_SERIAL,
                  ir_store(cx, B, ir_load(cx, A, &var, 1), &var, 1));
}

static void check(const ir_stmt *s, const char *text)
{
    cr_expect(eq(str, (char *)ir_stmt_text(cx, s), (char *)text));
}

static const ir_expr *grow(const ir_expr *e, int depth)
{
    for (int k = 0; k < depth; k++)
        e = ir_add(cx, e, e);
    return e;
}

Test(walk, gives_the_same_pointer_where_nothing_changed)
{
    const ir_stmt *s = ir_seq2(cx, copy_loop(i, n), copy_loop(j, n));

    cr_expect(ir_rewrite_stmt(&(ir_rewrite){.cx = cx}, s) == s);
    cr_expect(ir_substitute_stmt(cx, s, ir_var(cx, "x", BASE_I64), n) == s);
}

Test(walk, shares_what_a_rewrite_did_not_touch)
{
    const ir_stmt *first = copy_loop(i, n), *second = copy_loop(j, j);
    const ir_stmt *s = ir_substitute_stmt(cx, ir_seq2(cx, first, ir_evaluate(cx, j)), j, ir_int(cx, 4));

    cr_expect(s->seq.stmt[0] == first);
    check(s->seq.stmt[1], "evaluate 4\n");
    cr_expect(second->loop.body != NULL);
}

Test(walk, keeps_the_location_of_rewritten_nodes)
{
    ir_at(cx, (base_loc){.file = "a.c", .line = 7});
    const ir_expr *e = ir_mul(cx, ir_add(cx, i, j), n);
    ir_at(cx, (base_loc){.file = "b.c", .line = 9});
    const ir_expr *r = ir_substitute(cx, e, i, n);

    cr_expect(r != e && r->loc.line == 7 && r->arg[0]->loc.line == 7);
    cr_expect(base_where(cx).line == 9);
}

Test(walk, folds_through_the_constructors)
{
    cr_expect(ir_substitute(cx, ir_add(cx, ir_mul(cx, i, ir_int(cx, 3)), j), i, ir_int(cx, 0)) == j);
}

Test(walk, substitutes_all_at_once)
{
    ir_subst swap = {0};

    base_map_put(cx, &swap.vars, i, j);
    base_map_put(cx, &swap.vars, j, i);
    base_map_put(cx, &swap.buffers, A, B);
    base_map_put(cx, &swap.buffers, B, A);
    const ir_stmt *s = ir_store(cx, A, ir_load(cx, B, &i, 1), &j, 1);
    check(ir_apply_stmt(cx, &swap, s), "B[i] = A[j]\n");
}

Test(walk, captures_nothing)
{
    const ir_stmt *s = ir_substitute_stmt(cx, copy_loop(i, n), n, ir_add(cx, i, ir_int(cx, 1)));

    cr_expect(s->loop.var != i);
    cr_expect(ir_stmt_uses_var(cx, s, i));
    cr_expect(not(ir_stmt_uses_var(cx, s->loop.body, i)));
    const ir_expr *e = ir_substitute(cx, ir_let(cx, i, j, ir_add(cx, i, n)), n, i);
    cr_expect(e->let.var != i && e->let.body->arg[0] == e->let.var && e->let.body->arg[1] == i);
}

Test(walk, leaves_bound_variables_alone)
{
    const ir_stmt *s = ir_substitute_stmt(cx, copy_loop(i, i), i, ir_int(cx, 5));

    check(s, "for i in 0..5 {\n  B[i] = A[i]\n}\n");
}

Test(walk, resizes_buffers_that_are_allocated_inside)
{
    const ir_buffer *T = ir_buffer_new(cx, "T", BASE_F32, &n, 1);
    const ir_stmt *s = ir_allocate(cx, T, ir_store(cx, T, ir_load(cx, T, &i, 1), &i, 1));
    const ir_stmt *r = ir_substitute_stmt(cx, s, n, ir_int(cx, 8));

    check(r, "allocate T: f32[8] {\n  T[i] = T[i]\n}\n");
    cr_expect(r->allocate.body->store.buffer == r->allocate.buffer && r->allocate.buffer != T);
    cr_expect_eq(r->allocate.body->store.value->load.buffer, r->allocate.buffer,
                 "a load without the variable stayed");
}

Test(walk, copies_a_statement_for_each_value)
{
    const ir_expr *at = ir_add(cx, ir_mul(cx, i, ir_int(cx, 4)), j),
                  *value[] = {ir_int(cx, 0), ir_int(cx, 2)};
    const ir_stmt *s = ir_store(cx, B, ir_load(cx, A, &j, 1), &at, 1), *copy[2];
    ir_interned equal = {.cx = cx};

    bool made = ir_copy_for_each(cx, s, i, value, 2, &equal, copy);
    cr_assert(made);
    check(copy[0], "B[j] = A[j]\n");
    check(copy[1], "B[8 + j] = A[j]\n");
    cr_expect_eq(copy[0]->store.value, copy[1]->store.value);
    const ir_stmt *once_more[2];
    made = ir_copy_for_each(cx, s, i, value, 2, &equal, once_more);
    cr_assert(made);
    cr_expect_eq(copy[1]->store.index[0], once_more[1]->store.index[0], "equal indices are two nodes");
}

/* Counts what a rewrite asks of it. */
typedef struct {
    ir_rewrite rw;
    int asked;
} counting;

static const ir_expr *count_and_rewrite(ir_rewrite *rw, const ir_expr *e)
{
    ((counting *)rw)->asked++;
    return ir_rewrite_children(rw, e);
}

Test(walk, leaves_out_what_holds_no_node_of_the_kind)
{
    const ir_expr *at = grow(i, 8), *e = ir_mul(cx, ir_load(cx, A, &at, 1), ir_load(cx, B, &i, 1));
    counting all = {.rw = {.cx = cx, .expr = count_and_rewrite}};
    counting products = {.rw = {.cx = cx, .expr = count_and_rewrite, .kinds = IR_KIND_PRODUCT}};
    counting of_j = {.rw = {.cx = cx, .expr = count_and_rewrite, .vars = j->vars}};

    cr_expect_eq(ir_rewrite_expr(&products.rw, e), e);
    cr_expect_eq(products.asked, 1);
    cr_expect_eq(ir_rewrite_expr(&all.rw, e), e);
    cr_expect_gt(all.asked, 8);
    cr_expect_eq(ir_rewrite_expr(&of_j.rw, e), e);
    cr_expect_eq(of_j.asked, 0);
}

/* Two variables may have one bit; a variable that is used never lacks its own. */
Test(walk, notes_every_variable_in_what_uses_it)
{
    for (int k = 0; k < 200; k++) {
        const ir_expr *v = ir_var(cx, base_format(cx, "v%d", k), BASE_I64), *m = ir_lt(cx, v, n);
        const ir_expr *e =
            ir_let(cx, j, ir_add(cx, v, i), ir_select(cx, m, ir_load(cx, A, &v, 1), ir_imm(cx, BASE_F32, 0)));

        bool noted = ir_uses_var(cx, e, v) && (e->vars & v->vars),
             missed = ir_uses_var(cx, ir_add(cx, i, n), v);
        cr_assert(noted, "%d", k);
        cr_assert_not(missed, "%d", k);
    }
}

Test(walk, renames_every_occurrence_on_its_own)
{
    const ir_stmt *loop = copy_loop(i, n), *r = ir_rename(cx, ir_seq2(cx, loop, loop));
    const ir_stmt *a = r->seq.stmt[0], *b = r->seq.stmt[1];

    cr_expect(a->loop.var != i && b->loop.var != i && a->loop.var != b->loop.var);
    cr_expect(b->loop.body->store.index[0] == b->loop.var);
    cr_expect(ir_same_stmt(cx, a, loop) && ir_same_stmt(cx, b, loop));
}

Test(walk, renames_blocks_and_reductions)
{
    ir_block *b = base_new(cx, ir_block);
    ir_iter iter = {j, n, IR_SPATIAL};

    *b = (ir_block){.name = "C",
                    .n_iters = 1,
                    .iters = base_copy(cx, &iter, sizeof iter),
                    .body = ir_store(cx, B, ir_load(cx, A, &j, 1), &j, 1)};
    const ir_stmt *s = ir_for(cx, i, ir_int(cx, 0), n, IR_SERIAL, ir_block_stmt(cx, b, &i, ir_lt(cx, i, n)));
    const ir_stmt *r = ir_rename(cx, s);
    cr_expect(r->loop.body->block.block->iters[0].var != j);
    cr_expect(r->loop.body->block.bind[0] == r->loop.var);
    cr_expect(ir_same_stmt(cx, s, r));
}

static int visits;

static bool count(ir_walk *w, const ir_expr *e)
{
    (void)w;
    (void)e;
    visits++;
    return true;
}

Test(walk, visits_each_shared_node_once)
{
    ir_walk w = {.cx = cx, .expr = count};

    ir_walk_expr(&w, grow(i, 10000));
    cr_expect(eq(int, visits, 10001));
    ir_walk every = {.cx = cx, .expr = count, .every = true};
    visits = 0;
    ir_walk_expr(&every, grow(i, 10));
    cr_expect(eq(int, visits, 2047));
}

/* A rewrite recurses; under the sanitizer each call takes several times the stack. */
#ifdef __SANITIZE_ADDRESS__
enum { DEEP = 4000 };
#else
enum { DEEP = 10000 };
#endif

Test(walk, rewrites_deep_chains_in_their_own_size)
{
    const ir_expr *e = grow(i, DEEP), *r = ir_substitute(cx, e, i, j);

    cr_expect(r != e && r->arg[0] == r->arg[1] && r->depth == DEEP + 1);
    cr_expect(ir_same(ir_substitute(cx, r, j, i), e));
}

Test(walk, finds_variables)
{
    base_vec free = {0};
    const ir_expr *e = ir_add(cx, j, ir_let(cx, i, n, ir_mul(cx, i, n)));

    ir_free_vars(cx, e, &free);
    cr_expect(free.n == 2 && free.at[0] == j && free.at[1] == n);
    cr_expect(ir_uses_var(cx, e, n) && !ir_uses_var(cx, e, ir_var(cx, "n", BASE_I64)));
    cr_expect(ir_loads(cx, ir_load(cx, A, &i, 1)) && !ir_loads(cx, e));
    cr_expect(eq(int, ir_count_nodes(cx, copy_loop(i, n)), 6));
}
