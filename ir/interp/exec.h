/* ir/interp/exec.h -- inside the room: the interpreter from inside: the compiled form of a program, and the
 * state of a run.
 *
 * A program is first built (interp_build.h) into nodes (expressions) and codes (statements) whose variables
 * are numbered slots; then it runs by calling each one's function. An expression is evaluated one lane at a
 * time, so that the laziness of SELECT, AND, OR and masks holds for each lane by itself.
 *
 * Invariant: after a failure (exec->failed, message in the caller's context) nodes still give a value, loads
 * touch nothing that is not theirs, and no store happens; statements stop at their next look at the flag.
 *
 * Everything built and every buffer lives in a scratch context that ends with the run.
 */
#ifndef IR_INTERP_EXEC_H
#define IR_INTERP_EXEC_H

#include "ir/interp/interp.h"
#include "ir/value.h"

typedef struct ir_exec ir_exec;
typedef struct exec_node exec_node;
typedef struct exec_code exec_code;
typedef struct exec_buffer exec_buffer;

enum { EXEC_MAX_LEVELS = 32, EXEC_MAX_TUPLE = 16, EXEC_MAX_STRANDS = 65535 };

/* ---- memory ---- */

/* Who touched an element last: stamps (interp_check.c). `other` is the last read by another strand than
 * `read`, `outer` the last one before the outermost parallel iteration that was running then. 0: nobody. */
typedef struct {
    uint64_t write, read, other, outer;
} exec_shadow;

enum { EXEC_INITIALISED = 1, EXEC_WRITTEN = 2, EXEC_PENDING = 4 };

/* Who copies to an element, in which of its groups. */
typedef struct {
    uint32_t group;
    uint16_t strand;
} exec_late;

typedef struct {
    const exec_buffer *of; /* that it is the memory of, whatever an intrinsic calls it; NULL: the caller's */
    uint8_t *data;
    uint8_t *flags;      /* EXEC_INITIALISED | EXEC_WRITTEN | EXEC_PENDING of each element */
    exec_shadow *shadow; /* NULL: races are not looked for */
    exec_late *late;     /* of elements that are EXEC_PENDING; NULL: the program has no asynchronous copies */
    int64_t n_late;
    int64_t count; /* elements */
    int bytes;     /* of one element */
} exec_store;

/* A buffer's place in a store; an intrinsic's operand is a view into its caller's. */
typedef struct {
    exec_store *store;
    int64_t base;   /* the element at the address that was passed */
    int64_t offset; /* base + the buffer's own offset */
    int64_t *shape, *strides;
} exec_view;

/* The loops around a place of the tree, for the common ancestor of a buffer's uses. */
typedef struct exec_place {
    const struct exec_place *up;
    const ir_stmt *loop;
    int depth;
} exec_place;

struct exec_buffer {
    const ir_buffer *buffer;
    int slot;                                       /* in exec->view */
    const exec_node *const *shape, *const *strides; /* strides NULL: compact */
    const exec_node *offset;
    bool listed;
    bool used;
    bool outside;            /* of launches: it lies in global memory, whatever its scope is */
    const exec_place *place; /* innermost loops that enclose all uses; of listed buffers */
};

/* ---- expressions ---- */

typedef ir_value exec_eval(ir_exec *exec, const exec_node *node, int lane);

typedef struct {
    const exec_buffer *buffer;
    base_dtype t;
    int n;
    const exec_node *const *index;
    const exec_node *mask; /* NULL: all lanes */
    bool flat;             /* one index, counted in elements from the address that was passed */
    bool reduces;          /* the target of a declared reduction... */
    base_map across;       /* ... over these loops (their variables), if they are vectorised */
    uint8_t threads;       /* ... and over loops of these thread axes */
    base_loc loc;
} exec_access;

typedef struct {
    const struct exec_meaning *meaning;
    const exec_node *const *arg;      /* in the order of the parameters: a buffer's offset or a scalar */
    const exec_buffer *const *buffer; /* one for each parameter, NULL for scalars */
    const ir_expr *e;
} exec_call;

struct exec_node {
    exec_eval *eval;
    const ir_expr *e;
    base_dtype t; /* of operations: their operands' */
    int lanes;
    int64_t cost; /* nodes below, each use counted */
    union {
        ir_value value;
        int slot;
        struct {
            const exec_node *arg[3];
            ir_evaluator *fn;
        } op;
        struct {
            const exec_node *value, *body;
            int slot;
        } let;
        const exec_node *const *vectors;
        exec_access *access;
        exec_call *call;
    };
};

/* A vector variable has its lanes in slots slot..slot+lanes-1, and behind them for each lane the node that
 * still has to be evaluated for it (0: done), since a lane that nothing asks for may be out of bounds. */
static inline ir_value exec_run(ir_exec *exec, const exec_node *node, int lane)
{
    return node->eval(exec, node, lane);
}

/* ---- statements ---- */

/* What a message says about a place: the block around it, and the variables with their values. */
typedef struct exec_scope {
    const struct exec_scope *up;
    enum { EXEC_IN_LOOP, EXEC_IN_BLOCK, EXEC_IN_INTRINSIC } kind;
    const char *name; /* of the loop, block or intrinsic */
    int n;            /* variables: 1 of a loop, iteration variables of a block */
    const char *const *var;
    const int *slot;
} exec_scope;

typedef void exec_do(ir_exec *exec, const exec_code *code);

struct exec_code {
    exec_do *run;
    ir_stmt_kind kind;
    const ir_stmt *s;
    const exec_scope *scope;
    int64_t cost;
    /* holds a barrier, or memory that threads share: the threads of a group run it together */
    bool lockstep;
    /* thread axes of the launch that no loop around this statement binds: thread 0 of them does it; of a
     * statement that holds others, what all of them miss */
    uint8_t missing;
    uint8_t bound; /* thread axes that loops around this statement bind */
    union {
        struct {
            const exec_node *min, *extent;
            int slot;
            base_dtype t;
            ir_how how;
            const exec_code *body;
            struct exec_launch *launch; /* of a loop that starts a grid's block: what a group needs */
        } loop;
        struct { /* iters get their bindings where all conditions hold, then the body runs */
            int n, n_where;
            const int *slot;
            const exec_node *const *bind; /* NULL: 0 */
            const exec_node *const *extent;
            const exec_node *const *where;
            const exec_scope *outer; /* for the conditions and bindings */
            const exec_code *body;
        } block;
        struct {
            exec_access *to;
            const exec_node *value;
            int lanes;
            int64_t *at; /* places and values of a vector store */
            ir_value *values;
            bool async;
        } store;
        struct {
            exec_access *const *to;
            const exec_node *const *source, *const *result;
            const int *x, *y; /* slots of the combiner's parameters */
            int n, lanes;
        } update;
        struct {
            const exec_node *value;
            int slot, lanes;
            const exec_code *body;
            bool shuffle;          /* the value comes from another thread of the warp: */
            int64_t mask;          /* the one `mask` further, */
            const exec_node *lane; /* or the one that this says; NULL: `mask` does */
        } let;
        struct {
            exec_buffer *buffer;
            bool shared; /* by all threads that come to it */
            const exec_code *body;
        } allocate;
        struct {
            const exec_node *cond;
            const exec_code *then, *otherwise;
        } branch;
        struct {
            const exec_code *const *code;
            int n;
        } seq;
        struct {
            const exec_node *cond;
            const char *message;
        } check;
        struct {
            const exec_node *value; /* NULL: a barrier over ..., or about asynchronous copies */
            ir_scope barrier;
            int64_t groups; /* that may be under way after a wait */
        } evaluate;
        const exec_code *inner; /* attribute */
    };
};

/* The program behind an intrinsic, built once. Its parameters are filled at each call. */
typedef struct exec_meaning {
    const ir_program *program;
    const exec_code *body;
    exec_buffer **buffer; /* one for each parameter; NULL for scalars */
    int *slot;            /* of scalar parameters */
    const exec_buffer *const *listed;
    int n_listed;
    bool gives_value; /* its last parameter is the value of the call */
    bool building;
} exec_meaning;

/* ---- threads (interp_thread.c) ---- */

/* What a group (the threads under one point of the blockIdx loops) is made of. */
typedef struct exec_launch {
    const ir_stmt *root;
    int axes;                       /* bit 0..2: threadIdx.x, y, z */
    base_vec extent[3];             /* exec_node *, of every loop over that axis; threads: the largest */
    base_vec per_group, per_strand; /* exec_buffer *: listed ones that live in the group */
} exec_launch;

/* One strand of a group: its variables and views. */
typedef struct {
    ir_value *var;
    exec_view **view;
    int coord[3];
    uint16_t strand;
    uint32_t groups; /* of asynchronous copies that it committed */
} exec_frame;

typedef struct {
    int n, extent[3]; /* threads; they are the strands 0..n-1 */
    int copies;       /* of each thread, by the virtual threads around the place that runs */
    /* numbers given out; strand % n is its thread, the threads themselves come first */
    int strands;
    uint64_t shared_sync, global_sync; /* clock of the last barrier over that memory */
    uint64_t *warp_sync;               /* of each warp */
    uint64_t virtual_start;            /* clock at the start of the innermost loop of virtual threads */
} exec_group;

/* A parallel loop that is running: when it began, and when its current iteration did. */
typedef struct {
    uint64_t start, iteration;
    const exec_code *loop;
} exec_level;

typedef struct exec_caller {
    const struct exec_caller *up;
    const exec_scope *scope;
} exec_caller;

struct ir_exec {
    ir_value *var;
    exec_view **view;
    exec_frame *frame; /* the one that var and view belong to; NULL outside groups */
    const exec_scope *scope;
    bool failed;
    bool checks_races;
    bool copies_async; /* some store of the program is asynchronous */
    /* the value of a lane that is not stored is computed: what it loads must exist, and may be anything */
    bool unused;
    /* threads of a group exchange values as though a barrier stood between any two statements */
    bool implied;
    int depth;
    uint64_t clock, now; /* now: clock and strand, as stamps have it */
    int64_t steps, max_steps;
    int64_t bytes, max_bytes;
    uint64_t shuffle; /* not 0: state of the order of parallel loops */
    exec_group *group;
    const exec_caller *caller;
    tec_context *cx, *mem; /* the caller's, for errors alone; the scratch */
    int n_slots, n_views, built;
    exec_level level[EXEC_MAX_LEVELS];
};

void ir_exec_over_limit(ir_exec *exec, const exec_code *code);

static inline void exec_step(ir_exec *exec, const exec_code *code)
{
    exec->scope = code->scope;
    if ((exec->steps += code->cost) > exec->max_steps)
        ir_exec_over_limit(exec, code);
    else
        code->run(exec, code);
}

/* ---- checks and messages (interp_check.c) ---- */

/* Records "stage 'S': what (y = 3, k = 17)" unless something failed before. */
void ir_exec_fail(ir_exec *exec, tec_status status, base_loc loc, const char *fmt, ...) BASE_PRINTF(4, 5);

/* The place of an access in its store; -1 after a failure. */
int64_t ir_exec_locate(ir_exec *exec, const exec_access *access, int lane, bool write);
ir_value ir_exec_load(ir_exec *exec, const exec_access *access, int lane);
void ir_exec_store(ir_exec *exec, const exec_access *access, int64_t at, int lane, ir_value value);
/* Begins the asynchronous copy of a value; makes a group of what was begun; completes all but the last `n`
 * groups. */
void ir_exec_store_later(ir_exec *exec, const exec_access *access, int64_t at, ir_value value);
void ir_exec_run_commit(ir_exec *exec, const exec_code *code);
void ir_exec_run_wait(ir_exec *exec, const exec_code *code);
/* two lanes of one store at one place */
void ir_exec_twice(ir_exec *exec, const exec_access *access, int lane, int other);

/* A parallel loop of the running strand. */
bool ir_exec_enter_loop(ir_exec *exec, const exec_code *loop);
void ir_exec_next_iteration(ir_exec *exec);
void ir_exec_leave_loop(ir_exec *exec);

static inline void exec_tick(ir_exec *exec)
{
    exec->clock++;
    exec->now = exec->clock << 16 | (exec->now & 0xffff);
}

/* ---- buffers (interp_memory.c) ---- */

/* Counts memory against the run's limit; false: failed, the message names whose it was. */
bool ir_exec_take(ir_exec *exec, int64_t count, int64_t each, const char *name, base_loc loc);
exec_store *ir_exec_new_store(ir_exec *exec, base_dtype dtype, int64_t count, const char *name, base_loc loc);
/* Shape, strides and offset from the variables' current values. `view->store` and `base` are the caller's.
 * False: failed. */
bool ir_exec_shape_view(ir_exec *exec, const exec_buffer *buffer, exec_view *view);
/* elements from offset to the last one + 1; -1: failed */
int64_t ir_exec_span(ir_exec *exec, const exec_buffer *buffer, const exec_view *view);
/* with memory of its own; NULL: failed */
exec_view *ir_exec_new_view(ir_exec *exec, const exec_buffer *buffer);

/* ---- threads ---- */

void ir_exec_run_thread_loop(ir_exec *exec, const exec_code *code); /* threadIdx.* */
void ir_exec_run_block_loop(ir_exec *exec, const exec_code *code);  /* blockIdx.* */
/* parallel, vectorised, vthread: iterations that must not meet */
void ir_exec_run_parallel(ir_exec *exec, const exec_code *code);
void ir_exec_run_barrier(ir_exec *exec, const exec_code *code);  /* by a single strand */
void ir_exec_run_shuffle(ir_exec *exec, const exec_code *code);  /* likewise */
const char *ir_exec_strand_text(ir_exec *exec, unsigned strand); /* "thread (1, 0, 0)" */
/* Clock since which an access by that strand to memory of that scope is concurrent with the running strand;
 * UINT64_MAX: never. */
uint64_t ir_exec_concurrent_since(const ir_exec *exec, unsigned strand, ir_scope scope);
/* Whether that strand's thread and the running one differ in their places on the axes of the mask alone. */
bool ir_exec_differs_on(const ir_exec *exec, unsigned strand, int axes);

/* Whether the running strand leaves the statement to thread 0 of an axis. */
bool ir_exec_is_left_out(const ir_exec *exec, const exec_code *code);

/* Whether a block's conditions hold; then its iteration variables are set. False also after a failure. */
bool ir_exec_bind_block(ir_exec *exec, const exec_code *code);
void ir_exec_bind_let(ir_exec *exec, const exec_code *code);

/* ---- intrinsics (interp_call.c) ---- */

exec_eval ir_exec_eval_call;

#endif
