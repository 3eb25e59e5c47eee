/* lower/split.c -- takes each launch out of the program: what is left around launches is a list, and needs
 * no code of a host.
 *
 *     allocate T: f32[n] {                            allocate T: f32[n] @workspace(0) {
 *       for b in 0..n blockIdx.x { T[b] = A[b] }        attribute launch(0) { for b in 0..n blockIdx.x ... }
 *       T[0] = 0                                  =>    attribute launch(1) { T[0] = 0 }
 *       if n > 1 { for t in 0..32 threadIdx.x ... }     if n > 1 { attribute launch(2) {
 *                                                         for t in 0..32 ... } }
 *     }                                               }
 *
 * requires  flat buffers; the passes `alone` and `barriers`
 * provides  each loop over blocks or threads stands in a launch; what is allocated outside of launches has a
 *           place in the workspace, and the program the note "workspace"
 * breaks    nothing
 *
 * A statement outside of all launches that touches memory becomes a launch of one thread, together with its
 * neighbours of that sort: the memory is the device's. Shared memory directly around a loop over threads is
 * part of that launch. A loop around launches stays where it is: the host runs it (lower/launches.h). What
 * the host cannot do stays for the interpreter, and lower/launches.c refuses it: a condition that reads
 * memory; a buffer inside of a loop around launches whose size the loop changes.
 *
 * Inside a launch a buffer of global scope belongs to a block, or to a thread: it is allocated anew in each.
 * Where no loop over threads stands inside of its allocation, one thread alone comes to it, and it becomes
 * local; where none stands around, it becomes shared.
 */
#include "lower/launches.h"
#include "lower/outside.h"

enum { ALIGNMENT = 64 };

typedef struct {
    tec_context *cx;
    const ir_facts *facts;
    int n_launches;
    base_map loops;           /* variables of the loops around launches that this is inside of */
    const ir_expr *workspace; /* bytes so far */
} splitter;

/* ---- questions ---- */

static bool is_bound(const ir_stmt *stmt)
{
    return lower_is_thread(stmt) || lower_is_blocks(stmt);
}

static bool has_launch(splitter *sp, const ir_stmt *stmt)
{
    return lower_find_stmt(sp->cx, stmt, is_bound) != NULL;
}

/* ---- scopes of what is allocated in launches ---- */

typedef struct {
    ir_rewrite rw;
    base_map moved; /* buffer -> the same in another scope */
    bool in_launch, in_threads;
    base_map seen; /* expressions -> what became of them since a buffer moved last */
} scoper;

static const ir_buffer *moved_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const ir_buffer *moved = base_map_get(&((scoper *)rw)->moved, buffer);

    return moved ? moved : buffer;
}

/* The three cases of the header: no thread loop inside, none around, both. In the last the buffer stays
 * global, and launches.c refuses it. */
static void choose_scope(scoper *sc, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->allocate.buffer;
    bool threads_inside = lower_find_stmt(sc->rw.cx, stmt->allocate.body, lower_is_thread) != NULL;
    ir_buffer *moved;

    if (!sc->in_launch || buffer->scope != IR_GLOBAL || (threads_inside && sc->in_threads))
        return;
    moved = ir_buffer_copy(sc->rw.cx, buffer);
    moved->scope = threads_inside ? IR_SHARED : IR_LOCAL;
    base_map_put(sc->rw.cx, &sc->moved, buffer, moved);
    sc->seen = (base_map){0};
}

/* An expression that stands in several places is rewritten once, though a statement is not: only the buffers
 * of an expression change, and they stay what they are until the next allocation. */
static const ir_expr *move_in_expr(ir_rewrite *rw, const ir_expr *expr)
{
    scoper *sc = (scoper *)rw;
    const ir_expr *out = base_map_get(&sc->seen, expr);

    if (!out && (out = ir_rewrite_children(rw, expr)))
        base_map_put(rw->cx, &sc->seen, expr, out);
    return out;
}

/* What is said about the launch holds inside of it only: it is put back behind the statement. */
static const ir_stmt *visit_scopes(ir_rewrite *rw, const ir_stmt *stmt)
{
    scoper *sc = (scoper *)rw;
    bool in_launch = sc->in_launch, in_threads = sc->in_threads;

    sc->in_launch |= is_bound(stmt);
    sc->in_threads |= lower_is_thread(stmt);
    if (stmt->kind == IR_ALLOCATE)
        choose_scope(sc, stmt);
    stmt = ir_rewrite_stmt_children(rw, stmt);
    sc->in_launch = in_launch;
    sc->in_threads = in_threads;
    return stmt;
}

/* ---- outside of launches ---- */

static const ir_stmt *launch(splitter *sp, const ir_stmt *stmt)
{
    return ir_attribute(sp->cx, LOWER_LAUNCH, ir_int(sp->cx, sp->n_launches++), stmt);
}

static const ir_stmt *outside(splitter *sp, const ir_stmt *stmt);

/* Neighbours without launches are one launch of one thread. Statements between launches go together into one
 * launch of one thread. Allocations are handled alone, as they have bodies of their own. */
static const ir_stmt *sequence(splitter *sp, const ir_stmt *stmt)
{
    const ir_stmt **out = base_array(sp->cx, const ir_stmt *, stmt->seq.n + 1);
    int n = 0;

    for (int i = 0, next; i < stmt->seq.n; i = next) {
        next = i + 1;
        if (has_launch(sp, stmt->seq.stmt[i]) || stmt->seq.stmt[i]->kind == IR_ALLOCATE) {
            out[n++] = outside(sp, stmt->seq.stmt[i]);
            continue;
        }
        while (next < stmt->seq.n && !has_launch(sp, stmt->seq.stmt[next]) &&
               stmt->seq.stmt[next]->kind != IR_ALLOCATE)
            next++;
        out[n++] = launch(sp, ir_seq(sp->cx, stmt->seq.stmt + i,
                                     next - i - (BASE_PLANT_ON(sp->cx, split_sequence) && next - i > 1)));
    }
    return base_failed(sp->cx) ? NULL : ir_seq(sp->cx, out, n);
}

/* Whether the value differs between iterations of a loop around launches. */
static bool changes(splitter *sp, const ir_expr *expr)
{
    base_vec vars = {0};

    ir_free_vars(sp->cx, expr, &vars);
    for (int i = 0; i < vars.n; i++)
        if (base_map_get(&sp->loops, vars.at[i]))
            return true;
    return false;
}

/* A buffer outside of launches gets the next place in the workspace. Inside of a loop around launches each
 * iteration uses the same place, as nothing of an iteration is left for the next. `workspace` grows while the
 * tree is walked; places of buffers are never shared here. */
static const ir_stmt *allocation(splitter *sp, const ir_stmt *stmt)
{
    tec_context *cx = sp->cx;
    const ir_buffer *buffer = stmt->allocate.buffer;
    const ir_expr *bytes =
        ir_mul(cx, ir_max(cx, buffer->shape[0], ir_int(cx, 0)), ir_int(cx, base_dtype_bytes(buffer->dtype)));
    ir_stmt *out = ir_stmt_copy(cx, stmt);

    if (changes(sp, buffer->shape[0])) {
        const ir_stmt *body = outside(sp, stmt->allocate.body);

        return body ? lower_with_inner(cx, stmt, body) : NULL;
    }
    out->allocate.notes = ir_note_set(cx, stmt->allocate.notes, "workspace",
                                      BASE_PLANT_ON(cx, split_workspace) ? ir_int(cx, 0) : sp->workspace);
    bytes = ir_mul(cx, ir_ceildiv(cx, bytes, ir_int(cx, ALIGNMENT)), ir_int(cx, ALIGNMENT));
    sp->workspace = BASE_PLANT_ON(cx, split_workspace)
                        ? ir_max(cx, sp->workspace, bytes)
                        : ir_simplify(sp->facts, ir_add(cx, sp->workspace, bytes));
    out->allocate.body = outside(sp, stmt->allocate.body);
    return out->allocate.body ? out : NULL;
}

static const ir_stmt *condition(splitter *sp, const ir_stmt *stmt)
{
    const ir_stmt *then = outside(sp, stmt->branch.then),
                  *otherwise = then && stmt->branch.otherwise ? outside(sp, stmt->branch.otherwise) : NULL;

    return base_failed(sp->cx) ? NULL : ir_if(sp->cx, stmt->branch.cond, then, otherwise);
}

/* A loop, let or attribute, with what is inside of it taken out. */
static const ir_stmt *around(splitter *sp, const ir_stmt *stmt)
{
    if (stmt->kind == IR_FOR)
        base_map_put(sp->cx, &sp->loops, stmt->loop.var, stmt);
    const ir_stmt *body = outside(sp, lower_inner(stmt));
    return body ? lower_with_inner(sp->cx, stmt, body) : NULL;
}

/* A let whose value is known on the host disappears into its uses, so that only loops and conditions stay
 * around launches. */
static const ir_stmt *outside(splitter *sp, const ir_stmt *stmt)
{
    if (stmt->kind == IR_ALLOCATE)
        return lower_threads_of(sp->cx, stmt) ? launch(sp, stmt) : allocation(sp, stmt);
    if (stmt->kind == IR_SEQ)
        return sequence(sp, stmt);
    if (is_bound(stmt) || !has_launch(sp, stmt))
        return launch(sp, stmt);
    if (stmt->kind == IR_IF)
        return condition(sp, stmt);
    if (stmt->kind == IR_LET_STMT && !ir_loads(sp->cx, stmt->let.value))
        return outside(sp, ir_substitute_stmt(sp->cx, stmt->let.body, stmt->let.var, stmt->let.value));
    return stmt->kind == IR_ATTRIBUTE ? outside(sp, stmt->attribute.body) : around(sp, stmt);
}

/* The pass: a program with device loops becomes host code that holds launches, and a size of workspace. */
const ir_program *lower_split(const lower_options *options, const ir_program *program)
{
    scoper sc = {.rw = {.cx = options->cx,
                        .expr = move_in_expr,
                        .stmt = visit_scopes,
                        .buffer = moved_buffer,
                        .no_memo = true}};
    splitter sp = {.cx = options->cx,
                   .facts = ir_facts_of_program(options->cx, program),
                   .workspace = ir_int(options->cx, 0)};
    const ir_stmt *body = ir_rewrite_stmt(&sc.rw, program->body);

    body = body && !base_failed(options->cx) ? outside(&sp, body) : NULL;
    if (!body || base_failed(options->cx))
        return NULL;
    ir_program *out = ir_program_copy(options->cx, program);
    out->body = body;
    out->notes = ir_note_set(options->cx, out->notes, "workspace", sp.workspace);
    return out;
}
