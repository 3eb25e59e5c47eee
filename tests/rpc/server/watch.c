/* tests/rpc/server/watch.c -- the paths that a server reads in the memory of its sessions: whatever a module
 * writes there, they become a path from the root, or nothing. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/server/sandbox.h"
#include "rpc/server/watch.h"

static const char *found(int from, const char *path)
{
    static char to[RPC_WATCH_PATH];
    long self = getpid();

    return rpc_watch_path(self, self, from, path, to) ? to : "none";
}

Test(watch, finds_paths_from_the_root)
{
    char mine[64];

    snprintf(mine, sizeof mine, "/proc/%ld/maps", (long)getpid());
    cr_assert_str_eq(found(AT_FDCWD, "/usr/../etc//./passwd"), "/etc/passwd");
    cr_assert_str_eq(found(AT_FDCWD, "/../../etc/passwd/"), "/etc/passwd");
    cr_assert_str_eq(found(AT_FDCWD, "/"), "");
    cr_assert_str_eq(found(AT_FDCWD, mine), "/proc/self/maps");
    cr_assert_str_eq(found(AT_FDCWD, "/proc/thread-self"), "/proc/self");
    cr_assert_str_eq(found(AT_FDCWD, "/proc/selfish"), "/proc/selfish");
    cr_assert_str_eq(found(77, "x"), "none"); /* no such file is open */

    cr_assert_eq(chdir("/usr/lib"), 0);
    int fd = open("/usr/include", O_RDONLY | O_DIRECTORY);
    cr_assert_str_eq(found(AT_FDCWD, "../share/x"), "/usr/share/x");
    cr_assert_str_eq(found(AT_FDCWD, ""), "/usr/lib");
    cr_assert_str_eq(found(fd, "linux/./seccomp.h"), "/usr/include/linux/seccomp.h");
    cr_assert_str_eq(found(fd, "/etc"), "/etc");
    close(fd);
}

/* Where /lib is a link to usr/lib, what is named from there is found below /usr. */
Test(watch, follows_the_link_of_lib)
{
    char link[16] = "";
    bool is_link = readlink("/lib", link, sizeof link - 1) > 0 && strcmp(link, "usr/lib") == 0;

    cr_assert_str_eq(found(AT_FDCWD, "/lib/x/../../share"), is_link ? "/usr/share" : "/share");
}

Test(watch, knows_what_a_session_may_open)
{
    static const struct {
        const char *path;
        bool driver, writes, may;
    } cases[] = {{"/tmp/s/x", false, true, true},
                 {"/tmp/s", false, false, true},
                 {"/tmp/sx", false, false, false},
                 {"/tmp", false, false, false},
                 {"/usr/lib/libc.so.6", false, false, true},
                 {"/usr/lib/libc.so.6", true, true, false},
                 {"/usrx", true, false, false},
                 {"/etc/passwd", true, false, false},
                 {"/dev/dri/card0", false, false, false},
                 {"/dev/dri/card0", true, true, true},
                 {"/proc/1/mem", false, false, false},
                 {"", true, false, false}};

    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        cr_assert_eq(rpc_sandbox_lists(cases[i].driver, "/tmp/s", cases[i].path, cases[i].writes),
                     cases[i].may, "case %d: %s", i, cases[i].path);
}

/* Parts of paths at random, up to twice of what is taken. */
Test(watch, makes_a_path_of_anything)
{
    static const char *const parts[] = {"/",
                                        "//",
                                        ".",
                                        "..",
                                        "/..",
                                        "a",
                                        "/lib",
                                        "/proc/",
                                        "thread-self",
                                        "self",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char path[2 * RPC_WATCH_PATH + 64], to[RPC_WATCH_PATH];

    srand(1);
    for (int i = 0; i < 20000; i++) {
        size_t n = 0, most = (size_t)rand() % (2 * RPC_WATCH_PATH);

        path[0] = '\0';
        while (n < most)
            n += (size_t)snprintf(path + n, sizeof path - n, "%s",
                                  parts[(size_t)rand() % (sizeof parts / sizeof *parts)]);
        memset(to, 'x', sizeof to);
        if (!rpc_watch_path(getpid(), getpid(), AT_FDCWD, path, to))
            continue;
        size_t length = strnlen(to, sizeof to);
        cr_assert(length < sizeof to && (length == 0 || (to[0] == '/' && to[length - 1] != '/')), "%s", path);
        cr_assert_not(strstr(to, "//") || strstr(to, "/../") || strstr(to, "/./"), "%s becomes %s", path, to);
    }
}
