/* targets/llvm/memory.c -- loads and stores: scalar, contiguous, strided, gathered, with and without lane
 * masks.
 *
 * A vector index that is a ramp of stride 1 is one wide access; small strides load what lies between and pick
 * the lanes (the range that is read ends with the last lane, so nothing outside is touched); anything else is
 * a gather or scatter. Masked-off lanes touch nothing and load 0. Alignment comes from the buffer's and from
 * what divides the index.
 */
#include "targets/llvm/gen.h"

#include "ir/build.h"

enum { MOST_STRIDE = 4 };

/* ---- between memory and registers ---- */

static LLVMValueRef from_memory(llvm_gen *g, base_dtype t, LLVMValueRef v)
{
    if (base_is_bool(t))
        return LLVMBuildICmp(g->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
    return base_is_int(t) && t.bits % 8 ? LLVMBuildTrunc(g->b, v, llvm_type(g, t), "") : v;
}

static LLVMValueRef to_memory(llvm_gen *g, base_dtype t, LLVMValueRef v)
{
    if (!base_is_bool(t) && !(base_is_int(t) && t.bits % 8))
        return v;
    LLVMTypeRef type = llvm_memory_type(g, t);
    return base_is_signed(t) ? LLVMBuildSExt(g->b, v, type, "") : LLVMBuildZExt(g->b, v, type, "");
}

static int natural_align(base_dtype t)
{
    int bytes = (t.bits + 7) / 8;
    return (bytes & (bytes - 1)) == 0 ? bytes : 1;
}

/* ---- addresses ---- */

static llvm_place *place_of(llvm_gen *g, const ir_buffer *b)
{
    llvm_place *p = base_map_get(&g->places, b);
    return p ? p : BASE_BUG(g->cx, "buffer '%s' is used outside its allocation", b->name);
}

static LLVMValueRef wide_index(llvm_gen *g, const ir_expr *e)
{
    LLVMValueRef v = llvm_index(g, e);
    if (!v || e->dtype.bits == 64)
        return v;
    LLVMTypeRef type = llvm_with_lanes(g->i64, e->dtype.lanes);
    return base_is_signed(e->dtype) ? LLVMBuildSExt(g->b, v, type, "") : LLVMBuildZExt(g->b, v, type, "");
}

static LLVMValueRef element(llvm_gen *g, const ir_buffer *b, const llvm_place *p, LLVMValueRef index,
                            bool inside)
{
    LLVMTypeRef type = llvm_memory_type(g, b->dtype);
    return inside ? LLVMBuildInBoundsGEP2(g->b, type, p->address, &index, 1, "")
                  : LLVMBuildGEP2(g->b, type, p->address, &index, 1, "");
}

/* The address of an element by its index: from a pointer that walks there, or computed; NULL with an
 * error. */
static LLVMValueRef address_of(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                               bool inside)
{
    LLVMValueRef walked = llvm_walker_at(g, b, index), i = walked ? NULL : wide_index(g, index);
    return walked ? walked : i ? element(g, b, p, i, inside) : NULL;
}

LLVMValueRef llvm_address(llvm_gen *g, const ir_buffer *b, LLVMValueRef index)
{
    const llvm_place *p = place_of(g, b);
    /* what a call gets without elements may begin anywhere */
    return p ? element(g, b, p, index, false) : NULL;
}

static unsigned align_of(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *base)
{
    int64_t bytes = llvm_multiple(g, base) * ((b->dtype.bits + 7) / 8), align = natural_align(b->dtype);
    while (align < 64 && p->align % (align * 2) == 0 && bytes % (align * 2) == 0)
        align *= 2;
    return (unsigned)align;
}

/* ---- alias scopes on accesses ---- */

static LLVMValueRef tag(llvm_gen *g, const llvm_place *p, LLVMValueRef access)
{
    if (p->scope)
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(g->c, "alias.scope", 11), p->scope);
    if (p->others)
        LLVMSetMetadata(access, LLVMGetMDKindIDInContext(g->c, "noalias", 7), p->others);
    return access;
}

static LLVMValueRef plain_load(llvm_gen *g, const llvm_place *p, LLVMTypeRef type, LLVMValueRef address,
                               unsigned align)
{
    LLVMValueRef v = LLVMBuildLoad2(g->b, type, address, "");
    LLVMSetAlignment(v, align);
    return tag(g, p, v);
}

static LLVMValueRef masked_load(llvm_gen *g, const llvm_place *p, LLVMTypeRef type, LLVMValueRef address,
                                unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef types[] = {type, g->ptr};
    LLVMValueRef args[] = {address, LLVMConstInt(g->i32, align, 0), mask, LLVMConstNull(type)};
    return tag(g, p, llvm_intrinsic(g, "llvm.masked.load", types, 2, args, 4));
}

static void masked_store(llvm_gen *g, const llvm_place *p, LLVMValueRef v, LLVMValueRef address,
                         unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef types[] = {LLVMTypeOf(v), g->ptr};
    LLVMValueRef args[] = {v, address, LLVMConstInt(g->i32, align, 0), mask};
    tag(g, p, llvm_intrinsic(g, "llvm.masked.store", types, 2, args, 4));
}

/* ---- loads ---- */

/* One element under an optional i1. */
static LLVMValueRef load_one(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                             LLVMValueRef mask)
{
    LLVMTypeRef type = llvm_memory_type(g, b->dtype);
    LLVMValueRef address = address_of(g, b, p, index, !mask), v;
    if (!address)
        return NULL;
    unsigned align = (unsigned)natural_align(b->dtype);
    if (!mask)
        return plain_load(g, p, type, address, align);
    LLVMTypeRef one = LLVMVectorType(type, 1);
    LLVMValueRef bit = LLVMBuildBitCast(g->b, mask, LLVMVectorType(g->i1, 1), "");
    v = masked_load(g, p, one, address, align, bit);
    return LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, 0, 0), "");
}

static LLVMValueRef load_contiguous(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *base,
                                    int lanes, LLVMValueRef mask)
{
    LLVMTypeRef type = llvm_memory_type(g, base_dtype_lanes(b->dtype, lanes));
    LLVMValueRef address = address_of(g, b, p, base, !mask);
    if (!address)
        return NULL;
    unsigned align = align_of(g, b, p, base);
    return mask ? masked_load(g, p, type, address, align, mask) : plain_load(g, p, type, address, align);
}

static LLVMValueRef splat_load(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *base,
                               int lanes, LLVMValueRef mask)
{
    LLVMValueRef v = load_one(g, b, p, base, mask ? llvm_any(g, mask) : NULL);
    if (!v)
        return NULL;
    v = llvm_splat(g, v, lanes);
    return mask ? LLVMBuildSelect(g->b, mask, v, LLVMConstNull(LLVMTypeOf(v)), "") : v;
}

/* Lanes at base + stride*k, |stride| from 1 to MOST_STRIDE: |stride| overlapping loads of consecutive
 * elements, the last one ending with the last lane; lane k is then at k*|stride| of them together. */
static LLVMValueRef load_strided(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *base,
                                 int64_t stride, int lanes)
{
    int64_t step = stride < 0 ? -stride : stride, span = (lanes - 1) * step + 1;
    LLVMTypeRef type = llvm_memory_type(g, base_dtype_lanes(b->dtype, lanes));
    LLVMValueRef first = wide_index(g, base), parts[MOST_STRIDE], all = NULL, pick[1024];
    int64_t start[MOST_STRIDE];
    if (!first)
        return NULL;
    if (stride < 0)
        first = LLVMBuildSub(g->b, first, llvm_int_like(g, g->i64, span - 1), "");
    for (int64_t j = 0; j < step; j++) {
        start[j] = j < step - 1 ? j * lanes : span - lanes;
        LLVMValueRef at = LLVMBuildNSWAdd(g->b, first, llvm_int_like(g, g->i64, start[j]), "");
        parts[j] = plain_load(g, p, type, element(g, b, p, at, true), (unsigned)natural_align(b->dtype));
    }
    /* Pairwise: each shuffle fills in the lanes that its load holds. */
    for (int64_t j = 0; j < step; j++) {
        for (int k = 0; k < lanes; k++) {
            int64_t at = (stride < 0 ? span - 1 - k * step : k * step) - start[j];
            bool here = at >= 0 && at < lanes;
            pick[k] = LLVMConstInt(g->i32, (unsigned long long)(here ? lanes + at : k), 0);
        }
        LLVMValueRef before = all ? all : LLVMGetPoison(type);
        all = LLVMBuildShuffleVector(g->b, before, parts[j], LLVMConstVector(pick, (unsigned)lanes), "");
    }
    return all;
}

static LLVMValueRef all_lanes(llvm_gen *g, int lanes)
{
    return LLVMConstAllOnes(LLVMVectorType(g->i1, (unsigned)lanes));
}

static LLVMValueRef gather(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                           LLVMValueRef mask)
{
    int lanes = index->dtype.lanes;
    LLVMTypeRef type = llvm_memory_type(g, base_dtype_lanes(b->dtype, lanes));
    LLVMValueRef i = wide_index(g, index);
    if (!i)
        return NULL;
    LLVMTypeRef types[] = {type, LLVMVectorType(g->ptr, (unsigned)lanes)};
    LLVMValueRef args[] = {element(g, b, p, i, false),
                           LLVMConstInt(g->i32, (unsigned)natural_align(b->dtype), 0),
                           mask ? mask : all_lanes(g, lanes), LLVMConstNull(type)};
    return tag(g, p, llvm_intrinsic(g, "llvm.masked.gather", types, 2, args, 4));
}

/* The mask of an access together with that of the lanes under evaluation; false on an error. */
static bool access_mask(llvm_gen *g, const ir_expr *own, int lanes, LLVMValueRef *mask)
{
    LLVMValueRef outer = llvm_mask_for(g, lanes);
    *mask = outer;
    if (!own || ir_is_true(own))
        return true;
    LLVMValueRef m = llvm_expr(g, own);
    if (!m)
        return false;
    m = llvm_splat(g, m, own->dtype.lanes == lanes ? 1 : lanes);
    *mask = outer ? LLVMBuildAnd(g->b, outer, m, "") : m;
    return true;
}

static const ir_expr *index_of(llvm_gen *g, const ir_buffer *b, const ir_expr *const *index, int n)
{
    if (n > 1)
        return BASE_BUG(g->cx, "an access of '%s' with %d indices reached code generation", b->name, n);
    return n ? index[0] : ir_int(g->cx, 0);
}

/* Picks the cheapest way for the index: one wide load, one load spread to all lanes, a wide load with lanes
 * picked from it, or a gather. */
static LLVMValueRef load_vector(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                                LLVMValueRef mask)
{
    const ir_expr *base;
    int64_t stride;
    int lanes = index->dtype.lanes;
    if (!llvm_as_ramp(g, index, &base, &stride))
        return gather(g, b, p, index, mask);
    if (stride == 1)
        return load_contiguous(g, b, p, base, lanes, mask);
    if (stride == 0)
        return splat_load(g, b, p, base, lanes, mask);
    if (!mask && stride >= -MOST_STRIDE && stride <= MOST_STRIDE && lanes <= 1024)
        return load_strided(g, b, p, base, stride, lanes);
    return gather(g, b, p, index, mask);
}

LLVMValueRef llvm_load(llvm_gen *g, const ir_expr *e)
{
    const ir_buffer *b = e->load.buffer;
    const llvm_place *p = place_of(g, b);
    const ir_expr *index = index_of(g, b, e->load.index, e->load.n);
    LLVMValueRef mask, v;
    if (!p || !index || !access_mask(g, e->load.mask, e->dtype.lanes, &mask))
        return NULL;
    v = index->dtype.lanes == 1 ? load_one(g, b, p, index, mask) : load_vector(g, b, p, index, mask);
    return v ? from_memory(g, e->dtype, v) : NULL;
}

/* ---- stores ---- */

/* A scalar store under a mask is a masked store of a vector of one lane: no branch is needed. */
static void store_one(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                      LLVMValueRef v, LLVMValueRef mask)
{
    LLVMValueRef address = address_of(g, b, p, index, !mask);
    if (!address)
        return;
    unsigned align = (unsigned)natural_align(b->dtype);
    if (mask) {
        LLVMValueRef one = LLVMBuildBitCast(g->b, v, LLVMVectorType(LLVMTypeOf(v), 1), "");
        masked_store(g, p, one, address, align, LLVMBuildBitCast(g->b, mask, LLVMVectorType(g->i1, 1), ""));
        return;
    }
    LLVMValueRef s = LLVMBuildStore(g->b, v, address);
    LLVMSetAlignment(s, align);
    tag(g, p, s);
}

/* One wide store; with a mask only its lanes are written. */
static void store_contiguous(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *base,
                             LLVMValueRef v, LLVMValueRef mask)
{
    LLVMValueRef address = address_of(g, b, p, base, !mask);
    if (!address)
        return;
    unsigned align = align_of(g, b, p, base);
    if (mask) {
        masked_store(g, p, v, address, align, mask);
        return;
    }
    LLVMValueRef s = LLVMBuildStore(g->b, v, address);
    LLVMSetAlignment(s, align);
    tag(g, p, s);
}

static void scatter(llvm_gen *g, const ir_buffer *b, const llvm_place *p, const ir_expr *index,
                    LLVMValueRef v, LLVMValueRef mask)
{
    int lanes = index->dtype.lanes;
    LLVMValueRef i = wide_index(g, index);
    if (!i)
        return;
    LLVMTypeRef types[] = {LLVMTypeOf(v), LLVMVectorType(g->ptr, (unsigned)lanes)};
    LLVMValueRef args[] = {v, element(g, b, p, i, false),
                           LLVMConstInt(g->i32, (unsigned)natural_align(b->dtype), 0),
                           mask ? mask : all_lanes(g, lanes)};
    tag(g, p, llvm_intrinsic(g, "llvm.masked.scatter", types, 2, args, 4));
}

/* A scalar value stored at a vector index goes to all lanes. */
void llvm_store(llvm_gen *g, const ir_stmt *s)
{
    const ir_buffer *b = s->store.buffer;
    const llvm_place *p = place_of(g, b);
    const ir_expr *index = index_of(g, b, s->store.index, s->store.n), *base;
    int lanes = index ? index->dtype.lanes : 1;
    int64_t stride;
    LLVMValueRef v = llvm_expr(g, s->store.value), mask;
    if (!p || !index || !v || !access_mask(g, s->store.mask, lanes, &mask))
        return;
    v = to_memory(g, s->store.value->dtype, v);
    if (lanes > 1 && s->store.value->dtype.lanes == 1)
        v = llvm_splat(g, v, lanes);
    if (lanes == 1)
        store_one(g, b, p, index, v, mask);
    else if (llvm_as_ramp(g, index, &base, &stride) && stride == 1)
        store_contiguous(g, b, p, base, v, mask);
    else
        scatter(g, b, p, index, v, mask);
}

void llvm_place_buffer(llvm_gen *g, const ir_buffer *b, LLVMValueRef address, int64_t align)
{
    llvm_place *p = base_new(g->cx, llvm_place);
    LLVMMetadataRef scope = base_map_get(&g->scopes, b), others = base_map_get(&g->others, b);
    p->address = address;
    p->align = align > natural_align(b->dtype) ? align : natural_align(b->dtype);
    p->scope = scope ? LLVMMetadataAsValue(g->c, scope) : NULL;
    p->others = others ? LLVMMetadataAsValue(g->c, others) : NULL;
    base_map_put(g->cx, &g->places, b, p);
}
