/* programs.c -- the device code of one module, loaded on the devices that ask for it, once on each.
 *
 * Loading may take long (OpenCL C is compiled then), so the loading thread holds a lock; other threads with
 * the same module wait for it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc.h"
#include "runtime/launch.h"

/* One piece of code on one device. */
typedef struct loaded {
    struct loaded *next;
    const rt_code_desc *code;
    tec_device *device;
    void *program;
} loaded;

struct rt_programs {
    pthread_mutex_t lock;
    loaded *first;
};

rt_programs *rt_programs_new(tec_error *err)
{
    rt_programs *p = rt_alloc(sizeof *p, err);

    if (p)
        pthread_mutex_init(&p->lock, NULL);
    return p;
}

/* The device is freed after what was loaded on it. */
void rt_programs_free(rt_programs *programs)
{
    if (!programs)
        return;
    for (loaded *l = programs->first, *next; l; l = next) {
        next = l->next;
        l->device->kind->unload(l->device, l->program);
        tec_device_free(l->device);
        rt_free(l);
    }
    pthread_mutex_destroy(&programs->lock);
    rt_free(programs);
}

static bool has_kernel(const rt_code_desc *code, const char *name)
{
    for (int32_t i = 0; i < code->n_kernels; i++)
        if (strcmp(code->kernels[i].name, name) == 0)
            return true;
    return false;
}

/* "'cuda -arch=sm_90' and 'cuda -arch=sm_80'": what the module has the kernel for, as far as room goes. */
static const char *list_targets(const rt_module_desc *module, const tec_device *device, const char *name,
                                char *text, size_t size)
{
    size_t n = 0;
    const rt_code_desc *last = NULL;

    text[0] = '\0';
    for (int32_t i = 0; i < module->n_codes; i++)
        if (strcmp(module->codes[i].device, device->kind->name) == 0 && has_kernel(&module->codes[i], name))
            last = &module->codes[i];
    for (const rt_code_desc *code = module->codes; last && code <= last && n < size; code++)
        if (strcmp(code->device, device->kind->name) == 0 && has_kernel(code, name))
            n += (size_t)snprintf(text + n, size - n, "%s'%.60s'",
                                  n == 0         ? ""
                                  : code == last ? " and "
                                                 : ", ",
                                  code->target);
    return last ? text : "another kind of device";
}

/* Among the pieces of code for this kind of device the first that fits it and has the kernel. NULL with an
 * error. */
static const rt_code_desc *find_code(const rt_module_desc *module, const tec_device *device, const char *name,
                                     tec_error *err)
{
    char made_for[200];

    for (int32_t i = 0; i < module->n_codes; i++) {
        const rt_code_desc *code = &module->codes[i];

        if (strcmp(code->device, device->kind->name) != 0 || !has_kernel(code, name))
            continue;
        if (device->kind->fits(device, code))
            return code;
    }
    rt_fail(err, TEC_UNSUPPORTED,
            "%s: the kernel '%.60s' was made for %s, which this device is not: %.60s, %.100s",
            device->info.name, name, list_targets(module, device, name, made_for, sizeof made_for),
            device->info.hardware, device->info.driver);
    return NULL;
}

/* Under the lock. A failure is not remembered: the next call tries again. */
static void *load(rt_programs *programs, const rt_code_desc *code, tec_device *device, tec_error *err)
{
    loaded *l;

    for (l = programs->first; l; l = l->next)
        if (l->code == code && l->device == device)
            return l->program;
    l = rt_alloc(sizeof *l, err);
    if (!l)
        return NULL;
    *l = (loaded){.next = programs->first,
                  .code = code,
                  .device = device,
                  .program = device->kind->load(device, code, err)};
    if (!l->program) {
        rt_free(l);
        return NULL;
    }
    tec_device_ref(device);
    programs->first = l;
    return l->program;
}

/* The kernel is the caller's to drop; the program stays. */
void *rt_programs_find(rt_programs *programs, const rt_module_desc *module, tec_device *device,
                       const char *name, tec_error *err)
{
    const rt_code_desc *code = find_code(module, device, name, err);
    void *program;

    if (!code)
        return NULL;
    pthread_mutex_lock(&programs->lock);
    program = load(programs, code, device, err);
    pthread_mutex_unlock(&programs->lock);
    return program ? device->kind->find(device, program, name, err) : NULL;
}
