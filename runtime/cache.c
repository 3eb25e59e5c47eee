/* cache.c -- see cache.h. */
#include "runtime/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/alloc.h"
#include "runtime/error.h"
#include "tec/device.h"

enum { VERSION = 1, NAME_MOST = 40, FORGOTTEN_AFTER = 3600 };

/* The beginning of an entry, in the byte order of the machine: the folder is of one machine. */
typedef struct {
    char magic[8];
    uint64_t version;
    rt_cache_key key;
    uint64_t size, checksum;
} header;

static const char magic[8] = "TECCODE";
static pthread_mutex_t settings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char folder[PATH_MAX - NAME_MOST];
    int64_t most_bytes;
} settings;
static atomic_llong n_loaded, n_built, n_files;

/* ---- settings and counts ---- */

/* Sets the folder and its bound for the whole process; NULL or "" turns the cache off. */
bool tec_device_cache(const char *folder, int64_t most_bytes, tec_error *err)
{
    const char *name = folder ? folder : "";

    if (strlen(name) >= sizeof settings.folder)
        return rt_fail(err, TEC_INVALID, "the name of the folder for device code is too long: '%.80s...'",
                       name);
    if (most_bytes < 0)
        return rt_fail(err, TEC_INVALID, "expected a number of bytes for device code, found %lld",
                       (long long)most_bytes);
    pthread_mutex_lock(&settings_lock);
    strcpy(settings.folder, name);
    settings.most_bytes = most_bytes;
    pthread_mutex_unlock(&settings_lock);
    return true;
}

void tec_device_cache_counts(int64_t *loaded, int64_t *built)
{
    if (loaded)
        *loaded = atomic_load(&n_loaded);
    if (built)
        *built = atomic_load(&n_built);
}

void rt_cache_count(bool loaded)
{
    atomic_fetch_add(loaded ? &n_loaded : &n_built, 1);
}

/* Copies the folder's name, so that no lock is held while files are read; false: there is none. */
static bool get_folder(char folder[PATH_MAX], int64_t *most_bytes)
{
    pthread_mutex_lock(&settings_lock);
    strcpy(folder, settings.folder);
    *most_bytes = settings.most_bytes;
    pthread_mutex_unlock(&settings_lock);
    return folder[0] != '\0' && *most_bytes > 0;
}

bool rt_cache_is_on(void)
{
    char folder[PATH_MAX];
    int64_t most;

    return get_folder(folder, &most);
}

/* ---- keys ---- */

/* FNV-1a of 64 bits (Fowler, Noll, Vo); the start tells the two halves of a key apart. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* With its 0 at the end, so that "a", "bc" and "ab", "c" differ. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

/* Two hashes of the same parts with different starts, so that two keys are equal by chance once in 2^128. */
rt_cache_key rt_cache_key_of(const rt_cache_parts *parts)
{
    static const uint64_t start[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};
    const uint64_t size = parts->source_size;
    rt_cache_key key;

    for (int i = 0; i < 2; i++) {
        uint64_t hash = hash_text(start[i], parts->device);

        hash = hash_text(hash_text(hash, parts->driver), parts->options);
        hash = hash_bytes(hash, &size, sizeof size);
        key.hash[i] = hash_bytes(hash, parts->source, parts->source_size);
    }
    return key;
}

/* "FOLDER/0123456789abcdef0123456789abcdef" */
static void name_entry(char path[PATH_MAX], const char *folder, const rt_cache_key *key)
{
    snprintf(path, PATH_MAX, "%.*s/%016llx%016llx", PATH_MAX - NAME_MOST, folder,
             (unsigned long long)key->hash[0], (unsigned long long)key->hash[1]);
}

/* ---- reading ---- */

static bool read_all(int fd, void *to, size_t n)
{
    for (char *at = to; n > 0;) {
        ssize_t got = read(fd, at, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool is_header(const header *head, const rt_cache_key *key, int64_t file_size)
{
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->version == VERSION &&
           memcmp(&head->key, key, sizeof *key) == 0 && head->size > 0 &&
           (uint64_t)file_size == sizeof *head + head->size;
}

/* The code of an open entry; NULL where the file is not a whole entry of this key. */
static void *read_entry(int fd, const rt_cache_key *key, size_t *size)
{
    struct stat about;
    header head;
    void *code;

    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || !read_all(fd, &head, sizeof head) ||
        !is_header(&head, key, about.st_size))
        return NULL;
    *size = (size_t)head.size;
    code = rt_alloc(*size, NULL);
    if (code && read_all(fd, code, *size) && hash_bytes(head.version, code, *size) == head.checksum)
        return code;
    rt_free(code);
    return NULL;
}

/* The entry's file gets the present time, which keeps it from being removed as the oldest. */
void *rt_cache_load(const rt_cache_key *key, size_t *size)
{
    char folder[PATH_MAX], path[PATH_MAX];
    int64_t most;
    void *code;
    int fd;

    if (!get_folder(folder, &most))
        return NULL;
    name_entry(path, folder, key);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    code = read_entry(fd, key, size);
    if (code)
        futimens(fd, NULL); /* used now: the last to be removed */
    close(fd);
    return code;
}

/* ---- writing ---- */

/* Entries have 32 digits; an unfinished one begins with a point. */
static bool is_entry(const char *name)
{
    return strlen(name) == 32 && strspn(name, "0123456789abcdef") == 32;
}

/* Adds up the entries of the folder and finds the one that was used longest ago. Unfinished files that a
 * process left behind an hour ago are removed. */
static int64_t look_through(DIR *dir, char oldest[NAME_MOST])
{
    struct timespec first = {0};
    int64_t total = 0;

    oldest[0] = '\0';
    rewinddir(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat about;
        bool unfinished = e->d_name[0] == '.' && strstr(e->d_name, ".part");

        if ((!is_entry(e->d_name) && !unfinished) ||
            fstatat(dirfd(dir), e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode))
            continue;
        if (unfinished) {
            if (about.st_mtim.tv_sec + FORGOTTEN_AFTER < time(NULL))
                unlinkat(dirfd(dir), e->d_name, 0);
            continue;
        }
        total += about.st_size;
        if (oldest[0] && (about.st_mtim.tv_sec > first.tv_sec ||
                          (about.st_mtim.tv_sec == first.tv_sec && about.st_mtim.tv_nsec >= first.tv_nsec)))
            continue;
        first = about.st_mtim;
        strcpy(oldest, e->d_name);
    }
    return total;
}

/* Removes entries, oldest first, until the rest is within the bound. */
static void keep_bound(const char *folder, int64_t most_bytes)
{
    DIR *dir = opendir(folder);
    char oldest[NAME_MOST];

    if (!dir)
        return;
    while (look_through(dir, oldest) > most_bytes && oldest[0])
        if (unlinkat(dirfd(dir), oldest, 0) != 0 && errno != ENOENT)
            break;
    closedir(dir);
}

static bool write_all(int fd, const void *from, size_t n)
{
    for (const char *at = from; n > 0;) {
        ssize_t put = write(fd, at, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

/* Makes the folder and those above it, as `mkdir -p` does; failures show when a file is made there. */
static void make_folder(const char *folder)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s", folder);
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(path, 0700);
            *at = '/';
        }
    mkdir(path, 0700);
}

/* The name of an unfinished entry has the process and a number, so that no two writers share a file. */
void rt_cache_save(const rt_cache_key *key, const void *code, size_t size)
{
    char folder[PATH_MAX], path[PATH_MAX], part[PATH_MAX];
    header head = {
        .version = VERSION, .key = *key, .size = size, .checksum = hash_bytes(VERSION, code, size)};
    int64_t most;
    bool good;
    int fd;

    if (!get_folder(folder, &most) || size == 0 || (uint64_t)most <= sizeof head ||
        size > (uint64_t)most - sizeof head)
        return;
    memcpy(head.magic, magic, sizeof magic);
    make_folder(folder);
    name_entry(path, folder, key);
    snprintf(part, sizeof part, "%.*s/.%ld.%lld.part", PATH_MAX - NAME_MOST, folder, (long)getpid(),
             (long long)atomic_fetch_add(&n_files, 1));
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    good = write_all(fd, &head, sizeof head) && write_all(fd, code, size);
    good = close(fd) == 0 && good;
    if (!good || rename(part, path) != 0)
        unlink(part);
    else
        keep_bound(folder, most);
}
