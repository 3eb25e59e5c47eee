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
static bool check_feature(const rt_module_desc *m, const char *path, const char *feature, tec_error *err)
{
    switch (rt_cpu_has(feature)) {
    case RT_CPU_HAS: return true;
    case RT_CPU_LACKS:
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: needs CPU feature '%s' (target '%s'), which this %s CPU lacks", path, feature,
                       m->target, rt_cpu_arch());
    case RT_CPU_UNKNOWN: break;
    }
    return rt_fail(err, TEC_UNSUPPORTED,
                   "%s: needs CPU feature '%s' (target '%s'), which this runtime does not know on %s", path,
                   feature, m->target, rt_cpu_arch());
}

static bool check_machine(const rt_module_desc *m, const char *path, tec_error *err)
{
    if (m->arch && strcmp(m->arch, rt_cpu_arch()) != 0)
        return rt_fail(err, TEC_UNSUPPORTED, "%s: is code for %s (target '%s'); this machine is %s", path,
                       m->arch, m->target, rt_cpu_arch());
    for (int32_t i = 0; i < m->n_features; i++)
        if (!check_feature(m, path, m->features[i], err))
            return false;
    return true;
}

/* ---- making ---- */

/* `path` is what messages call the module. */
static tec_module *new_module(const char *path, tec_error *err)
{
    tec_module *m = rt_alloc(sizeof *m, err);

    if (!m)
        return NULL;
    atomic_init(&m->references, 1);
    m->path = rt_strdup(path, err);
    m->programs = m->path ? rt_programs_new(err) : NULL;
    if (m->programs)
        return m;
    rt_free(m->path);
    rt_free(m);
    return NULL;
}

/* The symbol's address may be NULL, which the caller reports. */
static tec_kernel_fn *find_code(const tec_module *m, const char *symbol)
{
    void *found;
    tec_kernel_fn *code;

    if (!m->library)
        return m->memory.resolve ? m->memory.resolve(m->memory.user, symbol) : NULL;
    found = dlsym(m->library, symbol);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that they have one
     * representation. */
    memcpy(&code, &found, sizeof code);
    return code;
}

/* The address of each function's code; functions of devices have none here. */
static bool find_functions(tec_module *m, tec_error *err)
{
    const rt_module_desc *d = &m->file.desc;

    m->code = rt_alloc_array(d->n_functions, sizeof *m->code, err);
    if (!m->code)
        return false;
    for (int32_t i = 0; i < d->n_functions; i++) {
        if (d->functions[i].device)
            continue;
        m->code[i] = find_code(m, d->functions[i].symbol);
        if (!m->code[i])
            return rt_fail(err, TEC_INVALID, "%s: function '%s' should be symbol '%s', which its code lacks",
                           m->path, d->functions[i].name, d->functions[i].symbol);
    }
    return true;
}

/* Of a module whose file has been read. The file's bytes are no longer needed once the loader has the
 * code. */
static bool load_code(tec_module *m, void *open(const char *, const rt_blob *, tec_error *), tec_error *err)
{
    if (!check_machine(&m->file.desc, m->path, err))
        return false;
    if (rt_has_host_code(&m->file.desc)) {
        m->library = open(m->path, &m->file.elf, err);
        if (!m->library)
            return false;
    }
    rt_blob_free(&m->file.elf);
    return find_functions(m, err);
}

/* `m` NULL is returned as it is: the error has been told. */
tec_module *tec_module_open(const char *path, const tec_module_options *options, tec_error *err)
{
    tec_module *m;

    if (!path)
        return rt_fail(err, TEC_INVALID, "no path of a module"), NULL;
    m = new_module(path, err);
    if (!m || (rt_file_open(&m->file, path, options, err) && load_code(m, rt_code_open, err)))
        return m;
    tec_module_free(m);
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
    tec_module *m;

    if (!data)
        return rt_fail(err, TEC_INVALID, "no bytes of a module"), NULL;
    m = new_module("module in memory", err);
    if (!m ||
        (rt_file_open_bytes(&m->file, data, size, options, err) && load_code(m, rt_code_open_bytes, err)))
        return m;
    tec_module_free(m);
    return NULL;
}

/* Encodes and decodes, which makes a copy that has passed every check of a file. */
static bool copy_description(tec_module *m, const rt_module_desc *d, tec_error *err)
{
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++) {
        rt_bytes *bytes = &m->encoded[kind];

        if (!rt_module_encode(d, (rt_section_kind)kind, bytes, err) ||
            !rt_module_decode(&m->file.desc, (rt_section_kind)kind, bytes->data, bytes->n, &m->file.arena,
                              err))
            return false;
    }
    return true;
}

/* Modules in memory may borrow constants from their maker, who then keeps them alive. Without borrowing, they
 * get the places that they would have in a file. */
static bool copy_constants(tec_module *m, const rt_module_desc *d, unsigned flags, tec_error *err)
{
    rt_constant_desc *own = (rt_constant_desc *)(uintptr_t)m->file.desc.constants;
    uint64_t size = rt_weights_size(&m->file.desc);
    uint8_t *weights;

    if (flags & RT_BORROW_CONSTANTS) {
        for (int32_t i = 0; i < d->n_constants; i++)
            own[i].data = d->constants[i].data;
        return true;
    }
    weights = rt_alloc_aligned(size, err);
    if (!weights)
        return false;
    m->file.weights = (rt_blob){weights, weights, size, RT_BLOB_ALLOCATED};
    rt_place_constants(&m->file.desc, weights);
    for (int32_t i = 0; i < d->n_constants; i++)
        if (rt_constant_bytes(&own[i]) > 0)
            memcpy((void *)(uintptr_t)own[i].data, d->constants[i].data, (size_t)rt_constant_bytes(&own[i]));
    return true;
}

/* The module gets the machine's architecture if it states none: it was made here. */
static bool load_memory(tec_module *m, const rt_module_desc *d, unsigned flags, tec_error *err)
{
    rt_module_desc given = *d;

    given.arch = d->arch ? d->arch : rt_cpu_arch();
    given.target = d->target ? d->target : "native";
    return rt_module_check(&given, err) && check_machine(&given, m->path, err) &&
           copy_description(m, &given, err) && copy_constants(m, &given, flags, err) &&
           find_functions(m, err);
}

/* Takes `code` over in any case: it is released with the module, or now after an error. */
tec_module *rt_module_from_memory(const rt_module_desc *d, const rt_memory_code *code, unsigned flags,
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
    if (load_memory(m, d, flags, err))
        return m;
    tec_module_free(m);
    return NULL;
}

/* ---- references ---- */

tec_module *tec_module_ref(tec_module *m)
{
    if (m)
        atomic_fetch_add(&m->references, 1);
    return m;
}

/* The last reference unloads the code, so nothing may run in it any more. */
void tec_module_free(tec_module *m)
{
    if (!m || atomic_fetch_sub(&m->references, 1) != 1)
        return;
    rt_free(m->code);
    rt_programs_free(m->programs);
    rt_file_close(&m->file);
    for (int kind = 0; kind < RT_SECTION_END; kind++)
        rt_bytes_free(&m->encoded[kind]);
    if (m->library)
        dlclose(m->library);
    if (m->memory.release)
        m->memory.release(m->memory.user);
    rt_free(m->path);
    rt_free(m);
}

/* ---- asking ---- */

const rt_module_desc *rt_module_describe(const tec_module *m)
{
    return &m->file.desc;
}

/* NULL for a function of a device. */
tec_kernel_fn *rt_module_code(const tec_module *m, int function)
{
    return m->code[function];
}

rt_programs *rt_module_programs(const tec_module *m)
{
    return m->programs;
}

const char *rt_module_path(const tec_module *m)
{
    return m->path;
}

const char *tec_module_target(const tec_module *m)
{
    return m ? m->file.desc.target : NULL;
}

int tec_module_n_functions(const tec_module *m)
{
    return m ? m->file.desc.n_functions : 0;
}

const char *tec_module_function_name(const tec_module *m, int i)
{
    return m && i >= 0 && i < m->file.desc.n_functions ? m->file.desc.functions[i].name : NULL;
}

int tec_module_n_graphs(const tec_module *m)
{
    return m ? m->file.desc.n_graphs : 0;
}

const char *tec_module_graph_name(const tec_module *m, int i)
{
    return m && i >= 0 && i < m->file.desc.n_graphs ? m->file.desc.graphs[i].name : NULL;
}
