/* targets/source/type.c -- the words for types that languages like C share. */
#include "targets/source/source.h"

const char *source_scalar(base_dtype dtype, const char *signed_byte)
{
    const char *const ints[] = {signed_byte, "short", "int", "long"};
    static const char *const uints[] = {"uchar", "ushort", "uint", "ulong"};
    int width = dtype.bits == 8 ? 0 : dtype.bits == 16 ? 1 : dtype.bits == 32 ? 2 : dtype.bits == 64 ? 3 : -1;

    if (base_is_bool(dtype))
        return "bool";
    if (width < 0 || dtype.lanes != 1)
        return NULL;
    if (base_is_float(dtype))
        return width == 3 ? "double" : width >= 1 ? "float" : NULL;
    return dtype.code == kDLInt ? ints[width] : dtype.code == kDLUInt ? uints[width] : NULL;
}

const char *source_in_memory(base_dtype dtype, const char *type)
{
    if (base_is_bool(dtype))
        return "uchar";
    return base_is_float(dtype) && dtype.bits == 16 ? "ushort" : type;
}
