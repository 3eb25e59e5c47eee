/* targets/llvm/module.c -- lowered programs to one LLVM module, and that to an object.
 *
 * Each program becomes a kernel: the addresses of its buffers and the values of its scalars are read from
 * `args`, its symbols from `dims`, all at the start; then comes the body. The module lives in an LLVM context
 * of its own and is gone when llvm_generate returns.
 */
#include <string.h>

#include "targets/llvm/gen.h"

#include <llvm-c/Analysis.h>

#include "ir/build.h"
#include "ir/walk.h"

/* ---- does a program compute with floats? ---- */

typedef struct {
    ir_walk walk;
    bool found;
} finder;

static bool find_float(ir_walk *walk, const ir_expr *expr)
{
    finder *f = (finder *)walk;
    bool computes = ir_is_op(expr->op) || expr->op == IR_CAST || expr->op == IR_CALL;
    f->found |= computes && (base_is_float(expr->dtype) ||
                             (expr->op != IR_CALL && expr->arg[0] && base_is_float(expr->arg[0]->dtype)));
    return !f->found;
}

static bool uses_floats(tec_context *cx, const ir_program *program)
{
    finder f = {.walk = {.cx = cx, .expr = find_float}};
    ir_walk_stmt(&f.walk, program->body);
    return f.found;
}

/* ---- parameters ---- */

static void set_fact(llvm_gen *gen, LLVMValueRef load, const char *kind, int64_t value)
{
    LLVMMetadataRef number = LLVMValueAsMetadata(LLVMConstInt(gen->i64, (unsigned long long)value, 0));
    LLVMMetadataRef node = LLVMMDNodeInContext2(gen->c, value ? &number : NULL, value ? 1 : 0);
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(gen->c, kind, (unsigned)strlen(kind)),
                    LLVMMetadataAsValue(gen->c, node));
}

static int64_t constant_bytes(const ir_buffer *buffer)
{
    int64_t n = base_dtype_bytes(buffer->dtype), extent;
    for (int i = 0; i < buffer->n; i++) {
        if (buffer->strides || buffer->offset || !ir_is_int(buffer->shape[i], &extent) || extent <= 0 ||
            n > INT64_MAX / extent)
            return 0;
        n *= extent;
    }
    return n;
}

static LLVMValueRef element_of(llvm_gen *gen, LLVMTypeRef type, LLVMValueRef array, int i)
{
    LLVMValueRef at = LLVMConstInt(gen->i64, (unsigned long long)i, 0);
    LLVMValueRef v = LLVMBuildLoad2(gen->b, type, LLVMBuildInBoundsGEP2(gen->b, type, array, &at, 1, ""), "");
    set_fact(gen, v, "invariant.load", 0);
    return v;
}

static int64_t address_align(const ir_buffer *buffer)
{
    int bytes = base_dtype_bytes(buffer->dtype);
    return buffer->align ? buffer->align : (bytes & (bytes - 1)) == 0 ? bytes : 1;
}

/* Facts about an address only where it cannot be that of an empty array, which may be NULL. */
static void bind_buffer(llvm_gen *gen, const ir_buffer *buffer, LLVMValueRef address)
{
    int64_t bytes = constant_bytes(buffer), align = address_align(buffer);
    LLVMSetValueName2(address, buffer->name, strlen(buffer->name));
    if (bytes) {
        set_fact(gen, address, "nonnull", 0);
        set_fact(gen, address, "align", align);
        set_fact(gen, address, "dereferenceable", bytes);
    }
    if (buffer->offset && !ir_is_value(buffer->offset, 0)) {
        LLVMValueRef at = llvm_index(gen, buffer->offset);
        if (!at)
            return;
        address = LLVMBuildInBoundsGEP2(gen->b, llvm_memory_type(gen, buffer->dtype), address, &at, 1, "");
        align = base_dtype_bytes(buffer->dtype);
    }
    llvm_place_buffer(gen, buffer, address, align);
}

static void bind_scalar(llvm_gen *gen, const ir_expr *var, LLVMValueRef address)
{
    LLVMValueRef value = LLVMBuildLoad2(gen->b, llvm_memory_type(gen, var->dtype), address, var->var.name);
    bool narrow = base_is_int(var->dtype) && var->dtype.bits % 8;
    if (base_is_bool(var->dtype))
        value = LLVMBuildICmp(gen->b, LLVMIntNE, value, LLVMConstNull(gen->i8), "");
    llvm_bind(gen, var, narrow ? LLVMBuildTrunc(gen->b, value, llvm_type(gen, var->dtype), "") : value, NULL,
              1, false);
}

/* No array in the memory of a 32-bit CPU has such an extent; what is behind relies on it (ranges.c). */
static void check_symbols(llvm_gen *gen, const ir_program *program)
{
    LLVMValueRef all = LLVMConstNull(gen->i64);

    for (int i = 0; i < program->n_symbols; i++) {
        llvm_binding *symbol = base_map_get(&gen->vars, program->symbols[i]);

        symbol->range = (llvm_range){0, INT32_MAX};
        all = LLVMBuildOr(gen->b, all, symbol->value, "");
    }
    if (program->n_symbols)
        llvm_check(gen, LLVMBuildICmp(gen->b, LLVMIntULE, all, llvm_int_like(gen, gen->i64, INT32_MAX), ""),
                   "an extent of 2^31 or more, which a 32-bit CPU cannot have");
}

/* Symbols are extents; the facts of the program may say more, but not less, than that they are at least 0. */
static void bind_parameters(llvm_gen *gen, const ir_program *program, LLVMValueRef function)
{
    for (int i = 0; i < program->n_symbols; i++)
        llvm_bind(gen, program->symbols[i], element_of(gen, gen->i64, LLVMGetParam(function, 2), i), NULL, 1,
                  true);
    if (gen->t->arch->pointer_bits == 32)
        check_symbols(gen, program);
    for (int i = 0; i < program->n_params; i++) {
        LLVMValueRef address = element_of(gen, gen->ptr, LLVMGetParam(function, 1), i);
        if (program->params[i].buffer)
            bind_buffer(gen, program->params[i].buffer, address);
        else
            bind_scalar(gen, program->params[i].scalar, address);
    }
}

/* State of the program before is dropped: kernels share the module and nothing else. */
static void write_kernel(llvm_gen *gen, const ir_program *program, const char *symbol)
{
    llvm_function f;
    gen->p = program;
    gen->symbol = symbol;
    gen->n_bodies = 0;
    gen->floats = !gen->keep_denormals && uses_floats(gen->cx, program);
    gen->vars = gen->places = gen->scopes = gen->others = gen->risky = gen->halves = (base_map){0};
    llvm_alias_scopes(gen);
    LLVMValueRef function = llvm_begin_function(gen, &f, symbol, true, llvm_kernel_type(gen));
    bind_parameters(gen, program, function);
    llvm_stmt(gen, program->body);
    if (!base_failed(gen->cx))
        llvm_end_function(gen);
}

/* ---- the module ---- */

/* A context of LLVM's own per module, so that threads compile side by side. */
static void open_module(llvm_gen *gen)
{
    gen->c = LLVMContextCreate();
    gen->m = LLVMModuleCreateWithNameInContext("tec", gen->c);
    gen->b = LLVMCreateBuilderInContext(gen->c);
    gen->i1 = LLVMInt1TypeInContext(gen->c);
    gen->i8 = LLVMInt8TypeInContext(gen->c);
    gen->i16 = LLVMInt16TypeInContext(gen->c);
    gen->i32 = LLVMInt32TypeInContext(gen->c);
    gen->i64 = LLVMInt64TypeInContext(gen->c);
    gen->f32 = LLVMFloatTypeInContext(gen->c);
    gen->f64 = LLVMDoubleTypeInContext(gen->c);
    gen->ptr = LLVMPointerTypeInContext(gen->c, 0);
    gen->nothing = LLVMVoidTypeInContext(gen->c);
    gen->memo.buckets = base_array(gen->cx, int, LLVM_MEMO_BUCKETS);
    LLVMSetTarget(gen->m, llvm_triple(gen->cx, gen->t));
    gen->layout = LLVMCreateTargetDataLayout(gen->machine);
    LLVMSetModuleDataLayout(gen->m, gen->layout);
}

/* What was not opened yet is NULL, which LLVM takes. */
static void close_module(void *gen)
{
    llvm_gen *g = gen;

    LLVMDisposeBuilder(g->b);
    LLVMDisposeModule(g->m);
    LLVMContextDispose(g->c); /* and with it modules that were parsed for imports and not linked */
    LLVMDisposeTargetData(g->layout);
    LLVMDisposeTargetMachine(g->machine);
}

static bool verify(llvm_gen *gen)
{
    char *message = NULL;
    bool bad = LLVMVerifyModule(gen->m, LLVMReturnStatusAction, &message);
    const char *text = llvm_take_message(gen->cx, message);
    if (bad)
        BASE_BUG(gen->cx, "LLVM refuses the module of '%s': %s", gen->symbol, text);
    return !bad;
}

/* Verifies, optimises, and writes the forms that were asked for; the object is always made. */
static bool finish(llvm_gen *gen, const target_codegen_options *options, target_code *code)
{
    target_code_form *form = base_array(gen->cx, target_code_form, 2);
    const void *text;
    size_t size;
    code->forms = form;
    if (!verify(gen) || (!options->unoptimised && !llvm_optimise(gen)))
        return false;
    if (target_wants_text(options, "llvm"))
        form[code->n_forms++] =
            (target_code_form){"llvm", llvm_take_message(gen->cx, LLVMPrintModuleToString(gen->m))};
    if (target_wants_text(options, "asm")) {
        if (!llvm_emit(gen, true, &text, &size))
            return false;
        form[code->n_forms++] = (target_code_form){"asm", base_strndup(gen->cx, text, size)};
    }
    return llvm_emit(gen, false, &code->bytes, &code->size) &&
           llvm_check_imports(gen->cx, gen->t->arch, code->bytes, code->size, &code->helpers);
}

/* All programs become functions of one module and one object. NULL with the first error; LLVM's memory is
 * freed in any case. */
const target_code *llvm_generate(tec_context *cx, const ir_program *const *programs, int count,
                                 const target *machine, const target_codegen_options *options)
{
    static const target_codegen_options defaults;
    llvm_gen g = {.cx = cx, .t = machine};
    target_code *code = base_new(cx, target_code);
    const char **symbols = base_array(cx, const char *, count);
    base_held module;
    options = options ? options : &defaults;
    g.keep_denormals = options->keep_denormals;
    if (g.keep_denormals && machine->arch->vectors_flush)
        return base_fail(
            cx, TEC_UNSUPPORTED, (base_loc){0},
            "strict floating point needs denormals, but the vector units of '%s' always treat denormals as 0",
            target_text(cx, machine));
    if (!(g.machine = llvm_target_machine(cx, machine)))
        return NULL;
    base_hold(cx, &module, close_module, &g);
    open_module(&g);
    for (int i = 0; i < count && !base_failed(cx); i++) {
        symbols[i] = options->symbols ? options->symbols[i] : programs[i]->name;
        if (LLVMGetNamedFunction(g.m, symbols[i]))
            base_fail(cx, TEC_INVALID, programs[i]->loc, "two functions have the name '%s'", symbols[i]);
        else if (llvm_import(&g, programs[i]))
            write_kernel(&g, programs[i], symbols[i]);
    }
    if (options->dispatch && !base_failed(cx))
        llvm_write_dispatch(&g, options->dispatch, symbols, count, programs[0]->n_symbols);
    *code = (target_code){.target = machine, .symbols = symbols, .n = count, .format = "elf"};
    bool ok = !base_failed(cx) && finish(&g, options, code);
    base_drop(&module);
    return ok ? code : NULL;
}
