/* The folder of compiled device code: what is found again, what is not, and what is removed. */
#include "runtime/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "runtime/alloc.h"
#include "tec/device.h"

enum { HEADER = 48 };

static char folder[] = "/tmp/tec-cache-XXXXXX";

static void open_folder(void)
{
    cr_assert(mkdtemp(folder));
    cr_assert(tec_device_cache(folder, 1 << 20, NULL));
}

static void close_folder(void)
{
    char command[80];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}
TestSuite(cache, .init = open_folder, .fini = close_folder);

static rt_cache_key key_of(const char *source, const char *driver)
{
    return rt_cache_key_of(&(rt_cache_parts){source, strlen(source), "device", driver, "-O"});
}

static void path_of(const rt_cache_key *key, char path[80])
{
    snprintf(path, 80, "%s/%016llx%016llx", folder, (unsigned long long)key->hash[0],
             (unsigned long long)key->hash[1]);
}

static bool has(const rt_cache_key *key, const char *want)
{
    size_t size = 0;
    char *code = rt_cache_load(key, &size);
    bool same = code && size == strlen(want) && memcmp(code, want, size) == 0;

    rt_free(code);
    return same;
}

/* Changes one byte of an entry; 0 at its end: cuts the entry there. */
static void damage(const rt_cache_key *key, long at, bool cut)
{
    char path[80], byte;
    int fd;

    path_of(key, path);
    fd = open(path, O_RDWR);
    cr_assert(fd >= 0);
    if (cut)
        cr_assert_eq(ftruncate(fd, at), 0);
    else {
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

Test(cache, finds_what_was_saved_under_the_same_key_alone)
{
    rt_cache_key key = key_of("source", "1"), other = key_of("source", "2"), third = key_of("sourcf", "1");

    cr_assert(!has(&key, "code"));
    rt_cache_save(&key, "code", 4);
    cr_assert(has(&key, "code"));
    cr_assert(!has(&other, "code"), "another driver");
    cr_assert(!has(&third, "code"), "another source");
}

Test(cache, refuses_an_entry_with_any_byte_changed_and_replaces_it)
{
    rt_cache_key key = key_of("source", "1");

    for (long at = 0; at < HEADER + 4; at++) {
        rt_cache_save(&key, "code", 4);
        cr_assert(has(&key, "code"));
        damage(&key, at, false);
        cr_assert(!has(&key, "code"), "byte %ld", at);
    }
}

Test(cache, refuses_an_entry_that_is_cut_anywhere)
{
    rt_cache_key key = key_of("source", "1");

    for (long at = 0; at < HEADER + 4; at++) {
        rt_cache_save(&key, "code", 4);
        damage(&key, at, true);
        cr_assert(!has(&key, "code"), "cut at %ld", at);
    }
}

Test(cache, keeps_nothing_where_it_cannot_write)
{
    rt_cache_key key = key_of("source", "1");
    char file[80];

    snprintf(file, sizeof file, "%s/file", folder);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    strcat(file, "/below");
    cr_assert(tec_device_cache(file, 1 << 20, NULL));
    rt_cache_save(&key, "code", 4);
    cr_assert(!has(&key, "code"));
    cr_assert(tec_device_cache(NULL, 1 << 20, NULL));
    cr_assert(!rt_cache_is_on());
}

Test(cache, removes_the_entries_that_were_used_longest_ago)
{
    rt_cache_key key[3] = {key_of("a", ""), key_of("b", ""), key_of("c", "")};
    const char *name[3] = {"aaaa", "bbbb", "cccc"};

    cr_assert(tec_device_cache(folder, 2 * (HEADER + 4), NULL));
    for (int i = 0; i < 2; i++) {
        char path[80];

        rt_cache_save(&key[i], name[i], 4);
        path_of(&key[i], path);
        cr_assert_eq(utimensat(AT_FDCWD, path, (const struct timespec[2]){{100 + i, 0}, {100 + i, 0}}, 0), 0);
    }
    cr_assert(has(&key[0], "aaaa")); /* used now, so b is older */
    rt_cache_save(&key[2], name[2], 4);
    cr_assert(has(&key[0], "aaaa"));
    cr_assert(!has(&key[1], "bbbb"));
    cr_assert(has(&key[2], "cccc"));
    rt_cache_save(&key[1], "larger than all entries together may ever be, header or not", 57);
    cr_assert(has(&key[0], "aaaa"), "an entry that cannot fit removes no other");
}

Test(cache, shows_whole_entries_while_other_processes_write)
{
    enum { WRITERS = 4, ROUNDS = 200 };
    rt_cache_key key = key_of("source", "1");
    int status;

    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            for (int i = 0; i < ROUNDS; i++)
                rt_cache_save(&key, "code", 4);
            _exit(0);
        }
    rt_cache_save(&key, "code", 4);
    for (int i = 0; i < ROUNDS; i++)
        cr_assert(has(&key, "code"));
    for (int w = 0; w < WRITERS; w++)
        cr_assert(wait(&status) > 0 && status == 0);
}
