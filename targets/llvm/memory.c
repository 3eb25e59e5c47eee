/* targets/llvm/memory.c -- loads and stores: scalar, contiguous, strided, gathered, with and without lane
 * masks.
 *
 * A vector index that is a ramp of stride 1 is one wide access; small strides, and other patterns of lanes
 * that are known and lie close together, load what lies between and pick the lanes (the range that is read
 * ends with the last lane, so nothing outside is touched); anything else is a gather or scatter. Masked-off
 * lanes touch nothing and load 0. Alignment comes from the buffer's and from what divides the index.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

enum { MOST_STRIDE = 4, MOST_LANES = 1024 };

/* ---- between memory and registers ---- */

static LLVMValueRef from_memory(llvm_gen *gen, base_dtype dtype, LLVMValueRef value)
{
    if (base_is_bool(dtype))
        return LLVMBuildICmp(gen->b, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    return base_is_int(dtype) && dtype.bits % 8 ? LLVMBuildTrunc(gen->b, value, llvm_type(gen, dtype), "")
                                                : value;
}

static LLVMValueRef to_memory(llvm_gen *gen, base_dtype dtype, LLVMValueRef value)
{
    if (!base_is_bool(dtype) && !(base_is_int(dtype) && dtype.bits % 8))
        return value;
    LLVMTypeRef type = llvm_memory_type(gen, dtype);
    return base_is_signed(dtype) ? LLVMBuildSExt(gen->b, value, type, "")
                                 : LLVMBuildZExt(gen->b, value, type, "");
}

static int natural_align(base_dtype dtype)
{
    int bytes = (dtype.bits + 7) / 8;
    return (bytes & (bytes - 1)) == 0 ? bytes : 1;
}

/* ---- addresses ---- */

static llvm_place *place_of(llvm_gen *gen, const ir_buffer *buffer)
{
    llvm_place *p = base_map_get(&gen->places, buffer);
    return p ? p : BASE_BUG(gen->cx, "buffer '%s' is used outside its allocation", buffer->name);
}

static LLVMValueRef wide_index(llvm_gen *gen, const ir_expr *expr)
{
    LLVMValueRef v = llvm_index(gen, expr);
    if (!v || expr->dtype.bits == 64)
        return v;
    LLVMTypeRef type = llvm_with_lanes(gen->i64, expr->dtype.lanes);
    return base_is_signed(expr->dtype) ? LLVMBuildSExt(gen->b, v, type, "")
                                       : LLVMBuildZExt(gen->b, v, type, "");
}

static LLVMValueRef element(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                            LLVMValueRef index, bool inside)
{
    LLVMTypeRef type = llvm_memory_type(gen, buffer->dtype);
    return inside ? LLVMBuildInBoundsGEP2(gen->b, type, place->address, &index, 1, "")
                  : LLVMBuildGEP2(gen->b, type, place->address, &index, 1, "");
}

/* The address of an element by its index: from a pointer that walks there, or computed; NULL with an
 * error. */
static LLVMValueRef address_of(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                               const ir_expr *index, bool inside)
{
    LLVMValueRef walked = llvm_walker_at(gen, buffer, index), i = walked ? NULL : wide_index(gen, index);
    return walked ? walked : i ? element(gen, buffer, place, i, inside) : NULL;
}

LLVMValueRef llvm_address(llvm_gen *gen, const ir_buffer *buffer, LLVMValueRef index)
{
    const llvm_place *p = place_of(gen, buffer);
    /* what a call gets without elements may begin anywhere */
    return p ? element(gen, buffer, p, index, false) : NULL;
}

static unsigned align_of(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place, const ir_expr *base)
{
    int64_t bytes = llvm_multiple(gen, base) * ((buffer->dtype.bits + 7) / 8),
            align = natural_align(buffer->dtype);
    while (align < 64 && place->align % (align * 2) == 0 && bytes % (align * 2) == 0)
        align *= 2;
    return (unsigned)align;
}

/* ---- alias scopes on accesses ---- */

static LLVMValueRef tag(llvm_gen *gen, const llvm_place *place, LLVMValueRef access)
{
    if (place->scope)
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(gen->c, "alias.scope", 11), place->scope);
    if (place->others)
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(gen->c, "noalias", 7), place->others);
    return access;
}

static LLVMValueRef plain_load(llvm_gen *gen, const llvm_place *place, LLVMTypeRef type, LLVMValueRef address,
                               unsigned align)
{
    LLVMValueRef v = LLVMBuildLoad2(gen->b, type, address, "");
    LLVMSetAlignment(v, align);
    return tag(gen, place, v);
}

static LLVMValueRef masked_load(llvm_gen *gen, const llvm_place *place, LLVMTypeRef type,
                                LLVMValueRef address, unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef types[] = {type, gen->ptr};
    LLVMValueRef args[] = {address, LLVMConstInt(gen->i32, align, 0), mask, LLVMConstNull(type)};
    return tag(gen, place, llvm_intrinsic(gen, "llvm.masked.load", types, 2, args, 4));
}

static void masked_store(llvm_gen *gen, const llvm_place *place, LLVMValueRef value, LLVMValueRef address,
                         unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef types[] = {LLVMTypeOf(value), gen->ptr};
    LLVMValueRef args[] = {value, address, LLVMConstInt(gen->i32, align, 0), mask};
    tag(gen, place, llvm_intrinsic(gen, "llvm.masked.store", types, 2, args, 4));
}

/* ---- loads ---- */

/* One element under an optional i1. */
static LLVMValueRef load_one(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                             const ir_expr *index, LLVMValueRef mask)
{
    LLVMTypeRef type = llvm_memory_type(gen, buffer->dtype);
    LLVMValueRef address = address_of(gen, buffer, place, index, !mask), v;
    if (!address)
        return NULL;
    unsigned align = (unsigned)natural_align(buffer->dtype);
    if (!mask)
        return plain_load(gen, place, type, address, align);
    LLVMTypeRef one = LLVMVectorType(type, 1);
    LLVMValueRef bit = LLVMBuildBitCast(gen->b, mask, LLVMVectorType(gen->i1, 1), "");
    v = masked_load(gen, place, one, address, align, bit);
    return LLVMBuildExtractElement(gen->b, v, LLVMConstInt(gen->i32, 0, 0), "");
}

static LLVMValueRef load_contiguous(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                                    const ir_expr *base, int lanes, LLVMValueRef mask)
{
    LLVMTypeRef type = llvm_memory_type(gen, base_dtype_lanes(buffer->dtype, lanes));
    LLVMValueRef address = address_of(gen, buffer, place, base, !mask);
    if (!address)
        return NULL;
    unsigned align = align_of(gen, buffer, place, base);
    return mask ? masked_load(gen, place, type, address, align, mask)
                : plain_load(gen, place, type, address, align);
}

static LLVMValueRef splat_load(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                               const ir_expr *base, int lanes, LLVMValueRef mask)
{
    LLVMValueRef v = load_one(gen, buffer, place, base, mask ? llvm_any(gen, mask) : NULL);
    if (!v)
        return NULL;
    v = llvm_splat(gen, v, lanes);
    return mask ? LLVMBuildSelect(gen->b, mask, v, LLVMConstNull(LLVMTypeOf(v)), "") : v;
}

/* The lanes of `all` (NULL: none yet), with those that lie in the part of `width` elements from `start`. */
static LLVMValueRef fill_in(llvm_gen *gen, LLVMValueRef all, LLVMValueRef part, const int64_t *offset,
                            int64_t start, int64_t width, int lanes)
{
    LLVMValueRef pick[MOST_LANES];
    bool as_wide = all && width == lanes;
    for (int k = 0; k < lanes; k++) {
        int64_t from = offset[k] - start, kept = as_wide ? k : 0;
        bool here = from >= 0 && from < width;
        pick[k] = LLVMConstInt(gen->i32, (uint64_t)(here ? from + (as_wide ? lanes : 0) : kept), 0);
    }
    LLVMValueRef mask = LLVMConstVector(pick, (unsigned)lanes);
    if (as_wide)
        return LLVMBuildShuffleVector(gen->b, all, part, mask, "");
    part = LLVMBuildShuffleVector(gen->b, part, LLVMGetPoison(LLVMTypeOf(part)), mask, "");
    for (int k = 0; k < lanes; k++) {
        bool here = offset[k] >= start && offset[k] < start + width;
        pick[k] = LLVMConstInt(gen->i32, (uint64_t)(here ? lanes + k : k), 0);
    }
    mask = LLVMConstVector(pick, (unsigned)lanes);
    return all ? LLVMBuildShuffleVector(gen->b, all, part, mask, "") : part;
}

/* Lanes at base + offset[k], with offsets from 0 to `last`, as wide loads and the lanes picked from them. The
 * last load ends with the last element, so nothing outside is touched; it may overlap the one before it.
 * Loads are as wide as the result, or half of that and so on where less is read:
 *
 *     16 lanes at 0, 2, .. 30      two loads of 16, at 0 and at 15
 *     16 lanes at 0, 0, 1, 1 .. 7  one load of 8
 *     16 lanes at 0, 1, 2, 0, 1 .. two loads of 2, at 0 and at 1
 */
static LLVMValueRef load_picked(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                                const ir_expr *base, const int64_t *offset, int64_t last, int lanes)
{
    if (last == 0)
        return splat_load(gen, buffer, place, base, lanes, NULL);
    LLVMValueRef first = wide_index(gen, base), all = NULL;
    int64_t width = lanes;
    while (width > last + 1)
        width = (width + 1) / 2;
    LLVMTypeRef type = llvm_memory_type(gen, base_dtype_lanes(buffer->dtype, (int)width));
    for (int64_t begin = 0; first && begin <= last; begin += width) {
        int64_t start = begin + width <= last + 1 ? begin : last + 1 - width;
        LLVMValueRef at = LLVMBuildNSWAdd(gen->b, first, llvm_int_like(gen, gen->i64, start), "");
        LLVMValueRef part = plain_load(gen, place, type, element(gen, buffer, place, at, true),
                                       (unsigned)natural_align(buffer->dtype));
        all = fill_in(gen, all, part, offset, start, width, lanes);
    }
    return all;
}

/* The constant offsets of the lanes from the first element that is read, and its place. False: they are not
 * known, or too far apart. Lanes that the mask (NULL: none) leaves out read what the first of the others
 * does. */
static bool read_offsets(llvm_gen *gen, const ir_expr *index, const ir_expr *mask, const ir_expr **base,
                         int64_t *offset, int64_t *last)
{
    int lanes = index->dtype.lanes, first = 0;
    int64_t on;
    if (lanes > MOST_LANES || !llvm_as_offsets(gen, index, base, offset))
        return false;
    while (mask && first < lanes && llvm_lane_value(mask, first, &on) && !on)
        first++;
    for (int k = 0; mask && k < lanes; k++) {
        if (first == lanes || !llvm_lane_value(mask, k, &on))
            return false;
        offset[k] = on ? offset[k] : offset[first];
    }
    int64_t least = offset[0], most = offset[0];
    for (int k = 1; k < lanes; k++) {
        least = offset[k] < least ? offset[k] : least;
        most = offset[k] > most ? offset[k] : most;
    }
    if (__builtin_sub_overflow(most, least, last))
        return false;
    for (int k = 0; k < lanes; k++)
        offset[k] -= least;
    *base = ir_add(gen->cx, *base, ir_imm_int(gen->cx, (*base)->dtype, least));
    return *last <= MOST_STRIDE * (lanes - 1);
}

static LLVMValueRef all_lanes(llvm_gen *gen, int lanes)
{
    return LLVMConstAllOnes(LLVMVectorType(gen->i1, (unsigned)lanes));
}

static LLVMValueRef gather(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                           const ir_expr *index, LLVMValueRef mask)
{
    int lanes = index->dtype.lanes;
    LLVMTypeRef type = llvm_memory_type(gen, base_dtype_lanes(buffer->dtype, lanes));
    LLVMValueRef i = wide_index(gen, index);
    if (!i)
        return NULL;
    LLVMTypeRef types[] = {type, LLVMVectorType(gen->ptr, (unsigned)lanes)};
    LLVMValueRef args[] = {element(gen, buffer, place, i, false),
                           LLVMConstInt(gen->i32, (unsigned)natural_align(buffer->dtype), 0),
                           mask ? mask : all_lanes(gen, lanes), LLVMConstNull(type)};
    return tag(gen, place, llvm_intrinsic(gen, "llvm.masked.gather", types, 2, args, 4));
}

/* The mask of an access together with that of the lanes under evaluation; false on an error. */
static bool access_mask(llvm_gen *gen, const ir_expr *own, int lanes, LLVMValueRef *mask)
{
    LLVMValueRef outer = llvm_mask_for(gen, lanes);
    *mask = outer;
    if (!own || ir_is_true(own))
        return true;
    LLVMValueRef m = llvm_expr(gen, own);
    if (!m)
        return false;
    m = llvm_splat(gen, m, own->dtype.lanes == lanes ? 1 : lanes);
    *mask = outer ? LLVMBuildAnd(gen->b, outer, m, "") : m;
    return true;
}

static const ir_expr *index_of(llvm_gen *gen, const ir_buffer *buffer, const ir_expr *const *index, int n)
{
    if (n > 1)
        return BASE_BUG(gen->cx, "an access of '%s' with %d indices reached code generation", buffer->name,
                        n);
    return n ? index[0] : ir_int(gen->cx, 0);
}

/* Picks the cheapest way for the index: one wide load, one load spread to all lanes, a wide load with lanes
 * picked from it, or a gather. `own`: the mask of the load itself, where none of its lanes is masked off
 * around it. */
static LLVMValueRef load_vector(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                                const ir_expr *index, const ir_expr *own, LLVMValueRef mask)
{
    const ir_expr *base;
    int64_t stride, offset[MOST_LANES], last;
    int lanes = index->dtype.lanes;
    bool even = llvm_as_ramp(gen, index, &base, &stride);
    if (even && stride == 1)
        return load_contiguous(gen, buffer, place, base, lanes, mask);
    if (even && stride == 0)
        return splat_load(gen, buffer, place, base, lanes, mask);
    if ((mask && !own) || !read_offsets(gen, index, mask ? own : NULL, &base, offset, &last))
        return gather(gen, buffer, place, index, mask);
    LLVMValueRef v = load_picked(gen, buffer, place, base, offset, last, lanes);
    return v && mask ? LLVMBuildSelect(gen->b, mask, v, LLVMConstNull(LLVMTypeOf(v)), "") : v;
}

LLVMValueRef llvm_load(llvm_gen *gen, const ir_expr *expr)
{
    const ir_buffer *buffer = expr->load.buffer;
    const llvm_place *place = place_of(gen, buffer);
    const ir_expr *index = index_of(gen, buffer, expr->load.index, expr->load.n);
    LLVMValueRef mask, v;
    if (!place || !index || !access_mask(gen, expr->load.mask, expr->dtype.lanes, &mask))
        return NULL;
    const ir_expr *own = llvm_mask_for(gen, expr->dtype.lanes) ? NULL : expr->load.mask;
    v = index->dtype.lanes == 1 ? load_one(gen, buffer, place, index, mask)
                                : load_vector(gen, buffer, place, index, own, mask);
    return v ? from_memory(gen, expr->dtype, v) : NULL;
}

/* ---- stores ---- */

/* A scalar store under a mask is a masked store of a vector of one lane: no branch is needed. */
static void store_one(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place, const ir_expr *index,
                      LLVMValueRef value, LLVMValueRef mask)
{
    LLVMValueRef address = address_of(gen, buffer, place, index, !mask);
    if (!address)
        return;
    unsigned align = (unsigned)natural_align(buffer->dtype);
    if (mask) {
        LLVMValueRef one = LLVMBuildBitCast(gen->b, value, LLVMVectorType(LLVMTypeOf(value), 1), "");
        masked_store(gen, place, one, address, align,
                     LLVMBuildBitCast(gen->b, mask, LLVMVectorType(gen->i1, 1), ""));
        return;
    }
    LLVMValueRef s = LLVMBuildStore(gen->b, value, address);
    LLVMSetAlignment(s, align);
    tag(gen, place, s);
}

/* One wide store; with a mask only its lanes are written. */
static void store_contiguous(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place,
                             const ir_expr *base, LLVMValueRef value, LLVMValueRef mask)
{
    LLVMValueRef address = address_of(gen, buffer, place, base, !mask);
    if (!address)
        return;
    unsigned align = align_of(gen, buffer, place, base);
    if (mask) {
        masked_store(gen, place, value, address, align, mask);
        return;
    }
    LLVMValueRef s = LLVMBuildStore(gen->b, value, address);
    LLVMSetAlignment(s, align);
    tag(gen, place, s);
}

static void scatter(llvm_gen *gen, const ir_buffer *buffer, const llvm_place *place, const ir_expr *index,
                    LLVMValueRef value, LLVMValueRef mask)
{
    int lanes = index->dtype.lanes;
    LLVMValueRef i = wide_index(gen, index);
    if (!i)
        return;
    LLVMTypeRef types[] = {LLVMTypeOf(value), LLVMVectorType(gen->ptr, (unsigned)lanes)};
    LLVMValueRef args[] = {value, element(gen, buffer, place, i, false),
                           LLVMConstInt(gen->i32, (unsigned)natural_align(buffer->dtype), 0),
                           mask ? mask : all_lanes(gen, lanes)};
    tag(gen, place, llvm_intrinsic(gen, "llvm.masked.scatter", types, 2, args, 4));
}

/* A scalar value stored at a vector index goes to all lanes. */
void llvm_store(llvm_gen *gen, const ir_stmt *stmt)
{
    const ir_buffer *buffer = stmt->store.buffer;
    const llvm_place *place = place_of(gen, buffer);
    const ir_expr *index = index_of(gen, buffer, stmt->store.index, stmt->store.n), *base;
    int lanes = index ? index->dtype.lanes : 1;
    int64_t stride;
    LLVMValueRef v = llvm_expr(gen, stmt->store.value), mask;
    if (!place || !index || !v || !access_mask(gen, stmt->store.mask, lanes, &mask))
        return;
    v = to_memory(gen, stmt->store.value->dtype, v);
    if (lanes > 1 && stmt->store.value->dtype.lanes == 1)
        v = llvm_splat(gen, v, lanes);
    if (lanes == 1)
        store_one(gen, buffer, place, index, v, mask);
    else if (llvm_as_ramp(gen, index, &base, &stride) && stride == 1)
        store_contiguous(gen, buffer, place, base, v, mask);
    else
        scatter(gen, buffer, place, index, v, mask);
}

void llvm_place_buffer(llvm_gen *gen, const ir_buffer *buffer, LLVMValueRef address, int64_t align)
{
    llvm_place *p = base_new(gen->cx, llvm_place);
    LLVMMetadataRef scope = base_map_get(&gen->scopes, buffer), others = base_map_get(&gen->others, buffer);
    p->address = address;
    p->align = align > natural_align(buffer->dtype) ? align : natural_align(buffer->dtype);
    p->scope = scope ? LLVMMetadataAsValue(gen->c, scope) : NULL;
    p->others = others ? LLVMMetadataAsValue(gen->c, others) : NULL;
    base_map_put(gen->cx, &gen->places, buffer, p);
}
