/* text.c -- strings in the arena, growing texts, whole files.
 *
 * All formatting goes through base_print, so that a number reads back whatever the locale of the process is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/context.h"

int base_print(char *buffer, size_t size, const char *fmt, va_list args)
{
    /* The "C" locale is part of libc: this allocates nothing and cannot fail. */
    locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    int n = vsnprintf(buffer, size, fmt, args);

    uselocale(before);
    return n > 0 ? n : 0; /* all formats are ours, so that none fails; one that did would print nothing */
}

char *base_strdup(tec_context *cx, const char *s)
{
    return base_copy(cx, s, strlen(s) + 1);
}

char *base_strndup(tec_context *cx, const char *s, size_t n)
{
    size_t length = strnlen(s, n);
    char *copy = base_alloc(cx, length + 1);

    memcpy(copy, s, length);
    return copy;
}

char *base_vformat(tec_context *cx, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = base_print(NULL, 0, fmt, again);
    va_end(again);
    char *text = base_alloc(cx, (size_t)n + 1);
    base_print(text, (size_t)n + 1, fmt, args);
    return text;
}

char *base_format(tec_context *cx, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = base_vformat(cx, fmt, args);
    va_end(args);
    return text;
}

bool base_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int base_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

bool base_ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && strcmp(s + n - m, suffix) == 0;
}

bool base_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Room for `more` characters and the final NUL. */
static void grow(tec_context *cx, base_text *text, size_t more)
{
    if (text->n + more < text->cap)
        return;
    size_t cap = text->cap ? text->cap : 64;
    while (cap <= text->n + more)
        cap *= 2;
    char *data = base_alloc(cx, cap);
    if (text->n)
        memcpy(data, text->data, text->n);
    text->data = data;
    text->cap = cap;
}

void base_addn(tec_context *cx, base_text *text, const char *s, size_t n)
{
    grow(cx, text, n);
    memcpy(text->data + text->n, s, n);
    text->n += n;
    text->data[text->n] = '\0';
}

void base_add(tec_context *cx, base_text *text, const char *s)
{
    base_addn(cx, text, s, strlen(s));
}

void base_addf(tec_context *cx, base_text *text, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = base_print(NULL, 0, fmt, args);
    va_end(args);
    grow(cx, text, (size_t)n);
    va_start(args, fmt);
    base_print(text->data + text->n, (size_t)n + 1, fmt, args);
    va_end(args);
    text->n += (size_t)n;
}

const char *base_text_str(tec_context *cx, base_text *text)
{
    (void)cx;
    return text->data ? text->data : "";
}

/* Reads to the end; false with errno. The size of a pipe is not known before, so the text just grows. */
static bool read_all(tec_context *cx, int fd, base_text *text)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        grow(cx, text, (size_t)st.st_size + 1);
    for (;;) {
        grow(cx, text, 4096);
        ssize_t n = read(fd, text->data + text->n, text->cap - text->n - 1);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return false;
        text->n += n > 0 ? (size_t)n : 0;
    }
    text->data[text->n] = '\0';
    return true;
}

static void close_file(void *fd)
{
    close(*(int *)fd);
}

/* The bytes with a zero behind them. NULL with an error that has the system's reason. */
char *base_read_file(tec_context *cx, const char *path, size_t *size)
{
    base_text t = {0};
    base_held file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot open: %s", strerror(errno));
    base_hold(cx, &file, close_file, &fd);
    bool ok = read_all(cx, fd, &t);
    int why = errno;
    base_drop(&file);
    if (!ok)
        return base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot read: %s", strerror(why));
    if (size)
        *size = t.n;
    return t.data;
}

/* ---- files that are mapped ---- */

enum { LEAST_MAPPED = 1 << 20 };

typedef struct {
    base_held held; /* by the context, as long as it lives */
    void *data;
    size_t size;
} mapping;

static void unmap(void *what)
{
    mapping *m = what;

    if (m->data)
        munmap(m->data, m->size);
    free(m);
}

/* Held first, so that nothing is lost if the context gives up. */
static mapping *hold_mapping(tec_context *cx, size_t size)
{
    mapping *m = base_calloc(cx, 1, sizeof *m);

    base_hold(cx, &m->held, unmap, m);
    m->size = size;
    return m;
}

static const void *keep_mapping(mapping *made, void *data)
{
    made->data = data == MAP_FAILED ? NULL : data;
    return made->data;
}

const void *base_zeros(tec_context *cx, size_t size)
{
    if (size < LEAST_MAPPED)
        return base_alloc(cx, size);
    mapping *m = hold_mapping(cx, size);
    const void *data =
        keep_mapping(m, mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

    if (!data)
        base_no_memory(cx, size);
    return data;
}

/* NULL where it cannot be mapped, or is not worth it. */
static const void *map_large(tec_context *cx, int fd, size_t *size)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < LEAST_MAPPED)
        return NULL;
    *size = (size_t)st.st_size;
    mapping *m = hold_mapping(cx, *size);
    return keep_mapping(m, mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0));
}

const void *base_view_file(tec_context *cx, const char *path, size_t *size, bool *mapped)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    base_held file;
    const void *data;

    if (fd < 0)
        return base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot open: %s", strerror(errno));
    base_hold(cx, &file, close_file, &fd);
    data = map_large(cx, fd, size);
    base_drop(&file);
    *mapped = data != NULL;
    return data ? data : base_read_file(cx, path, size);
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return true;
}

bool base_is_special(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

/* Writes a draft beside the file and renames it: readers see the old bytes or the new ones, never half of
 * them. Pipes and devices are written directly. */
bool base_write_file(tec_context *cx, const char *path, const void *data, size_t size)
{
    const char *draft = base_is_special(path) ? path : base_format(cx, "%s.%ld.tmp", path, (long)getpid());
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot create: %s", strerror(errno));
        return false;
    }
    bool ok = write_all(fd, data, size);
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && draft != path && rename(draft, path) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok) {
        if (draft != path)
            unlink(draft);
        base_fail(cx, TEC_IO, (base_loc){.file = path}, "cannot write: %s", strerror(why));
    }
    return ok;
}
