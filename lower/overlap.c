/* lower/overlap.c -- software pipelines: statements of different iterations run in one step, on versions of
 * the buffers between them.
 *
 *     for k in 0..n @double_buffer(1) {      allocate T: f32[2, 8] {
 *       allocate T: f32[8] {                   if 0 < n { T[0, ..] = A[0, ..] }               # prologue
 *         T[..] = A[k, ..]               =>    for k in 0..n - 1 {
 *         B[k] = f(T[..])                        T[(k + 1) % 2, ..] = A[k + 1, ..]
 *     } }                                        B[k] = f(T[k % 2, ..])
 *                                              }
 *                                              # epilogue
 *                                              if 0 < n { B[n - 1] = f(T[(n - 1) % 2, ..]) }
 *                                            }
 *
 * requires  no block is left; every buffer is allocated where it lives
 * provides  no loop has the notes double_buffer or pipeline, no statement inside has pipeline_stage,
 *           pipeline_order or pipeline_async
 * breaks    unique names (copies of a statement share their inner names)
 *
 * Notes. On a loop: `pipeline` (its value does not matter) asks for a pipeline by the stages given inside;
 * `double_buffer` for two stages: 0 for what fills buffers that live in the loop and reads none of them, 1
 * for the rest. On a block, or on a loop inside: `pipeline_stage` says in which step after its iteration
 * began a statement runs, `pipeline_order` its place within the step (the statement's place in the body where
 * left out; equal ones keep the order of the body). In step t a statement of stage s does iteration t - s.
 *
 * A buffer that lives in the loop gets as many versions as steps pass between its first and its last use, in
 * a new first dimension. Other memory keeps one version: two statements that touch it, one of them writing,
 * must keep their order between all iterations, which is checked by stages and order alone; what does not is
 * refused.
 *
 * `pipeline_async` says that the stores inside may run beside the threads. Until here they are plain ones,
 * and so they stay on targets without asynchronous copies, outside of launches, and where threads run
 * different iterations of a loop, so that they cannot meet in it. Elsewhere they get the attribute
 * async_copy: a step ends what it begins by a commit, and waits, with a barrier behind, before it reads what
 * an earlier step began.
 *
 * A worked example with 3 stages over n = 4 iterations: stage 0 loads T, stage 1 makes U of T, stage 2 stores
 * U.
 *
 *     step        0   1 | 2   3 | 4   5          prologue: steps 0 and 1, only stages that have begun
 *     stage 0     0   1 | 2   3 |                steady:   n - 2 steps, all stages
 *     stage 1         0 | 1   2 | 3              epilogue: steps 4 and 5, stages that are not through
 *     stage 2           | 0   1 | 2   3
 *
 * T is used in stages 0 and 1, so two of its iterations are alive in a step: T[turn % 2]. So is U. If there
 * is only one iteration, the steps of the prologue that would do iteration 1 are guarded by `1 < n`.
 *
 * If stage 1 also wrote a buffer S of which only one version exists, and stage 2 read S, then in step 2 stage
 * 1 would write S for iteration 1 before stage 2 has read it for iteration 0. check_pair refuses this, unless
 * the order within the step puts stage 2 first.
 */
#include "ir/calls.h"
#include "ir/region/region.h"
#include "lower/differ.h"

enum { MAX_STAGES = 16, MAX_STATEMENTS = 64 };

typedef struct {
    const ir_stmt *stmt;
    int64_t stage, order;
    base_vec reads, writes; /* of ir_region * */
    bool async;             /* it begins asynchronous copies */
} part;

typedef struct {
    const ir_buffer *old, *new;
    int64_t versions;
} versioned;

/* `f` holds around the loop, not inside: the pieces stand in its place. `part` is in the order of the body
 * until sort_parts, and in the order of a step afterwards. */
typedef struct {
    tec_context *cx;
    const ir_facts *f; /* around the loop */
    const ir_stmt *loop;
    part part[MAX_STATEMENTS];
    int n;
    int64_t stages;
    base_vec buffers; /* of versioned * */
    bool gpu;         /* copies may be asynchronous */
} pipe;

/* ---- the body taken apart ---- */

typedef struct {
    ir_walk walk;
    const char *key;
    int64_t value;
    bool found, differ;
    base_loc loc;
} note_walk;

/* Notes are met in two forms: on loops, and as attributes, which is what the notes of blocks have become. */
static bool look_note(ir_walk *walk, const ir_stmt *stmt)
{
    note_walk *n = (note_walk *)walk;
    const ir_expr *expr = stmt->kind == IR_FOR ? ir_note_get(stmt->loop.notes, n->key) : NULL;
    int64_t value;

    if (stmt->kind == IR_ATTRIBUTE && base_same(stmt->attribute.key, n->key))
        expr = stmt->attribute.value;
    if (!expr || !ir_is_int(expr, &value))
        return true;
    n->differ |= n->found && n->value != value;
    n->found = true;
    n->value = value;
    return true;
}

/* The one value of a note inside stmt; `otherwise` where it has none. */
static bool find_note(tec_context *cx, const ir_stmt *stmt, const char *key, int64_t otherwise, int64_t *out)
{
    note_walk n = {.walk = {.stmt = look_note, .cx = cx}, .key = key};

    ir_walk_stmt(&n.walk, stmt);
    *out = n.found ? n.value : otherwise;
    if (n.differ)
        base_fail(cx, TEC_INVALID, stmt->loc,
                  "one statement of a pipeline has two different values of the note %s", key);
    return !n.differ;
}

/* A let or a condition without loads and effects. */
static bool is_plain(const ir_stmt *stmt)
{
    const ir_expr *e = stmt->kind == IR_LET_STMT                        ? stmt->let.value
                       : stmt->kind == IR_IF && !stmt->branch.otherwise ? stmt->branch.cond
                                                                        : NULL;

    return e && !(e->has & ~IR_HAS_DATA);
}

static bool take_apart(pipe *self, const ir_stmt *stmt, const base_vec *around);

static bool take_inner(pipe *self, const ir_stmt *stmt, const ir_stmt *inner, const base_vec *around)
{
    base_vec deeper = {0};

    for (int i = 0; i < around->n; i++)
        base_push(self->cx, &deeper, around->at[i]);
    base_push(self->cx, &deeper, stmt);
    return take_apart(self, inner, &deeper);
}

/* A let or condition around several statements stands around each of them. */
static const ir_stmt *wrap(pipe *self, const base_vec *around, const ir_stmt *stmt)
{
    for (int i = around->n - 1; i >= 0; i--) {
        const ir_stmt *outer = around->at[i];

        stmt = outer->kind == IR_IF ? ir_if(self->cx, outer->branch.cond, stmt, NULL)
                                    : lower_with_inner(self->cx, outer, stmt);
    }
    return stmt;
}

/* Allocations become buffers with versions around the whole pipeline. What is left are the statements that
 * each have a stage. */
static bool take_apart(pipe *self, const ir_stmt *stmt, const base_vec *around)
{
    if (stmt->kind == IR_ALLOCATE) {
        versioned *v = base_new(self->cx, versioned);

        v->old = stmt->allocate.buffer;
        base_push(self->cx, &self->buffers, v);
        return take_apart(self, stmt->allocate.body, around);
    }
    if (stmt->kind == IR_SEQ) {
        for (int i = 0; i < stmt->seq.n; i++)
            if (!take_apart(self, stmt->seq.stmt[i], around))
                return false;
        return true;
    }
    if (is_plain(stmt))
        return take_inner(self, stmt, stmt->kind == IR_IF ? stmt->branch.then : stmt->let.body, around);
    if (self->n == MAX_STATEMENTS) {
        base_fail(self->cx, TEC_INVALID, stmt->loc, "a pipeline has more than %d statements", MAX_STATEMENTS);
        return false;
    }
    self->part[self->n++] = (part){.stmt = wrap(self, around, stmt)};
    return true;
}

/* ---- stages ---- */

static const ir_region *region_of(const base_vec *regions, const ir_buffer *buffer)
{
    for (int i = 0; i < regions->n; i++)
        if (((const ir_region *)regions->at[i])->buffer == buffer)
            return regions->at[i];
    return NULL;
}

/* Writes some buffer of the pipeline and reads none: the piece that brings in what later stages use. */
static bool fills(const pipe *self, const part *piece)
{
    bool writes = false;

    for (int i = 0; i < self->buffers.n; i++) {
        const ir_buffer *buffer = ((const versioned *)self->buffers.at[i])->old;

        if (region_of(&piece->reads, buffer))
            return false;
        writes |= region_of(&piece->writes, buffer) != NULL;
    }
    return writes;
}

/* The notes of a block may stand on each of the statements that it became; all of them must agree. */
static bool read_stages(pipe *self, bool doubled)
{
    for (int i = 0; i < self->n; i++) {
        part *s = &self->part[i];
        int64_t async;

        ir_touched(lower_inside(self->f, self->loop), s->stmt, &s->reads, &s->writes);
        if (!find_note(self->cx, s->stmt, "pipeline_stage", doubled && !fills(self, s), &s->stage) ||
            !find_note(self->cx, s->stmt, "pipeline_order", i, &s->order) ||
            !find_note(self->cx, s->stmt, "pipeline_async", 0, &async))
            return false;
        s->async = self->gpu && async;
        if (s->stage < 0 || s->stage >= MAX_STAGES) {
            base_fail(self->cx, TEC_INVALID, s->stmt->loc,
                      "expected a pipeline_stage from 0 to %d, found %lld", MAX_STAGES - 1,
                      (long long)s->stage);
            return false;
        }
        self->stages = s->stage + 1 > self->stages ? s->stage + 1 : self->stages;
    }
    return true;
}

/* An insertion sort, since it is stable: parts of equal order keep the order of the body. */
static void sort_parts(pipe *self)
{
    for (int i = 1; i < self->n; i++)
        for (int j = i; j > 0 && self->part[j].order < self->part[j - 1].order; j--) {
            part t = self->part[j];

            self->part[j] = self->part[j - 1];
            self->part[j - 1] = t;
        }
}

static const versioned *version_of(const pipe *self, const ir_buffer *buffer)
{
    for (int i = 0; i < self->buffers.n; i++)
        if (((const versioned *)self->buffers.at[i])->old == buffer)
            return self->buffers.at[i];
    return NULL;
}

/* Within a step. The pieces of one block (its init, its updates) have one order and keep that of the body. */
static bool comes_first(const part *left, const part *right)
{
    return left->order < right->order || (left->order == right->order && left < right);
}

/* Whether b of the same iteration, and of the next where `again`, still runs after a. */
static bool keeps_order(const part *a, const part *b, bool again)
{
    return a->stage < b->stage + again || (a->stage == b->stage + again && comes_first(a, b));
}

static bool refuse(pipe *self, const part *left, const part *right, const ir_buffer *buffer, bool again)
{
    base_fail(self->cx, TEC_INVALID, self->loop->loc,
              "the pipeline of '%s' would run stage %lld before stage %lld of %s iteration, but both touch "
              "'%s', one of them writing",
              self->loop->loop.var->var.name, (long long)right->stage, (long long)left->stage,
              again ? "an earlier" : "the same", buffer->name);
    return false;
}

/* a stands before b in the body (or is b). Versions part iterations, other memory does not. The same
 * statement (a is b) keeps its order between iterations in any case, as it runs once in each step. */
static bool check_pair(pipe *self, const part *a, const part *b, const base_vec *of_a, const base_vec *of_b)
{
    for (int i = 0; i < of_a->n; i++) {
        const ir_buffer *buffer = ((const ir_region *)of_a->at[i])->buffer;

        if (!region_of(of_b, buffer))
            continue;
        if (a != b && !keeps_order(a, b, false))
            return refuse(self, a, b, buffer, false);
        if (!version_of(self, buffer) && !(keeps_order(a, b, true) && (a == b || keeps_order(b, a, true))))
            return refuse(self, keeps_order(a, b, true) ? b : a, keeps_order(a, b, true) ? a : b, buffer,
                          true);
    }
    return true;
}

/* All pairs of pieces, each with itself as well: write before write, write before read, and read before
 * write must keep their order. Two reads may change places. */
static bool check_order(pipe *self)
{
    for (int i = 0; i < self->n; i++)
        for (int j = i; j < self->n; j++) {
            const part *a = &self->part[i], *b = &self->part[j];

            if (!check_pair(self, a, b, &a->writes, &b->writes) ||
                !check_pair(self, a, b, &a->writes, &b->reads) ||
                !check_pair(self, a, b, &a->reads, &b->writes))
                return false;
        }
    return true;
}

/* ---- versions ---- */

/* As many versions as stages lie between the first and the last use, both included. */
static void make_version(pipe *self, versioned *copies)
{
    int64_t first = MAX_STAGES, last = 0;
    ir_buffer *wide = ir_buffer_copy(self->cx, copies->old);
    const ir_expr **shape = base_array(self->cx, const ir_expr *, copies->old->n + 1);

    for (int i = 0; i < self->n; i++) {
        const part *s = &self->part[i];

        if (!region_of(&s->reads, copies->old) && !region_of(&s->writes, copies->old))
            continue;
        first = s->stage < first ? s->stage : first;
        last = s->stage > last ? s->stage : last;
    }
    copies->versions = last >= first ? last - first + 1 : 1;
    copies->new = copies->old;
    if (copies->versions == 1)
        return;
    shape[0] = ir_int(self->cx, copies->versions);
    for (int d = 0; d < copies->old->n; d++)
        shape[d + 1] = copies->old->shape[d];
    wide->shape = shape;
    wide->n = copies->old->n + 1;
    copies->new = wide;
}

/* Versions lie one behind the other, in a new first dimension, which a layout of the user's own has no room
 * for. */
static bool make_versions(pipe *self)
{
    for (int i = 0; i < self->buffers.n; i++) {
        versioned *v = self->buffers.at[i];

        make_version(self, v);
        if (v->versions > 1 && (v->old->strides || v->old->offset)) {
            base_fail(self->cx, TEC_UNSUPPORTED, v->old->loc,
                      "buffer '%s' has strides of its own and cannot have versions in a pipeline",
                      v->old->name);
            return false;
        }
    }
    return true;
}

typedef struct {
    ir_rewrite rw;
    const pipe *p;
    const ir_expr *turn; /* iterations since the first */
} copier;

/* The number of the version is the iteration modulo the number of versions: iteration 5 of 3 versions uses
 * version 2. */
static const ir_expr *version_at(const copier *self, const ir_buffer *old)
{
    int64_t versions = version_of(self->p, old)->versions - BASE_PLANT_ON(self->rw.cx, overlap_versions);

    return ir_floormod(self->rw.cx, self->turn, ir_int(self->rw.cx, versions));
}

static const ir_buffer *copy_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    const versioned *v = version_of(((copier *)rw)->p, buffer);

    return v ? v->new : buffer;
}

static const ir_expr *const *copy_index(ir_rewrite *rw, const ir_buffer *old, const ir_expr *const *index,
                                        int count)
{
    const ir_expr **out = base_array(rw->cx, const ir_expr *, count + 1);

    out[0] = version_at((copier *)rw, old);
    for (int d = 0; d < count; d++)
        out[d + 1] = index[d];
    return out;
}

/* A call that gets the buffer by its address takes the version by an offset, as the address is that of
 * version 0. */
static const ir_expr *copy_offset(ir_rewrite *rw, const ir_buffer *old, const ir_expr *offset)
{
    const ir_expr *n = version_at((copier *)rw, old);

    for (int d = 0; d < old->n; d++)
        n = ir_mul(rw->cx, n, old->shape[d]);
    return ir_add(rw->cx, n, offset);
}

static bool is_note(const char *key)
{
    return base_same(key, "pipeline_stage") || base_same(key, "pipeline_order") ||
           base_same(key, "pipeline_async");
}

/* Takes the notes away on the way: nothing behind this pass knows them. */
static const ir_stmt *copy_stmt(ir_rewrite *rw, const ir_stmt *stmt)
{
    copier *c = (copier *)rw;

    if (stmt->kind == IR_ATTRIBUTE && c->p->gpu && base_same(stmt->attribute.key, "pipeline_async"))
        return ir_attribute(rw->cx, IR_ASYNC_COPY, stmt->attribute.value,
                            ir_rewrite_stmt(rw, stmt->attribute.body));
    if (stmt->kind == IR_ATTRIBUTE && is_note(stmt->attribute.key))
        return ir_rewrite_stmt(rw, stmt->attribute.body);
    stmt = ir_rewrite_stmt_children(rw, stmt);
    if (!stmt || stmt->kind != IR_FOR || !stmt->loop.notes)
        return stmt;
    ir_stmt *plain = ir_stmt_copy(rw->cx, stmt);
    plain->loop.notes = ir_note_set(rw->cx, plain->loop.notes, "pipeline_stage", NULL);
    plain->loop.notes = ir_note_set(rw->cx, plain->loop.notes, "pipeline_order", NULL);
    return plain;
}

/* The part in its iteration number `turn`. The loop's variable is replaced by its value in that iteration,
 * after the versions were put in, as these count iterations and not values of the variable. */
static const ir_stmt *instance(pipe *self, const part *piece, const ir_expr *turn)
{
    const ir_stmt *l = self->loop;

    turn = ir_simplify(self->f, turn);
    copier c = {.rw = {.cx = self->cx,
                       .stmt = copy_stmt,
                       .buffer = copy_buffer,
                       .index = copy_index,
                       .offset = copy_offset},
                .p = self,
                .turn = turn};
    const ir_stmt *out = ir_rewrite_stmt(&c.rw, piece->stmt);
    return ir_substitute_stmt(self->cx, out, l->loop.var,
                              ir_simplify(self->f, ir_add(self->cx, l->loop.min, turn)));
}

/* ---- the three pieces ---- */

static const ir_stmt *guarded(pipe *self, const ir_expr *turn, const ir_stmt *stmt)
{
    const ir_expr *runs = ir_lt(self->cx, turn, self->loop->loop.extent);

    return ir_prove(self->f, runs) ? stmt : ir_if(self->cx, runs, stmt, NULL);
}

/* Which parts run in a step: those whose iteration has begun, or, behind the last iteration, those that it
 * still waits for. */
typedef enum { BEGINNING, RUNNING, ENDING } phase;

static bool takes_part(const part *piece, phase ph, int64_t t)
{
    return ph == RUNNING || (ph == BEGINNING ? piece->stage <= t : piece->stage > t);
}

static const ir_stmt *call(pipe *self, const char *name, const ir_expr *arg)
{
    return ir_evaluate(self->cx, ir_call(self->cx, BASE_I32, name, NULL, &arg, arg != NULL, NULL, 0, false));
}

static bool is_call_of(const ir_stmt *stmt, const char *name)
{
    return stmt->kind == IR_EVALUATE && stmt->value->op == IR_CALL && base_same(stmt->value->call.name, name);
}

/* Whether piece reads what asynchronous copies fill. */
static bool awaits(const pipe *self, const part *piece)
{
    for (int i = 0; i < self->n; i++)
        for (int j = 0; self->part[i].async && j < self->part[i].writes.n; j++)
            if (region_of(&piece->reads, ((const ir_region *)self->part[i].writes.at[j])->buffer))
                return true;
    return false;
}

/* A step commits one group of asynchronous copies behind the last part that may begin some. A part of stage s
 * in it needs the group of the step s before, so as many may be under way as were committed since: itself and
 * then a barrier make it seen by all threads. `first` is the iteration that stage 0 would do in step 0 of the
 * piece. An example of the count with two stages: a reader of stage 1 that stands behind this step's commit
 * leaves one group under way, that of this step: wait(1). In front of the commit it leaves none: wait(0). */
static void add_step(pipe *self, phase ph, int64_t step, const ir_expr *first, base_vec *out)
{
    int last = -1;
    int64_t under_way = MAX_STAGES;

    for (int i = 0; i < self->n; i++)
        last = self->part[i].async ? i : last;
    for (int i = 0; i < self->n; i++) {
        const part *s = &self->part[i];
        const ir_expr *turn = ir_add(self->cx, first, ir_int(self->cx, step - s->stage));
        int64_t later = s->stage - (i <= last && s->stage > 0);

        if (takes_part(s, ph, step) && awaits(self, s) && later < under_way) {
            base_push(self->cx, out, call(self, IR_CALL_WAIT, ir_int(self->cx, later)));
            base_push(self->cx, out, call(self, IR_CALL_BARRIER, ir_string(self->cx, "shared")));
            under_way = later;
        }
        if (takes_part(s, ph, step))
            base_push(self->cx, out,
                      ph == RUNNING ? instance(self, s, turn) : guarded(self, turn, instance(self, s, turn)));
        if (i == last)
            base_push(self->cx, out, call(self, IR_CALL_COMMIT, NULL));
    }
}

/* Groups that no wait counts any more are none. */
static void drop_last_commits(base_vec *all)
{
    int n = all->n, kept = n;

    while (kept > 0 && !is_call_of(all->at[kept - 1], IR_CALL_WAIT))
        kept--;
    for (int i = kept; i < n; i++)
        if (!is_call_of(all->at[i], IR_CALL_COMMIT))
            all->at[kept++] = all->at[i];
    all->n = kept;
}

/* The prologue and the epilogue have one step fewer than there are stages. */
static const ir_stmt *steps(pipe *self, phase ph, const ir_expr *first)
{
    base_vec out = {0};

    for (int64_t t = 0; t < self->stages - 1; t++)
        add_step(self, ph, t, first, &out);
    if (ph == ENDING)
        drop_last_commits(&out);
    return ir_seq(self->cx, (const ir_stmt *const *)out.at, out.n);
}

static const ir_stmt *prologue(pipe *self)
{
    return steps(self, BEGINNING, ir_int(self->cx, 0));
}

/* The loop counts from 0 again; its extent is cut off at 0 where there are fewer iterations than stages. */
static const ir_stmt *steady(pipe *self)
{
    tec_context *cx = self->cx;
    const ir_stmt *l = self->loop;
    const ir_expr *step = ir_var(cx, l->loop.var->var.name, BASE_I64);
    const ir_expr *n = lower_extent(self->f, ir_int(cx, self->stages - 1), l->loop.extent);
    base_vec body = {0};

    add_step(self, RUNNING, self->stages - 1, step, &body);
    const ir_stmt *all = ir_seq(cx, (const ir_stmt *const *)body.at, body.n);
    ir_stmt *loop = ir_stmt_copy(cx, ir_for(cx, step, ir_int(cx, 0), n, IR_SERIAL, all));
    loop->loop.notes =
        ir_note_set(cx, ir_note_set(cx, l->loop.notes, "pipeline", NULL), "double_buffer", NULL);
    return loop;
}

/* Begins where the steady loop ends: at the extent, or, with fewer iterations than stages, at stages - 1. */
static const ir_stmt *epilogue(pipe *self)
{
    const ir_expr *last = ir_int(self->cx, self->stages - 1), *begin = self->loop->loop.extent;

    return steps(self, ENDING, ir_prove_le(self->f, last, begin) ? begin : ir_max(self->cx, begin, last));
}

/* An extent that is right inside the loop may be less than nothing where it has no iterations. The buffers
 * now stand outside of the loop. Where the loop has no iterations, their sizes may be computed from values
 * that only make sense inside; then the whole pipeline stands under a condition. */
static bool have_sizes(const pipe *self)
{
    for (int i = 0; i < self->buffers.n; i++) {
        const ir_buffer *buffer = ((const versioned *)self->buffers.at[i])->old;

        for (int d = 0; d < buffer->n; d++)
            if (!ir_prove_le(self->f, ir_int(self->cx, 0), buffer->shape[d]))
                return false;
    }
    return true;
}

/* The notes are read while the body is in its own order, the rules are checked, and only then are the parts
 * sorted by their order in a step. */
static const ir_stmt *overlap(pipe *self, bool doubled)
{
    tec_context *cx = self->cx;
    base_vec none = {0};
    const char *name = self->loop->loop.var->var.name;

    if (self->loop->loop.how != IR_SERIAL)
        return base_fail(cx, TEC_INVALID, self->loop->loc,
                         "loop '%s' is %s: only a serial loop becomes a pipeline", name,
                         ir_how_text(self->loop->loop.how));
    if (!take_apart(self, self->loop->loop.body, &none) || !read_stages(self, doubled))
        return NULL;
    if (self->stages < 2)
        return base_fail(cx, TEC_INVALID, self->loop->loc,
                         "the pipeline of '%s' has only one stage, so nothing would overlap", name);
    if (!check_order(self) || !make_versions(self))
        return NULL;
    sort_parts(self);
    const ir_stmt *out = ir_seq(cx, (const ir_stmt *[]){prologue(self), steady(self), epilogue(self)}, 3);
    for (int i = self->buffers.n - 1; i >= 0; i--)
        out = ir_allocate(cx, ((const versioned *)self->buffers.at[i])->new, out);
    return have_sizes(self) ? out : ir_if(cx, ir_lt(cx, ir_int(cx, 0), self->loop->loop.extent), out, NULL);
}

/* ---- the tree ---- */

/* Which threads come to a statement: none, as no loop over blocks or threads stands around; all that were
 * launched, in step; these, but in a loop that some run otherwise than others. Where not all come nobody
 * could wait for an asynchronous copy: it is a plain one. */
typedef enum { NO_THREADS, TOGETHER, APART } company;

typedef struct {
    const lower_options *o;
    base_map differ; /* lower/differ.h */
    company around;  /* of the statement that is visited */
} finder;

/* Whether the threads that come to a loop run the same iterations of it. Where they do not (APART), there is
 * no place in the loop at which all can wait. */
static company company_in(const finder *self, const ir_stmt *stmt, company around)
{
    if (around == NO_THREADS)
        return lower_is_thread(stmt) || lower_is_blocks(stmt) ? TOGETHER : NO_THREADS;
    return stmt->kind == IR_FOR && !lower_is_thread(stmt) &&
                   lower_parts_threads(self->o->cx, &self->differ, stmt)
               ? APART
               : around;
}

/* Inner loops first. What differs between threads is known of the whole program, found once. */
static const ir_stmt *visit(void *user, const ir_facts *facts, const ir_stmt *stmt)
{
    finder *self = user;
    tec_context *cx = self->o->cx;
    company around = self->around, inside = company_in(self, stmt, around);

    if (lower_inner(stmt))
        self->around = inside;
    stmt = lower_visit_children(facts, stmt, visit, self);
    self->around = around;
    if (!stmt || stmt->kind != IR_FOR ||
        (!ir_note_get(stmt->loop.notes, "pipeline") && !ir_note_get(stmt->loop.notes, "double_buffer")))
        return stmt;
    pipe *p = base_new(cx, pipe);
    p->cx = cx;
    p->f = facts;
    p->loop = stmt;
    p->gpu = inside == TOGETHER && target_offers(self->o->target, TARGET_THREADS);
    ir_at(cx, stmt->loc);
    return overlap(p, ir_note_get(stmt->loop.notes, "double_buffer") != NULL);
}

/* The init of a reduction that goes on in the loop stands before it, and has its block's notes. */
static const ir_stmt *drop_notes(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind == IR_ATTRIBUTE && is_note(stmt->attribute.key))
        return ir_rewrite_stmt(rw, stmt->attribute.body);
    return ir_rewrite_stmt_children(rw, stmt);
}

const ir_program *lower_overlap(const lower_options *options, const ir_program *program)
{
    ir_rewrite rest = {.cx = options->cx, .stmt = drop_notes};
    finder w = {.o = options};

    if (target_offers(options->target, TARGET_THREADS))
        w.differ = lower_find_differing(options->cx, program->body);
    const ir_program *out = lower_with_body(
        options->cx, program, visit(&w, ir_facts_of_program(options->cx, program), program->body));

    return !out || out == program ? out
                                  : lower_with_body(options->cx, out, ir_rewrite_stmt(&rest, out->body));
}
