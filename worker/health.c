/* worker/health.c -- see health.h. */
#include "worker/health.h"

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

/* Boards have a device tree, whose text may end in a zero; other machines name their processor. */
bool worker_cpu_name(char *name, size_t size)
{
    FILE *f = fopen("/sys/firmware/devicetree/base/model", "re");
    bool found = f && fgets(name, (int)size, f) && *name;

    if (f)
        fclose(f);
    return found || read_cpuinfo(0, "model name", name, size);
}
