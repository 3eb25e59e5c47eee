/* ops/routine.c -- operators that call a function of the runtime; see routine.h.
 *
 *     extern top_k: i64[512, 5] = tec_top_k_f32_2(X, 512, 1000, 5, 1, 1)
 *         means def top_k(n0, n1, k, X: f32[n0, n1], axis: i64, largest: i64) { ... }
 */
#include "ops/routine.h"

enum { MOST_RANK = 5 }; /* of runtime/routines.c */

bool op_has_routines(const op_call *call)
{
    return (!call->target || target_offers(call->target, TARGET_HOST)) && call->input[0].n >= 1 &&
           call->input[0].n <= MOST_RANK;
}

const char *op_routine_type(base_dtype dtype)
{
    const base_dtype known[] = {BASE_F32, BASE_F64, BASE_I32, BASE_I64};
    static const char *const name[] = {"f32", "f64", "i32", "i64"};

    for (int i = 0; i < BASE_COUNT(known); i++)
        if (base_dtype_same(known[i], dtype))
            return name[i];
    return NULL;
}

op_routine op_routine_begin(const op_call *call, te_def *def, const char *name, const char *type)
{
    op_routine r = {.call = *call, .own = call, .def = def, .name = name};
    op_type *input = base_copy(call->cx, call->input, (size_t)call->n_inputs * sizeof *input);

    r.function = base_format(call->cx, "tec_%s_%s_%d", name, type, call->input[0].n);
    r.meaning = te_def_new(call->cx, name);
    r.call.facts = NULL;
    r.call.constant = NULL;
    r.call.input = r.input = input;
    r.call.output = base_copy(call->cx, call->output, sizeof *call->output);
    return r;
}

static void pass(op_routine *self, const ir_expr *arg)
{
    te_use_symbols(self->def, arg);
    base_push(self->own->cx, &self->args, arg);
}

const ir_expr *op_routine_extent(op_routine *self, const char *name, const ir_expr *own)
{
    pass(self, own);
    return te_symbol(self->meaning, name);
}

void op_routine_extents(op_routine *self, const char *prefix, const op_type *own, op_type *out)
{
    tec_context *cx = self->own->cx;
    const ir_expr **dim = base_array(cx, const ir_expr *, own->n);

    for (int d = 0; d < own->n; d++)
        dim[d] = op_routine_extent(self, base_format(cx, "%s%d", prefix, d), own->dim[d]);
    *out = (op_type){own->dtype, own->n, dim};
}

void op_routine_scalar(op_routine *self, const char *name, int64_t value)
{
    pass(self, ir_int(self->own->cx, value));
    te_scalar(self->meaning, name, BASE_I64);
}

/* The meaning is complete when `body` has run on tensors of its own. Its output has the type of the
 * operator's, over other symbols. */
bool op_routine_end(op_routine *self, te_tensor *const *in, op_routine_body *body, te_tensor **out)
{
    const op_call *own = self->own;
    tec_context *cx = own->cx;
    te_tensor **input = base_array(cx, te_tensor *, own->n_inputs), *result = NULL;

    for (int i = 0; i < own->n_inputs; i++)
        input[i] = te_input(self->meaning, base_format(cx, "in%d", i), self->input[i].dtype,
                            self->input[i].dim, self->input[i].n);
    if (!body(&self->call, self->meaning, input, &result))
        return false;
    te_output(self->meaning, result);
    const char *name = op_stage_name(self->def, self->name);
    const te_extern_output output = {name, own->output[0].dtype, own->output[0].dim, own->output[0].n};
    return te_extern(self->def,
                     &(te_call){.name = name,
                                .function = self->function,
                                .input = in,
                                .n_inputs = own->n_inputs,
                                .output = &output,
                                .n_outputs = 1,
                                .arg = (const ir_expr *const *)self->args.at,
                                .n_args = self->args.n,
                                .meaning = self->meaning},
                     out);
}
