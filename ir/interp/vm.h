/* ir/interp/vm.h -- inside the room: the interpreter from inside: the compiled form of a program, and the
 * state of a run.
 *
 * A program is first built (interp_build.h) into nodes (expressions) and codes (statements) whose variables
 * are numbered slots; then it runs by calling each one's function. An expression is evaluated one lane at a
 * time, so that the laziness of SELECT, AND, OR and masks holds for each lane by itself.
 *
 * Invariant: after a failure (vm->failed, message in the caller's context) nodes still give a value, loads
 * touch nothing that is not theirs, and no store happens; statements stop at their next look at the flag.
 *
 * Everything built and every buffer lives in a scratch context that ends with the run.
 */
#ifndef IR_INTERP_VM_H
#define IR_INTERP_VM_H

#include "ir/interp/interp.h"
#include "ir/value.h"

typedef struct ir_vm ir_vm;
typedef struct vm_node vm_node;
typedef struct vm_code vm_code;
typedef struct vm_buffer vm_buffer;

enum { VM_MAX_LEVELS = 32, VM_MAX_TUPLE = 16, VM_MAX_STRANDS = 65535 };

/* ---- memory ---- */

/* Who touched an element last: stamps (interp_check.c). `other` is the last read by another strand than
 * `read`, `outer` the last one before the outermost parallel iteration that was running then. 0: nobody. */
typedef struct {
    uint64_t write, read, other, outer;
} vm_shadow;

enum { VM_INITIALISED = 1, VM_WRITTEN = 2, VM_PENDING = 4 };

/* Who copies to an element, in which of its groups. */
typedef struct {
    uint32_t group;
    uint16_t strand;
} vm_late;

typedef struct {
    const vm_buffer *of; /* that it is the memory of, whatever an intrinsic calls it; NULL: the caller's */
    uint8_t *data;
    uint8_t *flags;    /* VM_INITIALISED | VM_WRITTEN | VM_PENDING of each element */
    vm_shadow *shadow; /* NULL: races are not looked for */
    vm_late *late;     /* of elements that are VM_PENDING; NULL: the program has no asynchronous copies */
    int64_t n_late;
    int64_t count; /* elements */
    int bytes;     /* of one element */
} vm_store;

/* A buffer's place in a store; an intrinsic's operand is a view into its caller's. */
typedef struct {
    vm_store *store;
    int64_t base;   /* the element at the address that was passed */
    int64_t offset; /* base + the buffer's own offset */
    int64_t *shape, *strides;
} vm_view;

/* The loops around a place of the tree, for the common ancestor of a buffer's uses. */
typedef struct vm_place {
    const struct vm_place *up;
    const ir_stmt *loop;
    int depth;
} vm_place;

struct vm_buffer {
    const ir_buffer *buffer;
    int slot;                                     /* in vm->view */
    const vm_node *const *shape, *const *strides; /* strides NULL: compact */
    const vm_node *offset;
    bool listed;
    bool used;
    const vm_place *place; /* innermost loops that enclose all uses; of listed buffers */
};

/* ---- expressions ---- */

typedef ir_value vm_eval(ir_vm *vm, const vm_node *n, int lane);

typedef struct {
    const vm_buffer *buffer;
    base_dtype t;
    int n;
    const vm_node *const *index;
    const vm_node *mask; /* NULL: all lanes */
    bool flat;           /* one index, counted in elements from the address that was passed */
    bool reduces;        /* the target of a declared reduction... */
    base_map across;     /* ... over these loops (their variables), if they are vectorised */
    uint8_t threads;     /* ... and over loops of these thread axes */
    base_loc loc;
} vm_access;

typedef struct {
    const struct vm_meaning *meaning;
    const vm_node *const *arg;      /* in the order of the parameters: a buffer's offset or a scalar */
    const vm_buffer *const *buffer; /* one for each parameter, NULL for scalars */
    const ir_expr *e;
} vm_call;

struct vm_node {
    vm_eval *eval;
    const ir_expr *e;
    base_dtype t; /* of operations: their operands' */
    int lanes;
    int64_t cost; /* nodes below, each use counted */
    union {
        ir_value value;
        int slot;
        struct {
            const vm_node *arg[3];
            ir_evaluator *fn;
        } op;
        struct {
            const vm_node *value, *body;
            int slot;
        } let;
        const vm_node *const *vectors;
        vm_access *access;
        vm_call *call;
    };
};

/* A vector variable has its lanes in slots slot..slot+lanes-1, and behind them for each lane the node that
 * still has to be evaluated for it (0: done), since a lane that nothing asks for may be out of bounds. */
static inline ir_value vm_run(ir_vm *vm, const vm_node *n, int lane)
{
    return n->eval(vm, n, lane);
}

/* ---- statements ---- */

/* What a message says about a place: the block around it, and the variables with their values. */
typedef struct vm_scope {
    const struct vm_scope *up;
    enum { VM_IN_LOOP, VM_IN_BLOCK, VM_IN_INTRINSIC } kind;
    const char *name; /* of the loop, block or intrinsic */
    int n;            /* variables: 1 of a loop, iteration variables of a block */
    const char *const *var;
    const int *slot;
} vm_scope;

typedef void vm_do(ir_vm *vm, const vm_code *c);

struct vm_code {
    vm_do *run;
    ir_stmt_kind kind;
    const ir_stmt *s;
    const vm_scope *scope;
    int64_t cost;
    /* holds a barrier, or memory that threads share: the threads of a group run it together */
    bool lockstep;
    /* thread axes of the launch that no loop around this statement binds: thread 0 of them does it; of a
     * statement that holds others, what all of them miss */
    uint8_t missing;
    uint8_t bound; /* thread axes that loops around this statement bind */
    union {
        struct {
            const vm_node *min, *extent;
            int slot;
            base_dtype t;
            ir_how how;
            const vm_code *body;
            struct vm_launch *launch; /* of a loop that starts a grid's block: what a group needs */
        } loop;
        struct { /* iters get their bindings where all conditions hold, then the body runs */
            int n, n_where;
            const int *slot;
            const vm_node *const *bind; /* NULL: 0 */
            const vm_node *const *extent;
            const vm_node *const *where;
            const vm_scope *outer; /* for the conditions and bindings */
            const vm_code *body;
        } block;
        struct {
            vm_access *to;
            const vm_node *value;
            int lanes;
            int64_t *at; /* places and values of a vector store */
            ir_value *values;
            bool async;
        } store;
        struct {
            vm_access *const *to;
            const vm_node *const *source, *const *result;
            const int *x, *y; /* slots of the combiner's parameters */
            int n, lanes;
        } update;
        struct {
            const vm_node *value;
            int slot, lanes;
            const vm_code *body;
            bool shuffle; /* the value comes from the thread `mask` further in the warp */
            int64_t mask;
        } let;
        struct {
            vm_buffer *buffer;
            bool shared; /* by all threads that come to it */
            const vm_code *body;
        } allocate;
        struct {
            const vm_node *cond;
            const vm_code *then, *otherwise;
        } branch;
        struct {
            const vm_code *const *code;
            int n;
        } seq;
        struct {
            const vm_node *cond;
            const char *message;
        } check;
        struct {
            const vm_node *value; /* NULL: a barrier over ..., or about asynchronous copies */
            ir_scope barrier;
            int64_t groups; /* that may be under way after a wait */
        } evaluate;
        const vm_code *inner; /* attribute */
    };
};

/* The program behind an intrinsic, built once. Its parameters are filled at each call. */
typedef struct vm_meaning {
    const ir_program *program;
    const vm_code *body;
    vm_buffer **buffer; /* one for each parameter; NULL for scalars */
    int *slot;          /* of scalar parameters */
    const vm_buffer *const *listed;
    int n_listed;
    bool gives_value; /* its last parameter is the value of the call */
    bool building;
} vm_meaning;

/* ---- threads (interp_thread.c) ---- */

/* What a group (the threads under one point of the blockIdx loops) is made of. */
typedef struct vm_launch {
    const ir_stmt *root;
    int axes;                       /* bit 0..2: threadIdx.x, y, z */
    base_vec extent[3];             /* vm_node *, of every loop over that axis; threads: the largest */
    base_vec per_group, per_strand; /* vm_buffer *: listed ones that live in the group */
} vm_launch;

/* One strand of a group: its variables and views. */
typedef struct {
    ir_value *var;
    vm_view **view;
    int coord[3];
    uint16_t strand;
    uint32_t groups; /* of asynchronous copies that it committed */
} vm_frame;

typedef struct {
    int n, extent[3]; /* threads; they are the strands 0..n-1 */
    int copies;       /* of each thread, by the virtual threads around the place that runs */
    /* numbers given out; strand % n is its thread, the threads themselves come first */
    int strands;
    uint64_t shared_sync, global_sync; /* clock of the last barrier over that memory */
    uint64_t *warp_sync;               /* of each warp */
    uint64_t virtual_start;            /* clock at the start of the innermost loop of virtual threads */
} vm_group;

/* A parallel loop that is running: when it began, and when its current iteration did. */
typedef struct {
    uint64_t start, iteration;
    const vm_code *loop;
} vm_level;

typedef struct vm_caller {
    const struct vm_caller *up;
    const vm_scope *scope;
} vm_caller;

struct ir_vm {
    ir_value *var;
    vm_view **view;
    vm_frame *frame; /* the one that var and view belong to; NULL outside groups */
    const vm_scope *scope;
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
    vm_group *group;
    const vm_caller *caller;
    tec_context *cx, *mem; /* the caller's, for errors alone; the scratch */
    int n_slots, n_views, built;
    vm_level level[VM_MAX_LEVELS];
};

void ir_vm_over_limit(ir_vm *vm, const vm_code *c);

static inline void vm_step(ir_vm *vm, const vm_code *c)
{
    vm->scope = c->scope;
    if ((vm->steps += c->cost) > vm->max_steps)
        ir_vm_over_limit(vm, c);
    else
        c->run(vm, c);
}

/* ---- checks and messages (interp_check.c) ---- */

/* Records "stage 'S': what (y = 3, k = 17)" unless something failed before. */
void ir_vm_fail(ir_vm *vm, tec_status status, base_loc loc, const char *fmt, ...) BASE_PRINTF(4, 5);

/* The place of an access in its store; -1 after a failure. */
int64_t ir_vm_locate(ir_vm *vm, const vm_access *a, int lane, bool write);
ir_value ir_vm_load(ir_vm *vm, const vm_access *a, int lane);
void ir_vm_store(ir_vm *vm, const vm_access *a, int64_t at, int lane, ir_value v);
/* Begins the asynchronous copy of a value; makes a group of what was begun; completes all but the last `n`
 * groups. */
void ir_vm_store_later(ir_vm *vm, const vm_access *a, int64_t at, ir_value v);
void ir_vm_run_commit(ir_vm *vm, const vm_code *c);
void ir_vm_run_wait(ir_vm *vm, const vm_code *c);
/* two lanes of one store at one place */
void ir_vm_twice(ir_vm *vm, const vm_access *a, int lane, int other);

/* A parallel loop of the running strand. */
bool ir_vm_enter_loop(ir_vm *vm, const vm_code *loop);
void ir_vm_next_iteration(ir_vm *vm);
void ir_vm_leave_loop(ir_vm *vm);

static inline void vm_tick(ir_vm *vm)
{
    vm->clock++;
    vm->now = vm->clock << 16 | (vm->now & 0xffff);
}

/* ---- buffers (interp_memory.c) ---- */

/* Counts memory against the run's limit; false: failed, the message names whose it was. */
bool ir_vm_take(ir_vm *vm, int64_t count, int64_t each, const char *name, base_loc loc);
vm_store *ir_vm_new_store(ir_vm *vm, base_dtype t, int64_t count, const char *name, base_loc loc);
/* Shape, strides and offset from the variables' current values. `view->store` and `base` are the caller's.
 * False: failed. */
bool ir_vm_shape_view(ir_vm *vm, const vm_buffer *b, vm_view *view);
/* elements from offset to the last one + 1; -1: failed */
int64_t ir_vm_span(ir_vm *vm, const vm_buffer *b, const vm_view *view);
/* with memory of its own; NULL: failed */
vm_view *ir_vm_new_view(ir_vm *vm, const vm_buffer *b);

/* ---- threads ---- */

void ir_vm_run_thread_loop(ir_vm *vm, const vm_code *c); /* threadIdx.* */
void ir_vm_run_block_loop(ir_vm *vm, const vm_code *c);  /* blockIdx.* */
/* parallel, vectorised, vthread: iterations that must not meet */
void ir_vm_run_parallel(ir_vm *vm, const vm_code *c);
void ir_vm_run_barrier(ir_vm *vm, const vm_code *c);       /* by a single strand */
void ir_vm_run_shuffle(ir_vm *vm, const vm_code *c);       /* likewise */
const char *ir_vm_strand_text(ir_vm *vm, unsigned strand); /* "thread (1, 0, 0)" */
/* Clock since which an access by that strand to memory of that scope is concurrent with the running strand;
 * UINT64_MAX: never. */
uint64_t ir_vm_concurrent_since(const ir_vm *vm, unsigned strand, ir_scope scope);
/* Whether that strand's thread and the running one differ in their places on the axes of the mask alone. */
bool ir_vm_differs_on(const ir_vm *vm, unsigned strand, int axes);

/* Whether the running strand leaves the statement to thread 0 of an axis. */
bool ir_vm_is_left_out(const ir_vm *vm, const vm_code *c);

/* Whether a block's conditions hold; then its iteration variables are set. False also after a failure. */
bool ir_vm_bind_block(ir_vm *vm, const vm_code *c);
void ir_vm_bind_let(ir_vm *vm, const vm_code *c);

/* ---- intrinsics (interp_call.c) ---- */

vm_eval ir_vm_eval_call;

#endif
