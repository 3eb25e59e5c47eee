/* rpc/server/offer.c -- see offer.h. */
#include "rpc/server/offer.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "rpc/keys.h"

enum { CLASS = 200, TEXT = 200 };

static const char usual[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

/* Cuts the next "KIND=CLASS" or "CLASS" off *at, which is not empty; false: it makes no sense. */
static bool next_class(const char **at, char kind[32], char class[CLASS])
{
    size_t n = strcspn(*at, ","), n_kind = strcspn(*at, "=,");
    const char *from = *at, *name = from;

    if (n_kind < n) {
        snprintf(kind, 32, "%.*s", (int)n_kind, from);
        name += n_kind + 1;
    } else {
        snprintf(kind, 32, "cpu");
        n_kind = 3;
    }
    snprintf(class, CLASS, "%.*s", (int)(from + n - name), name);
    bool good = n_kind > 0 && n_kind < 32 && *class && strspn(name, usual) == (size_t)(from + n - name) &&
                from + n - name < CLASS;
    *at += n + (from[n] == ',');
    return good;
}

bool rpc_check_classes(const char *classes, tec_error *err)
{
    const char *at = classes;
    char kind[32], class[CLASS];

    while (*at)
        if (!next_class(&at, kind, class))
            return rt_fail(err, TEC_INVALID,
                           "'%s' does not name the classes of devices: expected 'rpi4', or "
                           "'cpu=rpi4,opencl=mali' with names of letters, digits, '-', '_' and '.'",
                           classes);
    return *classes || rt_fail(err, TEC_INVALID, "expected a class of devices, found none");
}

bool rpc_class_of(const char *classes, const char *device, char *to, size_t size)
{
    const char *at = classes;
    char kind[32], class[CLASS];
    size_t n = strcspn(device, ":");

    while (*at && next_class(&at, kind, class))
        if (strlen(kind) == n && strncmp(kind, device, n) == 0) {
            snprintf(to, size, "%s", class);
            return true;
        }
    return false;
}

bool rpc_key_fits(const char *classes, const char *of_key)
{
    const char *at = classes;
    char kind[32], class[CLASS];

    while (*at && next_class(&at, kind, class))
        if (rpc_class_allowed(of_key, class))
            return true;
    return false;
}

/* What measurements on a device depend on: a name for people, and a hash of all of it. A CPU is told apart by
 * the code that fits it as well. */
static const char *fingerprint(const rpc_listed *list, const rpc_device *device, rt_arena *arena,
                               tec_error *err)
{
    char *text = rt_arena_alloc(arena, TEXT, 1, err), all[1500];
    bool cpu = strncmp(device->name, "cpu", 3) == 0;

    if (!text)
        return NULL;
    snprintf(all, sizeof all, "%s; %s; %lld; %s", device->hardware, device->driver, (long long)device->units,
             cpu ? list->target : "");
    snprintf(text, TEXT, "%.120s, %lld units, %016llx", device->hardware, (long long)device->units,
             (unsigned long long)base_hash(all, strlen(all), 0));
    return text;
}

/* A device whose kind has no class is left out. */
bool rpc_make_offer(const char *classes, const rpc_listed *list, rt_arena *arena, const rpc_offered **devices,
                    int *count, tec_error *err)
{
    const rpc_device *from = list->devices.at;
    rpc_offered *to = rt_arena_alloc(arena, list->devices.n + 1, sizeof *to, err);

    *devices = to;
    *count = 0;
    if (!to)
        return false;
    for (int64_t i = 0; i < list->devices.n; i++) {
        const rpc_device *device = &from[i];
        char class[CLASS];

        if (!rpc_class_of(classes, device->name, class, sizeof class))
            continue;
        char *kept = rt_arena_alloc(arena, CLASS, 1, err);
        const char *print = fingerprint(list, device, arena, err);
        if (!kept || !print)
            return false;
        snprintf(kept, CLASS, "%s", class);
        to[(*count)++] =
            (rpc_offered){device->name, kept, print, device->hardware, device->driver, device->caches};
    }
    return *count > 0 ||
           rt_fail(err, TEC_INVALID, "this machine has no device of the kinds of '%s'", classes);
}
