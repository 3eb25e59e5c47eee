/* compiler/output.c -- compiled units as a module file, an object file, or a module in this process. */
#include "compiler/compile.h"
#include "compiler/generators.h"
#include "runtime/module.h"

static bool take_error(tec_context *cx, const tec_error *err)
{
    base_fail(cx, err->status, (base_loc){0}, "%s", err->text);
    return false;
}

/* "" where there is no host code. */
static const void *link_units(tec_context *cx, const comp_code *code, size_t *size)
{
    int n;
    const target_code **codes = comp_codes(cx, code, false, &n);

    *size = 0;
    return n ? comp_codegen(codes[0]->target)->link(cx, codes, n, size) : "";
}

bool comp_write(tec_context *cx, const comp_code *code, const rt_module_desc *desc, const char *path,
                unsigned rt_flags)
{
    tec_error err = {0};
    size_t size;
    const void *elf = link_units(cx, code, &size);

    if (!elf)
        return false;
    return rt_module_write(desc ? desc : &code->desc, elf, size, path, rt_flags, &err) ||
           take_error(cx, &err);
}

bool comp_bytes(tec_context *cx, const comp_code *code, rt_bytes *out)
{
    tec_error err = {0};
    size_t size;
    const void *elf = link_units(cx, code, &size);

    return elf && (rt_module_bytes(&code->desc, elf, size, out, &err) || take_error(cx, &err));
}

bool comp_write_object(tec_context *cx, const comp_code *code, const char *path)
{
    if (code->n != 1) {
        base_fail(cx, TEC_INVALID, (base_loc){0}, "expected one function for an object file, found %d",
                  code->n);
        return false;
    }
    return base_write_file(cx, path, code->codes[0]->bytes, code->codes[0]->size);
}

/* The compiled code as a module of this process; `desc` NULL takes the description of the functions alone.
 * The caller closes the module. */
TEC_GIVE tec_module *comp_load(tec_context *cx, const comp_code *code, const rt_module_desc *desc)
{
    tec_error err = {0};
    int n; /* a graph may have no kernels of the host */
    const target_code **codes = comp_codes(cx, code, false, &n);
    const target_codegen *g = n ? comp_codegen(codes[0]->target) : NULL;
    void *loaded = n ? g->load(cx, codes, n) : NULL;

    if (n && !loaded)
        return NULL;
    rt_memory_code functions = loaded ? (rt_memory_code){g->find, g->unload, loaded} : (rt_memory_code){0};
    tec_module *module = rt_module_from_memory(desc ? desc : &code->desc, &functions, 0, &err);
    if (!module)
        take_error(cx, &err);
    return module;
}
