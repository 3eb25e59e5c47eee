/* graph/constant.c -- hashes, elements and lists of constants. */
#include "graph/constant.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ir/text.h"

uint64_t graph_constant_hash(const op_constant *constant)
{
    return base_hash(constant->data, (size_t)constant->bytes, BASE_HASH_SEED);
}

int64_t graph_constant_count(const op_constant *constant)
{
    return constant->bytes / base_dtype_bytes(constant->type.dtype);
}

bool graph_constant_is_aligned(const op_constant *constant)
{
    return (uintptr_t)constant->data % (size_t)base_dtype_bytes(constant->type.dtype) == 0;
}

/* The value stays what it is, so other holders of the constant see no change. */
void graph_constant_align(tec_context *cx, const op_constant *constant)
{
    op_constant *moved = (op_constant *)constant;

    if (graph_constant_is_aligned(constant))
        return;
    moved->data = base_copy(cx, constant->data, (size_t)constant->bytes);
    moved->mapped = false;
}

/* Whole pages only: those at the ends may hold bytes of others. */
void graph_constant_let_go(const op_constant *constant)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)constant->data,
              to = (from + (uintptr_t)constant->bytes) / page * page;

    from = (from + page - 1) / page * page;
    if (constant->mapped && from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

static void add_constant(tec_context *cx, base_map *seen, base_vec *out, const graph_value *value)
{
    if (!value || !value->constant || base_map_has(seen, value))
        return;
    base_map_put(cx, seen, value, value);
    base_push(cx, out, value);
}

/* Every constant once, in the order of first use, regions included. */
static void collect(tec_context *cx, const graph_body *body, base_map *seen, base_vec *out)
{
    /* Inputs of a group that stand for constants are its operands, which were seen outside. */
    for (int i = 0; i < body->inputs.n; i++)
        base_map_put(cx, seen, body->inputs.at[i], body);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        for (int k = 0; k < node->n_in; k++)
            add_constant(cx, seen, out, node->in[k]);
        for (int k = 0; k < node->n_bodies; k++)
            collect(cx, node->body[k], seen, out);
    }
    for (int i = 0; i < body->outputs.n; i++)
        add_constant(cx, seen, out, body->outputs.at[i]);
}

void graph_collect_constants(tec_context *cx, const graph_body *body, base_vec *out)
{
    base_map seen = {0};

    collect(cx, body, &seen, out);
}

/* ---- elements ---- */

static double float_at(base_dtype dtype, const void *data, int64_t i)
{
    double d;
    float f;
    uint16_t h;

    if (dtype.bits == 64)
        return memcpy(&d, (const char *)data + i * 8, sizeof d), d;
    if (dtype.bits == 32)
        return memcpy(&f, (const char *)data + i * 4, sizeof f), (double)f;
    memcpy(&h, (const char *)data + i * 2, sizeof h);
    return (double)(dtype.code == kDLBfloat ? base_bfloat_to_float(h) : base_half_to_float(h));
}

static uint64_t bits_at(const void *data, int64_t i, int bytes)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)data + i * bytes, (size_t)bytes);
    return bits;
}

bool graph_constant_number(const op_constant *constant, double *value)
{
    if (!base_is_float(constant->type.dtype) || graph_constant_count(constant) != 1)
        return false;
    *value = float_at(constant->type.dtype, constant->data, 0);
    return isfinite(*value);
}

/* Element index so that it reads back with the same bits; NaNs and infinities have no decimal form and are
 * written as bits. */
const char *graph_element_text(tec_context *cx, const op_constant *constant, int64_t index)
{
    base_dtype t = constant->type.dtype;
    int bytes = base_dtype_bytes(t), unused = 64 - 8 * bytes;
    uint64_t bits = bits_at(constant->data, index, bytes);

    if (base_is_float(t)) {
        double f = float_at(t, constant->data, index);

        if (!isfinite(f))
            return base_format(cx, "bits(%llu)", (unsigned long long)bits);
        return ir_expr_text(cx, ir_imm(cx, t.bits == 64 ? BASE_F64 : BASE_F32, f));
    }
    if (base_is_signed(t))
        return base_format(cx, "%lld", (long long)((int64_t)(bits << unused) >> unused));
    return base_format(cx, "%llu", (unsigned long long)bits);
}
