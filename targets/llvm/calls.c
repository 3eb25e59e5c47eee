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

typedef LLVMValueRef emitter(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value);

typedef struct {
    const char *name, *arch;          /* arch NULL: any */
    const char *feature, *or_feature; /* LLVM's features of which it needs one; NULL: none */
    int n_args, n_buffers;
    emitter *emit;
} intrinsic;

/* ---- intrinsics ---- */

/* prefetch(offset, locality of A): value is the address and how near to keep it, 0 to 3. */
static LLVMValueRef emit_prefetch(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    int64_t locality;
    LLVMTypeRef type = gen->ptr;
    if (!ir_is_int(expr->call.arg[1], &locality) || locality < 0 || locality > 3)
        return base_fail(gen->cx, TEC_INVALID, expr->loc, "prefetch needs a constant locality from 0 to 3");
    LLVMValueRef args[] = {value[0], LLVMConstInt(gen->i32, 0, 0),
                           LLVMConstInt(gen->i32, (unsigned long long)locality, 0),
                           LLVMConstInt(gen->i32, 1, 0)};
    llvm_intrinsic(gen, "llvm.prefetch", &type, 1, args, 4);
    return LLVMConstInt(gen->i32, 0, 0);
}

/* acc + sum over 4 of u8 * i8, in each 32-bit lane: dot4(acc: i32xN, a: u8x4N, b: i8x4N). */
static LLVMValueRef emit_vpdpbusd(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    int lanes = expr->dtype.lanes;
    LLVMTypeRef type = LLVMVectorType(gen->i32, (unsigned)lanes);
    const char *name = base_format(gen->cx, "llvm.x86.avx512.vpdpbusd.%d", lanes * 32);
    LLVMValueRef args[] = {value[0], LLVMBuildBitCast(gen->b, value[1], type, ""),
                           LLVMBuildBitCast(gen->b, value[2], type, "")};
    bool wide = target_has(gen->t, "avx512vnni");
    if (lanes != 4 && lanes != 8 && !(lanes == 16 && wide))
        return base_fail(gen->cx, TEC_UNSUPPORTED, expr->loc, "'%s' has 4%s lanes on '%s', found %d",
                         expr->call.name, wide ? ", 8 or 16" : " or 8", gen->t->cpu, lanes);
    return llvm_intrinsic(gen, name, NULL, 0, args, 3);
}

/* One element of each pair of bfloat16, as float32: the bits below its own are zero. */
static LLVMValueRef widen_of_pair(llvm_gen *gen, LLVMValueRef pairs, bool odd, LLVMTypeRef type)
{
    LLVMTypeRef whole = LLVMVectorType(gen->i32, LLVMGetVectorSize(type));
    LLVMValueRef bits = LLVMBuildBitCast(gen->b, pairs, whole, "");

    bits = odd ? LLVMBuildAnd(gen->b, bits, llvm_int_like(gen, whole, 0xffff0000), "")
               : LLVMBuildShl(gen->b, bits, llvm_int_like(gen, whole, 16), "");
    return LLVMBuildBitCast(gen->b, bits, type, "");
}

/* acc + sum over 2 of bf16 * bf16, in each lane: dot2(acc: f32xN, a: bf16x2N, b: bf16x2N). The instruction
 * flushes denormals whatever the mode is, so a strict program multiplies and adds. */
static LLVMValueRef emit_vdpbf16ps(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    int lanes = expr->dtype.lanes;
    LLVMTypeRef type = LLVMTypeOf(value[0]),
                pairs = LLVMVectorType(LLVMBFloatTypeInContext(gen->c), (unsigned)lanes * 2);
    LLVMValueRef sum = value[0];

    if ((lanes != 4 && lanes != 8 && lanes != 16) || !gen->t->has_avx512bf16)
        return base_fail(gen->cx, TEC_UNSUPPORTED, expr->loc, "'%s' has 4, 8 or 16 lanes, found %d on '%s'",
                         expr->call.name, lanes, gen->t->cpu);
    if (gen->keep_denormals) {
        for (int odd = 0; odd < 2; odd++) {
            LLVMValueRef left = widen_of_pair(gen, value[1], odd, type),
                         right = widen_of_pair(gen, value[2], odd, type);

            sum = LLVMBuildFAdd(gen->b, sum, LLVMBuildFMul(gen->b, left, right, ""), "");
        }
        return sum;
    }
    LLVMValueRef args[] = {value[0], LLVMBuildBitCast(gen->b, value[1], pairs, ""),
                           LLVMBuildBitCast(gen->b, value[2], pairs, "")};
    return llvm_intrinsic(gen, base_format(gen->cx, "llvm.x86.avx512bf16.dpbf16ps.%d", lanes * 32), NULL, 0,
                          args, 3);
}

static LLVMValueRef emit_arm_dot(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    int lanes = expr->dtype.lanes;
    if (lanes != 4 && lanes != 2)
        return base_fail(gen->cx, TEC_UNSUPPORTED, expr->loc, "expected 2 or 4 lanes of '%s', found %d",
                         expr->call.name, lanes);
    LLVMTypeRef types[] = {LLVMVectorType(gen->i32, (unsigned)lanes),
                           LLVMVectorType(gen->i8, (unsigned)lanes * 4)};
    const char *name = strstr(expr->call.name, "udot") ? "llvm.aarch64.neon.udot" : "llvm.aarch64.neon.sdot";
    return llvm_intrinsic(gen, name, types, 2, value, 3);
}

static const intrinsic intrinsics[] = {
    {"prefetch", NULL, NULL, NULL, 2, 1, emit_prefetch},
    {"x86.vpdpbusd", "x86_64", "avx512vnni", "avxvnni", 3, 0, emit_vpdpbusd},
    {"x86.vdpbf16ps", "x86_64", "avx512bf16", NULL, 3, 0, emit_vdpbf16ps},
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

/* Whether the call has the operands of an intrinsic and the CPU its features; otherwise an error. */
static bool fits(llvm_gen *gen, const ir_expr *expr, const intrinsic *row)
{
    if (expr->call.n != row->n_args || expr->call.n_buffers != row->n_buffers) {
        base_fail(gen->cx, TEC_INVALID, expr->loc,
                  "'%s' takes %d operands, %d of them buffers; found %d and %d", row->name, row->n_args,
                  row->n_buffers, expr->call.n, expr->call.n_buffers);
        return false;
    }
    if (target_is_cpu_with(gen->t, row->arch, row->feature, row->or_feature))
        return true;
    base_fail(gen->cx, TEC_UNSUPPORTED, expr->loc, "'%s' needs an %s CPU with %s; the target is '%s'",
              row->name, row->arch, row->feature ? row->feature : "nothing more",
              target_text(gen->cx, gen->t));
    return false;
}

/* Which buffer operand i belongs to, or -1. */
static int buffer_of(const ir_expr *expr, int i)
{
    const ir_program *meaning = expr->call.intrinsic ? expr->call.intrinsic->meaning : NULL;
    int n = 0;
    if (!meaning)
        return i < expr->call.n_buffers ? i : -1;
    for (int k = 0; k < i && k < meaning->n_params; k++)
        n += meaning->params[k].buffer != NULL;
    return i < meaning->n_params && meaning->params[i].buffer && n < expr->call.n_buffers ? n : -1;
}

/* ---- extern functions ---- */

static LLVMValueRef to_c(llvm_gen *gen, base_dtype dtype, LLVMValueRef value)
{
    return base_is_bool(dtype) ? LLVMBuildZExt(gen->b, value, gen->i8, "") : value;
}

/* The function's address; leaves the kernel where the environment does not know it. */
static LLVMValueRef find_extern(llvm_gen *gen, const char *name)
{
    LLVMTypeRef type = LLVMFunctionType(gen->ptr, (LLVMTypeRef[]){gen->ptr, gen->ptr}, 2, 0);
    LLVMValueRef args[] = {gen->f->env, LLVMBuildGlobalStringPtr(gen->b, name, "name")};
    LLVMValueRef f =
        LLVMBuildCall2(gen->b, type, llvm_env_field(gen, gen->ptr, LLVM_ENV_EXTERN_FUNCTION), args, 2, "");
    LLVMBasicBlockRef missing = llvm_block(gen, "missing"), found = llvm_block(gen, "found");
    LLVMBuildCondBr(gen->b, LLVMBuildIsNull(gen->b, f, ""), missing, found);
    LLVMPositionBuilderAtEnd(gen->b, missing);
    const char *text = base_format(gen->cx, "the extern function '%s' is not registered", name);
    LLVMValueRef fail_args[] = {gen->f->env, LLVMBuildGlobalStringPtr(gen->b, text, "message")};
    LLVMTypeRef fail_type = LLVMFunctionType(gen->nothing, (LLVMTypeRef[]){gen->ptr, gen->ptr}, 2, 0);
    LLVMBuildCall2(gen->b, fail_type, llvm_env_field(gen, gen->ptr, LLVM_ENV_FAIL), fail_args, 2, "");
    LLVMBuildStore(gen->b, LLVMConstInt(gen->i32, TEC_UNSUPPORTED, 0), gen->f->status);
    LLVMBuildBr(gen->b, gen->f->exit);
    LLVMPositionBuilderAtEnd(gen->b, found);
    return f;
}

static LLVMValueRef lane_of(llvm_gen *gen, LLVMValueRef value, int k)
{
    bool vector = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
    return vector
               ? LLVMBuildExtractElement(gen->b, value, LLVMConstInt(gen->i32, (unsigned long long)k, 0), "")
               : value;
}

/* Calls an extern function for lane lane. Its C type follows from the operands; an imported function must
 * have just that type. */
static LLVMValueRef call_lane(llvm_gen *gen, const ir_expr *expr, LLVMValueRef function, LLVMValueRef *value,
                              int lane)
{
    LLVMTypeRef *types = base_array(gen->cx, LLVMTypeRef, expr->call.n);
    LLVMValueRef *args = base_array(gen->cx, LLVMValueRef, expr->call.n);
    for (int i = 0; i < expr->call.n; i++) {
        args[i] = lane_of(gen, value[i], lane);
        if (buffer_of(expr, i) < 0)
            args[i] = to_c(gen, expr->call.arg[i]->dtype, args[i]);
        types[i] = LLVMTypeOf(args[i]);
    }
    base_dtype one = base_dtype_lanes(expr->dtype, 1);
    LLVMTypeRef result = base_is_bool(one) ? gen->i8 : llvm_type(gen, one),
                type = LLVMFunctionType(result, types, (unsigned)expr->call.n, 0);
    if (LLVMIsAFunction(function) && !llvm_imported_fits(gen, expr, function, type))
        return LLVMConstNull(llvm_type(gen, one));
    LLVMValueRef r = LLVMBuildCall2(gen->b, type, function, args, (unsigned)expr->call.n, "");
    if (LLVMIsAFunction(function))
        llvm_copy_attributes(function, r);
    return base_is_bool(one) ? LLVMBuildICmp(gen->b, LLVMIntNE, r, LLVMConstNull(gen->i8), "") : r;
}

/* A lane that is off is not called; its value is 0. */
static LLVMValueRef call_if(llvm_gen *gen, const ir_expr *expr, LLVMValueRef function, LLVMValueRef *value,
                            int lane, LLVMValueRef on)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(gen->b), call = llvm_block(gen, "call"),
                      after = llvm_block(gen, "called");
    LLVMBuildCondBr(gen->b, on, call, after);
    LLVMPositionBuilderAtEnd(gen->b, call);
    LLVMValueRef r = call_lane(gen, expr, function, value, lane);
    LLVMBuildBr(gen->b, after);
    LLVMPositionBuilderAtEnd(gen->b, after);
    LLVMValueRef phi = LLVMBuildPhi(gen->b, LLVMTypeOf(r), "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){LLVMConstNull(LLVMTypeOf(r)), r},
                    (LLVMBasicBlockRef[]){before, call}, 2);
    return phi;
}

/* Calls a C function once for each lane, under the mask where there is one. */
static LLVMValueRef call_extern(llvm_gen *gen, const ir_expr *expr, LLVMValueRef *value)
{
    LLVMValueRef own = LLVMGetNamedFunction(gen->m, expr->call.name);
    LLVMValueRef f = own && !LLVMIsDeclaration(own) ? own : find_extern(gen, expr->call.name),
                 mask = llvm_mask_for(gen, expr->dtype.lanes), all = NULL;
    if (expr->dtype.lanes == 1)
        return mask ? call_if(gen, expr, f, value, 0, mask) : call_lane(gen, expr, f, value, 0);
    all = LLVMGetPoison(llvm_type(gen, expr->dtype));
    for (int k = 0; k < expr->dtype.lanes; k++) {
        LLVMValueRef r =
            mask ? call_if(gen, expr, f, value, k, lane_of(gen, mask, k)) : call_lane(gen, expr, f, value, k);
        all = LLVMBuildInsertElement(gen->b, all, r, LLVMConstInt(gen->i32, (unsigned long long)k, 0), "");
    }
    return all;
}

/* ---- all ---- */

static LLVMValueRef operand(llvm_gen *gen, const ir_expr *expr, int i)
{
    int b = buffer_of(expr, i);
    if (b < 0)
        return llvm_expr(gen, expr->call.arg[i]);
    LLVMValueRef offset = llvm_index(gen, expr->call.arg[i]);
    return offset ? llvm_address(gen, expr->call.buffer[b], offset) : NULL;
}

LLVMValueRef llvm_call(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef *v = base_array(gen->cx, LLVMValueRef, expr->call.n);
    for (int i = 0; i < expr->call.n; i++)
        if (!(v[i] = operand(gen, expr, i)))
            return NULL;
    const intrinsic *row = find_intrinsic(expr->call.name);
    if (row)
        return fits(gen, expr, row) ? row->emit(gen, expr, v) : NULL;
    return call_extern(gen, expr, v);
}
