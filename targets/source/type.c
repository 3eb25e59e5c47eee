/* targets/source/type.c -- the words for types that languages like C share. */
#include "targets/source/source.h"

const char *source_scalar(base_dtype t, const char *signed_byte)
{
    const char *const ints[] = {signed_byte, "short", "int", "long"};
    static const char *const uints[] = {"uchar", "ushort", "uint", "ulong"};
    int width = t.bits == 8 ? 0 : t.bits == 16 ? 1 : t.bits == 32 ? 2 : t.bits == 64 ? 3 : -1;

    if (base_is_bool(t))
        return "bool";
    if (width < 0 || t.lanes != 1)
        return NULL;
    if (base_is_float(t))
        return width == 3 ? "double" : width >= 1 ? "float" : NULL;
    return t.code == kDLInt ? ints[width] : t.code == kDLUInt ? uints[width] : NULL;
}

const char *source_in_memory(base_dtype t, const char *type)
{
    if (base_is_bool(t))
        return "uchar";
    return base_is_float(t) && t.bits == 16 ? "ushort" : type;
}
