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
static void begin(source_printer *printer, const ir_expr *left, const ir_expr *right)
{
    source_forget(printer);
    if (left)
        source_count(printer, left);
    if (right)
        source_count(printer, right);
}

/* A block of the text, where these facts hold: names of values that are made inside end with it. */
static void print_block(source_printer *printer, const ir_stmt *stmt, const ir_facts *inside)
{
    const ir_facts *outside = printer->facts;
    int known = printer->n_known;

    printer->facts = inside;
    source_open(printer);
    source_stmt(printer, stmt);
    source_close(printer);
    printer->facts = outside;
    if (!BASE_PLANT_ON(printer->cx, source_known))
        printer->n_known = known;
}

static void note_sign(source_printer *printer, const ir_expr *var, bool nonnegative)
{
    nonnegative |= BASE_PLANT_ON(printer->cx, source_sign);
    base_map_put(printer->cx, &printer->nonnegative, var, nonnegative ? var : NULL);
}

/* An instruction that threads do together, in the loop of the first of them: all of them come to it. */
static bool print_together(source_printer *printer, const ir_stmt *stmt)
{
    int group;

    if (stmt->loop.how != IR_THREAD_X || !ir_is_value(stmt->loop.extent, 1) ||
        !source_is_instruction(printer, stmt->loop.body, &group) || group == 1)
        return false;
    source_stmt(printer, stmt->loop.body);
    return true;
}

/* The index comes from the language; a condition leaves out threads beyond the extent. */
static void print_axis(source_printer *printer, const ir_stmt *stmt)
{
    const ir_expr *along_x = printer->along_x;
    ir_how how = stmt->loop.how == IR_THREAD_Y && BASE_PLANT_ON(printer->cx, source_axis) ? IR_THREAD_X
                                                                                          : stmt->loop.how;
    const char *index = printer->d->index(how), *min, *extent, *name;
    int64_t n = -1;
    bool zero = ir_is_value(stmt->loop.min, 0),
         whole = ir_is_int(stmt->loop.extent, &n) && n == printer->axis[stmt->loop.how];

    if ((stmt->loop.how <= IR_BLOCK_Z && stmt->loop.how >= IR_BLOCK_X) ||
        BASE_PLANT_ON(printer->cx, source_guard))
        whole = true; /* the grid is this loop's extent */
    zero |= BASE_PLANT_ON(printer->cx, source_min);
    if (!index) {
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc, "loop '%s' is over %s, which does not exist in %s",
                  stmt->loop.var->var.name, ir_how_text(stmt->loop.how), printer->d->what);
        return;
    }
    begin(printer, stmt->loop.min, NULL);
    min = source_expr(printer, stmt->loop.min, SOURCE_SUM);
    extent = whole ? "" : source_expr(printer, stmt->loop.extent, SOURCE_SHIFT);
    source_forget(printer);
    if (whole)
        source_line(printer, "{");
    else
        source_line(printer, "if (%s < %s) {", index, extent ? extent : "");
    name = source_name(printer, stmt->loop.var, stmt->loop.var->var.name);
    note_sign(printer, stmt->loop.var, source_nonnegative(printer, stmt->loop.min));
    source_open(printer);
    if (zero)
        source_line(printer, "const %s %s = %s;", source_type(printer, stmt->loop.var), name, index);
    else
        source_line(printer, "const %s %s = %s + %s;", source_type(printer, stmt->loop.var), name,
                    min ? min : "", index);
    source_close(printer);
    if (stmt->loop.how == IR_THREAD_X)
        printer->along_x = stmt->loop.var;
    print_block(printer, stmt->loop.body, ir_facts_inside(printer->facts, stmt, false));
    printer->along_x = along_x;
    source_line(printer, "}");
}

/* A loop of the language, unless it is over an axis of threads. */
static void print_for(source_printer *printer, const ir_stmt *stmt)
{
    const char *type = source_type(printer, stmt->loop.var), *min, *end, *name;

    if (stmt->loop.how >= IR_BLOCK_X && stmt->loop.how <= IR_THREAD_Z) {
        if (!print_together(printer, stmt))
            print_axis(printer, stmt);
        return;
    }
    if (source_vector_loop(printer, stmt))
        return;
    begin(printer, stmt->loop.min, stmt->loop.extent);
    min = source_expr(printer, stmt->loop.min, SOURCE_SUM);
    end = source_expr(printer,
                      ir_is_value(stmt->loop.min, 0) || BASE_PLANT_ON(printer->cx, source_end)
                          ? stmt->loop.extent
                          : ir_add(printer->cx, stmt->loop.min, stmt->loop.extent),
                      SOURCE_SHIFT);
    source_forget(printer);
    name = source_name(printer, stmt->loop.var, stmt->loop.var->var.name);
    note_sign(printer, stmt->loop.var, source_nonnegative(printer, stmt->loop.min));
    if (min && end)
        source_line(printer, "for (%s %s = %s; %s < %s; %s++) {", type, name, min, name, end, name);
    print_block(printer, stmt->loop.body, ir_facts_inside(printer->facts, stmt, false));
    source_line(printer, "}");
}

/* One element; vectors were taken apart by lower/. */
static void print_store(source_printer *printer, const ir_stmt *stmt)
{
    base_dtype t = stmt->store.value->dtype;
    const char *name = base_map_get(&printer->names, stmt->store.buffer), *index, *value;

    if (!source_is_plain(printer, stmt->store.buffer, stmt->loc))
        return;
    if (stmt->store.mask || t.lanes != 1) {
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc,
                  "a store of several lanes to '%s' cannot be written in %s", stmt->store.buffer->name,
                  printer->d->what);
        return;
    }
    begin(printer, stmt->store.value, stmt->store.index[0]);
    index = source_expr(printer, stmt->store.index[0], SOURCE_ANY);
    value = source_expr(printer, stmt->store.value, SOURCE_ANY);
    source_forget(printer);
    if (!name || !index || !value) {
        if (!base_failed(printer->cx))
            BASE_BUG(printer->cx, "buffer '%s' has no name in the text", stmt->store.buffer->name);
        return;
    }
    if (source_is_half(t))
        source_line(printer, "%s[%s] = tec_%s_store(%s);", name, index, source_half(t), value);
    else
        source_line(printer, "%s[%s] = %s;", name, index, value);
}

/* Whether the store copies an element of global memory to shared memory as it is. */
static bool is_copy(const ir_stmt *stmt)
{
    const ir_expr *from = stmt->kind == IR_STORE ? stmt->store.value : NULL;

    return from && from->op == IR_LOAD && !from->load.mask && !stmt->store.mask && from->dtype.lanes == 1 &&
           from->load.buffer->scope == IR_GLOBAL && stmt->store.buffer->scope == IR_SHARED;
}

/* A store inside `attribute async_copy`: begun by the dialect's own statement, where it has one. */
static void print_copy(source_printer *printer, const ir_stmt *stmt)
{
    const char *name = base_map_get(&printer->names, stmt->store.buffer), *index, *source, *from,
               *text = NULL;
    int known = printer->n_known, bytes = base_dtype_bytes(stmt->store.value->dtype);

    begin(printer, stmt->store.value->load.index[0], stmt->store.index[0]);
    index = source_expr(printer, stmt->store.index[0], SOURCE_ANY);
    from = source_expr(printer, stmt->store.value->load.index[0], SOURCE_ANY);
    source_forget(printer);
    source = base_map_get(&printer->names, stmt->store.value->load.buffer);
    if (name && index && from && source)
        text = printer->d->copy(printer->cx, bytes, base_format(printer->cx, "&%s[%s]", name, index),
                                base_format(printer->cx, "&%s[%s]", source, from));
    if (text)
        source_line(printer, "%s;", text);
    printer->n_known = known;
    if (!text && !base_failed(printer->cx))
        print_store(printer, stmt);
}

/* A named value; what it is, is a fact for the statements behind it. */
static void print_let(source_printer *printer, const ir_stmt *stmt)
{
    const char *value, *name;

    begin(printer, stmt->let.value, NULL);
    value = source_expr(printer, stmt->let.value, SOURCE_ANY);
    source_forget(printer);
    name = source_name(printer, stmt->let.var, stmt->let.var->var.name);
    note_sign(printer, stmt->let.var, source_nonnegative(printer, stmt->let.value));
    bool hidden = printer->d->hides_conditions && base_is_bool(stmt->let.var->dtype);
    if (value)
        source_line(printer, "const %s%s %s = %s;", hidden ? "volatile " : "",
                    source_type(printer, stmt->let.var), name, value);
    const ir_facts *outside = printer->facts;
    printer->facts = ir_facts_inside(outside, stmt, false);
    source_stmt(printer, stmt->let.body);
    printer->facts = outside;
}

/* Values named for the condition are forgotten behind it. */
static void print_if(source_printer *printer, const ir_stmt *stmt)
{
    const char *cond;

    begin(printer, stmt->branch.cond, NULL);
    cond = source_expr(printer, stmt->branch.cond, SOURCE_ANY);
    source_forget(printer);
    if (!cond)
        return;
    source_line(printer, "if (%s) {", cond);
    print_block(printer, stmt->branch.then, ir_facts_inside(printer->facts, stmt, false));
    if (stmt->branch.otherwise && !BASE_PLANT_ON(printer->cx, source_else)) {
        source_line(printer, "} else {");
        print_block(printer, stmt->branch.otherwise, ir_facts_inside(printer->facts, stmt, true));
    }
    source_line(printer, "}");
}

/* ---- memory ---- */

static int64_t elements_of(const ir_buffer *buffer)
{
    int64_t n = 1, extent;

    for (int i = 0; i < buffer->n; i++) {
        if (!ir_is_int(buffer->shape[i], &extent) || extent < 0)
            return -1;
        n *= extent;
    }
    return n > 0 ? n : 1;
}

/* An array of constant size in the memory that the space names. */
static void declare(source_printer *printer, const ir_buffer *buffer, source_space space)
{
    const char *type = printer->d->memory_type(buffer->dtype), *qualifier = printer->d->space[space];
    int64_t n = elements_of(buffer);
    char dtype[24];

    n -= space == SOURCE_SHARED && n > 1 && BASE_PLANT_ON(printer->cx, source_shared);
    if (n < 0) {
        base_fail(printer->cx, TEC_UNSUPPORTED, buffer->loc, "buffer '%s' has no constant size",
                  buffer->name);
    } else if (!type) {
        base_fail(printer->cx, TEC_UNSUPPORTED, buffer->loc,
                  "buffer '%s' has elements of type %s, which does not exist in %s", buffer->name,
                  base_dtype_print(buffer->dtype, dtype, sizeof dtype), printer->d->what);
    } else {
        const char *name = source_name(printer, buffer, buffer->name);

        if (space == SOURCE_LOCAL)
            base_map_put(printer->cx, &printer->arrays, buffer, buffer);
        source_line(printer, "%s%s%s %s[%lld];", qualifier, *qualifier ? " " : "", type, name, (long long)n);
    }
}

/* Each thread has its share of a fragment, in words. */
static void declare_fragment(source_printer *printer, const ir_buffer *buffer)
{
    int64_t words = source_fragment_words(printer, buffer, elements_of(buffer));

    if (words > 0)
        source_line(printer, "uint %s[%lld];", source_name(printer, buffer, buffer->name), (long long)words);
}

static void print_allocate(source_printer *printer, const ir_stmt *stmt)
{
    if (source_fragment(printer, stmt->allocate.buffer))
        declare_fragment(printer, stmt->allocate.buffer);
    else if (stmt->allocate.buffer->scope != IR_SHARED)
        declare(printer, stmt->allocate.buffer, SOURCE_LOCAL);
    source_stmt(printer, stmt->allocate.body);
}

typedef struct {
    ir_walk walk;
    source_printer *p;
    const char *dynamic; /* the array that all are parts of; NULL: none */
    int64_t at;          /* bytes of it that are taken */
} declarer;

/* A part of the array that the launch makes, counted as lower/launches.c counts. */
static void declare_part(declarer *self, const ir_buffer *buffer)
{
    source_printer *p = self->p;
    const char *type = p->d->memory_type(buffer->dtype);

    if (!type)
        declare(p, buffer, SOURCE_SHARED); /* which refuses it */
    else
        source_line(p, "%s *const %s = (%s *)(%s + %lld);", type, source_name(p, buffer, buffer->name), type,
                    self->dynamic, (long long)self->at);
    self->at += (elements_of(buffer) * base_dtype_bytes(buffer->dtype) + 63) / 64 * 64;
}

static bool declare_stmt(ir_walk *walk, const ir_stmt *stmt)
{
    declarer *self = (declarer *)walk;

    if (stmt->kind != IR_ALLOCATE || stmt->allocate.buffer->scope != IR_SHARED ||
        base_map_has(&self->p->names, stmt->allocate.buffer))
        return true;
    if (self->dynamic)
        declare_part(self, stmt->allocate.buffer);
    else
        declare(self->p, stmt->allocate.buffer, SOURCE_SHARED);
    return true;
}

void source_declare_shared(source_printer *printer, const ir_stmt *stmt, int64_t bytes)
{
    declarer d = {.walk = {.cx = printer->cx, .stmt = declare_stmt, .expr = ir_skip_expr}, .p = printer};

    if (printer->d->dynamic_shared && bytes > printer->d->static_shared_bytes) {
        d.dynamic = source_name(printer, NULL, "shared_memory");
        source_line(printer, "%s;", printer->d->dynamic_shared(printer->cx, d.dynamic, bytes));
    }
    ir_walk_stmt(&d.walk, stmt);
}

/* ---- all ---- */

/* An instruction of the hardware, or a call that the dialect has words for; a value without effect is left
 * out. */
static void print_evaluate(source_printer *printer, const ir_stmt *stmt)
{
    const ir_expr *expr = stmt->value;
    int group;

    if (source_is_instruction(printer, stmt, &group)) {
        source_instruction(printer, stmt);
        return;
    }
    const char *text = expr->op == IR_CALL && printer->d->call ? printer->d->call(printer->cx, expr) : NULL;

    if (text)
        source_line(printer, "%s;", text);
    else if (!base_failed(printer->cx) && (expr->has & IR_HAS_EFFECT))
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc, "'%s' cannot be written in %s",
                  ir_expr_text(printer->cx, expr), printer->d->what);
}

/* Copies inside `attribute async_copy` begin here and are waited for later. */
static void print_attribute(source_printer *printer, const ir_stmt *stmt)
{
    bool before = printer->copies;

    if (printer->d->copy && strcmp(stmt->attribute.key, IR_ASYNC_COPY) == 0)
        printer->copies = true;
    source_stmt(printer, stmt->attribute.body);
    printer->copies = before;
}

/* A value that is named inside a condition or loop is not known behind it; so it is for statements that
 * stand alone. */
static void print_alone(source_printer *printer, const ir_stmt *stmt,
                        void (*print)(source_printer *, const ir_stmt *))
{
    int known = printer->n_known;

    print(printer, stmt);
    printer->n_known = known;
}

/* One case per kind of statement; those that lowering removes are bugs here. */
void source_stmt(source_printer *printer, const ir_stmt *stmt)
{
    if (base_failed(printer->cx))
        return;
    switch (stmt->kind) {
    case IR_FOR: print_alone(printer, stmt, print_for); return;
    case IR_STORE:
        print_alone(printer, stmt, printer->copies && is_copy(stmt) ? print_copy : print_store);
        return;
    case IR_LET_STMT: print_alone(printer, stmt, print_let); return;
    case IR_IF: print_alone(printer, stmt, print_if); return;
    case IR_ALLOCATE:
        source_line(printer, "{");
        source_open(printer);
        print_alone(printer, stmt, print_allocate);
        source_close(printer);
        source_line(printer, "}");
        return;
    case IR_SEQ:
        for (int i = 0; i < stmt->seq.n; i++)
            source_stmt(printer, stmt->seq.stmt[i]);
        return;
    case IR_ATTRIBUTE: print_attribute(printer, stmt); return;
    case IR_EVALUATE: print_evaluate(printer, stmt); return;
    case IR_ASSERT:
        base_fail(printer->cx, TEC_UNSUPPORTED, stmt->loc, "the check '%s' cannot be written in %s",
                  stmt->check.message, printer->d->what);
        return;
    case IR_BLOCK:
    case IR_UPDATE: BASE_BUG(printer->cx, "a block or reduction step reached code generation"); return;
    }
}
