/* ir/equal.c -- structural equality up to the names and addresses of what is bound inside.
 *
 * The bindings that enclose the two nodes stand on a stack whose frames are locals of the functions that
 * enter a scope: a frame points at two lists of equal length, whose elements are bound pair by pair. Pairs
 * that were found equal are remembered, so that trees which share their parts are compared in the number of
 * their nodes; a remembered pair counts only while the bindings it was found under stand. Equal hashes come
 * first: most comparisons end there. Expressions are compared where no context is at hand, so the memory
 * comes from malloc and lives for one comparison. Without it the answer is the same: where there is none,
 * nothing more is remembered.
 *
 * An example: let a = x in a + 1 and let b = x in b + 1 are the same. The values agree, then a and b are
 * bound to each other, and in the bodies `a` meets its partner. let a = x in a + x and let b = x in b + b are
 * not: there x meets b, which is bound to a.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/build.h"
#include "ir/walk.h"

enum { STEPS_BEFORE_MEMO = 64 };

/* n bindings: element i of both lists, which are pointers that lie `stride` bytes apart. The lists stay where
 * they are in the nodes compared; nothing is copied. */
typedef struct frame {
    const struct frame *up;
    const void *a, *b;
    size_t stride;
    int n, depth; /* depth: bindings up to and with this frame's */
    int id;
    int renamed; /* of these, those of two different addresses */
} frame;

typedef struct {
    const ir_expr *a, *b;
    int depth, id; /* of the innermost frame that stood then */
} proven;

/* `renamed` counts the bindings that stand and differ: at 0 equal addresses are enough. */
typedef struct {
    const frame *top;
    int next_id;
    int renamed;  /* bindings of two different addresses */
    bool shadows; /* something is bound twice, to different partners: nothing is remembered */
    bool no_memory;
    proven *memo; /* open addressing */
    int n_memo, cap_memo;
    int64_t steps;
} comparison;

/* Gives the result through, so that no return forgets to free. */
static bool finish(comparison *c, bool result)
{
    free(c->memo);
    return result;
}

/* ---- bindings ---- */

static const void *bound(const void *list, size_t stride, int i)
{
    return *(const void *const *)((const char *)list + stride * (size_t)i);
}

/* Whether a or b is bound; `pair` says whether they are to each other. The innermost binding of either
 * counts. A binding of only one of the two is found as well, and is no pair: then they differ. */
static bool find_binding(const comparison *c, const void *a, const void *b, bool *pair)
{
    for (const frame *f = c->top; f; f = f->up)
        for (int i = f->n; i-- > 0;) {
            bool is_a = bound(f->a, f->stride, i) == a, is_b = bound(f->b, f->stride, i) == b;

            *pair = is_a && is_b;
            if (is_a || is_b)
                return true;
        }
    return false;
}

/* What is free must be the same node. */
static bool is_partner(const comparison *c, const void *a, const void *b)
{
    bool pair;

    return find_binding(c, a, b, &pair) ? pair : a == b;
}

/* Binds the elements of two lists to each other until f is released. */
static void bind_list(comparison *c, frame *f, const void *a, const void *b, size_t stride, int n)
{
    bool pair;

    *f = (frame){.up = c->top,
                 .a = a,
                 .b = b,
                 .stride = stride,
                 .n = n,
                 .depth = (c->top ? c->top->depth : 0) + 1,
                 .id = ++c->next_id};
    for (int i = 0; i < n; i++) {
        const void *x = bound(a, stride, i), *y = bound(b, stride, i);

        c->shadows = c->shadows || (x && find_binding(c, x, y, &pair) && !pair);
        f->renamed += x != y;
    }
    c->renamed += f->renamed;
    c->top = f;
}

/* Releases frames until `f` is the innermost. */
static void release(comparison *c, const frame *f)
{
    for (; c->top != f; c->top = c->top->up)
        c->renamed -= c->top->renamed;
}

/* ---- memory ---- */

/* There is a free slot: grow_memo keeps half of them. */
static proven *find_slot(const comparison *c, const ir_expr *a, const ir_expr *b)
{
    const ir_expr *key[2] = {a, b};
    uint64_t h = base_hash(key, sizeof key, BASE_HASH_SEED);

    for (;; h++) {
        proven *p = &c->memo[h & (uint64_t)(c->cap_memo - 1)];
        if (!p->a || (p->a == a && p->b == b))
            return p;
    }
}

/* Without memory for a larger table nothing is remembered from here on; the comparison stays right, only
 * slower. */
static void grow_memo(comparison *c)
{
    comparison old = *c;
    int cap = c->cap_memo ? 2 * c->cap_memo : 1024;
    proven *memo = calloc((size_t)cap, sizeof *memo);

    c->no_memory = !memo;
    if (c->no_memory)
        return;
    c->memo = memo;
    c->cap_memo = cap;
    for (int i = 0; i < old.cap_memo; i++)
        if (old.memo[i].a)
            *find_slot(c, old.memo[i].a, old.memo[i].b) = old.memo[i];
    free(old.memo);
}

/* A pair counts while the bindings under which it was found equal still stand, which the innermost frame of
 * then tells. */
static bool is_remembered(const comparison *c, const ir_expr *a, const ir_expr *b)
{
    const proven *p = c->memo && !c->shadows ? find_slot(c, a, b) : NULL;

    if (!p || !p->a)
        return false;
    const frame *f = c->top;
    while (f && f->depth > p->depth)
        f = f->up;
    return f ? f->depth == p->depth && f->id == p->id : p->depth == 0;
}

/* Small comparisons end before a table would pay. */
static void remember(comparison *c, const ir_expr *a, const ir_expr *b)
{
    if (c->steps < STEPS_BEFORE_MEMO || a->depth == 1)
        return;
    if (c->n_memo * 2 >= c->cap_memo && !c->no_memory)
        grow_memo(c);
    if (c->no_memory)
        return;
    proven *p = find_slot(c, a, b);
    c->n_memo += !p->a;
    *p = (proven){a, b, c->top ? c->top->depth : 0, c->top ? c->top->id : 0};
}

/* ---- expressions ---- */

static bool same_expr(comparison *c, const ir_expr *a, const ir_expr *b);

static bool same_all(comparison *c, const ir_expr *const *a, const ir_expr *const *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!same_expr(c, a[i], b[i]))
            return false;
    return true;
}

/* By meaning, not by name: two combiners are the same where their formulas are equal once their parameters
 * are bound to each other. */
static bool same_combiner(comparison *c, const ir_combiner *a, const ir_combiner *b)
{
    const frame *mark = c->top;
    frame x, y;

    if (a == b)
        return true;
    if (a->n != b->n || a->reorders != b->reorders)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!base_dtype_same(a->x[i]->dtype, b->x[i]->dtype))
            return false;
    bind_list(c, &x, a->x, b->x, sizeof *a->x, a->n);
    bind_list(c, &y, a->y, b->y, sizeof *a->y, a->n);
    bool same = same_all(c, a->result, b->result, a->n) && same_all(c, a->identity, b->identity, a->n);
    release(c, mark);
    return same;
}

/* By bits: 0.0 and -0.0 differ, and NaNs were made one by ir/build.c. */
static bool same_float(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Buffers may be bound (by allocate) as variables are. */
static bool same_load(comparison *c, const ir_expr *a, const ir_expr *b)
{
    return a->load.n == b->load.n && is_partner(c, a->load.buffer, b->load.buffer) &&
           same_all(c, a->load.index, b->load.index, a->load.n) && same_expr(c, a->load.mask, b->load.mask);
}

static bool same_shuffle(comparison *c, const ir_expr *a, const ir_expr *b)
{
    return a->shuffle.n == b->shuffle.n &&
           memcmp(a->shuffle.pick, b->shuffle.pick, a->dtype.lanes * sizeof(int)) == 0 &&
           same_all(c, a->shuffle.vectors, b->shuffle.vectors, a->shuffle.n);
}

/* Some lets of a chain in one call, so that a long chain does not take a call for each. */
static bool same_let(comparison *c, const ir_expr *a, const ir_expr *b)
{
    enum { AT_ONCE = 16 };
    const frame *mark = c->top;
    frame f[AT_ONCE];
    bool same = true;

    for (int i = 0; same && i < AT_ONCE && a->op == IR_LET && b->op == IR_LET;
         i++, a = a->let.body, b = b->let.body) {
        same = same_expr(c, a->let.value, b->let.value);
        bind_list(c, &f[i], &a->let.var, &b->let.var, sizeof a->let.var, 1);
    }
    same = same && same_expr(c, a, b);
    release(c, mark);
    return same;
}

/* Intrinsics are compared by name: programs list their meanings, which are compared once. */
static bool same_call(comparison *c, const ir_expr *a, const ir_expr *b)
{
    if (a->call.n != b->call.n || a->call.n_buffers != b->call.n_buffers || a->call.pure != b->call.pure)
        return false;
    if (!base_same(a->call.name, b->call.name) || !a->call.intrinsic != !b->call.intrinsic)
        return false;
    for (int i = 0; i < a->call.n_buffers; i++)
        if (!is_partner(c, a->call.buffer[i], b->call.buffer[i]))
            return false;
    return same_all(c, a->call.arg, b->call.arg, a->call.n);
}

/* The extents are compared before the axes are bound, since an extent cannot mention an axis. */
static bool same_reduce(comparison *c, const ir_expr *a, const ir_expr *b)
{
    const frame *mark = c->top;
    frame axes;

    if (a->reduce.which != b->reduce.which || a->reduce.n_axes != b->reduce.n_axes ||
        !same_combiner(c, a->reduce.combiner, b->reduce.combiner) ||
        !same_all(c, a->reduce.extent, b->reduce.extent, a->reduce.n_axes))
        return false;
    bind_list(c, &axes, a->reduce.axis, b->reduce.axis, sizeof *a->reduce.axis, a->reduce.n_axes);
    bool same = same_all(c, a->reduce.source, b->reduce.source, a->reduce.combiner->n) &&
                same_expr(c, a->reduce.condition, b->reduce.condition);
    release(c, mark);
    return same;
}

/* Both nodes have the same operation and type already. The cases compare what each kind holds besides. */
static bool same_node(comparison *c, const ir_expr *a, const ir_expr *b)
{
    switch (a->op) {
    case IR_INT: return a->i == b->i;
    case IR_FLOAT: return same_float(a->f, b->f);
    case IR_STRING: return base_same(a->string, b->string);
    case IR_VAR: return is_partner(c, a, b);
    case IR_LOAD: return same_load(c, a, b);
    case IR_RAMP:
        return same_expr(c, a->ramp.base, b->ramp.base) && same_expr(c, a->ramp.stride, b->ramp.stride);
    case IR_SHUFFLE: return same_shuffle(c, a, b);
    case IR_LET: return same_let(c, a, b);
    case IR_CALL: return same_call(c, a, b);
    case IR_REDUCE: return same_reduce(c, a, b);
    default: return same_all(c, a->arg, b->arg, 3);
    }
}

/* The same address is the same expression only while no binding differs: under a renamed binding one node may
 * mean two things. The hash ignores names in its upper half, which must always agree. */
static bool same_expr(comparison *c, const ir_expr *a, const ir_expr *b)
{
    if (!a || !b)
        return a == b;
    if (a == b && !c->renamed)
        return true;
    if (a->op != b->op || !base_dtype_same(a->dtype, b->dtype) || a->hash >> 32 != b->hash >> 32 ||
        (!c->renamed && a->hash != b->hash))
        return false;
    c->steps++;
    if (is_remembered(c, a, b))
        return true;
    if (!same_node(c, a, b))
        return false;
    remember(c, a, b);
    return true;
}

bool ir_same(const ir_expr *a, const ir_expr *b)
{
    comparison c = {0};

    return finish(&c, same_expr(&c, a, b));
}

uint64_t ir_hash(const ir_expr *e)
{
    return e ? e->hash : 0;
}

bool ir_same_combiner(const ir_combiner *a, const ir_combiner *b)
{
    comparison c = {0};

    return finish(&c, same_combiner(&c, a, b));
}

/* Whether the combiner is what its name promises: then texts need no declaration of it. Indices 4 and 5 of
 * the list are any and all, 6 and on the tuples. */
bool ir_combiner_is_named(tec_context *cx, const ir_combiner *c)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "any", "all", "argmin", "argmax"};
    base_dtype t = c->x[0]->dtype;

    for (int i = 0; i < BASE_COUNT(names); i++) {
        bool fits = (i >= 6 ? c->n == 2 && base_is_int(c->x[1]->dtype) : c->n == 1) &&
                    base_is_bool(t) == (i == 4 || i == 5);
        if (fits && base_same(names[i], c->name) && t.code != kDLOpaqueHandle)
            return ir_same_combiner(c, ir_combiner_named(cx, c->name, t, c->x[c->n - 1]->dtype));
    }
    return false;
}

/* ---- statements ---- */

static bool same_stmt(comparison *c, const ir_stmt *a, const ir_stmt *b);

/* Both lists are sorted by key. */
static bool same_notes(comparison *c, const ir_note *a, const ir_note *b)
{
    for (; a && b; a = a->next, b = b->next)
        if (!base_same(a->key, b->key) || !same_expr(c, a->value, b->value))
            return false;
    return a == b;
}

/* Names do not count. */
static bool same_buffer(comparison *c, const ir_buffer *a, const ir_buffer *b)
{
    if (!base_dtype_same(a->dtype, b->dtype) || a->n != b->n || a->scope != b->scope ||
        a->align != b->align || a->alias != b->alias || !a->strides != !b->strides)
        return false;
    return same_all(c, a->shape, b->shape, a->n) &&
           (!a->strides || same_all(c, a->strides, b->strides, a->n)) && same_expr(c, a->offset, b->offset) &&
           same_expr(c, a->pad, b->pad);
}

/* Of buffers with one number of dimensions, as partners have. */
static bool same_regions(comparison *c, const ir_region *a, const ir_region *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_partner(c, a[i].buffer, b[i].buffer) || !same_all(c, a[i].min, b[i].min, a[i].buffer->n) ||
            !same_all(c, a[i].extent, b[i].extent, a[i].buffer->n))
            return false;
    return true;
}

static bool same_inside(comparison *c, const ir_block *a, const ir_block *b)
{
    return same_regions(c, a->reads, b->reads, a->n_reads) &&
           same_regions(c, a->writes, b->writes, a->n_writes) && same_notes(c, a->notes, b->notes) &&
           same_stmt(c, a->init, b->init) && same_stmt(c, a->body, b->body);
}

/* Bindings and predicate stand outside of the block and are compared before the iteration variables are
 * bound. */
static bool same_block(comparison *c, const ir_stmt *sa, const ir_stmt *sb)
{
    const ir_block *a = sa->block.block, *b = sb->block.block;
    const frame *mark = c->top;
    frame iters;

    if (!base_same(a->name, b->name) || a->role != b->role || a->n_iters != b->n_iters ||
        a->n_reads != b->n_reads || a->n_writes != b->n_writes ||
        !same_all(c, sa->block.bind, sb->block.bind, a->n_iters) ||
        !same_expr(c, sa->block.where, sb->block.where))
        return false;
    for (int i = 0; i < a->n_iters; i++)
        if (a->iters[i].kind != b->iters[i].kind || !same_expr(c, a->iters[i].extent, b->iters[i].extent))
            return false;
    if (a->n_iters)
        bind_list(c, &iters, &a->iters[0].var, &b->iters[0].var, sizeof *a->iters, a->n_iters);
    bool same = same_inside(c, a, b);
    release(c, mark);
    return same;
}

/* Bodies under a binding of a to b. */
static bool same_under(comparison *c, const void *a, const void *b, const ir_stmt *body_a,
                       const ir_stmt *body_b)
{
    const frame *mark = c->top;
    frame f;

    bind_list(c, &f, &a, &b, sizeof a, 1);
    bool same = same_stmt(c, body_a, body_b);
    release(c, mark);
    return same;
}

static bool same_loop(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    return a->loop.how == b->loop.how && same_expr(c, a->loop.min, b->loop.min) &&
           same_expr(c, a->loop.extent, b->loop.extent) && same_notes(c, a->loop.notes, b->loop.notes) &&
           same_under(c, a->loop.var, b->loop.var, a->loop.body, b->loop.body);
}

static bool same_store(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    return a->store.n == b->store.n && is_partner(c, a->store.buffer, b->store.buffer) &&
           same_all(c, a->store.index, b->store.index, a->store.n) &&
           same_expr(c, a->store.value, b->store.value) && same_expr(c, a->store.mask, b->store.mask);
}

static bool same_update(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    if (a->update.n != b->update.n || !same_combiner(c, a->update.combiner, b->update.combiner))
        return false;
    for (int i = 0; i < a->update.combiner->n; i++)
        if (!is_partner(c, a->update.buffer[i], b->update.buffer[i]))
            return false;
    return same_all(c, a->update.index, b->update.index, a->update.n) &&
           same_all(c, a->update.source, b->update.source, a->update.combiner->n);
}

static bool same_allocate(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    return same_buffer(c, a->allocate.buffer, b->allocate.buffer) &&
           same_notes(c, a->allocate.notes, b->allocate.notes) &&
           same_under(c, a->allocate.buffer, b->allocate.buffer, a->allocate.body, b->allocate.body);
}

static bool same_seq(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    if (a->seq.n != b->seq.n)
        return false;
    for (int i = 0; i < a->seq.n; i++)
        if (!same_stmt(c, a->seq.stmt[i], b->seq.stmt[i]))
            return false;
    return true;
}

/* As same_node for statements. Locations and the names of loop variables do not count. */
static bool same_stmt(comparison *c, const ir_stmt *a, const ir_stmt *b)
{
    if (!a || !b || (a == b && !c->renamed))
        return a == b;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case IR_FOR: return same_loop(c, a, b);
    case IR_BLOCK: return same_block(c, a, b);
    case IR_STORE: return same_store(c, a, b);
    case IR_UPDATE: return same_update(c, a, b);
    case IR_LET_STMT:
        return same_expr(c, a->let.value, b->let.value) &&
               same_under(c, a->let.var, b->let.var, a->let.body, b->let.body);
    case IR_ALLOCATE: return same_allocate(c, a, b);
    case IR_IF:
        return same_expr(c, a->branch.cond, b->branch.cond) && same_stmt(c, a->branch.then, b->branch.then) &&
               same_stmt(c, a->branch.otherwise, b->branch.otherwise);
    case IR_SEQ: return same_seq(c, a, b);
    case IR_ASSERT:
        return base_same(a->check.message, b->check.message) && same_expr(c, a->check.cond, b->check.cond);
    case IR_ATTRIBUTE:
        return base_same(a->attribute.key, b->attribute.key) &&
               same_expr(c, a->attribute.value, b->attribute.value) &&
               same_stmt(c, a->attribute.body, b->attribute.body);
    case IR_EVALUATE: return same_expr(c, a->value, b->value);
    }
    return false;
}

bool ir_same_stmt(tec_context *cx, const ir_stmt *a, const ir_stmt *b)
{
    comparison c = {0};

    (void)cx;
    return finish(&c, same_stmt(&c, a, b));
}

/* ---- programs ---- */

static bool same_program(const ir_program *a, const ir_program *b);

/* The meaning is a program of its own and sees no binding. */
static bool same_intrinsic(const ir_intrinsic *a, const ir_intrinsic *b)
{
    if (!base_same(a->name, b->name) || !base_same(a->text, b->text) || !a->meaning != !b->meaning)
        return false;
    return !a->meaning || same_program(a->meaning, b->meaning);
}

static bool same_params(const ir_program *a, const ir_program *b)
{
    for (int i = 0; i < a->n_params; i++) {
        const ir_param *x = &a->params[i], *y = &b->params[i];

        if (x->output != y->output || !x->buffer != !y->buffer ||
            (x->scalar && !base_dtype_same(x->scalar->dtype, y->scalar->dtype)))
            return false;
    }
    return true;
}

/* A symbol that is a parameter too has the same partner as both. */
static bool same_scalars(const comparison *c, const ir_program *a, const ir_program *b)
{
    bool pair;

    for (int i = 0; i < a->n_params; i++)
        if (a->params[i].scalar && find_binding(c, a->params[i].scalar, b->params[i].scalar, &pair) && !pair)
            return false;
    return true;
}

static bool same_buffers(comparison *c, const ir_program *a, const ir_program *b)
{
    for (int i = 0; i < a->n_params; i++)
        if (a->params[i].buffer && !same_buffer(c, a->params[i].buffer, b->params[i].buffer))
            return false;
    for (int i = 0; i < a->n_buffers; i++)
        if (!same_buffer(c, a->buffers[i], b->buffers[i]))
            return false;
    return true;
}

/* Symbols, parameters and buffers are bound in all that follows. Of a parameter's scalar and buffer one is
 * NULL, which names nothing. */
static bool same_bodies(comparison *c, const ir_program *a, const ir_program *b)
{
    frame symbols, scalars, params, buffers;

    bind_list(c, &symbols, a->symbols, b->symbols, sizeof *a->symbols, a->n_symbols);
    if (!same_scalars(c, a, b))
        return false;
    if (a->n_params) {
        bind_list(c, &scalars, &a->params[0].scalar, &b->params[0].scalar, sizeof *a->params, a->n_params);
        bind_list(c, &params, &a->params[0].buffer, &b->params[0].buffer, sizeof *a->params, a->n_params);
    }
    bind_list(c, &buffers, a->buffers, b->buffers, sizeof *a->buffers, a->n_buffers);
    for (int i = 0; i < a->n_intrinsics; i++)
        if (!same_intrinsic(a->intrinsics[i], b->intrinsics[i]))
            return false;
    return same_buffers(c, a, b) && same_all(c, a->facts, b->facts, a->n_facts) &&
           same_notes(c, a->notes, b->notes) && same_stmt(c, a->body, b->body);
}

static bool same_program(const ir_program *a, const ir_program *b)
{
    comparison c = {0};

    if (a == b)
        return true;
    if (!a || !b || a->n_symbols != b->n_symbols || a->n_params != b->n_params ||
        a->n_buffers != b->n_buffers || a->n_facts != b->n_facts || a->n_intrinsics != b->n_intrinsics)
        return false;
    return finish(&c, same_params(a, b) && same_bodies(&c, a, b));
}

bool ir_same_program(tec_context *cx, const ir_program *a, const ir_program *b)
{
    (void)cx;
    return same_program(a, b);
}
