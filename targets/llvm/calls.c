/* targets/llvm/calls.c -- calls: the table of intrinsics that have instructions, and extern functions through
 * the environment.
 *
 * An extern function NAME is a C function that is imported (import.c) or else one that the environment knows.
 * Its parameters are the operands in their order: a buffer as a pointer to the element at the operand's
 * offset, others as the C types of their dtypes (bool: uint8_t; float16 and bfloat16: uint16_t); its result
 * is of the C type of the call's dtype. A vector call is one call for each lane under evaluation.
 *
 * In a call's operands the element offsets of its buffers stand where the parameters of its meaning are
 * buffers; without a meaning, first.
 */
#include <ctype.h>
#include <string.h>

#include "targets/llvm/gen.h"

#include "ir/build.h"

typedef LLVMValueRef emitter(llvm_gen *g, const ir_expr *e, LLVMValueRef *v);

typedef struct {
    const char *name, *arch;          /* arch NULL: any */
    const char *feature, *or_feature; /* LLVM's features of which it needs one; NULL: none */
    int n_args, n_buffers;
    emitter *emit;
} intrinsic;

/* ---- intrinsics ---- */

/* prefetch(offset, locality of A): v is the address and how near to keep it, 0 to 3. */
static LLVMValueRef emit_prefetch(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    int64_t locality;
    LLVMTypeRef type = g->ptr;
    if (!ir_is_int(e->call.arg[1], &locality) || locality < 0 || locality > 3)
        return base_fail(g->cx, TEC_INVALID, e->loc, "prefetch wants a constant locality from 0 to 3");
    LLVMValueRef args[] = {v[0], LLVMConstInt(g->i32, 0, 0),
                           LLVMConstInt(g->i32, (unsigned long long)locality, 0), LLVMConstInt(g->i32, 1, 0)};
    llvm_intrinsic(g, "llvm.prefetch", &type, 1, args, 4);
    return LLVMConstInt(g->i32, 0, 0);
}

/* acc + sum over 4 of u8 * i8, in each 32-bit lane: dot4(acc: i32xN, a: u8x4N, b: i8x4N). */
static LLVMValueRef emit_vpdpbusd(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    int lanes = e->dtype.lanes;
    LLVMTypeRef type = LLVMVectorType(g->i32, (unsigned)lanes);
    const char *name = base_format(g->cx, "llvm.x86.avx512.vpdpbusd.%d", lanes * 32);
    LLVMValueRef args[] = {v[0], LLVMBuildBitCast(g->b, v[1], type, ""),
                           LLVMBuildBitCast(g->b, v[2], type, "")};
    bool wide = target_has(g->t, "avx512vnni");
    if (lanes != 4 && lanes != 8 && !(lanes == 16 && wide))
        return base_fail(g->cx, TEC_UNSUPPORTED, e->loc, "'%s' has 4%s lanes on '%s', found %d", e->call.name,
                         wide ? ", 8 or 16" : " or 8", g->t->cpu, lanes);
    return llvm_intrinsic(g, name, NULL, 0, args, 3);
}

static LLVMValueRef emit_arm_dot(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    int lanes = e->dtype.lanes;
    if (lanes != 4 && lanes != 2)
        return base_fail(g->cx, TEC_UNSUPPORTED, e->loc, "'%s' has 2 or 4 lanes, found %d", e->call.name,
                         lanes);
    LLVMTypeRef types[] = {LLVMVectorType(g->i32, (unsigned)lanes),
                           LLVMVectorType(g->i8, (unsigned)lanes * 4)};
    const char *name = strstr(e->call.name, "udot") ? "llvm.aarch64.neon.udot" : "llvm.aarch64.neon.sdot";
    return llvm_intrinsic(g, name, types, 2, v, 3);
}

static const intrinsic intrinsics[] = {
    {"prefetch", NULL, NULL, NULL, 2, 1, emit_prefetch},
    {"x86.vpdpbusd", "x86_64", "avx512vnni", "avxvnni", 3, 0, emit_vpdpbusd},
    {"arm.sdot", "aarch64", "dotprod", NULL, 3, 0, emit_arm_dot},
    {"arm.udot", "aarch64", "dotprod", NULL, 3, 0, emit_arm_dot},
};

/* NAME.16 is NAME: an intrinsic with a meaning has a name for each number of lanes. */
static const intrinsic *find_intrinsic(const char *name)
{
    for (int i = 0; i < BASE_COUNT(intrinsics); i++) {
        size_t n = strlen(intrinsics[i].name);
        if (strncmp(intrinsics[i].name, name, n) == 0 &&
            (!name[n] || (name[n] == '.' && isdigit((unsigned char)name[n + 1]))))
            return &intrinsics[i];
    }
    return NULL;
}

static bool fits(llvm_gen *g, const ir_expr *e, const intrinsic *row)
{
    if (e->call.n != row->n_args || e->call.n_buffers != row->n_buffers) {
        base_fail(g->cx, TEC_INVALID, e->loc, "'%s' takes %d operands, %d of them buffers; found %d and %d",
                  row->name, row->n_args, row->n_buffers, e->call.n, e->call.n_buffers);
        return false;
    }
    if (target_is_cpu_with(g->t, row->arch, row->feature, row->or_feature))
        return true;
    base_fail(g->cx, TEC_UNSUPPORTED, e->loc, "'%s' needs an %s CPU with %s; the target is '%s'", row->name,
              row->arch, row->feature ? row->feature : "nothing more", target_text(g->cx, g->t));
    return false;
}

/* Which buffer operand i belongs to, or -1. */
static int buffer_of(const ir_expr *e, int i)
{
    const ir_program *meaning = e->call.intrinsic ? e->call.intrinsic->meaning : NULL;
    int n = 0;
    if (!meaning)
        return i < e->call.n_buffers ? i : -1;
    for (int k = 0; k < i && k < meaning->n_params; k++)
        n += meaning->params[k].buffer != NULL;
    return i < meaning->n_params && meaning->params[i].buffer && n < e->call.n_buffers ? n : -1;
}

/* ---- extern functions ---- */

static LLVMValueRef to_c(llvm_gen *g, base_dtype t, LLVMValueRef v)
{
    return base_is_bool(t) ? LLVMBuildZExt(g->b, v, g->i8, "") : v;
}

/* The function's address; leaves the kernel where the environment does not know it. */
static LLVMValueRef find_extern(llvm_gen *g, const char *name)
{
    LLVMTypeRef type = LLVMFunctionType(g->ptr, (LLVMTypeRef[]){g->ptr, g->ptr}, 2, 0);
    LLVMValueRef args[] = {g->f->env, LLVMBuildGlobalStringPtr(g->b, name, "name")};
    LLVMValueRef f =
        LLVMBuildCall2(g->b, type, llvm_env_field(g, g->ptr, LLVM_ENV_EXTERN_FUNCTION), args, 2, "");
    LLVMBasicBlockRef missing = llvm_block(g, "missing"), found = llvm_block(g, "found");
    LLVMBuildCondBr(g->b, LLVMBuildIsNull(g->b, f, ""), missing, found);
    LLVMPositionBuilderAtEnd(g->b, missing);
    const char *text = base_format(g->cx, "the extern function '%s' is not registered", name);
    LLVMValueRef fail_args[] = {g->f->env, LLVMBuildGlobalStringPtr(g->b, text, "message")};
    LLVMTypeRef fail_type = LLVMFunctionType(g->nothing, (LLVMTypeRef[]){g->ptr, g->ptr}, 2, 0);
    LLVMBuildCall2(g->b, fail_type, llvm_env_field(g, g->ptr, LLVM_ENV_FAIL), fail_args, 2, "");
    LLVMBuildStore(g->b, LLVMConstInt(g->i32, TEC_UNSUPPORTED, 0), g->f->status);
    LLVMBuildBr(g->b, g->f->exit);
    LLVMPositionBuilderAtEnd(g->b, found);
    return f;
}

static LLVMValueRef lane_of(llvm_gen *g, LLVMValueRef v, int k)
{
    bool vector = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
    return vector ? LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, (unsigned long long)k, 0), "") : v;
}

/* Calls an extern function for lane k. Its C type follows from the operands; an imported function must have
 * just that type. */
static LLVMValueRef call_lane(llvm_gen *g, const ir_expr *e, LLVMValueRef f, LLVMValueRef *v, int k)
{
    LLVMTypeRef *types = base_array(g->cx, LLVMTypeRef, e->call.n);
    LLVMValueRef *args = base_array(g->cx, LLVMValueRef, e->call.n);
    for (int i = 0; i < e->call.n; i++) {
        args[i] = lane_of(g, v[i], k);
        if (buffer_of(e, i) < 0)
            args[i] = to_c(g, e->call.arg[i]->dtype, args[i]);
        types[i] = LLVMTypeOf(args[i]);
    }
    base_dtype one = base_dtype_lanes(e->dtype, 1);
    LLVMTypeRef result = base_is_bool(one) ? g->i8 : llvm_type(g, one),
                type = LLVMFunctionType(result, types, (unsigned)e->call.n, 0);
    if (LLVMIsAFunction(f) && !llvm_imported_fits(g, e, f, type))
        return LLVMConstNull(llvm_type(g, one));
    LLVMValueRef r = LLVMBuildCall2(g->b, type, f, args, (unsigned)e->call.n, "");
    if (LLVMIsAFunction(f))
        llvm_copy_attributes(f, r);
    return base_is_bool(one) ? LLVMBuildICmp(g->b, LLVMIntNE, r, LLVMConstNull(g->i8), "") : r;
}

/* A lane that is off is not called; its value is 0. */
static LLVMValueRef call_if(llvm_gen *g, const ir_expr *e, LLVMValueRef f, LLVMValueRef *v, int k,
                            LLVMValueRef on)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), call = llvm_block(g, "call"),
                      after = llvm_block(g, "called");
    LLVMBuildCondBr(g->b, on, call, after);
    LLVMPositionBuilderAtEnd(g->b, call);
    LLVMValueRef r = call_lane(g, e, f, v, k);
    LLVMBuildBr(g->b, after);
    LLVMPositionBuilderAtEnd(g->b, after);
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(r), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){LLVMConstNull(LLVMTypeOf(r)), r},
                    (LLVMBasicBlockRef[]){before, call}, 2);
    return phi;
}

static LLVMValueRef call_extern(llvm_gen *g, const ir_expr *e, LLVMValueRef *v)
{
    LLVMValueRef own = LLVMGetNamedFunction(g->m, e->call.name);
    LLVMValueRef f = own && !LLVMIsDeclaration(own) ? own : find_extern(g, e->call.name),
                 mask = llvm_mask_for(g, e->dtype.lanes), all = NULL;
    if (e->dtype.lanes == 1)
        return mask ? call_if(g, e, f, v, 0, mask) : call_lane(g, e, f, v, 0);
    all = LLVMGetPoison(llvm_type(g, e->dtype));
    for (int k = 0; k < e->dtype.lanes; k++) {
        LLVMValueRef r = mask ? call_if(g, e, f, v, k, lane_of(g, mask, k)) : call_lane(g, e, f, v, k);
        all = LLVMBuildInsertElement(g->b, all, r, LLVMConstInt(g->i32, (unsigned long long)k, 0), "");
    }
    return all;
}

/* ---- all ---- */

static LLVMValueRef operand(llvm_gen *g, const ir_expr *e, int i)
{
    int b = buffer_of(e, i);
    if (b < 0)
        return llvm_expr(g, e->call.arg[i]);
    LLVMValueRef offset = llvm_index(g, e->call.arg[i]);
    return offset ? llvm_address(g, e->call.buffer[b], offset) : NULL;
}

LLVMValueRef llvm_call(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef *v = base_array(g->cx, LLVMValueRef, e->call.n);
    for (int i = 0; i < e->call.n; i++)
        if (!(v[i] = operand(g, e, i)))
            return NULL;
    const intrinsic *row = find_intrinsic(e->call.name);
    if (row)
        return fits(g, e, row) ? row->emit(g, e, v) : NULL;
    return call_extern(g, e, v);
}
