/* tools/devices.c -- `tec devices`: the devices of this machine, and why a kind of device has none; those of
 * a pool are another file's. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "targets/target.h"
#include "tec/device.h"
#include "tools/caches.h"
#include "tools/command.h"
#include "tools/devices_pool.h"
#include "worker/health.h"

static bool has_caches(const tec_device_info *info)
{
    return strncmp(info->name, "cpu:", 4) == 0;
}

/* What a person wants to know of a device, on four lines, and a CPU's caches on one more. What a driver does
 * not say is left out. */
static void print_device(const tec_device_info *info, const char *fitting)
{
    printf("%-10s %s\n", info->name, info->hardware);
    if (info->driver[0])
        printf("           driver %s\n", info->driver);
    printf("           %.1f GiB", (double)info->memory_bytes / (1 << 30));
    if (info->units)
        printf(", %d units", (int)info->units);
    if (info->clock_mhz)
        printf(" at %d MHz", (int)info->clock_mhz);
    if (info->max_threads)
        printf(", blocks of up to %d threads with %lld KiB of shared memory", (int)info->max_threads,
               (long long)(info->shared_bytes >> 10));
    printf(", %s\n", info->has_f64   ? info->has_f16 ? "f16, f64" : "f64, no f16"
                     : info->has_f16 ? "f16, no f64"
                                     : "no f16, no f64");
    int64_t bytes[WORKER_N_CACHES];
    worker_caches(bytes);
    if (has_caches(info))
        tool_print_caches("           ", bytes, WORKER_N_CACHES);
    if (fitting)
        printf("           compile for it: --target \"%s\"\n", fitting);
}

/* The same as JSON, with all numbers. */
static void add_device(cJSON *list, const tec_device_info *info, const char *fitting)
{
    cJSON *d = cJSON_CreateObject();
    int64_t bytes[WORKER_N_CACHES];

    cJSON_AddStringToObject(d, "name", info->name);
    cJSON_AddStringToObject(d, "hardware", info->hardware);
    cJSON_AddStringToObject(d, "driver", info->driver);
    cJSON_AddNumberToObject(d, "memory_bytes", (double)info->memory_bytes);
    cJSON_AddNumberToObject(d, "largest_bytes", (double)info->largest_bytes);
    cJSON_AddNumberToObject(d, "shared_bytes", (double)info->shared_bytes);
    cJSON_AddNumberToObject(d, "max_threads", info->max_threads);
    cJSON_AddNumberToObject(d, "units", info->units);
    cJSON_AddNumberToObject(d, "clock_mhz", info->clock_mhz);
    cJSON_AddBoolToObject(d, "f16", info->has_f16);
    cJSON_AddBoolToObject(d, "f64", info->has_f64);
    worker_caches(bytes);
    if (has_caches(info))
        tool_add_caches(d, bytes, WORKER_N_CACHES);
    if (fitting)
        cJSON_AddStringToObject(d, "target", fitting);
    cJSON_AddItemToArray(list, d);
}

/* Why a kind has no devices, or why one of them cannot be opened. `missing` NULL means text. */
static void tell_missing(cJSON *missing, const char *kind, const char *why)
{
    cJSON *m = missing ? cJSON_CreateObject() : NULL;

    if (!m) {
        printf("%-10s -- %s\n", kind, why);
        return;
    }
    cJSON_AddStringToObject(m, "kind", kind);
    cJSON_AddStringToObject(m, "reason", why);
    cJSON_AddItemToArray(missing, m);
}

/* All devices of a kind; one that is there and cannot be opened is told of among the missing. */
static void list_kind(tec_context *cx, const char *kind, cJSON *devices, cJSON *missing)
{
    tec_error err = {0};
    int n = tec_device_count(kind, &err);

    if (n < 0)
        tell_missing(missing, kind, err.text);
    else if (n == 0)
        tell_missing(missing, kind, "its driver has no devices");
    for (int i = 0; i < n; i++) {
        tec_error own = {0};
        tec_device_info info;
        char name[64];

        snprintf(name, sizeof name, "%s:%d", kind, i);
        tec_device *device = tec_device_open(name, &own);
        if (!device)
            tell_missing(missing, name, own.text);
        else if (tec_device_describe(device, &info, &own)) {
            const char *fitting = target_for_device(cx, kind, info.hardware, info.driver);

            devices ? add_device(devices, &info, fitting) : print_device(&info, fitting);
        }
        tec_device_free(device);
    }
}

/* The command: lists what is there and what is missing, which is no failure. */
int tool_devices(int argc, char **argv)
{
    bool json = false;
    tool_list operands = {0};
    const char *tracker = NULL, *key_file = NULL;
    tool_pool_order order = {0};
    const tool_option options[] = {
        {"tracker", TOOL_TEXT, &tracker, "A:P", "lists the pool of the tracker at this address instead"},
        {"key-file", TOOL_TEXT, &key_file, "F",
         "the key file for the tracker (default: the keys of this machine's loopback server)"},
        {"set-aside", TOOL_TEXT, &order.set_aside, "NAME",
         "takes this device (SERVER/DEVICE) of the pool out of service; the key must be an administrator's"},
        {"why", TOOL_TEXT, &order.why, "TEXT", "the reason for --set-aside, which the list shows"},
        {"drain", TOOL_TEXT, &order.drain, "SERVER", "takes all devices of this server out of service"},
        {"restore", TOOL_TEXT, &order.restore, "NAME",
         "puts what was set aside (SERVER/DEVICE) or drained (SERVER) into service again"},
        {"json", TOOL_FLAG, &json, NULL, "prints JSON"},
    };
    const tool_usage usage = {
        "devices",
        "",
        "Lists the devices of this machine, each with the target to compile for. For a kind of device that "
        "is missing, prints which library was "
        "not found. "
        "With --tracker, lists the devices of a pool, who uses them, and who waits for them; or "
        "takes devices of the pool out of service, and back.",
        options,
        BASE_COUNT(options),
        0,
        0};
    int status = tool_parse(&usage, argc, argv, &operands);
    cJSON *all, *devices = NULL, *missing = NULL;

    if (status != TOOL_GO_ON)
        return status;
    if (key_file && !tracker)
        return tool_misuse("devices", "--key-file is for --tracker");
    if ((status = tool_check_order(&order, tracker, json)) != TOOL_GO_ON)
        return status;
    if (tool_is_order(&order))
        return tool_order_pool(tracker, key_file, &order);
    if (tracker)
        return tool_devices_of_pool(tracker, key_file, json);
    all = json ? cJSON_CreateObject() : NULL;
    if (all) {
        devices = cJSON_AddArrayToObject(all, "devices");
        missing = cJSON_AddArrayToObject(all, "missing");
    }
    tec_context *cx = tec_context_new();
    for (int i = 0; cx && tec_device_kind(i); i++)
        list_kind(cx, tec_device_kind(i), devices, missing);
    tec_context_free(cx);
    if (all) {
        char *text = cJSON_Print(all);

        puts(text);
        cJSON_free(text);
        cJSON_Delete(all);
    }
    return TOOL_OK;
}
