/* worker/health.c -- see health.h. */
#include "worker/health.h"

#include "runtime/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number in a file of /sys; 0: there is none. */
int64_t worker_system_number(const char *path)
{
    FILE *f = fopen(path, "re");
    char line[64] = "";

    if (!f)
        return 0;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    return got ? strtoll(line, NULL, 10) : 0;
}

/* The value of a line "KEY : VALUE" of /proc/cpuinfo behind the line of processor `cpu`, without its end. */
static bool read_cpuinfo(int cpu, const char *key, char *value, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    int processor = -1;
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');

        if (colon && strncmp(line, "processor", 9) == 0)
            processor = atoi(colon + 1);
        found = colon && processor == cpu && strncmp(line, key, strlen(key)) == 0;
        if (found)
            snprintf(value, size, "%.*s", (int)strcspn(colon + 1 + strspn(colon + 1, " \t"), "\n"),
                     colon + 1 + strspn(colon + 1, " \t"));
    }
    if (f)
        fclose(f);
    return found && *value;
}

/* Virtual machines have no cpufreq; there x86 tells by a line "cpu MHz : 2100.000". */
static int64_t clock_of_cpuinfo(int cpu)
{
    char value[64];
    double mhz = read_cpuinfo(cpu, "cpu MHz", value, sizeof value) ? strtod(value, NULL) : 0;

    return mhz > 0 && mhz < 1e5 ? (int64_t)(mhz + 0.5) : 0;
}

/* From the driver of clock rates where there is one, else from /proc/cpuinfo; 0: unknown, as in most virtual
 * machines. */
int64_t worker_clock_mhz(void)
{
    int cpu = sched_getcpu();
    char path[96];

    if (cpu < 0)
        return 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
    int64_t mhz = worker_system_number(path) / 1000;
    return mhz > 0 && mhz < 100000 ? mhz : clock_of_cpuinfo(cpu);
}

double worker_temperature(void)
{
    double degrees = (double)worker_system_number("/sys/class/thermal/thermal_zone0/temp") / 1000;

    return degrees > -100 && degrees < 200 ? degrees : 0;
}

/* Which of the caches an entry of /sys is; WORKER_N_CACHES: none of them. Level 1 is often two: for data and
 * for code. */
static int which_cache(int64_t level, const char *type)
{
    if (level == 1)
        return *type == 'I' ? WORKER_L1_CODE : WORKER_L1_DATA;
    return level == 2 ? WORKER_L2 : level == 3 ? WORKER_L3 : WORKER_N_CACHES;
}

/* A file of /sys for each cache says "32768K"; where there are none, the C library or the CPU may know. */
void worker_caches(int64_t bytes[WORKER_N_CACHES])
{
    int64_t known[3];

    rt_cpu_caches(known);
    bytes[WORKER_L1_DATA] = known[0];
    bytes[WORKER_L1_CODE] = 0;
    bytes[WORKER_L2] = known[1];
    bytes[WORKER_L3] = known[2];
    for (int i = 0; i < 8; i++) {
        char path[100], type[20] = "";

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        FILE *f = fopen(path, "re");
        if (!f || !fgets(type, sizeof type, f))
            *type = '\0';
        if (f)
            fclose(f);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        int which = which_cache(worker_system_number(path), type);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        int64_t size = worker_system_number(path) * 1024;
        if (which < WORKER_N_CACHES && size > 0)
            bytes[which] = size;
    }
}

/* Boards have a device tree, whose text may end in a zero; other machines name their processor. */
bool worker_cpu_name(char *name, size_t size)
{
    FILE *f = fopen("/sys/firmware/devicetree/base/model", "re");
    bool found = f && fgets(name, (int)size, f) && *name;

    if (f)
        fclose(f);
    return found || read_cpuinfo(0, "model name", name, size);
}
