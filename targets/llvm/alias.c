/* targets/llvm/alias.c -- what never overlaps, told to LLVM as alias scopes.
 *
 * Each buffer belongs to a class; accesses of different classes never overlap. Parameters share a class where
 * their alias class (not 0) is the same. Temporaries that a plan put on the same bytes of a workspace share
 * one, even though they live at different times: otherwise LLVM could move a store of the second before a
 * load of the first. Local buffers lie on the stack and need no help.
 */
#include <string.h>

#include "targets/llvm/gen.h"

#include "ir/build.h"
#include "ir/walk.h"

/* A buffer, the bytes that it takes of a workspace (kind 1 or 2; 0: none), and the first member of its
 * class. */
typedef struct {
    const ir_buffer *buffer;
    int kind, leader;
    int64_t begin, end;
} member;

typedef struct {
    ir_walk walk;
    base_vec allocations; /* ir_stmt */
} collector;

static bool collect(ir_walk *walk, const ir_stmt *stmt)
{
    collector *c = (collector *)walk;
    if (stmt->kind == IR_ALLOCATE && stmt->allocate.buffer->scope != IR_LOCAL)
        base_push(walk->cx, &c->allocations, stmt);
    return true;
}

/* A size that is no constant reaches to the end. */
static int64_t bytes_of(const ir_buffer *buffer)
{
    int64_t n = base_dtype_bytes(buffer->dtype), extent;
    for (int i = 0; i < buffer->n; i++) {
        if (!ir_is_int(buffer->shape[i], &extent) || (extent > 0 && n > INT64_MAX / 4 / extent))
            return INT64_MAX / 4;
        n *= extent;
    }
    return n;
}

static member of_allocation(const ir_stmt *stmt)
{
    const ir_expr *shared = ir_note_get(stmt->allocate.notes, "workspace"),
                  *own = ir_note_get(stmt->allocate.notes, "thread_workspace");
    member m = {.buffer = stmt->allocate.buffer, .kind = shared ? 1 : own ? 2 : 0};
    if (m.kind && !ir_is_int(shared ? shared : own, &m.begin))
        m.end = INT64_MAX; /* anywhere */
    else if (m.kind)
        m.end = m.begin + bytes_of(m.buffer);
    return m;
}

static bool overlap(const member *left, const member *right)
{
    if (left->kind || right->kind)
        return left->kind == right->kind && left->begin < right->end && right->begin < left->end;
    return left->buffer->alias != 0 && left->buffer->alias == right->buffer->alias;
}

static int leader_of(const member *at, int i)
{
    while (at[i].leader != i)
        i = at[i].leader;
    return i;
}

static void classify(member *at, int n)
{
    for (int i = 0; i < n; i++) {
        at[i].leader = i;
        for (int j = 0; j < i; j++)
            if (overlap(&at[i], &at[j]))
                at[leader_of(at, i)].leader = leader_of(at, j);
    }
}

/* A scope is a node of a unique text and its domain. */
static LLVMMetadataRef node(llvm_gen *gen, const char *text, LLVMMetadataRef domain)
{
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(gen->c, text, strlen(text)), domain};
    return LLVMMDNodeInContext2(gen->c, parts, domain ? 2 : 1);
}

/* One scope per class of buffers. An access is in the scope of its class and declared not to alias the scopes
 * of all others. */
static void make_lists(llvm_gen *gen, member *at, int count)
{
    LLVMMetadataRef domain = node(gen, gen->symbol, NULL),
                    *scope = base_array(gen->cx, LLVMMetadataRef, count);
    LLVMMetadataRef *rest = base_array(gen->cx, LLVMMetadataRef, count);
    for (int i = 0; i < count; i++)
        if (at[i].leader == i)
            scope[i] =
                node(gen, base_format(gen->cx, "%s.%d %s", gen->symbol, i, at[i].buffer->name), domain);
    for (int i = 0; i < count; i++) {
        int own = leader_of(at, i), k = 0;
        for (int j = 0; j < count; j++)
            if (at[j].leader == j && j != own)
                rest[k++] = scope[j];
        base_map_put(gen->cx, &gen->scopes, at[i].buffer, LLVMMDNodeInContext2(gen->c, &scope[own], 1));
        if (k)
            base_map_put(gen->cx, &gen->others, at[i].buffer, LLVMMDNodeInContext2(gen->c, rest, (size_t)k));
    }
}

void llvm_alias_scopes(llvm_gen *gen)
{
    collector c = {.walk = {.cx = gen->cx, .expr = ir_skip_expr, .stmt = collect}};
    int n = 0;
    ir_walk_stmt(&c.walk, gen->p->body);
    member *m = base_array(gen->cx, member, gen->p->n_params + c.allocations.n);
    for (int i = 0; i < gen->p->n_params; i++)
        if (gen->p->params[i].buffer)
            m[n++] = (member){.buffer = gen->p->params[i].buffer};
    for (int i = 0; i < c.allocations.n; i++)
        m[n++] = of_allocation(c.allocations.at[i]);
    classify(m, n);
    make_lists(gen, m, n);
}
