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

static LLVMValueRef at_dim(llvm_gen *g, LLVMValueRef dims, int i)
{
    LLVMValueRef index = LLVMConstInt(g->i64, (unsigned long long)i, 0);

    return LLVMBuildInBoundsGEP2(g->b, g->i64, dims, &index, 1, "");
}

static void call_kernel(llvm_gen *g, LLVMValueRef f, const char *symbol, LLVMValueRef dims)
{
    LLVMValueRef arg[3] = {LLVMGetParam(f, 0), LLVMGetParam(f, 1), dims};

    LLVMBuildRet(g->b,
                 LLVMBuildCall2(g->b, llvm_kernel_type(g), LLVMGetNamedFunction(g->m, symbol), arg, 3, ""));
}

/* The extents with the quotient in place of the symbol. */
static void fill_dims(llvm_gen *g, const target_dispatch *d, LLVMValueRef to, LLVMValueRef from,
                      LLVMValueRef quotient, int n_dims)
{
    for (int i = 0; i < n_dims; i++) {
        LLVMValueRef value = i == d->dim ? quotient : LLVMBuildLoad2(g->b, g->i64, at_dim(g, from, i), "");

        LLVMBuildStore(g->b, value, at_dim(g, to, i));
    }
}

/* The function that callers see. Version k gets the extent divided by the modulus, the form in which its
 * program has the symbol. */
void llvm_write_dispatch(llvm_gen *g, const target_dispatch *d, const char *const *symbols, int n, int n_dims)
{
    LLVMValueRef f = LLVMAddFunction(g->m, d->symbol, llvm_kernel_type(g)), dims = LLVMGetParam(f, 2);
    LLVMBasicBlockRef *call = base_array(g->cx, LLVMBasicBlockRef, n);

    g->symbol = d->symbol;
    llvm_set_attributes(g, f);
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->c, f, "entry"));
    LLVMValueRef slot =
        LLVMBuildArrayAlloca(g->b, g->i64, LLVMConstInt(g->i64, (unsigned long long)n_dims, 0), "dims");
    LLVMValueRef extent = LLVMBuildLoad2(g->b, g->i64, at_dim(g, dims, d->dim), "extent");
    LLVMValueRef modulus = LLVMConstInt(g->i64, (unsigned long long)d->modulus, 0);
    LLVMValueRef quotient = LLVMBuildUDiv(g->b, extent, modulus, "quotient"),
                 rest = LLVMBuildURem(g->b, extent, modulus, "rest");
    for (int k = 0; k < n; k++)
        call[k] = LLVMAppendBasicBlockInContext(g->c, f, k ? "version" : "general");
    LLVMValueRef choice = LLVMBuildSwitch(g->b, rest, call[0], (unsigned)d->modulus);
    for (int64_t r = 0; r < d->modulus; r++)
        if (d->program[r])
            LLVMAddCase(choice, LLVMConstInt(g->i64, (unsigned long long)r, 0), call[d->program[r]]);
    for (int k = 0; k < n; k++) {
        LLVMPositionBuilderAtEnd(g->b, call[k]);
        if (k)
            fill_dims(g, d, slot, dims, quotient, n_dims);
        call_kernel(g, f, symbols[k], k ? slot : dims);
    }
}
