/* rpc/server/devices.c -- what this machine offers, asked in a process of its own: the drivers of devices are
 * never loaded into the server.
 *
 * Findings are collected in one large block of fixed size, because the message keeps pointers into it:
 * nothing moves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/server/inside.h"
#include "runtime/alloc.h"
#include "runtime/cpu.h"
#include "worker/health.h"

enum { MOST_DEVICES = 64 };

static int64_t largest_cache(const int64_t bytes[WORKER_N_CACHES])
{
    int64_t most = 0;

    for (int i = 0; i < WORKER_N_CACHES; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
}

/* "llvm -mtriple=x86_64-linux-gnu -mattr=+avx,+avx2 -num-cores=2". */
static void describe_cpu(char *to, size_t size)
{
    rt_line line = {.data = to, .size = size};
    const char *feature, *between = " -mattr=";

    rt_put(&line, "llvm -mtriple=%s", rt_cpu_triple());
    for (int i = 0; (feature = rt_cpu_feature(i)); i++)
        if (rt_cpu_has(feature) == RT_CPU_HAS) {
            rt_put(&line, "%s+%s", between, feature);
            between = ",";
        }
    rt_put(&line, " -num-cores=%d", rt_cpu_threads());
}

/* devices[i] points to the texts of info[i], and missing[i] to that of reasons[i]. */
typedef struct {
    char cpu[200];
    int64_t caches[WORKER_N_CACHES]; /* of the CPU */
    tec_device_info info[MOST_DEVICES];
    rpc_device devices[MOST_DEVICES];
    rpc_missing missing[MOST_DEVICES];
    tec_error reasons[MOST_DEVICES];
    int n, n_missing;
} findings;

/* A copy of the reason is kept, since the caller's error is used again. */
static void add_missing(findings *self, const char *kind, const char *why)
{
    if (self->n_missing == MOST_DEVICES)
        return;
    tec_error *e = &self->reasons[self->n_missing];
    snprintf(e->text, sizeof e->text, "%s", why);
    self->missing[self->n_missing++] = (rpc_missing){kind, e->text};
}

/* Opening may fail although a driver counts the device, as with a GPU that somebody else has for himself
 * alone: then it counts as missing, with the reason. */
static void add_device(findings *self, const char *kind, int number)
{
    tec_device_info *info = &self->info[self->n];
    tec_error err = {0};
    char name[64];

    snprintf(name, sizeof name, "%s:%d", kind, number);
    tec_device *device = self->n < MOST_DEVICES ? tec_device_open(name, &err) : NULL;
    if (!device || !tec_device_describe(device, info, &err)) {
        add_missing(self, kind, err.text);
        tec_device_free(device);
        return;
    }
    bool cpu = strcmp(kind, "cpu") == 0;
    self->devices[self->n++] =
        (rpc_device){.name = info->name,
                     .hardware = cpu && *self->cpu ? self->cpu : info->hardware,
                     .driver = info->driver,
                     .memory_bytes = info->memory_bytes,
                     .shared_bytes = info->shared_bytes,
                     .units = info->units,
                     .clock_mhz = cpu && !info->clock_mhz ? worker_clock_mhz() : info->clock_mhz,
                     .cache_bytes = cpu ? largest_cache(self->caches) : 0,
                     .temperature = cpu ? worker_temperature() : 0,
                     .caches = {self->caches, cpu ? WORKER_N_CACHES : 0}};
    tec_device_free(device);
}

/* Every kind that this library knows is asked for, so that a user sees why a device is not offered: "no
 * driver" is an answer as well. */
bool rpc_answer_devices(rpc_session *session)
{
    findings *f = rt_alloc(sizeof *f, NULL);
    char host[256] = "", target[4096];
    const char *kind;

    if (!f)
        return false;
    worker_cpu_name(f->cpu, sizeof f->cpu);
    worker_caches(f->caches);
    for (int k = 0; (kind = tec_device_kind(k)); k++) {
        tec_error err = {0};
        int n = tec_device_count(kind, &err);

        if (n <= 0)
            add_missing(f, kind, n < 0 ? err.text : "its driver has no devices");
        for (int i = 0; i < n; i++)
            add_device(f, kind, i);
    }
    gethostname(host, sizeof host - 1);
    describe_cpu(target, sizeof target);
    bool sent = rpc_answer_with(session, RPC_KIND_listed,
                                &(rpc_listed){.host = host,
                                              .target = target,
                                              .devices = {f->devices, f->n},
                                              .missing = {f->missing, f->n_missing}});
    rt_free(f);
    return sent;
}
