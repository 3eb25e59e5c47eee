/* tools/fuzz_programs.c -- see fuzz_programs.h. */
#include "tools/fuzz_programs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/programs/programs.h"
#include "graph/text.h"
#include "tools/args.h"
#include "tools/data.h"
#include "tools/fuzz_plants.h"

/* ---- counts ---- */

/* What no program can have is left out. */
static void print_counts(const fuzz_program_counts *counts)
{
    printf("cases with each kind of node:");
    for (int i = 0; i < GRAPH_N_KINDS; i++)
        if (fuzz_program_has_node((graph_node_kind)i) || counts->node[i])
            printf(" %s %" PRId64, graph_kind_text((graph_node_kind)i), counts->node[i]);
    printf("\ncases with each instruction:");
    for (int i = 0; i < RT_N_INSTRUCTIONS; i++)
        if (fuzz_program_has_instruction(i) || counts->instruction[i])
            printf(" %s %" PRId64, rt_instruction_name(i), counts->instruction[i]);
    printf("\ncases that each pass changed:");
    for (int i = 0; i < counts->n_passes; i++)
        printf(" %s %" PRId64, counts->pass[i], counts->passed[i]);
    printf("\ncases with functions with type parameters:");
    for (int i = 0; i < FUZZ_N_USES; i++)
        printf("%s %s %" PRId64, i ? "," : "", fuzz_program_uses[i], counts->use[i]);
    printf("\ncases that stop at extents that are not equal: %" PRId64 "\n", counts->stops);
}

/* Each case in a context of its own, so that memory does not grow with their number. */
static int run_all(tec_context *cx, const tool_fuzz_programs *programs)
{
    fuzz_program_counts counts = fuzz_program_no_counts();
    comp_cache *cache = comp_cache_new(cx);
    int64_t findings = 0;

    for (int64_t i = programs->first; i < programs->first + programs->cases; i++) {
        tec_context *inner = base_child(cx);
        fuzz_program_case c = {.cx = inner,
                               .target = programs->target,
                               .seed = programs->seed,
                               .index = i,
                               .counts = &counts,
                               .cache = cache};

        if (!fuzz_program_try(&c)) {
            findings++;
            printf("case %" PRId64 " of seed %" PRIu64 ": %s\n%s\n", i, programs->seed, c.why,
                   c.text ? c.text : "");
            fflush(stdout);
        }
        tec_context_free(inner);
    }
    printf("%" PRId64 " programs, %" PRId64 " findings\n", programs->cases, findings);
    print_counts(&counts);
    return findings ? TOOL_FAILED : TOOL_OK;
}

/* ---- planted faults ---- */

#ifdef TEC_DEBUG

/* The faults of programs are planted in these rooms; only programs for a device are placed. */
static bool is_of_programs(const base_plant_row *fault, const target *machine)
{
    return strncmp(fault->room, "graph", 5) == 0 &&
           (strcmp(fault->room, "graph/place") != 0 || !target_offers(machine, TARGET_HOST));
}

/* One case, with a fault or without (NULL); *why is what differs. */
static bool agrees(tec_context *cx, const tool_fuzz_programs *programs, int64_t index, const char *plant,
                   comp_cache *cache, const char **why)
{
    tec_context *inner = base_child(cx);
    fuzz_program_case c = {.cx = inner,
                           .target = programs->target,
                           .seed = programs->seed,
                           .index = index,
                           .plant = plant,
                           .cache = cache};
    bool ok = fuzz_program_try(&c);

    *why = ok ? NULL : base_strdup(cx, c.why);
    tec_context_free(inner);
    return ok;
}

/* Whether a case differs with the fault and agrees without it. */
static bool look_for(tec_context *cx, const tool_fuzz_programs *programs, const base_plant_row *fault,
                     comp_cache *cache)
{
    const char *why, *clean;

    for (int64_t i = programs->first; i < programs->first + programs->cases; i++)
        if (!agrees(cx, programs, i, fault->name, cache, &why) &&
            agrees(cx, programs, i, NULL, cache, &clean)) {
            printf("%-24s %-20s %6" PRId64 "   %.90s\n", fault->name, fault->room, i - programs->first + 1,
                   why);
            fflush(stdout);
            return true;
        }
    printf("%-24s %-20s %6s   not found\n", fault->name, fault->room, "-");
    return false;
}

/* All faults of passes over programs, or the one that was named. Fails unless each one is found. */
static int run_plants(tec_context *cx, const tool_fuzz_programs *programs)
{
    comp_cache *cache = comp_cache_new(cx);
    int meant = 0, found = 0;

    for (int k = 1; k < base_n_plants; k++) {
        const base_plant_row *fault = &base_plants[k];
        bool all = strcmp(programs->plant, "all") == 0 && is_of_programs(fault, programs->target);

        if (!all && strcmp(programs->plant, fault->name) != 0)
            continue;
        meant++;
        found += look_for(cx, programs, fault, cache);
    }
    if (!meant && !tool_fuzz_plant(cx, programs->plant))
        return tool_fail("fuzz", cx);
    printf("%d of %d found within %" PRId64 " programs of seed %" PRIu64 "\n", found, meant, programs->cases,
           programs->seed);
    return found == meant ? TOOL_OK : TOOL_FAILED;
}

#else

static int run_plants(tec_context *cx, const tool_fuzz_programs *programs)
{
    tool_fuzz_plant(cx, programs->plant);
    return tool_fail("fuzz", cx);
}

#endif

int tool_fuzz_programs_run(tec_context *cx, const tool_fuzz_programs *programs)
{
    return strcmp(programs->plant, "none") == 0 ? run_all(cx, programs) : run_plants(cx, programs);
}
