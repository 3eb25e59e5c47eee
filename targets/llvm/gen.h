/* targets/llvm/gen.h -- inside the room: the state of one generation, and what its files offer each other.
 *
 * One llvm_gen per module; its `f` is the function being written. Values in registers have the dtype's own
 * LLVM type, with two exceptions: bool is i1 (a byte in memory), and float16 and bfloat16 are their bits,
 * i16; arithmetic on them converts (half.c). Invariant: the builder stands in a block without terminator
 * whenever a statement or expression is about to be emitted.
 */
#ifndef TARGETS_LLVM_GEN_H
#define TARGETS_LLVM_GEN_H

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <sys/types.h>

#include "base/guard.h"
#include "ir/ir.h"
#include "targets/arch.h"
#include "targets/llvm/llvm.h"

/* An integer's least and largest value. */
typedef struct {
    int64_t low, high;
} llvm_range;

/* A variable's value, and what address arithmetic may rely on. */
typedef struct {
    LLVMValueRef value;
    const ir_expr *expr; /* of a let: its value, for seeing through ramps; else NULL */
    int64_t multiple;    /* value is a multiple of this; at least 1 */
    bool nonnegative;
    llvm_range range; /* used on 32-bit CPUs alone (ranges.c) */
} llvm_binding;

/* A loop: var takes the values begin + add, begin + add + 1, ... up to end + add, which is none of them; from
 * the last to the first where the call turns them round. */
typedef struct {
    LLVMValueRef begin, end, add; /* add NULL: 0. begin and end have 32 bits where all values fit */
    LLVMValueRef backwards;       /* i1; NULL: never */
    const ir_expr *var;
    bool runs;                    /* at least once, so no test stands in front */
    bool nonnegative;             /* var is never negative */
    llvm_range range;             /* of var */
    struct llvm_walkers *walkers; /* found for this loop: pointers that advance with it (walkers.c) */
} llvm_counted;

/* Where a buffer lies. */
typedef struct {
    LLVMValueRef address;
    int64_t align;              /* bytes */
    LLVMValueRef scope, others; /* alias scope lists for its accesses; NULL: none */
} llvm_place;

/* A sum of terms with constant factors, a constant, and a multiple of a loop's variable. */
enum { LLVM_MOST_TERMS = 12, LLVM_MOST_WALKERS = 8 };
typedef struct {
    const ir_expr *term[LLVM_MOST_TERMS];
    int64_t factor[LLVM_MOST_TERMS], offset, step;
    int n;
} llvm_sum;

/* A pointer into a buffer that advances with a loop. */
typedef struct {
    const ir_buffer *buffer;
    llvm_sum start; /* the element in the first iteration */
    LLVMValueRef pointer;
} llvm_walker;
typedef struct llvm_walkers {
    const ir_expr *var;
    llvm_walker at[LLVM_MOST_WALKERS];
    int n;
    struct llvm_walkers *outer; /* those of the loop around, which have a rest meanwhile */
} llvm_walkers;

/* Values of expressions already emitted: a hash table whose youngest entries go when their scope ends. */
typedef struct {
    const ir_expr *key;
    LLVMValueRef value;
    int next; /* in its bucket, + 1; 0: none */
} llvm_known;
typedef struct {
    llvm_known *entries; /* a stack */
    int n, cap;
    int *buckets; /* LLVM_MEMO_BUCKETS: the youngest entry of each, + 1 */
} llvm_memo;
enum { LLVM_MEMO_BUCKETS = 1024 };

/* The function being written. */
typedef struct {
    /* status: an alloca; worker: an i32, NULL outside parallel bodies */
    LLVMValueRef function, env, status, worker;
    LLVMBasicBlockRef entry, exit;
    LLVMValueRef saved_mode; /* where the caller's floating-point mode is kept; NULL: not changed */
} llvm_function;

typedef struct {
    tec_context *cx;
    const target *t;
    LLVMContextRef c;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr, nothing;
    const ir_program *p;
    const char *symbol;
    bool keep_denormals;
    bool floats; /* the program computes with floats, and kernels switch denormals off for that */
    int n_bodies;
    llvm_function *f;
    base_map vars;    /* variable -> llvm_binding * */
    base_map places;  /* buffer -> llvm_place * */
    base_map scopes;  /* buffer -> its alias scope list (LLVMMetadataRef as value), alias.c */
    base_map halves;  /* bits of a float16 -> the float32 that half.c narrowed to it (LLVMValueRef) */
    base_map others;  /* buffer -> the list of all other scopes */
    base_map risky;   /* expression -> 1 or 2: whether evaluating it may trap or touch what it must not */
    base_vec imports; /* values of notes (ir_expr *) whose functions are in the module */
    llvm_memo memo;
    llvm_walkers *walkers; /* of the loop being written; NULL: none */
    LLVMValueRef mask;     /* lanes under evaluation; NULL: all */
    int mask_lanes;
    bool index; /* inside an index or bound: no overflow */
} llvm_gen;

/* ---- types.c ---- */
LLVMTypeRef llvm_type(llvm_gen *gen, base_dtype dtype);                           /* in registers */
LLVMTypeRef llvm_memory_type(llvm_gen *gen, base_dtype dtype);                    /* in arrays */
LLVMValueRef llvm_constant(llvm_gen *gen, base_dtype dtype, const ir_expr *expr); /* IR_INT or IR_FLOAT */
LLVMValueRef llvm_splat(llvm_gen *gen, LLVMValueRef scalar, int lanes);           /* lanes 1: itself */
/* a constant of a scalar or vector int type */
LLVMValueRef llvm_int_like(llvm_gen *gen, LLVMTypeRef type, int64_t value);
LLVMValueRef llvm_float_like(llvm_gen *gen, LLVMTypeRef type, double value);
LLVMTypeRef llvm_with_lanes(LLVMTypeRef scalar, int lanes);
int llvm_lanes(LLVMTypeRef type);
/* Calls the intrinsic NAME overloaded on the given types. */
LLVMValueRef llvm_intrinsic(llvm_gen *gen, const char *name, LLVMTypeRef *types, int n_types,
                            LLVMValueRef *args, int n);
LLVMValueRef llvm_intrinsic1(llvm_gen *gen, const char *name, LLVMTypeRef type, LLVMValueRef left);
LLVMValueRef llvm_intrinsic2(llvm_gen *gen, const char *name, LLVMTypeRef type, LLVMValueRef left,
                             LLVMValueRef right);

/* ---- expr.c ---- */
LLVMValueRef llvm_expr(llvm_gen *gen, const ir_expr *expr);
LLVMValueRef llvm_index(llvm_gen *gen, const ir_expr *expr); /* the same; overflow is assumed not to happen */
void llvm_bind(llvm_gen *gen, const ir_expr *var, LLVMValueRef value, const ir_expr *expr, int64_t multiple,
               bool nonnegative);
/* The values that a bound variable can have. */
void llvm_bind_range(llvm_gen *gen, const ir_expr *var, llvm_range range);
void llvm_unbind(llvm_gen *gen, const ir_expr *var);
int llvm_enter(llvm_gen *gen);             /* a new memo scope; */
void llvm_leave(llvm_gen *gen, int scope); /* ... and its end */
/* What the lanes under evaluation are, as a mask of this many lanes; NULL: all. */
LLVMValueRef llvm_mask_for(llvm_gen *gen, int lanes);
LLVMValueRef llvm_any(llvm_gen *gen, LLVMValueRef mask);

/* ---- facts.c ---- */
int64_t llvm_multiple(llvm_gen *gen, const ir_expr *expr); /* expr is a multiple of it, at least 1 */
bool llvm_nonnegative(llvm_gen *gen, const ir_expr *expr);
bool llvm_risky(llvm_gen *gen, const ir_expr *expr);
/* A vector index as base + constant stride * lane; false where it is none. */
bool llvm_as_ramp(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *stride);
bool llvm_lane_value(const ir_expr *expr, int lane, int64_t *out);
bool llvm_as_offsets(llvm_gen *gen, const ir_expr *expr, const ir_expr **base, int64_t *offset);

/* ---- ranges.c ---- */
bool llvm_is_wide(base_dtype dtype); /* int64, as indices are */
llvm_range llvm_range_of(llvm_gen *gen, const ir_expr *expr);
llvm_range llvm_loop_range(llvm_gen *gen, const ir_expr *min, const ir_expr *extent);
/* Whether the target has 32 bits, and all values fit in them, signed. */
bool llvm_fits_narrow(const llvm_gen *gen, llvm_range range);
bool llvm_counts_narrow(llvm_gen *gen, const ir_expr *min, const ir_expr *extent);
/* Whether an operation on int64, a comparison included, gives the same in 32 bits on this target. */
bool llvm_narrows(llvm_gen *gen, const ir_expr *expr);
LLVMValueRef llvm_cut(llvm_gen *gen, LLVMValueRef value);    /* int64 to its low 32 bits */
LLVMValueRef llvm_extend(llvm_gen *gen, LLVMValueRef value); /* ... and back, signed */

/* ---- arith.c, integers.c, cast.c, half.c, fmod.c ---- */
LLVMValueRef llvm_operation(llvm_gen *gen, const ir_expr *expr);
LLVMValueRef llvm_int_operation(llvm_gen *gen, const ir_expr *expr, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef llvm_cast(llvm_gen *gen, base_dtype from, base_dtype to, LLVMValueRef value);
/* to the type that arithmetic is done in */
LLVMValueRef llvm_widen(llvm_gen *gen, base_dtype dtype, LLVMValueRef value);
LLVMValueRef llvm_narrow(llvm_gen *gen, base_dtype dtype, LLVMValueRef value); /* ... and back, rounding */
LLVMValueRef llvm_fmod(llvm_gen *gen, LLVMValueRef left, LLVMValueRef right);

/* ---- memory.c, alias.c ---- */
LLVMValueRef llvm_load(llvm_gen *gen, const ir_expr *expr);
void llvm_store(llvm_gen *gen, const ir_stmt *stmt);
LLVMValueRef llvm_address(llvm_gen *gen, const ir_buffer *buffer, LLVMValueRef index);
/* The fields of tec_env (include/tec/kernel.h) in their order; where they lie depends on the target's
 * pointers. */
typedef enum {
    LLVM_ENV_ABI,
    LLVM_ENV_N_WORKERS,
    LLVM_ENV_PARALLEL,
    LLVM_ENV_WORKSPACE,
    LLVM_ENV_THREAD_WORKSPACE,
    LLVM_ENV_THREAD_STRIDE,
    LLVM_ENV_FAIL,
    LLVM_ENV_EXTERN_FUNCTION,
    LLVM_ENV_USER,
    LLVM_ENV_TURN,
    LLVM_ENV_FIELDS
} llvm_env;
LLVMTypeRef llvm_env_type(llvm_gen *gen);
LLVMValueRef llvm_env_field(llvm_gen *gen, LLVMTypeRef type, llvm_env field);
void llvm_place_buffer(llvm_gen *gen, const ir_buffer *buffer, LLVMValueRef address, int64_t align);
void llvm_alias_scopes(llvm_gen *gen);

/* ---- stmt.c, parallel.c, calls.c ---- */
void llvm_stmt(llvm_gen *gen, const ir_stmt *stmt);
void llvm_loop(llvm_gen *gen, const llvm_counted *counted, const ir_stmt *body);
/* Leaves the function with TEC_INVALID and this text where the condition does not hold. */
void llvm_check(llvm_gen *gen, LLVMValueRef condition, const char *message);
void llvm_parallel(llvm_gen *gen, const ir_stmt *stmt);
LLVMValueRef llvm_call(llvm_gen *gen, const ir_expr *expr);

/* ---- walkers.c ---- */
/* none where a loop lies inside */
void llvm_find_walkers(llvm_gen *gen, const ir_stmt *loop, llvm_walkers *out);
/* in front of the loop, */
void llvm_start_walkers(llvm_gen *gen, llvm_walkers *all, LLVMValueRef begin);
void llvm_enter_walkers(llvm_gen *gen, llvm_walkers *all, LLVMBasicBlockRef before); /* at its beginning */
void llvm_advance_walkers(llvm_gen *gen, llvm_walkers *all);                         /* and at its end */
/* the element's address; NULL: no pointer walks there */
LLVMValueRef llvm_walker_at(llvm_gen *gen, const ir_buffer *buffer, const ir_expr *index);
/* From LLVM's strength reduction, which is to leave them as they are. */
void llvm_hide_walkers(LLVMModuleRef module);

/* ---- import.c, clang.c ---- */
/* the functions that the notes of program bring; false with an error */
bool llvm_import(llvm_gen *gen, const ir_program *program);
/* Whether a function that was imported has the type of a call; false with an error. */
bool llvm_imported_fits(llvm_gen *gen, const ir_expr *call, LLVMValueRef function, LLVMTypeRef type);
void llvm_copy_attributes(LLVMValueRef function, LLVMValueRef call); /* how arguments are handed over */
/* C as LLVM's text for the target, by the program clang-19; NULL with an error. `loc` is that of its first
 * line. */
const char *llvm_clang(tec_context *cx, const target *machine, bool strict, const char *source, base_loc loc,
                       size_t *size);

/* ---- function.c ---- */
LLVMValueRef llvm_begin_function(llvm_gen *gen, llvm_function *function, const char *name, bool exported,
                                 LLVMTypeRef type);
void llvm_end_function(llvm_gen *gen);
void llvm_set_attributes(llvm_gen *gen, LLVMValueRef function);
LLVMValueRef llvm_entry_alloca(llvm_gen *gen, LLVMTypeRef type, int64_t align, const char *name);
LLVMTypeRef llvm_kernel_type(llvm_gen *gen);
LLVMTypeRef llvm_body_type(llvm_gen *gen);
LLVMBasicBlockRef llvm_block(llvm_gen *gen, const char *name);

/* ---- emit.c ---- */
const char *llvm_triple(tec_context *cx, const target *machine);
/* A copy in the context of a text that LLVM gives, which is disposed of. NULL gives NULL. */
const char *llvm_take_message(tec_context *cx, char *message);
const char *llvm_take_error(tec_context *cx, LLVMErrorRef error);
/* The exit status of a child process when it ends; 128: a signal ended it. */
int llvm_wait(tec_context *cx, pid_t pid);
LLVMTargetMachineRef llvm_target_machine(tec_context *cx, const target *machine);
bool llvm_optimise(llvm_gen *gen);
/* of a copy of the module: it stays as it is */
bool llvm_emit(llvm_gen *gen, bool assembly, const void **data, size_t *size);

/* ---- link.c ---- */
/* That the object is one of the architecture, and needs nothing but memcpy, memset, memmove and the
 * architecture's helpers; false with an error that names what it needs. *helpers: which of those it needs,
 * NULL: none. */
bool llvm_check_imports(tec_context *cx, const target_arch *arch, const void *object, size_t size,
                        const char **helpers);

/* shared.c: one object as a shared object, without a linker: its bytes, in the context; NULL, without an
 * error, where the linker is needed. */
const void *llvm_shared(tec_context *cx, const target_code *code, size_t *size);

/* helpers.c: an object with all functions of the run-time ABI that the architecture has; NULL with an
 * error. */
const target_code *llvm_helpers(tec_context *cx, const target *machine);

/* dispatch.c: the function that chooses among the kernels of the module. */
void llvm_write_dispatch(llvm_gen *gen, const target_dispatch *dispatch, const char *const *symbols,
                         int count, int n_dims);

#endif
