/* ops/packing.c -- channels packed into blocks, as vectors want them, and back.
 *
 *     pack_channels    [n, c, spatial]         ->  [n, c / block, spatial, block]
 *     unpack_channels  [n, c / b, spatial, b]  ->  [n, c, spatial]
 *
 * graph/layout.c puts them around operators that work on packed channels, and takes away those that meet.
 */
#include "ops/packing.h"
#include "ops/families.h"

#include "ir/text.h"

enum { MANY_USES = 8 };

int64_t op_count_uses(const op_type *type, int first, int end)
{
    int64_t uses = 1, n;

    for (int d = first; d < end; d++)
        if (__builtin_mul_overflow(uses, ir_is_int(type->dim[d], &n) ? n : MANY_USES, &uses))
            uses = INT64_MAX;
    return uses;
}

/* One conversion serves the rows of a tile of sums, a dozen or so. Larger operands stay as they are: bringing
 * them from memory would take longer than converting them. */
static bool pays_to_widen(const op_call *call, int index, int64_t uses)
{
    const op_type *type = &call->input[index];
    int64_t n;

    for (int d = 0; d < type->n; d++)
        if (!ir_is_int(type->dim[d], &n))
            return false;
    return uses >= MANY_USES &&
           op_count_uses(type, 0, type->n) <= call->target->l2_bytes / 2 / (int64_t)sizeof(float);
}

base_dtype op_packed_dtype(const op_call *call, int index, int64_t uses)
{
    base_dtype dtype = call->input[index].dtype;
    const target *t = call->target;

    if (!base_is_float(dtype) || dtype.bits != 16 || !t || !target_offers(t, TARGET_CPU))
        return dtype;
    return pays_to_widen(call, index, uses) || (dtype.code == kDLFloat && !t->has_f16c) ? BASE_F32 : dtype;
}

/* [n, c, spatial] -> [n, c/block, spatial, block]: c must be a constant multiple of the block. */
static bool pack_relation(op_call *call)
{
    const op_type *x = &call->input[0];
    int64_t block = op_int(call, "block", 0), channels;

    if (x->n < 2)
        return op_fail(call, "the operand is %s: expected [n, channels, spatial dimensions...]",
                       op_type_text(call->cx, x));
    if (block < 1)
        return op_fail(call, "'block' must be at least 1, found %lld", (long long)block);
    if (!ir_is_int(x->dim[1], &channels) || channels % block)
        return op_fail(call, "the operand is %s: its channels must be a multiple of 'block', %lld",
                       op_type_text(call->cx, x), (long long)block);
    const ir_expr **dim = base_array(call->cx, const ir_expr *, x->n + 1);
    for (int i = 0; i < x->n; i++)
        dim[i] = x->dim[i];
    dim[1] = ir_int(call->cx, channels / block);
    dim[x->n] = ir_int(call->cx, block);
    call->output[0] = (op_type){x->dtype, x->n + 1, dim};
    return true;
}

static bool pack_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const op_type *y = &call->output[0];
    const ir_expr **axis = op_axes_of(call, y), **index = base_array(call->cx, const ir_expr *, y->n);

    for (int i = 0; i < y->n - 1; i++)
        index[i] = axis[i];
    index[1] = ir_add(call->cx, ir_mul(call->cx, axis[1], y->dim[y->n - 1]), axis[y->n - 1]);
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, y->n, te_read(in[0], index, y->n - 1));
    return *out != NULL;
}

bool op_unpacked_type(tec_context *cx, const op_type *type, op_type *out)
{
    int64_t blocks, block;

    if (type->n < 3 || !ir_is_int(type->dim[1], &blocks) || !ir_is_int(type->dim[type->n - 1], &block))
        return false;
    const ir_expr **dim = base_copy(cx, type->dim, (size_t)type->n * sizeof *dim);
    dim[1] = ir_int(cx, blocks * block);
    *out = (op_type){type->dtype, type->n - 1, dim};
    return true;
}

static bool unpack_relation(op_call *call)
{
    return op_unpacked_type(call->cx, &call->input[0], &call->output[0]) ||
           op_fail(call,
                   "the operand is %s: expected [n, blocks, spatial dimensions..., block], both constant",
                   op_type_text(call->cx, &call->input[0]));
}

static bool unpack_body(const op_call *call, te_def *def, te_tensor *const *in, te_tensor **out)
{
    const op_type *x = &call->input[0];
    const ir_expr **axis = op_axes_of(call, &call->output[0]),
                  **index = base_array(call->cx, const ir_expr *, x->n), *block = x->dim[x->n - 1];

    for (int i = 0; i < x->n - 1; i++)
        index[i] = axis[i];
    index[1] = ir_floordiv(call->cx, axis[1], block);
    index[x->n - 1] = ir_floormod(call->cx, axis[1], block);
    *out = te_compute(def, op_stage_name(def, call->op->name), axis, x->n - 1, te_read(in[0], index, x->n));
    return *out != NULL;
}

static const op_impl pack_impls[] = {{.name = "pack_channels", .version = 1, .body = pack_body, .packs = -1}};
static const op_impl unpack_impls[] = {
    {.name = "unpack_channels", .version = 1, .body = unpack_body, .packs = -1}};

static const op_info rows[] = {
    {.name = "pack_channels",
     .min_inputs = 1,
     .max_inputs = 1,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = pack_relation,
     .impls = pack_impls,
     .n_impls = 1,
     .in_place = -1,
     .doc = "[n, c, spatial] as [n, c / block, spatial, block]; block"},
    {.name = "unpack_channels",
     .min_inputs = 1,
     .max_inputs = 1,
     .n_outputs = 1,
     .kind = OP_INJECTIVE,
     .relation = unpack_relation,
     .impls = unpack_impls,
     .n_impls = 1,
     .in_place = -1,
     .doc = "[n, blocks, spatial, block] as [n, blocks * block, spatial]"},
};
const op_family op_packing_family = {rows, BASE_COUNT(rows)};
