/* site.c -- see site.h. */
#include "runtime/site.h"

#include <string.h>

#include "runtime/executor.h"
#include "runtime/tensor.h"

/* ---- making ---- */

/* The caller's device where it is of that kind, else the first one. */
static tec_device *choose_device(const char *kind, const tec_run_options *options, tec_error *err)
{
    tec_device *given = options ? options->device : NULL;

    if (given && strcmp(given->kind->name, kind) == 0)
        return tec_device_ref(given);
    return tec_device_open(kind, err);
}

/* A device that was asked for must be of use. */
static bool check_choice(const tec_executor *ex, const tec_run_options *options, tec_error *err)
{
    const tec_device *given = options ? options->device : NULL;

    if (!given || (given->kind->type == kDLCPU && ex->graph->n_sites == 0))
        return true;
    if (given->kind->type == kDLCPU)
        return rt_fail(err, TEC_UNSUPPORTED, "graph '%s' was compiled for '%s' and cannot run on %s alone",
                       ex->graph->name, ex->desc->target, given->info.name);
    for (int32_t i = 0; i < ex->graph->n_sites; i++)
        if (strcmp(ex->graph->sites[i].device, given->kind->name) == 0)
            return true;
    return rt_fail(err, TEC_UNSUPPORTED, "graph '%s' was compiled for '%s' and has nothing to run on %s",
                   ex->graph->name, ex->desc->target, given->info.name);
}

/* What is there is kept where it is large enough, so that a run with known shapes allocates nothing. */
bool rt_site_reserve(rt_site *site, void **memory, int64_t *capacity, int64_t bytes, tec_error *err)
{
    void *larger;

    if (*memory && bytes <= *capacity)
        return true;
    larger = rt_device_allocate(site->device, bytes, err);
    if (!larger)
        return false;
    rt_device_release(site->device, *memory, *capacity);
    *memory = larger;
    *capacity = bytes;
    return true;
}

/* Puts a constant's bytes on the device, unless they are there. Only constants that some value at this site
 * uses are copied there. */
static bool place_constant(const tec_executor *ex, rt_site *site, int32_t index, tec_error *err)
{
    const rt_constant_desc *constant = &ex->desc->constants[index];
    int64_t bytes = rt_constant_bytes(constant);

    if (site->constants[index])
        return true;
    site->constants[index] = rt_device_allocate(site->device, bytes, err);
    site->busy = true;
    return site->constants[index] &&
           (bytes == 0 || site->device->kind->upload(&site->stream, (rt_place){site->constants[index], 0},
                                                     constant->data, bytes, err));
}

/* Waits for the copies, as the module's bytes may be unmapped later. */
static bool place_constants(tec_executor *ex, tec_error *err)
{
    for (int32_t i = 0; i < ex->graph->n_values; i++) {
        const rt_value_desc *value = &ex->graph->values[i];

        if (value->site && value->storage == RT_IN_CONSTANT &&
            !place_constant(ex, &ex->sites[value->site - 1], value->index, err))
            return false;
    }
    return rt_sites_settle(ex, err);
}

/* What was opened before an error is closed with the executor. */
bool rt_sites_open(tec_executor *ex, const tec_run_options *options, tec_error *err)
{
    int32_t n = ex->graph->n_sites;

    if (!rt_stream_check(options, err) || !check_choice(ex, options, err))
        return false;
    ex->sites = rt_arena_alloc(&ex->arena, n, sizeof *ex->sites, err);
    for (int32_t i = 0; ex->sites && i < n; i++) {
        rt_site *site = &ex->sites[i];

        site->constants = rt_arena_alloc(&ex->arena, ex->desc->n_constants, sizeof *site->constants, err);
        site->device = site->constants ? choose_device(ex->graph->sites[i].device, options, err) : NULL;
        if (!site->device || !rt_stream_open_for(&site->stream, site->device, options, err))
            return false;
    }
    return ex->sites && place_constants(ex, err);
}

/* The stream first, since it waits for what still uses the memory. */
static void close_site(const tec_executor *ex, rt_site *site)
{
    rt_stream_close(&site->stream);
    for (int32_t i = 0; site->constants && i < ex->desc->n_constants; i++)
        rt_device_release(site->device, site->constants[i], rt_constant_bytes(&ex->desc->constants[i]));
    rt_device_release(site->device, site->pool, site->pool_capacity);
    rt_device_release(site->device, site->workspace, site->workspace_capacity);
    tec_device_free(site->device);
}

void rt_sites_close(tec_executor *ex)
{
    for (int32_t i = 0; ex->sites && i < ex->graph->n_sites; i++)
        if (ex->sites[i].device)
            close_site(ex, &ex->sites[i]);
}

/* ---- copies ---- */

/* Only sites whose stream touches main memory are waited for: launches go on. */
bool rt_sites_settle(tec_executor *ex, tec_error *err)
{
    bool ok = true;

    for (int32_t i = 0; i < ex->graph->n_sites; i++) {
        rt_site *site = &ex->sites[i];

        if (site->busy && !rt_stream_wait(&site->stream, ex->limits.until, ok ? err : NULL))
            ok = false;
        else
            site->busy = false;
    }
    return ok;
}

/* Every stream, also one without copies. All are waited for even after an error, as each may still write. */
bool rt_sites_wait(tec_executor *ex, double until, tec_error *err)
{
    bool ok = true;

    for (int32_t i = 0; i < ex->graph->n_sites; i++) {
        rt_site *site = &ex->sites[i];

        ok = rt_stream_wait(&site->stream, until, ok ? err : NULL) && ok;
        site->busy = false;
    }
    return ok;
}

static rt_site *site_of(const tec_executor *ex, int32_t value)
{
    int32_t site = ex->graph->values[value].site;

    return site ? &ex->sites[site - 1] : NULL;
}

/* Into main memory; returns when the bytes are there. */
bool rt_site_fetch(const tec_executor *ex, int32_t value, void *to, tec_error *err)
{
    const rt_value *v = &ex->values[value];
    rt_site *site = site_of(ex, value);

    if (v->bytes == 0)
        return true;
    if (site)
        return site->device->kind->download(&site->stream, to, v->place, v->bytes, err) &&
               site->device->kind->wait(&site->stream, err);
    memcpy(to, v->address, (size_t)v->bytes);
    return true;
}

/* A stream of the caller's on the device of a tensor; NULL: there is none. */
static rt_stream *find_borrowed(const tec_executor *ex, DLDevice device)
{
    for (int32_t i = 0; i < ex->graph->n_sites; i++) {
        rt_stream *stream = &ex->sites[i].stream;

        if (stream->borrowed && (int32_t)stream->device->kind->type == (int32_t)device.device_type &&
            stream->device->index == device.device_id)
            return stream;
    }
    return NULL;
}

/* Returns when the bytes are there. */
bool rt_site_take(const tec_executor *ex, const DLTensor *to, const DLTensor *from, const char *what,
                  tec_error *err)
{
    rt_stream *stream = find_borrowed(ex, from->device);

    if (!stream)
        return tec_tensor_copy(to, from, err);
    if (!tec_tensor_is_compact(from))
        return rt_fail(err, TEC_UNSUPPORTED,
                       "%s: expected compact row-major strides on a device, found others", what);
    return stream->device->kind->download(stream, rt_tensor_data(to),
                                          (rt_place){from->data, (int64_t)from->byte_offset},
                                          tec_tensor_bytes(from), err) &&
           stream->device->kind->wait(stream, err);
}

/* Between devices the bytes pass through main memory. The bounce is freed here, so the upload is waited
 * for. */
static bool copy_across(const tec_executor *ex, int32_t from, int32_t to, tec_error *err)
{
    const rt_value *value = &ex->values[to];
    rt_site *site = site_of(ex, to);
    void *bounce = rt_alloc_aligned((size_t)value->bytes, err);
    bool ok = bounce && rt_site_fetch(ex, from, bounce, err) &&
              site->device->kind->upload(&site->stream, value->place, bounce, value->bytes, err);

    ok = ok && site->device->kind->wait(&site->stream, err);
    rt_free(bounce);
    return ok;
}

/* Bytes of main memory that another stream still writes or reads are waited for. */
static bool settle_others(tec_executor *ex, const rt_site *mine, tec_error *err)
{
    bool others = false;

    for (int32_t i = 0; i < ex->graph->n_sites; i++)
        others = others || (ex->sites[i].busy && &ex->sites[i] != mine);
    return !others || rt_sites_settle(ex, err);
}

/* Copies that touch main memory wait for the other streams first, which may still use the same bytes. */
bool rt_site_copy(tec_executor *ex, int32_t from, int32_t to, tec_error *err)
{
    const rt_value *a = &ex->values[from], *b = &ex->values[to];
    rt_site *site = site_of(ex, from), *t = site_of(ex, to);

    if (a->bytes == 0)
        return true;
    if (site && site == t)
        return site->device->kind->copy(&site->stream, b->place, a->place, a->bytes, err);
    if (site && t)
        return copy_across(ex, from, to, err);
    if (!settle_others(ex, site ? site : t, err))
        return false;
    if (!site && !t) {
        memmove(b->address, a->address, (size_t)a->bytes);
        return true;
    }
    if (site) {
        site->busy = true;
        return site->device->kind->download(&site->stream, b->address, a->place, a->bytes, err);
    }
    t->busy = true;
    return t->device->kind->upload(&t->stream, b->place, a->address, a->bytes, err);
}
