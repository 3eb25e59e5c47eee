/* tools/report.c -- see report.h. */
#include "tools/report.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/data.h"

static void print_json(cJSON *json)
{
    char *text = cJSON_Print(json);

    printf("%s\n", text ? text : "");
    free(text);
    cJSON_Delete(json);
}

/* Without the gaps that align them. */
static int64_t weight_bytes(const rt_module_desc *module)
{
    int64_t bytes = 0;

    for (int i = 0; i < module->n_constants; i++) {
        int64_t n = base_dtype_bytes(module->constants[i].dtype);

        for (int d = 0; d < module->constants[i].rank; d++)
            n *= module->constants[i].shape[d];
        bytes += n;
    }
    return bytes;
}

/* A line about what was compiled, on standard error, or one JSON object on standard output. The pool's size
 * is told only where it does not depend on symbols. */
void tool_report_module(tec_context *cx, const rt_module_desc *module, const char *path, double seconds,
                        bool json, bool quiet)
{
    int64_t pool = -1;

    (void)cx;
    if (module->n_graphs && !rt_dim_is_const(module->graphs[0].pool_size, &pool))
        pool = -1;
    if (json) {
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "module", path);
        cJSON_AddStringToObject(j, "target", module->target);
        cJSON_AddNumberToObject(j, "kernels", module->n_functions);
        cJSON_AddNumberToObject(j, "steps", module->n_graphs ? module->graphs[0].n_steps : 0);
        cJSON_AddNumberToObject(j, "weight_bytes", (double)weight_bytes(module));
        cJSON_AddNumberToObject(j, "pool_bytes", (double)pool);
        cJSON_AddNumberToObject(j, "seconds", seconds);
        print_json(j);
        return;
    }
    if (quiet)
        return;
    fprintf(stderr, "%s: %d kernels, %d steps, %.2f MB of weights", path, module->n_functions,
            module->n_graphs ? module->graphs[0].n_steps : 0, (double)weight_bytes(module) / 1e6);
    if (pool >= 0)
        fprintf(stderr, ", %.2f MB for intermediate values", (double)pool / 1e6);
    fprintf(stderr, "; compiled in %.2f s\n", seconds);
}

/* Times in milliseconds; operations per second only where their number is known. per_second is by the mean,
 * since that is what a service sees. */
static void print_timing_json(const char *what, const tec_timing *timing, double flops)
{
    cJSON *j = cJSON_CreateObject();

    cJSON_AddStringToObject(j, "name", what);
    cJSON_AddNumberToObject(j, "min_ms", timing->min_s * 1e3);
    cJSON_AddNumberToObject(j, "median_ms", timing->median_s * 1e3);
    cJSON_AddNumberToObject(j, "p90_ms", timing->p90_s * 1e3);
    cJSON_AddNumberToObject(j, "p95_ms", timing->p95_s * 1e3);
    cJSON_AddNumberToObject(j, "p99_ms", timing->p99_s * 1e3);
    cJSON_AddNumberToObject(j, "mean_ms", timing->mean_s * 1e3);
    cJSON_AddNumberToObject(j, "per_second", 1 / timing->mean_s);
    cJSON_AddNumberToObject(j, "measurements", timing->repeats);
    if (flops > 0)
        cJSON_AddNumberToObject(j, "gflops", flops / timing->median_s * 1e-9);
    print_json(j);
}

/* A timing as one line or as JSON. */
void tool_print_timing(const char *what, const tec_timing *timing, double flops, bool json)
{
    char min[32], median[32], p90[32], p95[32], p99[32], mean[32];

    if (json) {
        print_timing_json(what, timing, flops);
        return;
    }
    printf("%s: min %s, median %s, p90 %s, p95 %s, p99 %s, mean %s, %.1f a second", what,
           tool_seconds(timing->min_s, min, sizeof min),
           tool_seconds(timing->median_s, median, sizeof median),
           tool_seconds(timing->p90_s, p90, sizeof p90), tool_seconds(timing->p95_s, p95, sizeof p95),
           tool_seconds(timing->p99_s, p99, sizeof p99), tool_seconds(timing->mean_s, mean, sizeof mean),
           1 / timing->mean_s);
    if (flops > 0)
        printf(", %.2f GFLOP/s", flops / timing->median_s * 1e-9);
    printf(" (%d measurements)\n", timing->repeats);
}

/* One object per step that ran. */
static void print_profile_json(const tec_profile_row *rows, int n)
{
    cJSON *all = cJSON_CreateArray();

    for (int i = 0; i < n; i++) {
        const tec_profile_row r = rows[i];
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "name", r.name ? r.name : "");
        cJSON_AddStringToObject(j, "nodes", r.nodes ? r.nodes : "");
        cJSON_AddStringToObject(j, "origin", r.origin ? r.origin : "");
        cJSON_AddNumberToObject(j, "calls", (double)r.calls);
        cJSON_AddNumberToObject(j, "median_ms", r.median_s * 1e3);
        cJSON_AddNumberToObject(j, "share", r.share);
        cJSON_AddNumberToObject(j, "gflops", r.gflops);
        cJSON_AddNumberToObject(j, "gbytes", r.gbytes);
        cJSON_AddItemToArray(all, j);
    }
    print_json(all);
}

/* The rates are those at the median; what is not known of a step is a dash or nothing. */
void tool_print_profile(const tec_profile_row *rows, int n, bool json)
{
    char t[32];

    if (json) {
        print_profile_json(rows, n);
        return;
    }
    printf("%12s %6s %9s %8s  %-8s %s\n", "median", "share", "GFLOP/s", "GB/s", "origin", "step");
    for (int i = 0; i < n; i++) {
        const tec_profile_row r = rows[i];

        printf("%12s %5.1f%% %9.2f %8.2f  %-8s %s (%s)\n", tool_seconds(r.median_s, t, sizeof t),
               r.share * 100, r.gflops, r.gbytes, r.origin ? r.origin : "-", r.name ? r.name : "",
               r.nodes ? r.nodes : "");
    }
}

static const char *const group_names[] = {[TEC_ROW_KERNEL] = "kernel",
                                          [TEC_ROW_SHAPE_KERNEL] = "shape kernel",
                                          [TEC_ROW_MEMORY] = "memory",
                                          [TEC_ROW_CONTROL] = "control"};

/* "copies": {"uploads": 2, ...}, of the last run */
static void add_copies_json(cJSON *all, const tec_program_counts *counts)
{
    cJSON *copies = counts ? cJSON_AddObjectToObject(all, "copies") : NULL;

    if (!copies)
        return;
    cJSON_AddNumberToObject(copies, "uploads", (double)counts->uploads);
    cJSON_AddNumberToObject(copies, "upload_bytes", (double)counts->upload_bytes);
    cJSON_AddNumberToObject(copies, "downloads", (double)counts->downloads);
    cJSON_AddNumberToObject(copies, "download_bytes", (double)counts->download_bytes);
}

/* "memory": {"storages": 3, ...}, of the last run */
static void add_memory_json(cJSON *all, const tec_program_counts *counts)
{
    cJSON *memory = counts ? cJSON_AddObjectToObject(all, "memory") : NULL;

    if (!memory)
        return;
    cJSON_AddNumberToObject(memory, "allocations", (double)counts->allocations);
    cJSON_AddNumberToObject(memory, "from_system", (double)counts->from_system);
    cJSON_AddNumberToObject(memory, "storages", (double)counts->storages);
    cJSON_AddNumberToObject(memory, "storage_bytes", (double)counts->storage_bytes);
    cJSON_AddNumberToObject(memory, "peak_bytes", (double)counts->peak);
    cJSON_AddNumberToObject(memory, "copied_bytes", (double)counts->copied);
}

/* {"rows": [...], "shares": {"kernel": 0.8, ...}, "memory": {...}, "copies": {...}} */
static void print_program_profile_json(const tec_profile_row *rows, int n, const tec_program_counts *counts)
{
    cJSON *all = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(all, "rows"),
          *shares = cJSON_AddObjectToObject(all, "shares");
    double share[BASE_COUNT(group_names)] = {0};

    for (int i = 0; i < n; i++) {
        const tec_profile_row r = rows[i];
        cJSON *j = cJSON_CreateObject();

        cJSON_AddStringToObject(j, "name", r.name);
        cJSON_AddStringToObject(j, "group", group_names[r.group]);
        cJSON_AddStringToObject(j, "origin", r.origin ? r.origin : "");
        cJSON_AddNumberToObject(j, "calls", (double)r.calls);
        cJSON_AddNumberToObject(j, "median_ns", r.median_s * 1e9);
        cJSON_AddNumberToObject(j, "total_ms", r.total_s * 1e3);
        cJSON_AddNumberToObject(j, "share", r.share);
        cJSON_AddNumberToObject(j, "gflops", r.gflops);
        cJSON_AddNumberToObject(j, "gbytes", r.gbytes);
        cJSON_AddItemToArray(list, j);
        share[r.group] += r.share;
    }
    for (int g = 0; g < BASE_COUNT(group_names); g++)
        cJSON_AddNumberToObject(shares, group_names[g], share[g]);
    add_memory_json(all, counts);
    add_copies_json(all, counts);
    print_json(all);
}

/* What the last run asked of memory; tensors that grow in place copy their new rows alone. */
static void print_memory(const tec_program_counts *counts)
{
    if (counts)
        printf("memory of the last run: %lld storages (%lld bytes), %lld objects from the system, peak %lld "
               "bytes, "
               "%lld bytes copied to extend tensors\n",
               (long long)counts->storages, (long long)counts->storage_bytes, (long long)counts->from_system,
               (long long)counts->peak, (long long)counts->copied);
}

/* Values that moved between main memory and a device in the last run. */
static void print_copies(const tec_program_counts *counts)
{
    if (counts && counts->uploads + counts->downloads)
        printf("copies of the last run: %lld to the device (%lld bytes), %lld back (%lld bytes)\n",
               (long long)counts->uploads, (long long)counts->upload_bytes, (long long)counts->downloads,
               (long long)counts->download_bytes);
}

/* One line per kernel and per kind of instruction, then one line with the shares of the groups. */
void tool_print_program_profile(const tec_profile_row *rows, int n, const tec_program_counts *counts,
                                bool json)
{
    double share[BASE_COUNT(group_names)] = {0};
    char t[32];

    if (json) {
        print_program_profile_json(rows, n, counts);
        return;
    }
    printf("%12s %10s %6s %9s %8s  %-12s %s\n", "median", "calls", "share", "GFLOP/s", "GB/s", "group",
           "name");
    for (int i = 0; i < n; i++) {
        const tec_profile_row r = rows[i];

        printf("%12s %10lld %5.1f%% %9.2f %8.2f  %-12s %s\n", tool_seconds(r.median_s, t, sizeof t),
               (long long)r.calls, r.share * 100, r.gflops, r.gbytes, group_names[r.group], r.name);
        share[r.group] += r.share;
    }
    for (int g = 0; g < BASE_COUNT(group_names); g++)
        printf("%s%s %.1f %%", g ? ", " : "", group_names[g], share[g] * 100);
    printf("\n");
    print_memory(counts);
    print_copies(counts);
}

/* Names and shapes of a graph's inputs or outputs, with its symbols. */
static void print_tensors(const char *what, const rt_graph_desc *graph, const rt_tensor_desc *tensor,
                          int count)
{
    const char *names[RT_MAX_SYMBOLS];
    char text[256];

    for (int i = 0; i < graph->n_symbols; i++)
        names[i] = graph->symbols[i].name;
    for (int i = 0; i < count; i++) {
        printf("  %s %s: %s[", what, tensor[i].name, base_dtype_print(tensor[i].dtype, text, sizeof text));
        for (int d = 0; d < tensor[i].rank; d++)
            printf("%s%s", d ? ", " : "", rt_dim_text(tensor[i].shape[d], names, text, sizeof text));
        printf("]\n");
    }
}

void tool_print_graph(const rt_graph_desc *graph)
{
    printf("graph %s: %d steps\n", graph->name, graph->n_steps);
    print_tensors("input", graph, graph->inputs, graph->n_inputs);
    print_tensors("output", graph, graph->outputs, graph->n_outputs);
}

void tool_report_tf32(const char *model, int rounded, int kernels)
{
    if (rounded == 0)
        fprintf(stderr, "%s: precision tf32 changes nothing: no schedule has a product by tensor cores\n",
                model);
    else
        fprintf(stderr, "%s: precision tf32: %d of %d kernels round products of f32\n", model, rounded,
                kernels);
}
