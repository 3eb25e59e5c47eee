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

static bool find_float(ir_walk *w, const ir_expr *e)
{
    finder *f = (finder *)w;
    bool computes = ir_is_op(e->op) || e->op == IR_CAST || e->op == IR_CALL;
    f->found |= computes && (base_is_float(e->dtype) ||
                             (e->op != IR_CALL && e->arg[0] && base_is_float(e->arg[0]->dtype)));
    return !f->found;
}

static bool uses_floats(tec_context *cx, const ir_program *p)
{
    finder f = {.walk = {.cx = cx, .expr = find_float}};
    ir_walk_stmt(&f.walk, p->body);
    return f.found;
}

/* ---- parameters ---- */

static void set_fact(llvm_gen *g, LLVMValueRef load, const char *kind, int64_t value)
{
    LLVMMetadataRef number = LLVMValueAsMetadata(LLVMConstInt(g->i64, (unsigned long long)value, 0));
    LLVMMetadataRef node = LLVMMDNodeInContext2(g->c, value ? &number : NULL, value ? 1 : 0);
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(g->c, kind, (unsigned)strlen(kind)),
                    LLVMMetadataAsValue(g->c, node));
}

static int64_t constant_bytes(const ir_buffer *b)
{
    int64_t n = base_dtype_bytes(b->dtype), extent;
    for (int i = 0; i < b->n; i++) {
        if (b->strides || b->offset || !ir_is_int(b->shape[i], &extent) || extent <= 0 ||
            n > INT64_MAX / extent)
            return 0;
        n *= extent;
    }
    return n;
}

static LLVMValueRef element_of(llvm_gen *g, LLVMTypeRef type, LLVMValueRef array, int i)
{
    LLVMValueRef at = LLVMConstInt(g->i64, (unsigned long long)i, 0);
    LLVMValueRef v = LLVMBuildLoad2(g->b, type, LLVMBuildInBoundsGEP2(g->b, type, array, &at, 1, ""), "");
    set_fact(g, v, "invariant.load", 0);
    return v;
}

static int64_t address_align(const ir_buffer *b)
{
    int bytes = base_dtype_bytes(b->dtype);
    return b->align ? b->align : (bytes & (bytes - 1)) == 0 ? bytes : 1;
}

/* Facts about an address only where it cannot be that of an empty array, which may be NULL. */
static void bind_buffer(llvm_gen *g, const ir_buffer *b, LLVMValueRef address)
{
    int64_t bytes = constant_bytes(b), align = address_align(b);
    LLVMSetValueName2(address, b->name, strlen(b->name));
    if (bytes) {
        set_fact(g, address, "nonnull", 0);
        set_fact(g, address, "align", align);
        set_fact(g, address, "dereferenceable", bytes);
    }
    if (b->offset && !ir_is_value(b->offset, 0)) {
        LLVMValueRef at = llvm_index(g, b->offset);
        if (!at)
            return;
        address = LLVMBuildInBoundsGEP2(g->b, llvm_memory_type(g, b->dtype), address, &at, 1, "");
        align = base_dtype_bytes(b->dtype);
    }
    llvm_place_buffer(g, b, address, align);
}

static void bind_scalar(llvm_gen *g, const ir_expr *v, LLVMValueRef address)
{
    LLVMValueRef value = LLVMBuildLoad2(g->b, llvm_memory_type(g, v->dtype), address, v->var.name);
    bool narrow = base_is_int(v->dtype) && v->dtype.bits % 8;
    if (base_is_bool(v->dtype))
        value = LLVMBuildICmp(g->b, LLVMIntNE, value, LLVMConstNull(g->i8), "");
    llvm_bind(g, v, narrow ? LLVMBuildTrunc(g->b, value, llvm_type(g, v->dtype), "") : value, NULL, 1, false);
}

/* No array in the memory of a 32-bit CPU has such an extent; what is behind relies on it (ranges.c). */
static void check_symbols(llvm_gen *g, const ir_program *p)
{
    LLVMValueRef all = LLVMConstNull(g->i64);

    for (int i = 0; i < p->n_symbols; i++) {
        llvm_binding *symbol = base_map_get(&g->vars, p->symbols[i]);

        symbol->range = (llvm_range){0, INT32_MAX};
        all = LLVMBuildOr(g->b, all, symbol->value, "");
    }
    if (p->n_symbols)
        llvm_check(g, LLVMBuildICmp(g->b, LLVMIntULE, all, llvm_int_like(g, g->i64, INT32_MAX), ""),
                   "an extent of 2^31 or more, which a 32-bit CPU cannot have");
}

/* Symbols are extents; the facts of the program may say more, but not less, than that they are at least 0. */
static void bind_parameters(llvm_gen *g, const ir_program *p, LLVMValueRef f)
{
    for (int i = 0; i < p->n_symbols; i++)
        llvm_bind(g, p->symbols[i], element_of(g, g->i64, LLVMGetParam(f, 2), i), NULL, 1, true);
    if (g->t->arch->pointer_bits == 32)
        check_symbols(g, p);
    for (int i = 0; i < p->n_params; i++) {
        LLVMValueRef address = element_of(g, g->ptr, LLVMGetParam(f, 1), i);
        if (p->params[i].buffer)
            bind_buffer(g, p->params[i].buffer, address);
        else
            bind_scalar(g, p->params[i].scalar, address);
    }
}

/* State of the program before is dropped: kernels share the module and nothing else. */
static void write_kernel(llvm_gen *g, const ir_program *p, const char *symbol)
{
    llvm_function f;
    g->p = p;
    g->symbol = symbol;
    g->n_bodies = 0;
    g->floats = !g->keep_denormals && uses_floats(g->cx, p);
    g->vars = g->places = g->scopes = g->others = g->risky = (base_map){0};
    llvm_alias_scopes(g);
    LLVMValueRef function = llvm_begin_function(g, &f, symbol, true, llvm_kernel_type(g));
    bind_parameters(g, p, function);
    llvm_stmt(g, p->body);
    if (!base_failed(g->cx))
        llvm_end_function(g);
}

/* ---- the module ---- */

/* A context of LLVM's own per module, so that threads compile side by side. */
static void open_module(llvm_gen *g)
{
    g->c = LLVMContextCreate();
    g->m = LLVMModuleCreateWithNameInContext("tec", g->c);
    g->b = LLVMCreateBuilderInContext(g->c);
    g->i1 = LLVMInt1TypeInContext(g->c);
    g->i8 = LLVMInt8TypeInContext(g->c);
    g->i16 = LLVMInt16TypeInContext(g->c);
    g->i32 = LLVMInt32TypeInContext(g->c);
    g->i64 = LLVMInt64TypeInContext(g->c);
    g->f32 = LLVMFloatTypeInContext(g->c);
    g->f64 = LLVMDoubleTypeInContext(g->c);
    g->ptr = LLVMPointerTypeInContext(g->c, 0);
    g->nothing = LLVMVoidTypeInContext(g->c);
    g->memo.buckets = base_array(g->cx, int, LLVM_MEMO_BUCKETS);
    LLVMSetTarget(g->m, llvm_triple(g->cx, g->t));
    g->layout = LLVMCreateTargetDataLayout(g->machine);
    LLVMSetModuleDataLayout(g->m, g->layout);
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

static bool verify(llvm_gen *g)
{
    char *message = NULL;
    bool bad = LLVMVerifyModule(g->m, LLVMReturnStatusAction, &message);
    const char *text = llvm_take_message(g->cx, message);
    if (bad)
        BASE_BUG(g->cx, "LLVM refuses the module of '%s': %s", g->symbol, text);
    return !bad;
}

/* Verifies, optimises, and writes the forms that were asked for; the object is always made. */
static bool finish(llvm_gen *g, const target_codegen_options *o, target_code *code)
{
    target_code_form *form = base_array(g->cx, target_code_form, 2);
    const void *text;
    size_t size;
    code->forms = form;
    if (!verify(g) || (!o->unoptimised && !llvm_optimise(g)))
        return false;
    if (target_wants_text(o, "llvm"))
        form[code->n_forms++] =
            (target_code_form){"llvm", llvm_take_message(g->cx, LLVMPrintModuleToString(g->m))};
    if (target_wants_text(o, "asm")) {
        if (!llvm_emit(g, true, &text, &size))
            return false;
        form[code->n_forms++] = (target_code_form){"asm", base_strndup(g->cx, text, size)};
    }
    return llvm_emit(g, false, &code->bytes, &code->size) &&
           llvm_check_imports(g->cx, g->t->arch, code->bytes, code->size, &code->helpers);
}

/* All programs become functions of one module and one object. NULL with the first error; LLVM's memory is
 * freed in any case. */
const target_code *llvm_generate(tec_context *cx, const ir_program *const *programs, int n, const target *t,
                                 const target_codegen_options *o)
{
    static const target_codegen_options defaults;
    llvm_gen g = {.cx = cx, .t = t};
    target_code *code = base_new(cx, target_code);
    const char **symbols = base_array(cx, const char *, n);
    base_held module;
    o = o ? o : &defaults;
    g.keep_denormals = o->keep_denormals;
    if (g.keep_denormals && t->arch->vectors_flush)
        return base_fail(cx, TEC_UNSUPPORTED, (base_loc){0},
                         "strict floating point keeps denormals, which the vectors of '%s' always take for 0",
                         target_text(cx, t));
    if (!(g.machine = llvm_target_machine(cx, t)))
        return NULL;
    base_hold(cx, &module, close_module, &g);
    open_module(&g);
    for (int i = 0; i < n && !base_failed(cx); i++) {
        symbols[i] = o->symbols ? o->symbols[i] : programs[i]->name;
        if (LLVMGetNamedFunction(g.m, symbols[i]))
            base_fail(cx, TEC_INVALID, programs[i]->loc, "two functions are called '%s'", symbols[i]);
        else if (llvm_import(&g, programs[i]))
            write_kernel(&g, programs[i], symbols[i]);
    }
    if (o->dispatch && !base_failed(cx))
        llvm_write_dispatch(&g, o->dispatch, symbols, n, programs[0]->n_symbols);
    *code = (target_code){.target = t, .symbols = symbols, .n = n, .format = "elf"};
    bool ok = !base_failed(cx) && finish(&g, o, code);
    base_drop(&module);
    return ok ? code : NULL;
}
