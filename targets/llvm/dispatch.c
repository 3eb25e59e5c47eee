/* targets/llvm/dispatch.c -- the function that chooses among versions of a kernel by the remainder of an
 * extent.
 *
 *     i32 f(env, args, dims) {
 *       switch (dims[d] % 8) {                             // an extent is never negative
 *       case 3: dims' = dims with dims[d] / 8 at d;  return f_r3(env, args, dims');
 *       default: return f_any(env, args, dims);
 *     } }
 *
 * The kernels keep the caller's floating-point mode themselves, so this one has no frame of theirs.
 */
#include "targets/llvm/gen.h"

static LLVMValueRef at_dim(llvm_gen *gen, LLVMValueRef dims, int i)
{
    LLVMValueRef index = LLVMConstInt(gen->i64, (unsigned long long)i, 0);

    return LLVMBuildInBoundsGEP2(gen->b, gen->i64, dims, &index, 1, "");
}

static void call_kernel(llvm_gen *gen, LLVMValueRef function, const char *symbol, LLVMValueRef dims)
{
    LLVMValueRef arg[3] = {LLVMGetParam(function, 0), LLVMGetParam(function, 1), dims};

    LLVMBuildRet(gen->b, LLVMBuildCall2(gen->b, llvm_kernel_type(gen), LLVMGetNamedFunction(gen->m, symbol),
                                        arg, 3, ""));
}

/* The extents with the quotient in place of the symbol. */
static void fill_dims(llvm_gen *gen, const target_dispatch *dispatch, LLVMValueRef to, LLVMValueRef from,
                      LLVMValueRef quotient, int n_dims)
{
    for (int i = 0; i < n_dims; i++) {
        LLVMValueRef value =
            i == dispatch->dim ? quotient : LLVMBuildLoad2(gen->b, gen->i64, at_dim(gen, from, i), "");

        LLVMBuildStore(gen->b, value, at_dim(gen, to, i));
    }
}

/* The function that callers see. Version k gets the extent divided by the modulus, the form in which its
 * program has the symbol. */
void llvm_write_dispatch(llvm_gen *gen, const target_dispatch *dispatch, const char *const *symbols,
                         int count, int n_dims)
{
    LLVMValueRef f = LLVMAddFunction(gen->m, dispatch->symbol, llvm_kernel_type(gen)),
                 dims = LLVMGetParam(f, 2);
    LLVMBasicBlockRef *call = base_array(gen->cx, LLVMBasicBlockRef, count);

    gen->symbol = dispatch->symbol;
    llvm_set_attributes(gen, f);
    LLVMPositionBuilderAtEnd(gen->b, LLVMAppendBasicBlockInContext(gen->c, f, "entry"));
    LLVMValueRef slot =
        LLVMBuildArrayAlloca(gen->b, gen->i64, LLVMConstInt(gen->i64, (unsigned long long)n_dims, 0), "dims");
    LLVMValueRef extent = LLVMBuildLoad2(gen->b, gen->i64, at_dim(gen, dims, dispatch->dim), "extent");
    LLVMValueRef modulus = LLVMConstInt(gen->i64, (unsigned long long)dispatch->modulus, 0);
    LLVMValueRef quotient = LLVMBuildUDiv(gen->b, extent, modulus, "quotient"),
                 rest = LLVMBuildURem(gen->b, extent, modulus, "rest");
    for (int k = 0; k < count; k++)
        call[k] = LLVMAppendBasicBlockInContext(gen->c, f, k ? "version" : "general");
    LLVMValueRef choice = LLVMBuildSwitch(gen->b, rest, call[0], (unsigned)dispatch->modulus);
    for (int64_t r = 0; r < dispatch->modulus; r++)
        if (dispatch->program[r])
            LLVMAddCase(choice, LLVMConstInt(gen->i64, (unsigned long long)r, 0), call[dispatch->program[r]]);
    for (int k = 0; k < count; k++) {
        LLVMPositionBuilderAtEnd(gen->b, call[k]);
        if (k)
            fill_dims(gen, dispatch, slot, dims, quotient, n_dims);
        call_kernel(gen, f, symbols[k], k ? slot : dims);
    }
}
