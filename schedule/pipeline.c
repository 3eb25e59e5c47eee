/* schedule/pipeline.c -- pipeline and double_buffer: a step of a loop runs blocks of several of its
 * iterations.
 *
 *     for C.k.0 {                       for C.k.0 @pipeline(1) {
 *       .. block A.cache.shared ..        .. block A.cache.shared .. @pipeline_order(1) @pipeline_stage(0)
 *       .. block C ..               =>    .. block C ..              @pipeline_order(0) @pipeline_stage(1)
 *     }                                 }
 *
 *     # in a step: C of an iteration, then A's tile for the next one
 *     pipeline(C.k.0, C, A.cache.shared, 1, 0)
 *     # two stages: what fills the buffers that live in the loop, then the rest
 *     double_buffer(C.k.0)
 *     # copies from global into shared memory run beside the threads
 *     double_buffer(C.k.0, async)
 *
 * The blocks are named in the order of a step, each with its stage: step t runs stage s for iteration t - s.
 * The tree keeps its order, and its meaning: notes tell lower/overlap.c, which gives the buffers between the
 * stages their versions. So the rules are about what will happen there: two blocks that share memory keep
 * their order, between all iterations unless the buffer is private to an iteration. sched_apply holds every
 * later step against them too.
 *
 * A worked example: two stages over 4 iterations of k.
 *
 *     for k in 0..4 {  fill: tile[0..4] = A[k*4 ..]      stage 0
 *                      sum:  C sum= tile[..] }           stage 1
 *
 *     step   0       1       2       3       4
 *     fill   k=0     k=1     k=2     k=3
 *     sum            k=0     k=1     k=2     k=3
 *
 * In step 1 the tile of k=1 is filled before the tile of k=0 is used. This is correct because `tile` is
 * private to an iteration: lowering gives it two versions, tile[k % 2 * 4 + ..]. If `fill` wrote an argument
 * of the program instead, there would be one version only, and the sum of k=0 would read the values of k=1.
 * So a buffer that is not private keeps the order of its users in all iterations: `keeps_order(.., again)`
 * asks for it once for the same iteration, and once for the next.
 */
#include <string.h>

#include "ir/text.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"

enum { MAX_STAGE = 15 };

/* One block of the loop, with its place in the pipeline. */
typedef struct {
    const tree_site *site;
    int64_t stage, order;
    int child; /* of the loop's body, that the block lies in */
    bool async;
} member;

typedef struct {
    const sched *s;
    const ir_program *p;
    const ir_stmt *loop;
    tree_sites all;
    member *at; /* in order of execution */
    int n;
} pipe;

static tec_context *context(const pipe *self)
{
    return self->s->view.cx;
}

/* The blocks of the loop. */
static void open_pipe(pipe *self, const sched *schedule, const ir_program *tree, const ir_stmt *loop)
{
    *self =
        (pipe){.s = schedule, .p = tree, .loop = loop, .all = tree_all_sites(schedule->view.cx, tree->body)};
    self->at = base_array(schedule->view.cx, member, self->all.n);
    for (int i = 0; i < self->all.n; i++) {
        const tree_site *site = &self->all.at[i];

        if (tree_depth_under(site, loop->loop.var))
            self->at[self->n++] =
                (member){.site = site, .child = sched_child_with(loop->loop.body, site->block->name)};
    }
}

static member *member_named(pipe *self, const char *block)
{
    for (int i = 0; i < self->n; i++)
        if (strcmp(self->at[i].site->block->name, block) == 0)
            return &self->at[i];
    return NULL;
}

/* ---- the rules ---- */

/* Whether b of the same iteration, and of the next where `again`, still runs after a.
 *
 *     stage of a = 0, of b = 1:  b of iteration t runs in step t + 1, a of t + 1 in step t + 1 as well
 *
 * Block x of iteration t runs in step t + x.stage. So b comes after a where its step is later, or where the
 * step is the same and b stands later in the order. For b of the next iteration one step is added. */
static bool keeps_order(const member *a, const member *b, bool again)
{
    return a->stage < b->stage + again || (a->stage == b->stage + again && a->order < b->order);
}

static const char *out_of_order(const pipe *self, const member *left, const member *right, const char *what,
                                bool again)
{
    return base_format(
        context(self),
        "'%s' (stage %lld) would run before '%s' (stage %lld) of %s iteration, and both use %s",
        right->site->block->name, (long long)right->stage, left->site->block->name, (long long)left->stage,
        again ? "an earlier" : "the same", what);
}

/* a stands before b in the body, or both stand in one statement of it. Members of one child of the body run
 * in the order of the tree, as they go through the pipeline together; only the order between iterations is
 * asked of them. */
static const char *check_order(const pipe *self, const member *a, const member *b, const char *what,
                               bool carried)
{
    if (a->child != b->child && !keeps_order(a, b, false))
        return out_of_order(self, a, b, what, false);
    if (carried && !keeps_order(a, b, true))
        return out_of_order(self, a, b, what, true);
    if (carried && !keeps_order(b, a, true))
        return out_of_order(self, b, a, what, true);
    return NULL;
}

static bool is_private(const pipe *self, const ir_buffer *buffer)
{
    return tree_private_to_iteration(&self->s->view, &self->all, buffer, self->loop->loop.var);
}

/* Versions are laid out one behind the other, which a buffer with strides or an offset of its own has no room
 * for. */
static const char *check_buffer(const pipe *self, const member *left, const member *right,
                                const ir_buffer *buffer)
{
    bool own = is_private(self, buffer);
    const char *why = check_order(self, left, right, base_format(context(self), "'%s'", buffer->name), !own);

    if (!why && own && left->stage != right->stage && (buffer->strides || buffer->offset))
        why =
            base_format(context(self), "'%s' has strides of its own, and would need versions", buffer->name);
    return why;
}

/* Two blocks must keep their order where one of them writes a buffer that the other uses, or where both have
 * effects. */
static const char *check_pair(const pipe *self, const member *left, const member *right)
{
    const ir_block *x = left->site->block, *y = right->site->block;
    const char *why = NULL;

    for (int i = 0; !why && i < x->n_writes; i++)
        if (tree_reads(y, x->writes[i].buffer) || tree_writes(y, x->writes[i].buffer))
            why = check_buffer(self, left, right, x->writes[i].buffer);
    for (int i = 0; !why && i < y->n_writes; i++)
        if (tree_reads(x, y->writes[i].buffer))
            why = check_buffer(self, left, right, y->writes[i].buffer);
    if (!why && tree_has_effect(context(self), x->body) && tree_has_effect(context(self), y->body))
        why = check_order(self, left, right, "effects", true);
    return why;
}

/* What stands in one statement of the body goes through the pipeline together. */
static const char *check_child(const pipe *self, const member *left, const member *right)
{
    if (left->child != right->child || (left->stage == right->stage && left->order == right->order))
        return NULL;
    return base_format(
        context(self),
        "'%s' and '%s' stand in one statement of '%s': they need one stage and follow each other",
        left->site->block->name, right->site->block->name, self->loop->loop.var->var.name);
}

/* All that it does is to copy an element from global into shared memory. */
static bool is_fetch(const ir_block *block)
{
    const ir_expr *e = block->body->kind == IR_STORE ? block->body->store.value : NULL;

    return e && e->op == IR_LOAD && e->load.buffer->scope == IR_GLOBAL &&
           block->body->store.buffer->scope == IR_SHARED;
}

/* All rules of a pipeline whose stages are known; the reason, or NULL. The least stage is 0, and at least
 * one stage lies above it, as a pipeline of one stage is a plain loop. Pairs are checked with j >= i and so
 * each block against itself, too: an iteration may overtake its own successor. */
static const char *check(const pipe *self)
{
    const char *name = self->loop->loop.var->var.name, *why = NULL;
    int64_t first = MAX_STAGE, last = 0;

    for (int i = 0; i < self->n; i++) {
        if (self->at[i].stage < 0 || self->at[i].stage > MAX_STAGE)
            return base_format(context(self), "stage %lld of '%s': expected 0 to %d",
                               (long long)self->at[i].stage, self->at[i].site->block->name, MAX_STAGE);
        if (self->at[i].async && !is_fetch(self->at[i].site->block))
            return base_format(
                context(self),
                "'%s' no longer copies from global into shared memory, which it does asynchronously",
                self->at[i].site->block->name);
        first = self->at[i].stage < first ? self->at[i].stage : first;
        last = self->at[i].stage > last ? self->at[i].stage : last;
    }
    if (first > 0 || last == 0)
        return base_format(context(self),
                           "the stages of '%s' are %lld to %lld; expected 0 and at least one more", name,
                           (long long)first, (long long)last);
    for (int i = 0; !why && i < self->n; i++)
        for (int j = i; !why && j < self->n; j++) {
            why = check_child(self, &self->at[i], &self->at[j]);
            why = why ? why : check_pair(self, &self->at[i], &self->at[j]);
        }
    return why;
}

/* ---- a pipeline that stands ---- */

static bool read_note(const ir_block *block, const char *key, int64_t *value)
{
    const ir_expr *e = ir_note_get(block->notes, key);

    return e && ir_is_int(e, value);
}

/* Reads the notes of a loop that is a pipeline already, and makes the same checks. A block without a stage
 * came into the loop after the pipeline was made. */
static const char *check_standing(const sched *schedule, const ir_program *tree, const ir_stmt *loop)
{
    const char *name = loop->loop.var->var.name;
    const char *why = NULL;
    pipe p;

    open_pipe(&p, schedule, tree, loop);
    if (loop->loop.how != IR_SERIAL)
        return base_format(schedule->view.cx, "'%s' is a pipeline and stays serial", name);
    for (int i = 0; !why && i < p.n; i++)
        if (!read_note(p.at[i].site->block, "pipeline_stage", &p.at[i].stage) ||
            !read_note(p.at[i].site->block, "pipeline_order", &p.at[i].order))
            why = base_format(schedule->view.cx, "'%s' would stand in the pipeline of '%s' without a stage",
                              p.at[i].site->block->name, name);
    for (int i = 0; i < p.n; i++)
        p.at[i].async = ir_note_get(p.at[i].site->block->notes, "pipeline_async") != NULL;
    return why ? why : check(&p);
}

/* After each step: the step may have changed what a pipeline that stands in the tree relies on. */
static const char *check_below(const sched *schedule, const ir_program *tree, const ir_stmt *node,
                               bool inside)
{
    bool pipeline = node->kind == IR_FOR && ir_note_get(node->loop.notes, "pipeline");
    const char *why = pipeline ? check_standing(schedule, tree, node) : NULL;

    if (node->kind == IR_BLOCK && !inside && ir_note_get(node->block.block->notes, "pipeline_stage"))
        return base_format(schedule->view.cx, "the pipeline in which '%s' has a stage would be gone",
                           node->block.block->name);
    for (int i = 0, n = tree_n_children(node); !why && i < n; i++)
        why = check_below(schedule, tree, tree_child(node, i), inside || pipeline);
    return why;
}

const char *sched_broken_pipeline(const sched *schedule, const ir_program *tree)
{
    return check_below(schedule, tree, tree->body, false);
}

/* ---- making one ---- */

static const ir_stmt *pipeline_in(const ir_stmt *stmt)
{
    const ir_stmt *found = stmt->kind == IR_FOR && ir_note_get(stmt->loop.notes, "pipeline") ? stmt : NULL;

    for (int i = 0, n = tree_n_children(stmt); !found && i < n; i++)
        found = pipeline_in(tree_child(stmt, i));
    return found;
}

/* Statements have one stage: that of the pipeline that they are in. */
static bool need_alone(sched_call *call, const sched_path *at)
{
    const ir_stmt *other = pipeline_in(sched_end(at));

    for (int i = 0; !other && i < at->n; i++)
        if (at->link[i].stmt->kind == IR_FOR && ir_note_get(at->link[i].stmt->loop.notes, "pipeline"))
            other = at->link[i].stmt;
    if (other == sched_end(at))
        sched_refuse(call, "'%s' is a pipeline already", other->loop.var->var.name);
    else if (other)
        sched_refuse(call, "'%s' would be a pipeline inside or around the pipeline '%s'",
                     sched_end(at)->loop.var->var.name, other->loop.var->var.name);
    return !other;
}

static bool start(sched_call *call, sched_path *at, pipe *self)
{
    if (!sched_need_loop(call, call->arg[0].name, at) || !sched_need_plain(call, sched_end(at)) ||
        !need_alone(call, at))
        return false;
    open_pipe(self, call->s, call->tree, sched_end(at));
    return true;
}

typedef struct {
    ir_rewrite rw;
    pipe *p;
} note_writer;

static const ir_stmt *note_stage(ir_rewrite *rw, const ir_stmt *stmt)
{
    if (stmt->kind != IR_BLOCK)
        return ir_rewrite_stmt_children(rw, stmt);
    const member *m = member_named(((note_writer *)rw)->p, stmt->block.block->name);
    ir_block *block = ir_block_copy(rw->cx, stmt->block.block);

    block->init = m->stage && BASE_PLANT_ON(rw->cx, pipeline_init) ? NULL : block->init;
    block->notes = ir_note_set(rw->cx, block->notes, "pipeline_stage", ir_int(rw->cx, m->stage));
    block->notes = ir_note_set(rw->cx, block->notes, "pipeline_order", ir_int(rw->cx, m->order));
    block->notes = ir_note_set(rw->cx, block->notes, "pipeline_async", m->async ? ir_int(rw->cx, 1) : NULL);
    return sched_with_block(rw->cx, stmt, block);
}

/* Which copies of the first stage run beside the threads. */
static bool take_async(sched_call *call, pipe *self, const char *word)
{
    bool any = strcmp(word, "sync") == 0;

    if (!any && strcmp(word, "async") != 0)
        return sched_refuse(call, "'%s': expected sync or async", word);
    for (int i = 0; strcmp(word, "async") == 0 && i < self->n; i++) {
        self->at[i].async = self->at[i].stage == 0 && is_fetch(self->at[i].site->block);
        any |= self->at[i].async;
    }
    return any || sched_refuse(call, "no block of stage 0 copies from global into shared memory");
}

/* The notes on the blocks and on the loop, where the rules allow it. */
static const ir_program *finish(sched_call *call, const sched_path *at, pipe *self, const char *word)
{
    note_writer n = {.rw = {.cx = call->cx, .stmt = note_stage}, .p = self};
    const char *why = check(self);

    if (why)
        return sched_refuse(call, "%s", why);
    if (!take_async(call, self, word))
        return NULL;
    ir_stmt *l = ir_stmt_copy(call->cx, sched_end(at));
    l->loop.body = ir_rewrite_stmt(&n.rw, l->loop.body);
    l->loop.notes = ir_note_set(call->cx, l->loop.notes, "pipeline", ir_int(call->cx, 1));
    if (call->arg[1].kind == SCHED_ARG_WORD && BASE_PLANT_ON(call->cx, double_buffer_extent))
        l->loop.extent = ir_sub(call->cx, l->loop.extent, ir_int(call->cx, 1));
    return sched_with_body(call, sched_rebuild(call->cx, at, at->n - 1, l));
}

/* The first block of a statement of the body gives all of them their place. */
static int64_t place_in(const pipe *self, const member *at, int64_t otherwise)
{
    for (int i = 0; i < self->n; i++)
        if (self->at[i].child == at->child && self->at[i].order >= 0)
            return self->at[i].order;
    return otherwise;
}

/* Blocks of one child of the body that are named one after the other share one place in the order, as they
 * cannot be separated. A stage comes from the list, by position. pipeline(k, [A, B, C], [0, 0, 1]): A and B
 * of iteration k + 1 run beside C of iteration k, in the order A, B, C as listed. */
static bool take_stages(sched_call *call, pipe *self)
{
    const sched_arg *blocks = &call->arg[1], *stages = &call->arg[2];

    if (blocks->n != stages->n)
        return sched_refuse(call, "expected one stage for each block: found %d blocks and %d stages",
                            blocks->n, stages->n);
    for (int i = 0; i < self->n; i++)
        self->at[i].order = -1;
    for (int i = 0; i < blocks->n; i++) {
        member *m = member_named(self, blocks->names[i]);

        if (!m)
            return sched_refuse(call, "there is no block '%s' under '%s'", blocks->names[i],
                                call->arg[0].name);
        if (m->order >= 0)
            return sched_refuse(call, "'%s' is named twice", blocks->names[i]);
        bool follows = i > 0 && member_named(self, blocks->names[i - 1])->child == m->child;
        m->order = follows ? place_in(self, m, i) : i;
        m->stage = stages->ints[i];
    }
    for (int i = 0; i < self->n; i++)
        if (self->at[i].order < 0)
            return sched_refuse(call, "block '%s' under '%s' is given no stage",
                                self->at[i].site->block->name, call->arg[0].name);
    return true;
}

/* pipeline(l, blocks, stages, async): in a step of l the blocks run in this order, each for the iteration
 * that its stage lies behind. */
const ir_program *sched_do_pipeline(sched_call *call)
{
    sched_path at;
    pipe p;

    return start(call, &at, &p) && take_stages(call, &p) ? finish(call, &at, &p, call->arg[3].name) : NULL;
}

/* What only writes buffers that live in an iteration, and reads none of them. Such a block may run ahead:
 * nothing that the same iteration computes can reach it. */
static bool fills(const pipe *self, const ir_block *block)
{
    for (int i = 0; i < block->n_reads; i++)
        if (is_private(self, block->reads[i].buffer))
            return false;
    for (int i = 0; i < block->n_writes; i++)
        if (!is_private(self, block->writes[i].buffer))
            return false;
    return true;
}

/* double_buffer(l, async): what fills the buffers that live in an iteration runs one iteration ahead of the
 * rest. All blocks of one child have one stage, the greatest that one of them needs. */
const ir_program *sched_do_double_buffer(sched_call *call)
{
    sched_path at;
    pipe p;

    if (!start(call, &at, &p))
        return NULL;
    for (int i = 0; i < p.n; i++) {
        p.at[i].order = p.at[i].child;
        for (int j = 0; j < p.n; j++)
            p.at[i].stage |= p.at[j].child == p.at[i].child && !fills(&p, p.at[j].site->block);
    }
    for (int i = 0; i < p.n; i++)
        if (p.at[i].stage == 0)
            return finish(call, &at, &p, call->arg[1].name);
    return sched_refuse(
        call, "expected a block under '%s' that only fills a buffer used within one iteration, found none",
        call->arg[0].name);
}
