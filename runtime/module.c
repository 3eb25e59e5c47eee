/* module.c -- modules: files and in-process code behind one object, and the checks that this machine can run
 * them.
 *
 * A module is immutable once made; only its count of references changes.
 */
#include "runtime/module.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/cpu.h"
#include "runtime/file.h"
#include "runtime/launch.h"
#include "runtime/ranges.h"

/* `library` is of a file, `memory` of code in this process; at most one of the two is used. */
struct tec_module {
    atomic_int references;
    rt_file file;                     /* its description, for modules in memory as well */
    rt_bytes encoded[RT_SECTION_END]; /* in memory: what the description's texts point into */
    tec_kernel_fn **code;             /* [n_functions]; NULL: of a device */
    rt_programs *programs;
    void *library; /* what dlclose takes */
    rt_memory_code memory;
    char *path;
};

/* ---- can this machine run it? ---- */

/* A feature that this runtime does not know is refused too: running the code could end in an illegal
 * instruction. */
static bool check_feature(const rt_module_desc *module, const char *path, const char *feature, tec_error *err)
{
    switch (rt_cpu_has(feature)) {
    case RT_CPU_HAS: return true;
    case RT_CPU_LACKS:
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: needs CPU feature '%s' (target '%s'), which this %s CPU lacks", path, feature,
                       module->target, rt_cpu_arch());
    case RT_CPU_UNKNOWN: break;
    }
    return rt_fail(err, TEC_UNSUPPORTED,
                   "%s: needs CPU feature '%s' (target '%s'), which this runtime does not know on %s", path,
                   feature, module->target, rt_cpu_arch());
}

static bool check_machine(const rt_module_desc *module, const char *path, tec_error *err)
{
    if (module->arch && strcmp(module->arch, rt_cpu_arch()) != 0)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: is code for %s (target '%s'); this machine is %s", path,
                       module->arch, module->target, rt_cpu_arch());
    for (int32_t i = 0; i < module->n_features; i++)
        if (!check_feature(module, path, module->features[i], err))
            return false;
    return true;
}

/* ---- making ---- */

/* `path` is what messages call the module. */
static tec_module *new_module(const char *path, tec_error *err)
{
    tec_module *module = rt_alloc(sizeof *module, err);

    if (!module)
        return NULL;
    atomic_init(&module->references, 1);
    module->path = rt_strdup(path, err);
    module->programs = module->path ? rt_programs_new(err) : NULL;
    if (module->programs)
        return module;
    rt_free(module->path);
    rt_free(module);
    return NULL;
}

/* The symbol's address may be NULL, which the caller reports. */
static tec_kernel_fn *find_code(const tec_module *module, const char *symbol)
{
    void *found;
    tec_kernel_fn *code;

    if (!module->library)
        return module->memory.resolve ? module->memory.resolve(module->memory.user, symbol) : NULL;
    found = dlsym(module->library, symbol);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that they have one
     * representation. */
    memcpy(&code, &found, sizeof code);
    return code;
}

/* The address of each function's code; functions of devices have none here. */
static bool find_functions(tec_module *module, tec_error *err)
{
    const rt_module_desc *desc = &module->file.desc;

    module->code = rt_alloc_array(desc->n_functions, sizeof *module->code, err);
    if (!module->code)
        return false;
    for (int32_t i = 0; i < desc->n_functions; i++) {
        if (desc->functions[i].device)
            continue;
        module->code[i] = find_code(module, desc->functions[i].symbol);
        if (!module->code[i])
            return rt_fail(err, TEC_INVALID, "%s: function '%s' should be symbol '%s', which its code lacks",
                           module->path, desc->functions[i].name, desc->functions[i].symbol);
    }
    return true;
}

/* Of a module whose file has been read. The file's bytes are no longer needed once the loader has the
 * code. */
static bool load_code(tec_module *module, void *open(const char *, const rt_blob *, tec_error *),
                      tec_error *err)
{
    if (!check_machine(&module->file.desc, module->path, err))
        return false;
    if (rt_has_host_code(&module->file.desc)) {
        module->library = open(module->path, &module->file.elf, err);
        if (!module->library)
            return false;
    }
    rt_blob_free(&module->file.elf);
    return find_functions(module, err);
}

/* `m` NULL is returned as it is: the error has been told. */
tec_module *tec_module_open(const char *path, const tec_module_options *options, tec_error *err)
{
    tec_module *module;

    if (!path)
        return rt_fail(err, TEC_INVALID, "expected the path of a module, found NULL"), NULL;
    module = new_module(path, err);
    if (!module || (rt_file_open(&module->file, path, options, err) && load_code(module, rt_code_open, err)))
        return module;
    tec_module_free(module);
    return NULL;
}

tec_module *rt_module_read(const char *path, tec_error *err)
{
    tec_module *m = new_module(path, err);

    if (m && rt_file_open(&m->file, path, NULL, err) &&
        (m->code = rt_alloc_array(m->file.desc.n_functions, sizeof *m->code, err)))
        return m;
    tec_module_free(m);
    return NULL;
}

tec_module *tec_module_open_bytes(const void *data, size_t size, const tec_module_options *options,
                                  tec_error *err)
{
    tec_module *module;

    if (!data)
        return rt_fail(err, TEC_INVALID, "expected the bytes of a module, found NULL"), NULL;
    module = new_module("module in memory", err);
    if (!module || (rt_file_open_bytes(&module->file, data, size, options, err) &&
                    load_code(module, rt_code_open_bytes, err)))
        return module;
    tec_module_free(module);
    return NULL;
}

/* Encodes and decodes, which makes a copy that has passed every check of a file. */
static bool copy_description(tec_module *module, const rt_module_desc *desc, tec_error *err)
{
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
        rt_bytes *bytes = &module->encoded[kind];

        if (!rt_module_encode(desc, (rt_section_kind)kind, bytes, err) ||
            !rt_module_decode(&module->file.desc, (rt_section_kind)kind, bytes->data, bytes->n,
                              &module->file.arena, err))
            return false;
    }
    return true;
}

/* Modules in memory may borrow constants from their maker, who then keeps them alive. Without borrowing, they
 * get the places that they would have in a file. */
static bool copy_constants(tec_module *module, const rt_module_desc *desc, unsigned flags, tec_error *err)
{
    rt_constant_desc *own = (rt_constant_desc *)(uintptr_t)module->file.desc.constants;
    uint64_t size = rt_weights_size(&module->file.desc);
    uint8_t *weights;

    if (flags & RT_BORROW_CONSTANTS) {
        for (int32_t i = 0; i < desc->n_constants; i++)
            own[i].data = desc->constants[i].data;
        return true;
    }
    weights = rt_alloc_aligned(size, err);
    if (!weights)
        return false;
    module->file.weights = (rt_blob){weights, weights, size, RT_BLOB_ALLOCATED};
    rt_place_constants(&module->file.desc, weights);
    for (int32_t i = 0; i < desc->n_constants; i++)
        if (rt_constant_bytes(&own[i]) > 0)
            memcpy((void *)(uintptr_t)own[i].data, desc->constants[i].data,
                   (size_t)rt_constant_bytes(&own[i]));
    return true;
}

/* The module gets the machine's architecture if it states none: it was made here. */
static bool load_memory(tec_module *module, const rt_module_desc *desc, unsigned flags, tec_error *err)
{
    rt_module_desc given = *desc;

    given.arch = desc->arch ? desc->arch : rt_cpu_arch();
    given.target = desc->target ? desc->target : "native";
    return rt_module_check(&given, err) && check_machine(&given, module->path, err) &&
           copy_description(module, &given, err) && copy_constants(module, &given, flags, err) &&
           find_functions(module, err);
}

/* Takes `code` over in any case: it is released with the module, or now after an error. */
tec_module *rt_module_from_memory(const rt_module_desc *module, const rt_memory_code *code, unsigned flags,
                                  tec_error *err)
{
    tec_module *m = new_module("module in memory", err);

    if (!m) {
        if (code && code->release)
            code->release(code->user);
        return NULL;
    }
    if (code)
        m->memory = *code;
    if (load_memory(m, module, flags, err))
        return m;
    tec_module_free(m);
    return NULL;
}

/* ---- references ---- */

tec_module *tec_module_ref(tec_module *module)
{
    if (module)
        atomic_fetch_add(&module->references, 1);
    return module;
}

/* The last reference unloads the code, so nothing may run in it any more. */
void tec_module_free(tec_module *module)
{
    if (!module || atomic_fetch_sub(&module->references, 1) != 1)
        return;
    rt_free(module->code);
    rt_programs_free(module->programs);
    rt_file_close(&module->file);
    for (int kind = 0; kind < RT_SECTION_END; kind++)
        rt_bytes_free(&module->encoded[kind]);
    if (module->library)
        dlclose(module->library);
    if (module->memory.release)
        module->memory.release(module->memory.user);
    rt_free(module->path);
    rt_free(module);
}

/* ---- asking ---- */

const rt_module_desc *rt_module_describe(const tec_module *module)
{
    return &module->file.desc;
}

/* NULL for a function of a device. */
tec_kernel_fn *rt_module_code(const tec_module *module, int function)
{
    return module->code[function];
}

rt_programs *rt_module_programs(const tec_module *module)
{
    return module->programs;
}

const char *rt_module_path(const tec_module *module)
{
    return module->path;
}

const char *tec_module_target(const tec_module *module)
{
    return module ? module->file.desc.target : NULL;
}

int tec_module_n_functions(const tec_module *module)
{
    return module ? rt_n_called(&module->file.desc) : 0;
}

const char *tec_module_function_name(const tec_module *module, int i)
{
    return module && i >= 0 && i < module->file.desc.n_functions ? module->file.desc.functions[i].name : NULL;
}

int tec_module_n_graphs(const tec_module *module)
{
    return module ? module->file.desc.n_graphs : 0;
}

const char *tec_module_graph_name(const tec_module *module, int i)
{
    return module && i >= 0 && i < module->file.desc.n_graphs ? module->file.desc.graphs[i].name : NULL;
}
