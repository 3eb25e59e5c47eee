/* schedule/state.h -- a schedule from inside: the record, steps and their arguments, and the tools that primitives are made of.
 *
 *     sched_path at;
 *     if (!sched_need_loop(c, c->arg[0].name, &at))   // refuses where there is no such loop
 *         return NULL;
 *     ... checks, each: return sched_refuse(c, "'%s' is ...", ...);
 *     return sched_with_body(c, sched_rebuild(c->cx, &at, at.n - 1, replacement));
 *
 * A primitive sees the tree of its schedule and gives a new program, or NULL after sched_refuse. It never touches the schedule:
 * the step machinery (step.c) puts the result in place and appends to the trace.
 *
 * Invariants of the tree that primitives rely on and keep: loops run from 0; names of loops and blocks are unique; a block's
 * body and regions mention its own iteration variables, symbols and scalars only; bindings and predicates mention enclosing
 * loops.
 */
#ifndef SCHEDULE_STATE_H
#define SCHEDULE_STATE_H

#include "ir/build.h"
#include "ir/region.h"
#include "ir/walk.h"
#include "schedule/sched.h"

struct tec_schedule {
    tec_context *cx;
    const ir_program *tree;
    const target *target;
    const ir_facts *facts; /* about the program's symbols */
    const te_intrinsics *intrinsics; /* that tensorize knows beside those of the hardware; NULL: none */
    base_vec steps;        /* sched_step * */
    const te_def *def;     /* whose tree it began with; NULL: unknown */
    const char *error;     /* of the first refusal since the last clear; NULL: none */
    base_loc where;        /* the user's line of the step that is being made; file NULL: unknown */
};

/* ---- steps ---- */

/* What an argument is; the words are those of the signatures in primitives.def. */
#define SCHED_ARG_LIST(X)                                                                                                        \
    X(LOOP, "loop")                                                                                                              \
    X(LOOPS, "loops")                                                                                                            \
    X(BLOCK, "block")                                                                                                            \
    X(BLOCKS, "blocks")                                                                                                          \
    X(PLACE, "place") /* a loop or a block */                                                                                    \
    X(BUFFER, "buffer")                                                                                                          \
    X(FACTORS, "factors") /* ints, where `_` is inferred */                                                                      \
    X(INT, "int")                                                                                                                \
    X(WORD, "word")                                                                                                              \
    X(WORDS, "words")                                                                                                            \
    X(EXPR, "expr")   /* over symbols */                                                                                         \
    X(EXPRS, "exprs") /* a list of them */                                                                                       \
    X(TUPLE, "tuple") /* (36, 1): one of them in parentheses */                                                                  \
    X(MAP, "map")     /* (i, j) -> (j, i): expressions over variables of its own, and symbols */
typedef enum {
#define X(NAME, text) SCHED_ARG_##NAME,
    SCHED_ARG_LIST(X)
#undef X
} sched_arg_kind;

typedef struct {
    sched_arg_kind kind;
    const char *name;         /* LOOP, BLOCK, PLACE, BUFFER, WORD */
    const char *const *names; /* LOOPS, BLOCKS, WORDS: n of them */
    const int64_t *ints;      /* FACTORS: n of them; SCHED_INFER is `_` */
    const ir_expr *const *exprs; /* EXPRS, TUPLE, MAP: n of them */
    const ir_expr *const *vars;  /* MAP: n_vars of them */
    const ir_expr *expr;
    int64_t i;
    int n, n_vars;
} sched_arg;

static inline bool sched_is_list(sched_arg_kind k) /* takes all arguments that fit, perhaps none */
{
    return k == SCHED_ARG_LOOPS || k == SCHED_ARG_BLOCKS || k == SCHED_ARG_WORDS || k == SCHED_ARG_FACTORS || k == SCHED_ARG_EXPRS;
}

enum { SCHED_MAX_ARGS = 4 };

typedef struct sched_primitive sched_primitive;

typedef struct {
    const sched_primitive *primitive;
    sched_arg arg[SCHED_MAX_ARGS];
    int n_args;
    const char *const *result;
    int n_results;
} sched_step;

/* One step while it is checked and carried out. */
typedef struct {
    sched *s;
    tec_context *cx;
    const ir_program *tree;
    const sched_arg *arg;
    base_vec results; /* names, in the order of the trace line */
    const char *reason;
} sched_call;

typedef const ir_program *sched_primitive_fn(sched_call *c);

struct sched_primitive {
    const char *name;
    const char *signature; /* words of SCHED_ARG_LIST; `word=guard` may be left out and is then `guard` */
    sched_primitive_fn *run;
};
extern const sched_primitive sched_primitives[];
extern const int sched_n_primitives;
const sched_primitive *sched_primitive_named(const char *name);

#define SCHED_PRIMITIVE(name, signature) sched_primitive_fn sched_do_##name;
#include "schedule/primitives.def"

/* Checks, rewrites, appends; the results' names go to *results (may be NULL). */
bool sched_apply(sched *s, const char *primitive, const sched_arg *arg, int n, const char *const **results, int *n_results);

/* Reads an argument of the kind that it has, as a trace writes it; what does not parse is recorded as a refusal (trace.c). */
bool sched_read_text(sched *s, const char *primitive, const char *text, sched_arg *a);

/* The named loops in this order, outermost first (reorder.c); what reorder and tile do. */
const ir_program *sched_permute(sched_call *c, const char *const *loop, int n);

/* Notes why the step is refused; always NULL. */
void *sched_refuse(sched_call *c, const char *fmt, ...) BASE_PRINTF(2, 3);

const char *sched_step_text(tec_context *cx, const sched_step *step);

/* ---- where nodes stand (tree.c) ---- */

typedef struct {
    const ir_stmt *stmt;
    int child; /* the one that the path goes on to */
} sched_link;

/* From the root down to a node, link[n-1]. */
typedef struct {
    sched_link *link;
    int n;
} sched_path;

static inline const ir_stmt *sched_end(const sched_path *p)
{
    return p->link[p->n - 1].stmt;
}

int sched_n_children(const ir_stmt *s);
const ir_stmt *sched_child(const ir_stmt *s, int i);
/* s with another child; where that is the empty sequence, a loop, let or attribute around it disappears. */
const ir_stmt *sched_with_child(tec_context *cx, const ir_stmt *s, int i, const ir_stmt *child);
/* The root with node `depth` of the path replaced. */
const ir_stmt *sched_rebuild(tec_context *cx, const sched_path *p, int depth, const ir_stmt *node);
bool sched_is_nothing(const ir_stmt *s);

bool sched_find_loop(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out);
bool sched_find_block(tec_context *cx, const ir_stmt *root, const char *name, sched_path *out);
bool sched_find_var(tec_context *cx, const ir_stmt *root, const ir_expr *var, sched_path *out); /* the loop of that variable */
/* Refuses where there is no such loop or block. The second: argument i of the call. */
bool sched_need_loop(sched_call *c, const char *name, sched_path *out);
bool sched_need_block(sched_call *c, const char *name, sched_path *out);

bool sched_name_taken(const ir_stmt *root, const char *name);
/* `name`, or with '2, '3 ... behind it, whatever no loop or block of the call's tree has; `also` (may be NULL): a tree being
 * built. */
const char *sched_fresh_name(sched_call *c, const ir_stmt *also, const char *name);

/* The child of a sequence that holds the named loop or block (of anything else: 0); -1: none. */
int sched_child_with(const ir_stmt *body, const char *name);
bool sched_is_named(const char *const *names, int n, const char *name); /* one of the names */

/* The range of a loop's variable. Of a loop that never runs nothing is said: everything would follow, and what is simplified to
 * a constant there could stand outside of it later. */
void sched_know_loop(ir_facts *f, const ir_expr *var, const ir_expr *extent, bool may_be_empty);
/* A block in the loop reduces over it and initialises itself, which it also does where the loop has no iteration: what stands in the loop does not
 * say that it has one. */
bool sched_may_be_empty(tec_context *cx, const ir_stmt *loop);
/* What holds at link `depth` of the path: symbols, ranges of loops above, conditions, lets. */
ir_facts *sched_facts_at(const sched *s, const sched_path *p, int depth);

/* A block and the loops around it. */
typedef struct {
    const ir_stmt *stmt;
    const ir_block *block;
    const ir_stmt *const *loop; /* outermost first */
    int n_loops;
    const ir_facts **facts;        /* made when asked for: inside the first k loops */
    const ir_expr *const **guards; /* made when asked for: see sched_loop_guards */
    int order;                     /* of execution, among all blocks of the tree */
    bool branches;                 /* below a condition */
} sched_site;

typedef struct {
    sched_site *at;
    int n;
} sched_sites;
sched_sites sched_all_sites(tec_context *cx, const ir_stmt *root);
/* How many loops stand around and including the one of `var`; 0: not under it. */
int sched_depth_under(const sched_site *site, const ir_expr *var);
const sched_site *sched_site_named(const sched_sites *all, const char *block);

bool sched_reads(const ir_block *b, const ir_buffer *buffer); /* or the same alias class */
bool sched_writes(const ir_block *b, const ir_buffer *buffer);
bool sched_same_storage(const ir_buffer *a, const ir_buffer *b);
bool sched_is_output(const ir_program *p, const ir_buffer *b); /* any parameter */
/* The buffer of the first argument, where its layout is the schedule's to choose; refuses (layout.c). */
const ir_buffer *sched_own_buffer(sched_call *c);
const ir_buffer *sched_buffer_named(const ir_program *p, const char *name);

/* Refuses where what the buffer keeps at a time, in the new tree, is more than its scope has on the target (capacity.c). */
bool sched_fits(sched_call *c, const ir_program *after, const ir_buffer *b);

/* ---- rewriting (rewrite.c) ---- */

/* var := value in the bounds, bindings and predicates below s (blocks' insides do not mention loops), simplified under f, which
 * holds at s; `guard` (may be NULL) is added to the predicate of every block. */
const ir_stmt *sched_rebind(const ir_facts *f, const ir_stmt *s, const ir_expr *var, const ir_expr *value, const ir_expr *guard);
/* The tree without the block at the end of the path, and without the loops that are empty then. */
const ir_stmt *sched_remove(tec_context *cx, const sched_path *p);
/* A copy whose loops have new variables and, like its blocks, fresh names. */
const ir_stmt *sched_duplicate(sched_call *c, const ir_stmt *s);
/* Puts `node` before child `index` of body (a sequence, or a single node with index 0 or 1). */
const ir_stmt *sched_insert(tec_context *cx, const ir_stmt *body, int index, const ir_stmt *node);
const ir_program *sched_with_body(sched_call *c, const ir_stmt *body);
const ir_program *sched_add_buffer(tec_context *cx, const ir_program *p, const ir_buffer *b);
const ir_program *sched_drop_buffer(tec_context *cx, const ir_program *p, const ir_buffer *b);
/* All uses of a buffer go to another one, at the index that a map (an argument of kind MAP) makes of theirs; refuses (transform.c). */
const ir_stmt *sched_reindex(sched_call *c, const ir_stmt *root, const ir_buffer *old, const ir_buffer *new_one, const sched_arg *map);
const ir_program *sched_swap_buffer(tec_context *cx, const ir_program *p, const ir_buffer *old, const ir_buffer *new_one);
/* The block with its regions computed anew from its body. */
const ir_block *sched_refresh(const ir_facts *f, const ir_block *b);
/* The statement of a block with another block of the same iteration variables in it. */
const ir_stmt *sched_with_block(tec_context *cx, const ir_stmt *s, const ir_block *b);
/* `where`, and bind >= 0 and bind < extent as far as f does not prove them. */
const ir_expr *sched_domain_guard(const ir_facts *f, const ir_expr *where, const ir_expr *bind, const ir_expr *extent);
/* Conjuncts of a condition. */
void sched_conjuncts(tec_context *cx, const ir_expr *e, base_vec *out);
bool sched_mentions(tec_context *cx, const ir_expr *e, const ir_expr *var); /* NULL e: no */

/* ---- what a block touches (box.c) ---- */

/* IR_REDUCE_ITER where the loop takes part in a reduce iteration variable of the block, IR_SCAN or IR_OPAQUE likewise; otherwise
 * spatial. */
ir_iter_kind sched_kind_for(tec_context *cx, const sched_site *site, const ir_expr *var);
ir_subst sched_bindings(tec_context *cx, const sched_site *site); /* iteration variables to what they are bound to */
/* The facts around a site with its outer `fixed` loops only. */
const ir_facts *sched_site_facts(const sched *s, const sched_site *site, int fixed);
/* The box that one access touches while the outer `fixed` loops stand still. `covering`: points that the predicate leaves out
 * because they lie outside the block's domain count as touched: the box of a tile at the edge is as large as any other. */
ir_region sched_box(const sched *s, const sched_site *site, const ir_region *access, int fixed, bool covering);
/* The quick proof that the spatial bindings count through a constant box: mixed radix over inner loops of constant extents.
 * dim_of as given by sched_plain_store. False: not proven in this way. */
bool sched_counts_box(const sched *s, const sched_site *site, const ir_region *access, const int *dim_of, const ir_region *box,
                      int fixed);
/* Index d of an access at one point, over the loops. */
const ir_expr *sched_stored_at(tec_context *cx, const sched_site *site, const ir_region *access, int d);
ir_ranges sched_inner_ranges(tec_context *cx, const sched_site *site, int fixed); /* of the loops inside the outer `fixed` ones */
/* The predicate without the conjuncts that only keep the block within its domain. */
const ir_expr *sched_loop_guards(const sched *s, const sched_site *site);
/* The conjuncts of the block's predicate that its outer `fixed` loops decide: as a list, as one condition (NULL: none), and
 * whether the predicate of a block has all conjuncts of a condition. */
void sched_outer_guards(const sched *s, const sched_site *site, int fixed, base_vec *out);
const ir_expr *sched_outer_guard(const sched *s, const sched_site *site, int fixed);
bool sched_has_guard(const sched *s, const sched_site *site, const ir_expr *guard);

/* ---- blocks of blocks (blockize.c) ---- */

/* The program in which all that runs below the loop at the end of the path is one instance of its block; NULL after a refusal. The
 * block's name is the result. */
const ir_program *sched_make_block(sched_call *c, const sched_path *at, const char **block);

bool sched_is_tensorized(const ir_block *b); /* (tensorize.c) */

/* ---- which element an instance writes, and back (store.c) ---- */

/* A one-to-one map of variables onto the elements of a buffer: index[d], ^ mask[d] where there is one. */
typedef struct {
    int n;                 /* dimensions */
    const ir_expr **index; /* over the variables, the masks taken off */
    const ir_expr **mask;  /* NULL: none; otherwise below unit[d], a power of two that divides the dimension */
    int64_t *unit;
    const ir_expr **point;  /* a variable for each dimension */
    const ir_expr **var;    /* each variable over the point; of a block's: NULL where the indices do not need it */
    const ir_expr **extent; /* how far each variable may run: up to what fills the padding */
} sched_layout;

/* Whether `index`, over variables 0..extent-1, is such a map onto all elements of the shape, where the variables run a little further if
 * need be; the reason why it is not proven. */
bool sched_read_layout(const ir_facts *f, const ir_expr *const *var, const ir_expr *const *extent, int n_vars,
                       const ir_expr *const *index, const ir_expr *const *shape, int n, sched_layout *m, const char **reason);
/* The same of the spatial iteration variables of a block, which accesses r one element at a time; `var` and `extent` are by iteration
 * variable. Of a read: of those that the indices use. Of a store: of all of more than one value. */
bool sched_invert_read(const sched *s, const ir_block *b, const ir_region *r, sched_layout *m);
bool sched_invert_store(const sched *s, const ir_block *b, const ir_region *w, sched_layout *m);
/* No two instances that differ in a spatial variable write one element. */
bool sched_writes_once(const sched *s, const ir_block *b, const ir_region *w);
/* Some of the elements are no instance's. */
bool sched_is_padded(const sched *s, const ir_block *b, const sched_layout *m);
/* Some block below the root that writes the buffer may leave padding of its layout unwritten. Those that add to what others wrote do not
 * count. */
bool sched_leaves_padding(const sched *s, const ir_stmt *root, const ir_buffer *buffer);

/* ---- which elements a block writes (fill.c) ---- */

const ir_combiner *sched_combiner(const ir_block *b); /* of the block's single update; NULL: it is something else */
/* An instance goes on with what stood there before it: some update, which may lie in loops of a block of blocks, comes after no store. */
bool sched_adds(tec_context *cx, const ir_block *b);
bool sched_accumulates(tec_context *cx, const ir_block *b); /* instances add to what others of the block wrote */
/* The reduction is whole inside the loops from `fixed` on: init, and every reduce iteration variable free of the outer ones. */
bool sched_completes_inside(tec_context *cx, const sched_site *site, int fixed);
/* For each iteration variable: the dimension of the written box that it alone indexes, up to a constant, or -1. False where a
 * dimension is something else than a spatial or scan variable of its own (or the same in all instances), or a spatial variable
 * of more than one value indexes nothing. */
bool sched_plain_store(const sched *s, const ir_block *b, const ir_region *w, int *dim_of);
int64_t sched_store_shift(const ir_region *w, int d); /* that constant, of a dimension that a variable indexes */
/* While its outer `fixed` loops stand still, the block touches every element of `box` that lies in its domain, if it runs at
 * all (its outer guards). */
bool sched_fills(const sched *s, const sched_site *site, const ir_region *access, const ir_region *box, int fixed);
/* Whether the block writes all of `box`, its box of `access`, in each iteration of its outer `fixed` loops, and completes it. */
bool sched_covers(const sched *s, const sched_site *site, const ir_region *access, const ir_region *box, int fixed);
/* Whether distinct points of the inner loops (from `fixed` on) are distinct instances; the reason why not. */
bool sched_injective(const sched *s, const sched_site *site, int fixed, const char **reason);
/* Whether the written elements tell the iterations of the loop of `var`, the innermost of the outer `depth` ones, apart. */
bool sched_digits_apart(const sched *s, const sched_site *site, const ir_region *access, const ir_expr *var, int depth);

/* ---- what an iteration reads of its own (private.c) ---- */

const ir_region *sched_access(const ir_region *r, int n, const ir_buffer *b); /* that of the buffer itself; NULL: none */
/* While their `fixed` common loops stand still, all that q reads lies in what w writes, and w writes every element of that. */
bool sched_reads_within(const sched *s, const sched_site *q, const ir_region *read, const sched_site *w, const ir_region *write,
                        int fixed);
/* No iteration of the loop of `var` reads in this access what any iteration writes in the owner's. */
bool sched_never_meets(const sched *s, const sched_site *site, const ir_region *read, const sched_site *owner, const ir_expr *var);
/* Whether all accesses of other blocks below the loop stay within box; `var`'s loop and those around stand still. `but_earlier`:
 * what the owner does not write anywhere in the loop may be read, too. */
bool sched_all_within(const sched *s, const sched_sites *all, const sched_site *owner, const ir_buffer *b, const ir_expr *var,
                      const ir_region *box, bool but_earlier);
/* Whether each iteration of the loop of `var` writes all that it reads of the buffer before it reads it, and nothing else uses
 * it. */
bool sched_private(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var);
/* Whatever the named block of `root` reads, the blocks that share loops with it have written in the same iteration of those;
 * refuses. */
bool sched_reads_are_written(sched_call *c, const ir_stmt *root, const char *block);

/* ---- dependence (depend.c) ---- */

/* More than one block below the loop of `var` touches the buffer. */
bool sched_shared_under(const sched_sites *all, const ir_buffer *b, const ir_expr *var);
/* NULL where no iteration of the loop writes an element of the buffer that another one reads or writes; otherwise the reason. */
const char *sched_buffer_dependence(const sched *s, const sched_sites *all, const ir_buffer *b, const ir_expr *var);
/* The same for all buffers that are not private to the loop. NULL where no iteration of the loop writes what another one reads
 * or writes; otherwise the reason, for the reader. */
const char *sched_dependence(const sched *s, const sched_sites *all, const ir_expr *var);
/* Refuses where a loop on the path is vectorised: no loop may be put inside. */
bool sched_takes_loops(sched_call *c, const sched_path *to);
/* Refuses where a loop of the path that runs its iterations at the same time no longer may, in the new tree. */
bool sched_still_independent(sched_call *c, const sched_path *to, const ir_stmt *root);
const char *sched_kind_text(ir_iter_kind kind); /* for messages: "a reduction", of a loop that binds such a variable, or of the variable */
/* NULL where instances of the block may run again, or in another place; otherwise why not. */
const char *sched_not_idempotent(tec_context *cx, const ir_block *b);
bool sched_has_effect(tec_context *cx, const ir_stmt *body); /* an impure call */

/* ---- how loops run (annotate.c, bind.c) ---- */

static inline bool sched_is_blocks(ir_how how)
{
    return how >= IR_BLOCK_X && how <= IR_BLOCK_Z;
}
static inline bool sched_is_threads(ir_how how)
{
    return how >= IR_THREAD_X && how <= IR_THREAD_Z;
}
/* Over threads of any kind, of the host or of a device, virtual ones among them: lanes stay inside of these. */
static inline bool sched_is_parallel(ir_how how)
{
    return how == IR_PARALLEL || how >= IR_BLOCK_X;
}
bool sched_thread_axis(const char *word, ir_how *how); /* blockIdx.x, threadIdx.y, vthread, ...; false: none of them */
/* These refuse: where the loop at the end of the path would run as `how` inside or around what it may not; where another loop over that
 * axis below s has another extent than l. */
bool sched_nesting_fits(sched_call *c, const sched_path *at, ir_how how);
bool sched_axis_agrees(sched_call *c, const ir_stmt *s, const ir_stmt *l, ir_how how);

/* The program with the loop at the end of the path running as `how`. */
const ir_program *sched_annotate_loop(sched_call *c, const sched_path *at, ir_how how);
/* These refuse: a loop that is not serial; whose iterations are not independent in p; of more than `limit` iterations or of no
 * constant number; that has a loop of that kind around or below. */
bool sched_need_plain(sched_call *c, const ir_stmt *l);
bool sched_need_independent(sched_call *c, const ir_program *p, const ir_stmt *l);
bool sched_need_constant(sched_call *c, const ir_stmt *l, int64_t limit);
bool sched_need_none_around(sched_call *c, const sched_path *at, ir_how how);
/* Refuses where the iterations of l, a reduction loop of that block, may not have a partial result each. */
bool sched_need_partial_results(sched_call *c, const ir_stmt *l, const sched_site *site);
/* A loop below s, or around the end of a path, that runs as `how`; NULL: none. */
const ir_stmt *sched_loop_below(const ir_stmt *s, ir_how how);
const ir_stmt *sched_loop_above(const sched_path *at, ir_how how);
/* The innermost loop over threads that reduces at the block; NULL: none. */
const ir_stmt *sched_reducing_threads(tec_context *cx, const sched_site *site);
/* Why some reduction over threads has its result where not all of them see it; NULL: none has. */
const char *sched_hidden_result(tec_context *cx, const ir_program *p);
/* Whether what threads of a GPU have of their own is theirs in the new tree (threads.c); refuses. */
bool sched_threads_fit(sched_call *c, const ir_program *after);

/* Why some pipeline of the tree breaks the rules; NULL: all stand (pipeline.c). */
const char *sched_broken_pipeline(const sched *s, const ir_program *tree);

/* ---- steps of scan loops (scan.c) ---- */

/* The outer loops up to the innermost that a scan variable of the block is bound to; 0: it has none. */
int sched_step_depth(const sched *s, const sched_site *site);
int sched_common_loops(const sched_site *a, const sched_site *b); /* from the outermost on */
/* While the outer `fixed` loops, which the sites have in common, stand still, the accesses touch no element of a buffer both. NULL:
 * no access. */
bool sched_apart(const sched *s, const sched_site *a, const ir_region *at_a, const sched_site *b, const ir_region *at_b, int fixed);
/* The same of all that the block reads and all that it writes. */
bool sched_reads_other_steps(const sched *s, const sched_site *site, int fixed);
/* NULL where instances of the block may run again within their step, or in another place there; without scan variables, as
 * sched_not_idempotent. Otherwise why not. */
const char *sched_not_repeatable(const sched *s, const sched_site *site);

/* Debug builds: the rules of docs/loop-tree.md that can be checked on the tree alone; false with an INTERNAL error in the
 * context. */
bool sched_verify(const sched *s);

#endif
