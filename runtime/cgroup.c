/* cgroup.c -- how many threads this process may run at once: the affinity mask, cut by the CPU bandwidth of
 * its control groups.
 *
 * Version 2 states "quota period" in cpu.max of the group and of each group above it; version 1 states
 * cpu.cfs_quota_us and cpu.cfs_period_us under the mount of the cpu controller. The smallest ratio counts,
 * rounded up. Inside a container, the group's path may not be visible: then the root of the mount is the
 * container's own group.
 *
 * An example: cpu.max of the group has "150000 100000", which are 1.5 CPUs, so 2 threads; the group above has
 * "max 100000", no limit; the affinity mask has 16 CPUs. The result is 2.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cpu.h"

enum { MAX_TEXT = 4096 };

/* The start of a small file, terminated; false where it cannot be read. */
static bool read_text(const char *path, char text[MAX_TEXT])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, MAX_TEXT - 1);

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

/* The smaller of two limits, where 0 is none. */
static int smaller(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Rounded up: half a CPU still is a thread. 0 means no limit, and so does a quota of -1. */
static int threads_of(long long quota, long long period)
{
    long long threads;

    if (quota <= 0 || period <= 0)
        return 0;
    threads = quota / period + (quota % period != 0);
    return threads > INT_MAX ? 0 : (int)threads;
}

/* "max" instead of a number is no limit, for which sscanf finds fewer than two numbers. */
static int limit_v2(const char *folder)
{
    char path[MAX_TEXT + 64], text[MAX_TEXT];
    long long quota, period;

    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_text(path, text) || sscanf(text, "%lld %lld", &quota, &period) != 2)
        return 0;
    return threads_of(quota, period);
}

static int limit_v1(const char *folder)
{
    char path[MAX_TEXT + 64], quota[MAX_TEXT], period[MAX_TEXT];

    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, quota))
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_text(path, period) ? threads_of(atoll(quota), atoll(period)) : 0;
}

/* The limits of mount/group and of all groups above it, up to the mount. Cuts the last part of the path off
 * until only the mount is left. */
static int limit_of_path(const char *mount, const char *group, int (*limit_of)(const char *folder))
{
    char folder[MAX_TEXT];
    size_t root = strlen(mount);
    int limit = 0;

    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= MAX_TEXT)
        return limit_of(mount);
    for (;;) {
        char *slash;

        limit = smaller(limit, limit_of(folder));
        slash = strrchr(folder, '/');
        if (strlen(folder) <= root || !slash || (size_t)(slash - folder) < root)
            return limit;
        *slash = '\0';
    }
}

/* Whether a line's list of controllers ("cpu,cpuacct") holds "cpu". */
static bool names_cpu(const char *list, size_t size)
{
    for (const char *end = list + size; list < end;) {
        size_t word = strcspn(list, ",:");

        if (word == 3 && strncmp(list, "cpu", 3) == 0)
            return true;
        list += word + 1;
    }
    return false;
}

/* One line "id:controllers:/group" of /proc/self/cgroup. "0::/group" is version 2, whose mount may also lie
 * at `unified` on a machine with both. The folder of a list of controllers has the list as its name, or "cpu"
 * as a link to it. */
static int limit_of_line(char *line, const char *mount)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    char folder[MAX_TEXT];
    size_t n;

    if (!group)
        return 0;
    n = (size_t)(group - list - 1);
    group++;
    if (n == 0) {
        snprintf(folder, sizeof folder, "%s/unified", mount);
        return smaller(limit_of_path(mount, group, limit_v2), limit_of_path(folder, group, limit_v2));
    }
    if (!names_cpu(list + 1, n))
        return 0;
    snprintf(folder, sizeof folder, "%s/%.*s", mount, (int)(n < 200 ? n : 200), list + 1);
    if (access(folder, F_OK) != 0)
        snprintf(folder, sizeof folder, "%s/cpu", mount);
    return limit_of_path(folder, group, limit_v1);
}

int rt_cgroup_threads(const char *proc_cgroup, const char *mount)
{
    char text[MAX_TEXT], *rest = NULL;
    int limit = 0;

    snprintf(text, sizeof text, "%s", proc_cgroup);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        limit = smaller(limit, limit_of_line(line, mount));
    return limit;
}

/* The set is large enough for 8192 CPUs: the usual one of 1024 would make the call fail on larger
 * machines. */
static int affinity_threads(void)
{
    enum { MAX_CPUS = 8192 };
    cpu_set_t set[MAX_CPUS / CPU_SETSIZE];

    if (sched_getaffinity(0, sizeof set, set) != 0)
        return 1;
    return CPU_COUNT_S(sizeof set, set);
}

int rt_cpu_threads(void)
{
    char text[MAX_TEXT];
    int threads = affinity_threads();

    if (read_text("/proc/self/cgroup", text))
        threads = smaller(threads, rt_cgroup_threads(text, "/sys/fs/cgroup"));
    return threads > 0 ? threads : 1;
}
