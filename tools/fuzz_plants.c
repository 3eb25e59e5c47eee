/* tools/fuzz_plants.c -- after how many cases the fuzzer finds each planted fault.
 *
 * A case finds a fault if it fails with it and passes without it, so that no other mistake is taken for the
 * planted one.
 */
#include "tools/fuzz_plants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "targets/target.h"
#include "tools/args.h"
#include "tools/data.h"

#ifndef TEC_DEBUG

bool tool_fuzz_plant(tec_context *cx, const char *name)
{
    if (strcmp(name, "none") != 0)
        base_fail(cx, TEC_INVALID, (base_loc){0}, "faults are planted in debug builds only");
    return strcmp(name, "none") == 0;
}

int tool_fuzz_plants(const tool_fuzz_jobs *jobs, const char *which)
{
    tool_fuzz_plant(jobs->cx, which);
    return tool_fail("fuzz", jobs->cx);
}

#else

/* The first case that finds the fault ends the search. */
typedef struct {
    const tool_fuzz_jobs *jobs;
    int64_t after; /* cases until it was found; 0: it was not */
    const char *where;
} search;

bool tool_fuzz_plant(tec_context *cx, const char *name)
{
    if (!base_set_plant(cx, name))
        base_fail(cx, TEC_INVALID, (base_loc){0}, "there is no planted fault '%s': see --plant list", name);
    return !base_failed(cx);
}

/* The case as it was drawn with the fault, run without it. */
static bool passes_without(const tool_fuzz_jobs *jobs, const tool_fuzz_row *row)
{
    tool_fuzz_jobs clean = *jobs;
    tool_fuzz_row again = {0};
    const char *path = base_format(jobs->cx, "/tmp/tec-fuzz-%d.te", (int)getpid()), *text = row->text;

    if (!text) {
        tec_context *cx = base_child(jobs->cx);

        base_set_plant(cx, jobs->plant);
        fuzz_case c = fuzz_make(cx, jobs->seed, row->index, target_parse(cx, jobs->target), NULL);
        text = base_strdup(jobs->cx, fuzz_case_text(cx, &c, NULL));
        tec_context_free(cx);
    }
    clean.plant = NULL;
    bool ran = base_write_file(jobs->cx, path, text, strlen(text)) && tool_fuzz_try(&clean, path, &again);
    unlink(path);
    return ran && (again.outcome == FUZZ_SAME || again.outcome == FUZZ_UNSUPPORTED);
}

/* False ends the run. */
static bool take_row(void *user, const tool_fuzz_row *row)
{
    search *s = user;

    if (row->outcome != FUZZ_WRONG || !passes_without(s->jobs, row))
        return true;
    s->after = row->index - s->jobs->first + 1;
    s->where = base_strdup(s->jobs->cx, row->where);
    return false;
}

/* Prints a row; whether it was found. */
static bool look_for(const tool_fuzz_jobs *jobs, const base_plant_row *fault, const char **why)
{
    tool_fuzz_jobs j = *jobs;
    search s = {.jobs = &j};

    j.cx = base_child(jobs->cx);
    j.plant = fault->name;
    j.row = take_row;
    j.user = &s;
    bool whole = tool_fuzz_run(&j, why);
    if (s.after)
        printf("%-26s %-20s %6" PRId64 "   %s\n", fault->name, fault->room, s.after, s.where);
    else
        printf("%-26s %-20s %6s   %s\n", fault->name, fault->room, "-", whole ? "not found" : "interrupted");
    fflush(stdout);
    tec_context_free(j.cx);
    *why = whole || *why ? *why : "interrupted";
    return s.after > 0;
}

/* Printers of kernels and lists of launches are of devices alone. */
static bool is_of_device(const base_plant_row *fault)
{
    return strcmp(fault->room, "source") == 0 || strcmp(fault->room, "launches") == 0 ||
           strcmp(fault->room, "cuda") == 0;
}

/* What the command lacks for its cases to come by the fault; NULL: nothing. */
static const char *missing(const target *machine, const base_plant_row *fault)
{
    if (strncmp(fault->room, "graph", 5) == 0)
        return "--programs";
    if (strcmp(fault->room, "cuda") == 0 && strcmp(target_arch_name(machine), "cuda") != 0)
        return "--target cuda";
    return is_of_device(fault) && target_offers(machine, TARGET_HOST) ? "--target opencl or cuda" : NULL;
}

/* Whether `all` counts the fault: of faults that are not a device's, the code of a CPU tells as much. */
static bool is_within_reach(const target *machine, const base_plant_row *fault)
{
    return !missing(machine, fault) && is_of_device(fault) == !target_offers(machine, TARGET_HOST);
}

/* By name, by number, or all within reach. */
static bool is_meant(const target *machine, const char *which, int k)
{
    char *end;
    long number = strtol(which, &end, 10);

    return (strcmp(which, "all") == 0 && is_within_reach(machine, &base_plants[k])) ||
           strcmp(which, base_plants[k].name) == 0 || (*which && !*end && number == k);
}

static int list(void)
{
    for (int k = 1; k < base_n_plants; k++)
        printf("%2d %-26s %-20s %s\n", k, base_plants[k].name, base_plants[k].room, base_plants[k].what);
    return TOOL_OK;
}

/* `which`: a name, a number, "all" or "list". Fails unless all that were meant are found. */
int tool_fuzz_plants(const tool_fuzz_jobs *jobs, const char *which)
{
    const char *why = NULL;
    const target *machine = target_parse(jobs->cx, jobs->target);
    int meant = 0, found = 0;

    if (strcmp(which, "list") == 0)
        return list();
    for (int k = 1; k < base_n_plants && !why; k++)
        if (is_meant(machine, which, k)) {
            const char *lacks = missing(machine, &base_plants[k]);

            if (lacks)
                return tool_misuse("fuzz", "no case comes by the fault '%s' of '%s' without %s",
                                   base_plants[k].name, base_plants[k].room, lacks);
            meant++;
            found += look_for(jobs, &base_plants[k], &why);
        }
    if (!meant) {
        tool_fuzz_plant(jobs->cx, which);
        return tool_fail("fuzz", jobs->cx);
    }
    if (why)
        fprintf(stderr, "tec fuzz: %s\n", why);
    printf("%d of %d found within %" PRId64 " cases of seed %" PRIu64 "\n", found, meant,
           jobs->end - jobs->first, jobs->seed);
    return found == meant ? TOOL_OK : TOOL_FAILED;
}

#endif
