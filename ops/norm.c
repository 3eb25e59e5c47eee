/* ops/norm.c -- batch normalisation with stored statistics. (Graphs fold it away where its parameters are
 * constant.)
 *
 * batch_norm(x[n, c, ...], gamma[c], beta[c], mean[c], var[c]) = gamma * (x - mean) / sqrt(var + epsilon) +
 * beta
 */
#include "ops/families.h"
#include "ops/op.h"

static bool batch_norm_relation(op_call *call)
{
    if (call->input[0].n < 2 || !base_is_float(call->input[0].dtype))
        return op_fail(call, "the operand is %s: expected floats [n, channels, ...]",
                       op_type_text(call->cx, &call->input[0]));
    for (int k = 1; k < 5; k++)
        if (call->input[k].n != 1 || !base_is_float(call->input[k].dtype))
            return op_fail(call, "operand %d is %s, expected one float for each channel", k,
                           op_type_text(call->cx, &call->input[k]));
    call->output[0] = call->input[0];
    return true;
}

/* The formula element by element; 16-bit floats are computed in float32. */
static bool batch_norm_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    tec_context *cx = call->cx;
    int n = call->input[0].n;
    const ir_expr **axis = base_array(cx, const ir_expr *, n), *v[5];
    base_dtype t = call->input[0].dtype.bits == 16 ? BASE_F32 : call->input[0].dtype;

    for (int i = 0; i < n; i++)
        axis[i] = te_axis(cx, base_format(cx, "a%d", i), call->input[0].dim[i]);
    v[0] = ir_cast(cx, t, te_read(in[0], axis, n));
    for (int k = 1; k < 5; k++)
        v[k] = ir_cast(cx, t, te_read(in[k], &axis[1], 1));
    const ir_expr *scale =
        ir_div(cx, v[1], ir_sqrt(cx, ir_add(cx, v[4], ir_imm(cx, t, op_float(call, "epsilon", 1e-5)))));
    const ir_expr *expr = ir_add(cx, ir_mul(cx, ir_sub(cx, v[0], v[3]), scale), v[2]);
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, n,
                      ir_cast(cx, call->output[0].dtype, expr));
    return *out != NULL;
}

static const op_impl batch_norm_impls[] = {
    {.name = "batch_norm", .version = 1, .body = batch_norm_body, .packs = -1}};

static const op_info rows[] = {
    {.name = "batch_norm",
     .min_inputs = 5,
     .max_inputs = 5,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = batch_norm_relation,
     .impls = batch_norm_impls,
     .n_impls = 1,
     .in_place = 0,
     .doc = "gamma * (x - mean) / sqrt(var + epsilon) + beta; epsilon (1e-5)"},
};
const op_family op_norm_family = {rows, BASE_COUNT(rows)};
