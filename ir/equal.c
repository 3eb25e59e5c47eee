/* ir/equal.c -- structural equality up to the names and addresses of what is bound inside.
 *
 * The bindings that enclose the two nodes stand on a stack whose frames are locals of the functions that
 * enter a scope: a frame points at two lists of equal length, whose elements are bound pair by pair. Pairs
 * that were found equal are remembered, so that trees which share their parts are compared in the number of
 * their nodes; a remembered pair counts only while the bindings it was found under stand. Equal hashes come
 * first: most comparisons end there. Expressions are compared where no context is available, so the memory
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
static bool finish(comparison *self, bool result)
{
    free(self->memo);
    return result;
}

/* ---- bindings ---- */

static const void *bound(const void *list, size_t stride, int i)
{
    return *(const void *const *)((const char *)list + stride * (size_t)i);
}

/* Whether a or b is bound; `pair` says whether they are to each other. The innermost binding of either
 * counts. A binding of only one of the two is found as well, and is no pair: then they differ. */
static bool find_binding(const comparison *self, const void *a, const void *b, bool *pair)
{
    for (const frame *f = self->top; f; f = f->up)
        for (int i = f->n; i-- > 0;) {
            bool is_a = bound(f->a, f->stride, i) == a, is_b = bound(f->b, f->stride, i) == b;

            *pair = is_a && is_b;
            if (is_a || is_b)
                return true;
        }
    return false;
}

/* What is free must be the same node. */
static bool is_partner(const comparison *self, const void *a, const void *b)
{
    bool pair;

    return find_binding(self, a, b, &pair) ? pair : a == b;
}

/* Binds the elements of two lists to each other until f is released. */
static void bind_list(comparison *self, frame *f, const void *left, const void *right, size_t stride,
                      int count)
{
    bool pair;

    *f = (frame){.up = self->top,
                 .a = left,
                 .b = right,
                 .stride = stride,
                 .n = count,
                 .depth = (self->top ? self->top->depth : 0) + 1,
                 .id = ++self->next_id};
    for (int i = 0; i < count; i++) {
        const void *x = bound(left, stride, i), *y = bound(right, stride, i);

        self->shadows = self->shadows || (x && find_binding(self, x, y, &pair) && !pair);
        f->renamed += x != y;
    }
    self->renamed += f->renamed;
    self->top = f;
}

/* Releases frames until `bound` is the innermost. */
static void release(comparison *self, const frame *bound)
{
    for (; self->top != bound; self->top = self->top->up)
        self->renamed -= self->top->renamed;
}

/* ---- memory ---- */

/* There is a free slot: grow_memo keeps half of them. */
static proven *find_slot(const comparison *self, const ir_expr *left, const ir_expr *right)
{
    const ir_expr *key[2] = {left, right};
    uint64_t h = base_hash(key, sizeof key, BASE_HASH_SEED);

    for (;; h++) {
        proven *p = &self->memo[h & (uint64_t)(self->cap_memo - 1)];
        if (!p->a || (p->a == left && p->b == right))
            return p;
    }
}

/* Without memory for a larger table nothing is remembered from here on; the comparison stays right, only
 * slower. */
static void grow_memo(comparison *self)
{
    comparison old = *self;
    int cap = self->cap_memo ? 2 * self->cap_memo : 1024;
    proven *memo = calloc((size_t)cap, sizeof *memo);

    self->no_memory = !memo;
    if (self->no_memory)
        return;
    self->memo = memo;
    self->cap_memo = cap;
    for (int i = 0; i < old.cap_memo; i++)
        if (old.memo[i].a)
            *find_slot(self, old.memo[i].a, old.memo[i].b) = old.memo[i];
    free(old.memo);
}

/* A pair counts while the bindings under which it was found equal still stand, which the innermost frame of
 * then tells. */
static bool is_remembered(const comparison *self, const ir_expr *left, const ir_expr *right)
{
    const proven *p = self->memo && !self->shadows ? find_slot(self, left, right) : NULL;

    if (!p || !p->a)
        return false;
    const frame *f = self->top;
    while (f && f->depth > p->depth)
        f = f->up;
    return f ? f->depth == p->depth && f->id == p->id : p->depth == 0;
}

/* Small comparisons end before a table would pay. */
static void remember(comparison *self, const ir_expr *left, const ir_expr *right)
{
    if (self->steps < STEPS_BEFORE_MEMO || left->depth == 1)
        return;
    if (self->n_memo * 2 >= self->cap_memo && !self->no_memory)
        grow_memo(self);
    if (self->no_memory)
        return;
    proven *p = find_slot(self, left, right);
    self->n_memo += !p->a;
    *p = (proven){left, right, self->top ? self->top->depth : 0, self->top ? self->top->id : 0};
}

/* ---- expressions ---- */

static bool same_expr(comparison *self, const ir_expr *left, const ir_expr *right);

static bool same_all(comparison *self, const ir_expr *const *left, const ir_expr *const *right, int n)
{
    for (int i = 0; i < n; i++)
        if (!same_expr(self, left[i], right[i]))
            return false;
    return true;
}

/* By meaning, not by name: two combiners are the same where their formulas are equal once their parameters
 * are bound to each other. */
static bool same_combiner(comparison *self, const ir_combiner *left, const ir_combiner *right)
{
    const frame *mark = self->top;
    frame x, y;

    if (left == right)
        return true;
    if (left->n != right->n || left->reorders != right->reorders)
        return false;
    for (int i = 0; i < left->n; i++)
        if (!base_dtype_same(left->x[i]->dtype, right->x[i]->dtype))
            return false;
    bind_list(self, &x, left->x, right->x, sizeof *left->x, left->n);
    bind_list(self, &y, left->y, right->y, sizeof *left->y, left->n);
    bool same = same_all(self, left->result, right->result, left->n) &&
                same_all(self, left->identity, right->identity, left->n);
    release(self, mark);
    return same;
}

/* By bits: 0.0 and -0.0 differ, and NaNs were made one by ir/build.c. */
static bool same_float(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Buffers may be bound (by allocate) as variables are. */
static bool same_load(comparison *self, const ir_expr *left, const ir_expr *right)
{
    return left->load.n == right->load.n && is_partner(self, left->load.buffer, right->load.buffer) &&
           same_all(self, left->load.index, right->load.index, left->load.n) &&
           same_expr(self, left->load.mask, right->load.mask);
}

static bool same_shuffle(comparison *self, const ir_expr *left, const ir_expr *right)
{
    return left->shuffle.n == right->shuffle.n &&
           memcmp(left->shuffle.pick, right->shuffle.pick, left->dtype.lanes * sizeof(int)) == 0 &&
           same_all(self, left->shuffle.vectors, right->shuffle.vectors, left->shuffle.n);
}

/* Some lets of a chain in one call, so that a long chain does not take a call for each. */
static bool same_let(comparison *self, const ir_expr *left, const ir_expr *right)
{
    enum { AT_ONCE = 16 };
    const frame *mark = self->top;
    frame f[AT_ONCE];
    bool same = true;

    for (int i = 0; same && i < AT_ONCE && left->op == IR_LET && right->op == IR_LET;
         i++, left = left->let.body, right = right->let.body) {
        same = same_expr(self, left->let.value, right->let.value);
        bind_list(self, &f[i], &left->let.var, &right->let.var, sizeof left->let.var, 1);
    }
    same = same && same_expr(self, left, right);
    release(self, mark);
    return same;
}

/* Intrinsics are compared by name: programs list their meanings, which are compared once. */
static bool same_call(comparison *self, const ir_expr *left, const ir_expr *right)
{
    if (left->call.n != right->call.n || left->call.n_buffers != right->call.n_buffers ||
        left->call.pure != right->call.pure)
        return false;
    if (!base_same(left->call.name, right->call.name) || !left->call.intrinsic != !right->call.intrinsic)
        return false;
    for (int i = 0; i < left->call.n_buffers; i++)
        if (!is_partner(self, left->call.buffer[i], right->call.buffer[i]))
            return false;
    return same_all(self, left->call.arg, right->call.arg, left->call.n);
}

/* The extents are compared before the axes are bound, since an extent cannot mention an axis. */
static bool same_reduce(comparison *self, const ir_expr *left, const ir_expr *right)
{
    const frame *mark = self->top;
    frame axes;

    if (left->reduce.which != right->reduce.which || left->reduce.n_axes != right->reduce.n_axes ||
        !same_combiner(self, left->reduce.combiner, right->reduce.combiner) ||
        !same_all(self, left->reduce.extent, right->reduce.extent, left->reduce.n_axes))
        return false;
    bind_list(self, &axes, left->reduce.axis, right->reduce.axis, sizeof *left->reduce.axis,
              left->reduce.n_axes);
    bool same = same_all(self, left->reduce.source, right->reduce.source, left->reduce.combiner->n) &&
                same_expr(self, left->reduce.condition, right->reduce.condition);
    release(self, mark);
    return same;
}

/* Both nodes have the same operation and type already. The cases compare what each kind holds besides. */
static bool same_node(comparison *self, const ir_expr *left, const ir_expr *right)
{
    switch (left->op) {
    case IR_INT: return left->i == right->i;
    case IR_FLOAT: return same_float(left->f, right->f);
    case IR_STRING: return base_same(left->string, right->string);
    case IR_VAR: return is_partner(self, left, right);
    case IR_LOAD: return same_load(self, left, right);
    case IR_RAMP:
        return same_expr(self, left->ramp.base, right->ramp.base) &&
               same_expr(self, left->ramp.stride, right->ramp.stride);
    case IR_SHUFFLE: return same_shuffle(self, left, right);
    case IR_LET: return same_let(self, left, right);
    case IR_CALL: return same_call(self, left, right);
    case IR_REDUCE: return same_reduce(self, left, right);
    default: return same_all(self, left->arg, right->arg, 3);
    }
}

/* The same address is the same expression only while no binding differs: under a renamed binding one node may
 * mean two things. The hash ignores names in its upper half, which must always agree. */
static bool same_expr(comparison *self, const ir_expr *left, const ir_expr *right)
{
    if (!left || !right)
        return left == right;
    if (left == right && !self->renamed)
        return true;
    if (left->op != right->op || !base_dtype_same(left->dtype, right->dtype) ||
        left->hash >> 32 != right->hash >> 32 || (!self->renamed && left->hash != right->hash))
        return false;
    self->steps++;
    if (is_remembered(self, left, right))
        return true;
    if (!same_node(self, left, right))
        return false;
    remember(self, left, right);
    return true;
}

bool ir_same(const ir_expr *left, const ir_expr *right)
{
    comparison c = {0};

    return finish(&c, same_expr(&c, left, right));
}

uint64_t ir_hash(const ir_expr *expr)
{
    return expr ? expr->hash : 0;
}

bool ir_same_combiner(const ir_combiner *left, const ir_combiner *right)
{
    comparison c = {0};

    return finish(&c, same_combiner(&c, left, right));
}

/* Whether the combiner is what its name promises: then texts need no declaration of it. Indices 4 and 5 of
 * the list are any and all, 6 and on the tuples. */
bool ir_combiner_is_named(tec_context *cx, const ir_combiner *combiner)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "any", "all", "argmin", "argmax"};
    base_dtype t = combiner->x[0]->dtype;

    for (int i = 0; i < BASE_COUNT(names); i++) {
        bool fits = (i >= 6 ? combiner->n == 2 && base_is_int(combiner->x[1]->dtype) : combiner->n == 1) &&
                    base_is_bool(t) == (i == 4 || i == 5);
        if (fits && base_same(names[i], combiner->name) && t.code != kDLOpaqueHandle)
            return ir_same_combiner(
                combiner, ir_combiner_named(cx, combiner->name, t, combiner->x[combiner->n - 1]->dtype));
    }
    return false;
}

/* ---- statements ---- */

static bool same_stmt(comparison *self, const ir_stmt *left, const ir_stmt *right);

/* Both lists are sorted by key. */
static bool same_notes(comparison *self, const ir_note *left, const ir_note *right)
{
    for (; left && right; left = left->next, right = right->next)
        if (!base_same(left->key, right->key) || !same_expr(self, left->value, right->value))
            return false;
    return left == right;
}

/* Names do not count. */
static bool same_buffer(comparison *self, const ir_buffer *left, const ir_buffer *buffer)
{
    if (!base_dtype_same(left->dtype, buffer->dtype) || left->n != buffer->n ||
        left->scope != buffer->scope || left->align != buffer->align || left->alias != buffer->alias ||
        !left->strides != !buffer->strides)
        return false;
    return same_all(self, left->shape, buffer->shape, left->n) &&
           (!left->strides || same_all(self, left->strides, buffer->strides, left->n)) &&
           same_expr(self, left->offset, buffer->offset) && same_expr(self, left->pad, buffer->pad);
}

/* Of buffers with one number of dimensions, as partners have. */
static bool same_regions(comparison *self, const ir_region *left, const ir_region *right, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_partner(self, left[i].buffer, right[i].buffer) ||
            !same_all(self, left[i].min, right[i].min, left[i].buffer->n) ||
            !same_all(self, left[i].extent, right[i].extent, left[i].buffer->n))
            return false;
    return true;
}

static bool same_inside(comparison *self, const ir_block *left, const ir_block *block)
{
    return same_regions(self, left->reads, block->reads, left->n_reads) &&
           same_regions(self, left->writes, block->writes, left->n_writes) &&
           same_notes(self, left->notes, block->notes) && same_stmt(self, left->init, block->init) &&
           same_stmt(self, left->body, block->body);
}

/* Bindings and predicate stand outside of the block and are compared before the iteration variables are
 * bound. */
static bool same_block(comparison *self, const ir_stmt *sa, const ir_stmt *sb)
{
    const ir_block *a = sa->block.block, *block = sb->block.block;
    const frame *mark = self->top;
    frame iters;

    if (!base_same(a->name, block->name) || a->role != block->role || a->n_iters != block->n_iters ||
        a->n_reads != block->n_reads || a->n_writes != block->n_writes ||
        !same_all(self, sa->block.bind, sb->block.bind, a->n_iters) ||
        !same_expr(self, sa->block.where, sb->block.where))
        return false;
    for (int i = 0; i < a->n_iters; i++)
        if (a->iters[i].kind != block->iters[i].kind ||
            !same_expr(self, a->iters[i].extent, block->iters[i].extent))
            return false;
    if (a->n_iters)
        bind_list(self, &iters, &a->iters[0].var, &block->iters[0].var, sizeof *a->iters, a->n_iters);
    bool same = same_inside(self, a, block);
    release(self, mark);
    return same;
}

/* Bodies under a binding of a to b. */
static bool same_under(comparison *self, const void *a, const void *b, const ir_stmt *body_a,
                       const ir_stmt *body_b)
{
    const frame *mark = self->top;
    frame f;

    bind_list(self, &f, &a, &b, sizeof a, 1);
    bool same = same_stmt(self, body_a, body_b);
    release(self, mark);
    return same;
}

static bool same_loop(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    return left->loop.how == right->loop.how && same_expr(self, left->loop.min, right->loop.min) &&
           same_expr(self, left->loop.extent, right->loop.extent) &&
           same_notes(self, left->loop.notes, right->loop.notes) &&
           same_under(self, left->loop.var, right->loop.var, left->loop.body, right->loop.body);
}

static bool same_store(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    return left->store.n == right->store.n && is_partner(self, left->store.buffer, right->store.buffer) &&
           same_all(self, left->store.index, right->store.index, left->store.n) &&
           same_expr(self, left->store.value, right->store.value) &&
           same_expr(self, left->store.mask, right->store.mask);
}

static bool same_update(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    if (left->update.n != right->update.n ||
        !same_combiner(self, left->update.combiner, right->update.combiner))
        return false;
    for (int i = 0; i < left->update.combiner->n; i++)
        if (!is_partner(self, left->update.buffer[i], right->update.buffer[i]))
            return false;
    return same_all(self, left->update.index, right->update.index, left->update.n) &&
           same_all(self, left->update.source, right->update.source, left->update.combiner->n);
}

static bool same_allocate(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    return same_buffer(self, left->allocate.buffer, right->allocate.buffer) &&
           same_notes(self, left->allocate.notes, right->allocate.notes) &&
           same_under(self, left->allocate.buffer, right->allocate.buffer, left->allocate.body,
                      right->allocate.body);
}

static bool same_seq(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    if (left->seq.n != right->seq.n)
        return false;
    for (int i = 0; i < left->seq.n; i++)
        if (!same_stmt(self, left->seq.stmt[i], right->seq.stmt[i]))
            return false;
    return true;
}

/* As same_node for statements. Locations and the names of loop variables do not count. */
static bool same_stmt(comparison *self, const ir_stmt *left, const ir_stmt *right)
{
    if (!left || !right || (left == right && !self->renamed))
        return left == right;
    if (left->kind != right->kind)
        return false;
    switch (left->kind) {
    case IR_FOR: return same_loop(self, left, right);
    case IR_BLOCK: return same_block(self, left, right);
    case IR_STORE: return same_store(self, left, right);
    case IR_UPDATE: return same_update(self, left, right);
    case IR_LET_STMT:
        return same_expr(self, left->let.value, right->let.value) &&
               same_under(self, left->let.var, right->let.var, left->let.body, right->let.body);
    case IR_ALLOCATE: return same_allocate(self, left, right);
    case IR_IF:
        return same_expr(self, left->branch.cond, right->branch.cond) &&
               same_stmt(self, left->branch.then, right->branch.then) &&
               same_stmt(self, left->branch.otherwise, right->branch.otherwise);
    case IR_SEQ: return same_seq(self, left, right);
    case IR_ASSERT:
        return base_same(left->check.message, right->check.message) &&
               same_expr(self, left->check.cond, right->check.cond);
    case IR_ATTRIBUTE:
        return base_same(left->attribute.key, right->attribute.key) &&
               same_expr(self, left->attribute.value, right->attribute.value) &&
               same_stmt(self, left->attribute.body, right->attribute.body);
    case IR_EVALUATE: return same_expr(self, left->value, right->value);
    }
    return false;
}

bool ir_same_stmt(tec_context *cx, const ir_stmt *left, const ir_stmt *right)
{
    comparison c = {0};

    (void)cx;
    return finish(&c, same_stmt(&c, left, right));
}

/* ---- programs ---- */

static bool same_program(const ir_program *left, const ir_program *right);

/* The meaning is a program of its own and sees no binding. */
static bool same_intrinsic(const ir_intrinsic *left, const ir_intrinsic *right)
{
    if (!base_same(left->name, right->name) || !base_same(left->text, right->text) ||
        !left->meaning != !right->meaning)
        return false;
    return !left->meaning || same_program(left->meaning, right->meaning);
}

static bool same_params(const ir_program *left, const ir_program *right)
{
    for (int i = 0; i < left->n_params; i++) {
        const ir_param *x = &left->params[i], *y = &right->params[i];

        if (x->output != y->output || !x->buffer != !y->buffer ||
            (x->scalar && !base_dtype_same(x->scalar->dtype, y->scalar->dtype)))
            return false;
    }
    return true;
}

/* A symbol that is a parameter too has the same partner as both. */
static bool same_scalars(const comparison *self, const ir_program *left, const ir_program *right)
{
    bool pair;

    for (int i = 0; i < left->n_params; i++)
        if (left->params[i].scalar &&
            find_binding(self, left->params[i].scalar, right->params[i].scalar, &pair) && !pair)
            return false;
    return true;
}

static bool same_buffers(comparison *self, const ir_program *left, const ir_program *right)
{
    for (int i = 0; i < left->n_params; i++)
        if (left->params[i].buffer && !same_buffer(self, left->params[i].buffer, right->params[i].buffer))
            return false;
    for (int i = 0; i < left->n_buffers; i++)
        if (!same_buffer(self, left->buffers[i], right->buffers[i]))
            return false;
    return true;
}

/* Symbols, parameters and buffers are bound in all that follows. Of a parameter's scalar and buffer one is
 * NULL, which names nothing. */
static bool same_bodies(comparison *self, const ir_program *left, const ir_program *right)
{
    frame symbols, scalars, params, buffers;

    bind_list(self, &symbols, left->symbols, right->symbols, sizeof *left->symbols, left->n_symbols);
    if (!same_scalars(self, left, right))
        return false;
    if (left->n_params) {
        bind_list(self, &scalars, &left->params[0].scalar, &right->params[0].scalar, sizeof *left->params,
                  left->n_params);
        bind_list(self, &params, &left->params[0].buffer, &right->params[0].buffer, sizeof *left->params,
                  left->n_params);
    }
    bind_list(self, &buffers, left->buffers, right->buffers, sizeof *left->buffers, left->n_buffers);
    for (int i = 0; i < left->n_intrinsics; i++)
        if (!same_intrinsic(left->intrinsics[i], right->intrinsics[i]))
            return false;
    return same_buffers(self, left, right) && same_all(self, left->facts, right->facts, left->n_facts) &&
           same_notes(self, left->notes, right->notes) && same_stmt(self, left->body, right->body);
}

static bool same_program(const ir_program *left, const ir_program *right)
{
    comparison c = {0};

    if (left == right)
        return true;
    if (!left || !right || left->n_symbols != right->n_symbols || left->n_params != right->n_params ||
        left->n_buffers != right->n_buffers || left->n_facts != right->n_facts ||
        left->n_intrinsics != right->n_intrinsics)
        return false;
    return finish(&c, same_params(left, right) && same_bodies(&c, left, right));
}

bool ir_same_program(tec_context *cx, const ir_program *left, const ir_program *right)
{
    (void)cx;
    return same_program(left, right);
}
