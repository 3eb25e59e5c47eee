/* targets/source/stmt.c -- statements.
 *
 * A loop over an axis of threads is no loop: this code is one thread, whose index the language tells.
 *
 *     for t in 0..24 threadIdx.x { A[t] = 0 }   =>   if (get_local_id(0) < 24) {      (of 32 threads)
 *                                                        const long t = get_local_id(0);
 *                                                        A[t] = 0.0f;
 *                                                    }
 */
#include <string.h>

#include "ir/build.h"
#include "ir/calls.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "targets/source/printer.h"

/* The parts of a statement: what one part made a name for serves the others. */
static void begin(source_printer *p, const ir_expr *a, const ir_expr *b)
{
    source_forget(p);
    if (a)
        source_count(p, a);
    if (b)
        source_count(p, b);
}

/* A block of the text: names of values that are made inside end with it. */
static void print_block(source_printer *p, const ir_stmt *s)
{
    int known = p->n_known;

    source_open(p);
    source_stmt(p, s);
    source_close(p);
    p->n_known = known;
}

static void note_sign(source_printer *p, const ir_expr *var, bool nonnegative)
{
    base_map_put(p->cx, &p->nonnegative, var, nonnegative ? var : NULL);
}

/* The index comes from the language; a condition leaves out threads beyond the extent. */
static void print_axis(source_printer *p, const ir_stmt *s)
{
    const char *index = p->d->index(s->loop.how), *min, *extent, *name;
    int64_t n = -1;
    bool zero = ir_is_value(s->loop.min, 0),
         whole = ir_is_int(s->loop.extent, &n) && n == p->axis[s->loop.how];

    if (s->loop.how <= IR_BLOCK_Z && s->loop.how >= IR_BLOCK_X)
        whole = true; /* the grid is this loop's extent */
    if (!index) {
        base_fail(p->cx, TEC_UNSUPPORTED, s->loc, "loop '%s' is over %s, which %s does not have",
                  s->loop.var->var.name, ir_how_text(s->loop.how), p->d->what);
        return;
    }
    begin(p, s->loop.min, NULL);
    min = source_expr(p, s->loop.min, SOURCE_SUM);
    extent = whole ? "" : source_expr(p, s->loop.extent, SOURCE_SHIFT);
    source_forget(p);
    if (whole)
        source_line(p, "{");
    else
        source_line(p, "if (%s < %s) {", index, extent ? extent : "");
    name = source_name(p, s->loop.var, s->loop.var->var.name);
    note_sign(p, s->loop.var, source_nonnegative(p, s->loop.min));
    source_open(p);
    if (zero)
        source_line(p, "const %s %s = %s;", p->d->type(s->loop.var->dtype), name, index);
    else
        source_line(p, "const %s %s = %s + %s;", p->d->type(s->loop.var->dtype), name, min ? min : "", index);
    source_close(p);
    print_block(p, s->loop.body);
    source_line(p, "}");
}

/* A loop of the language, unless it is over an axis of threads. */
static void print_for(source_printer *p, const ir_stmt *s)
{
    const char *type = p->d->type(s->loop.var->dtype), *min, *end, *name;

    if (s->loop.how >= IR_BLOCK_X && s->loop.how <= IR_THREAD_Z) {
        print_axis(p, s);
        return;
    }
    begin(p, s->loop.min, s->loop.extent);
    min = source_expr(p, s->loop.min, SOURCE_SUM);
    end = source_expr(
        p, ir_is_value(s->loop.min, 0) ? s->loop.extent : ir_add(p->cx, s->loop.min, s->loop.extent),
        SOURCE_SHIFT);
    source_forget(p);
    name = source_name(p, s->loop.var, s->loop.var->var.name);
    note_sign(p, s->loop.var, source_nonnegative(p, s->loop.min));
    if (min && end)
        source_line(p, "for (%s %s = %s; %s < %s; %s++) {", type, name, min, name, end, name);
    print_block(p, s->loop.body);
    source_line(p, "}");
}

/* One element; vectors were taken apart by lower/. */
static void print_store(source_printer *p, const ir_stmt *s)
{
    base_dtype t = s->store.value->dtype;
    const char *name = base_map_get(&p->names, s->store.buffer), *index, *value;

    if (s->store.mask || t.lanes != 1) {
        base_fail(p->cx, TEC_UNSUPPORTED, s->loc, "a store of several lanes to '%s' has no words in %s",
                  s->store.buffer->name, p->d->what);
        return;
    }
    begin(p, s->store.value, s->store.index[0]);
    index = source_expr(p, s->store.index[0], SOURCE_ANY);
    value = source_expr(p, s->store.value, SOURCE_ANY);
    source_forget(p);
    if (!name || !index || !value) {
        if (!base_failed(p->cx))
            BASE_BUG(p->cx, "buffer '%s' has no name in the text", s->store.buffer->name);
        return;
    }
    if (source_is_half(t))
        source_line(p, "%s[%s] = tec_%s_store(%s);", name, index, source_half(t), value);
    else
        source_line(p, "%s[%s] = %s;", name, index, value);
}

/* Whether the store copies an element of global memory to shared memory as it is. */
static bool is_copy(const ir_stmt *s)
{
    const ir_expr *from = s->kind == IR_STORE ? s->store.value : NULL;

    return from && from->op == IR_LOAD && !from->load.mask && !s->store.mask && from->dtype.lanes == 1 &&
           from->load.buffer->scope == IR_GLOBAL && s->store.buffer->scope == IR_SHARED;
}

/* A store inside `attribute async_copy`: begun by the dialect's own statement, where it has one. */
static void print_copy(source_printer *p, const ir_stmt *s)
{
    const char *name = base_map_get(&p->names, s->store.buffer), *index, *source, *from, *text = NULL;
    int known = p->n_known, bytes = base_dtype_bytes(s->store.value->dtype);

    begin(p, s->store.value->load.index[0], s->store.index[0]);
    index = source_expr(p, s->store.index[0], SOURCE_ANY);
    from = source_expr(p, s->store.value->load.index[0], SOURCE_ANY);
    source_forget(p);
    source = base_map_get(&p->names, s->store.value->load.buffer);
    if (name && index && from && source)
        text = p->d->copy(p->cx, bytes, base_format(p->cx, "&%s[%s]", name, index),
                          base_format(p->cx, "&%s[%s]", source, from));
    if (text)
        source_line(p, "%s;", text);
    p->n_known = known;
    if (!text && !base_failed(p->cx))
        print_store(p, s);
}

static void print_let(source_printer *p, const ir_stmt *s)
{
    const char *value, *name;

    begin(p, s->let.value, NULL);
    value = source_expr(p, s->let.value, SOURCE_ANY);
    source_forget(p);
    name = source_name(p, s->let.var, s->let.var->var.name);
    note_sign(p, s->let.var, source_nonnegative(p, s->let.value));
    if (value)
        source_line(p, "const %s %s = %s;", p->d->type(s->let.var->dtype), name, value);
    source_stmt(p, s->let.body);
}

/* Values named for the condition are forgotten behind it. */
static void print_if(source_printer *p, const ir_stmt *s)
{
    const char *cond;

    begin(p, s->branch.cond, NULL);
    cond = source_expr(p, s->branch.cond, SOURCE_ANY);
    source_forget(p);
    if (!cond)
        return;
    source_line(p, "if (%s) {", cond);
    print_block(p, s->branch.then);
    if (s->branch.otherwise) {
        source_line(p, "} else {");
        print_block(p, s->branch.otherwise);
    }
    source_line(p, "}");
}

/* ---- memory ---- */

static int64_t elements_of(const ir_buffer *b)
{
    int64_t n = 1, extent;

    for (int i = 0; i < b->n; i++) {
        if (!ir_is_int(b->shape[i], &extent) || extent < 0)
            return -1;
        n *= extent;
    }
    return n > 0 ? n : 1;
}

/* An array of constant size in the memory that the space names. */
static void declare(source_printer *p, const ir_buffer *b, source_space space)
{
    const char *type = p->d->memory_type(b->dtype), *qualifier = p->d->space[space];
    int64_t n = elements_of(b);
    char dtype[24];

    if (n < 0) {
        base_fail(p->cx, TEC_UNSUPPORTED, b->loc, "buffer '%s' has no constant size", b->name);
    } else if (!type) {
        base_fail(p->cx, TEC_UNSUPPORTED, b->loc, "buffer '%s' holds %s, which %s has no type for", b->name,
                  base_dtype_print(b->dtype, dtype, sizeof dtype), p->d->what);
    } else {
        const char *name = source_name(p, b, b->name);

        source_line(p, "%s%s%s %s[%lld];", qualifier, *qualifier ? " " : "", type, name, (long long)n);
    }
}

static void print_allocate(source_printer *p, const ir_stmt *s)
{
    if (s->allocate.buffer->scope != IR_SHARED)
        declare(p, s->allocate.buffer, SOURCE_LOCAL);
    source_stmt(p, s->allocate.body);
}

typedef struct {
    ir_walk walk;
    source_printer *p;
} declarer;

static bool declare_stmt(ir_walk *w, const ir_stmt *s)
{
    source_printer *p = ((declarer *)w)->p;

    if (s->kind == IR_ALLOCATE && s->allocate.buffer->scope == IR_SHARED &&
        !base_map_has(&p->names, s->allocate.buffer))
        declare(p, s->allocate.buffer, SOURCE_SHARED);
    return true;
}

void source_declare_shared(source_printer *p, const ir_stmt *s)
{
    declarer d = {.walk = {.cx = p->cx, .stmt = declare_stmt, .expr = ir_skip_expr}, .p = p};

    ir_walk_stmt(&d.walk, s);
}

/* ---- all ---- */

static void print_evaluate(source_printer *p, const ir_stmt *s)
{
    const ir_expr *e = s->value;
    const char *text = e->op == IR_CALL && p->d->call ? p->d->call(p->cx, e) : NULL;

    if (text)
        source_line(p, "%s;", text);
    else if (!base_failed(p->cx) && (e->has & IR_HAS_EFFECT))
        base_fail(p->cx, TEC_UNSUPPORTED, s->loc, "'%s' has no words in %s", ir_expr_text(p->cx, e),
                  p->d->what);
}

/* Copies inside `attribute async_copy` begin here and are waited for later. */
static void print_attribute(source_printer *p, const ir_stmt *s)
{
    bool before = p->copies;

    if (p->d->copy && strcmp(s->attribute.key, IR_ASYNC_COPY) == 0)
        p->copies = true;
    source_stmt(p, s->attribute.body);
    p->copies = before;
}

/* A value that is named inside a condition or loop is not known behind it; so it is for statements that
 * stand alone. */
static void print_alone(source_printer *p, const ir_stmt *s, void (*print)(source_printer *, const ir_stmt *))
{
    int known = p->n_known;

    print(p, s);
    p->n_known = known;
}

/* One case per kind of statement; those that lowering removes are bugs here. */
void source_stmt(source_printer *p, const ir_stmt *s)
{
    if (base_failed(p->cx))
        return;
    switch (s->kind) {
    case IR_FOR: print_alone(p, s, print_for); return;
    case IR_STORE: print_alone(p, s, p->copies && is_copy(s) ? print_copy : print_store); return;
    case IR_LET_STMT: print_alone(p, s, print_let); return;
    case IR_IF: print_alone(p, s, print_if); return;
    case IR_ALLOCATE:
        source_line(p, "{");
        source_open(p);
        print_alone(p, s, print_allocate);
        source_close(p);
        source_line(p, "}");
        return;
    case IR_SEQ:
        for (int i = 0; i < s->seq.n; i++)
            source_stmt(p, s->seq.stmt[i]);
        return;
    case IR_ATTRIBUTE: print_attribute(p, s); return;
    case IR_EVALUATE: print_evaluate(p, s); return;
    case IR_ASSERT:
        base_fail(p->cx, TEC_UNSUPPORTED, s->loc, "the check '%s' has no words in %s", s->check.message,
                  p->d->what);
        return;
    case IR_BLOCK:
    case IR_UPDATE: BASE_BUG(p->cx, "a block or reduction step reached code generation"); return;
    }
}
