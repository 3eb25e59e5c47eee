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

static bool collect(ir_walk *w, const ir_stmt *s)
{
    collector *c = (collector *)w;
    if (s->kind == IR_ALLOCATE && s->allocate.buffer->scope != IR_LOCAL)
        base_push(w->cx, &c->allocations, s);
    return true;
}

/* A size that is no constant reaches to the end. */
static int64_t bytes_of(const ir_buffer *b)
{
    int64_t n = base_dtype_bytes(b->dtype), extent;
    for (int i = 0; i < b->n; i++) {
        if (!ir_is_int(b->shape[i], &extent) || (extent > 0 && n > INT64_MAX / 4 / extent))
            return INT64_MAX / 4;
        n *= extent;
    }
    return n;
}

static member of_allocation(const ir_stmt *s)
{
    const ir_expr *shared = ir_note_get(s->allocate.notes, "workspace"),
                  *own = ir_note_get(s->allocate.notes, "thread_workspace");
    member m = {.buffer = s->allocate.buffer, .kind = shared ? 1 : own ? 2 : 0};
    if (m.kind && !ir_is_int(shared ? shared : own, &m.begin))
        m.end = INT64_MAX; /* anywhere */
    else if (m.kind)
        m.end = m.begin + bytes_of(m.buffer);
    return m;
}

static bool overlap(const member *a, const member *b)
{
    if (a->kind || b->kind)
        return a->kind == b->kind && a->begin < b->end && b->begin < a->end;
    return a->buffer->alias != 0 && a->buffer->alias == b->buffer->alias;
}

static int leader_of(const member *m, int i)
{
    while (m[i].leader != i)
        i = m[i].leader;
    return i;
}

static void classify(member *m, int n)
{
    for (int i = 0; i < n; i++) {
        m[i].leader = i;
        for (int j = 0; j < i; j++)
            if (overlap(&m[i], &m[j]))
                m[leader_of(m, i)].leader = leader_of(m, j);
    }
}

/* A scope is a node of a unique text and its domain. */
static LLVMMetadataRef node(llvm_gen *g, const char *text, LLVMMetadataRef domain)
{
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(g->c, text, strlen(text)), domain};
    return LLVMMDNodeInContext2(g->c, parts, domain ? 2 : 1);
}

/* One scope per class of buffers. An access is in the scope of its class and declared not to alias the scopes
 * of all others. */
static void make_lists(llvm_gen *g, member *m, int n)
{
    LLVMMetadataRef domain = node(g, g->symbol, NULL), *scope = base_array(g->cx, LLVMMetadataRef, n);
    LLVMMetadataRef *rest = base_array(g->cx, LLVMMetadataRef, n);
    for (int i = 0; i < n; i++)
        if (m[i].leader == i)
            scope[i] = node(g, base_format(g->cx, "%s.%d %s", g->symbol, i, m[i].buffer->name), domain);
    for (int i = 0; i < n; i++) {
        int own = leader_of(m, i), k = 0;
        for (int j = 0; j < n; j++)
            if (m[j].leader == j && j != own)
                rest[k++] = scope[j];
        base_map_put(g->cx, &g->scopes, m[i].buffer, LLVMMDNodeInContext2(g->c, &scope[own], 1));
        if (k)
            base_map_put(g->cx, &g->others, m[i].buffer, LLVMMDNodeInContext2(g->c, rest, (size_t)k));
    }
}

void llvm_alias_scopes(llvm_gen *g)
{
    collector c = {.walk = {.cx = g->cx, .expr = ir_skip_expr, .stmt = collect}};
    int n = 0;
    ir_walk_stmt(&c.walk, g->p->body);
    member *m = base_array(g->cx, member, g->p->n_params + c.allocations.n);
    for (int i = 0; i < g->p->n_params; i++)
        if (g->p->params[i].buffer)
            m[n++] = (member){.buffer = g->p->params[i].buffer};
    for (int i = 0; i < c.allocations.n; i++)
        m[n++] = of_allocation(c.allocations.at[i]);
    classify(m, n);
    make_lists(g, m, n);
}
