/* fuzz/externs.c -- stages that a function computes, and the function: LLVM's text, or C, that a pragma of
 * the schedule imports.
 *
 *     extern S2: f32[5, n + 1] = tripled_S2(S1, n + 1) means def tripled(m1, X: f32[5, m1]) { ... Y[y,
 *         x] = X[y, x] * f32(3) + f32(1) ... }
 *     pragma(S2, import_llvm, "define i32 @tripled_S2(ptr %x, ptr %y, i64 %m1) { ... }")
 */
#include "fuzz/define.h"
#include "fuzz/stepper.h"

enum { MOST = 40, MAX_POINTS = 1500 };

/* An extern stage that triples a tensor and adds 1, with its meaning. False where the tensor does not suit.
 */
bool fuzz_extern(fuzz_maker *maker, const fuzz_tensor *base)
{
    static const char *const names[] = {"y", "x", "c", "b", "z"};
    const char *name, *dtype = base_dtype_text(maker->cx, base->t);
    fuzz_axis axis[FUZZ_MAX_RANK];
    base_text shape = {0}, own = {0}, values = {0}, symbols = {0}, index = {0};

    for (int i = 0; i < base->rank; i++)
        axis[i] = (fuzz_axis){names[i], base->shape[i]};
    if (base->rank == 0 || base_is_bool(base->t) || base->bound > MOST ||
        fuzz_points(axis, base->rank) > MAX_POINTS)
        return false;
    for (int i = 0; i < base->rank; i++) {
        const char *extent = fuzz_dim_text(maker, base->shape[i]), *sep = i ? ", " : "";
        bool fixed = fuzz_is_const(base->shape[i]);

        base_addf(maker->cx, &shape, "%s%s", sep, extent);
        base_addf(maker->cx, &own, "%s%s", sep, fixed ? extent : base_format(maker->cx, "m%d", i));
        base_addf(maker->cx, &index, "%s%s", sep, names[i]);
        if (!fixed) {
            base_addf(maker->cx, &symbols, "m%d, ", i);
            base_addf(maker->cx, &values, ", %s", extent);
        }
    }
    name = fuzz_stage_name(maker);
    base_addf(maker->cx, &maker->body,
              "  extern %s: %s[%s] = tripled_%s(%s%s) means def tripled(%sX: %s[%s]) {\n", name, dtype,
              base_text_str(maker->cx, &shape), name, base->name, base_text_str(maker->cx, &values),
              base_text_str(maker->cx, &symbols), dtype, base_text_str(maker->cx, &own));
    base_addf(maker->cx, &maker->body, "    Y[%s] = X[%s] * %s(3) + %s(1)\n    return Y\n  }\n",
              base_text_str(maker->cx, &index), base_text_str(maker->cx, &index), dtype, dtype);
    fuzz_add_tensor(maker, name, base->t, axis, base->rank, 3 * base->bound + 1);
    return true;
}

/* ---- the functions ---- */

/* The product of the extents that are constants. */
static int64_t fixed_points(const te_call *call)
{
    int64_t points = 1, extent;

    for (int i = 0; i < call->output[0].n; i++)
        points *= ir_is_int(call->output[0].shape[i], &extent) ? extent : 1;
    return points;
}

/* The function in C. */
static const char *as_c(fuzz_stepper *stepper, const te_call *call)
{
    base_dtype t = call->output[0].dtype;
    const char *type =
        base_is_float(t) ? t.bits == 32 ? "float" : "double" : base_format(stepper->cx, "int%d_t", t.bits);
    base_text params = {0}, points = {0};

    for (int i = 0; i < call->n_args; i++) {
        base_addf(stepper->cx, &params, ", int64_t m%d", i);
        base_addf(stepper->cx, &points, " * m%d", i);
    }
    return base_format(
        stepper->cx,
        "#include <stdint.h>\nint32_t %s(const %s *x, %s *y%s)\n"
        "{\n  for (int64_t i = 0; i < %lld%s; i++)\n    y[i] = x[i] * 3 + 1;\n  return 0;\n}\n",
        call->function, type, type, base_text_str(stepper->cx, &params), (long long)fixed_points(call),
        base_text_str(stepper->cx, &points));
}

/* The same function in LLVM's text. */
static const char *as_llvm(fuzz_stepper *stepper, const te_call *call)
{
    base_dtype t = call->output[0].dtype;
    bool real = base_is_float(t);
    const char *type = real ? t.bits == 32 ? "float" : "double" : base_format(stepper->cx, "i%d", t.bits);
    base_text params = {0}, count = {0};

    base_addf(stepper->cx, &count, "  %%n0 = add i64 0, %lld\n", (long long)fixed_points(call));
    for (int i = 0; i < call->n_args; i++) {
        base_addf(stepper->cx, &params, ", i64 %%m%d", i);
        base_addf(stepper->cx, &count, "  %%n%d = mul i64 %%n%d, %%m%d\n", i + 1, i, i);
    }
    return base_format(
        stepper->cx,
        "define i32 @%s(ptr %%x, ptr %%y%s) {\nentry:\n%s  br label %%test\n"
        "test:\n  %%i = phi i64 [ 0, %%entry ], [ %%next, %%body ]\n  %%more = icmp slt i64 %%i, %%n%d\n"
        "  br i1 %%more, label %%body, label %%done\n"
        "body:\n  %%from = getelementptr %s, ptr %%x, i64 %%i\n  %%v = load %s, ptr %%from\n"
        "  %%w = %s %s %%v, %s\n  %%z = %s %s %%w, %s\n  %%to = getelementptr %s, ptr %%y, i64 %%i\n"
        "  store %s %%z, ptr %%to\n  %%next = add i64 %%i, 1\n  br label %%test\ndone:\n  ret i32 0\n}\n",
        call->function, base_text_str(stepper->cx, &params), base_text_str(stepper->cx, &count), call->n_args,
        type, type, real ? "fmul" : "mul", type, real ? "3.0" : "3", real ? "fadd" : "add", type,
        real ? "1.0" : "1", type, type);
}

/* C costs a process of clang. */
static void import_function(fuzz_stepper *stepper, const te_call *call)
{
    bool in_c = fuzz_odds(stepper, 15);
    sched_arg arg[] = {{.kind = SCHED_ARG_PLACE, .name = call->name},
                       {.kind = SCHED_ARG_WORD, .name = in_c ? "import_c" : "import_llvm"},
                       {.kind = SCHED_ARG_EXPR,
                        .expr = ir_string(stepper->cx, in_c ? as_c(stepper, call) : as_llvm(stepper, call))}};

    fuzz_apply(stepper, sched_primitive_named("pragma"), arg, 3);
}

void fuzz_import(fuzz_stepper *stepper, const te_def *def)
{
    for (int i = 0; i < def->stages.n; i++) {
        const te_stage *s = def->stages.at[i];

        if (s->kind == TE_EXTERN && !stepper->gpu)
            import_function(stepper, s->call);
    }
}
