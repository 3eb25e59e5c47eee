/* frame.c -- the frame of a module file: footer, section rows, checksums, and a sink that writes whole files
 * or none. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file.h"

static const char magic[8] = {'T', 'E', 'C', 'M', 'O', 'D', 'U', 'L'};

/* Little-endian on every machine. */
static void put_number(uint8_t *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_number(const uint8_t *from, int bytes)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << 8 * i;
    return v;
}

/* ---- footer and rows ---- */

/*     magic 0..8, version 8, abi 12, six numbers 16..64, checksum of the first 64 bytes 64..72
 */
void rt_footer_write(const rt_footer *f, uint8_t bytes[RT_FOOTER_BYTES])
{
    const uint64_t words[] = {f->file_size,    f->elf_size,   f->elf_checksum,
                              f->table_offset, f->n_sections, f->table_checksum};

    memcpy(bytes, magic, sizeof magic);
    put_number(bytes + 8, f->version, 4);
    put_number(bytes + 12, f->abi, 4);
    for (int i = 0; i < BASE_COUNT(words); i++)
        put_number(bytes + 16 + 8 * i, words[i], 8);
    put_number(bytes + 64, rt_checksum(bytes, 64), 8);
}

/* Tells apart "no module at all" (no magic) from "a damaged one" (wrong checksum). */
rt_footer_state rt_footer_read(rt_footer *f, const uint8_t bytes[RT_FOOTER_BYTES])
{
    uint64_t *words[] = {&f->file_size,    &f->elf_size,   &f->elf_checksum,
                         &f->table_offset, &f->n_sections, &f->table_checksum};

    if (memcmp(bytes, magic, sizeof magic) != 0)
        return RT_FOOTER_ABSENT;
    if (get_number(bytes + 64, 8) != rt_checksum(bytes, 64))
        return RT_FOOTER_DAMAGED;
    f->version = (uint32_t)get_number(bytes + 8, 4);
    f->abi = (uint32_t)get_number(bytes + 12, 4);
    for (int i = 0; i < BASE_COUNT(words); i++)
        *words[i] = get_number(bytes + 16 + 8 * i, 8);
    return RT_FOOTER_GOOD;
}

/*     kind 0, offset 8, size 16, checksum 24
 */
void rt_section_write(const rt_section *s, uint8_t bytes[RT_ROW_BYTES])
{
    put_number(bytes, s->kind, 8);
    put_number(bytes + 8, s->offset, 8);
    put_number(bytes + 16, s->size, 8);
    put_number(bytes + 24, s->checksum, 8);
}

rt_section rt_section_read(const uint8_t bytes[RT_ROW_BYTES])
{
    return (rt_section){get_number(bytes, 8), get_number(bytes + 8, 8), get_number(bytes + 16, 8),
                        get_number(bytes + 24, 8)};
}

const char *rt_section_name(uint64_t kind)
{
    static const char *const names[RT_SECTION_END] = {NULL,   "info",    "functions", "constants", "graphs",
                                                      "code", "program", "weights",   "beside"};

    return kind < RT_SECTION_END && names[kind] ? names[kind] : "unknown";
}

/* ---- checksums ---- */

uint64_t rt_checksum(const void *data, size_t size)
{
    return base_hash(data, size, BASE_HASH_SEED);
}

static bool all_zero(const uint8_t *data, uint64_t n)
{
    while (n > 0 && data[n - 1] == 0)
        n--;
    return n == 0;
}

/* The checksum of all constants in order, taken from their own data or from a file's bytes (`weights`).
 * *padded: the bytes between them are zero, as the writer leaves them. */
uint64_t rt_weights_checksum(const rt_module_desc *m, const uint8_t *weights, bool *padded)
{
    uint64_t sum = BASE_HASH_SEED, end = 0;

    *padded = true;
    for (int32_t i = 0; i < m->n_constants; i++) {
        const rt_constant_desc *c = &m->constants[i];
        uint64_t size = (uint64_t)rt_constant_bytes(c), at = rt_weight_next(end);

        if (size == 0)
            continue;
        if (weights && !all_zero(weights + end, at - end))
            *padded = false;
        sum = base_hash(weights ? weights + at : c->data, size, sum);
        end = at + size;
    }
    return sum;
}

/* The last constant is not padded. */
uint64_t rt_weights_size(const rt_module_desc *m)
{
    uint64_t end = 0;

    for (int32_t i = 0; i < m->n_constants; i++) {
        uint64_t size = (uint64_t)rt_constant_bytes(&m->constants[i]);

        end = size ? rt_weight_next(end) + size : end;
    }
    return end;
}

/* ---- sink ---- */

enum { MAX_ATTEMPTS = 100 };

/* A device such as /dev/stdout cannot be renamed to, and is written directly. */
static bool open_special(rt_sink *s)
{
    s->fd = open(s->path, O_WRONLY | O_CLOEXEC);
    return s->fd >= 0 || rt_fail_io(s->err, s->path, "open it", errno);
}

/* The name ends in the process and a number that is free, so that writers of one path do not meet. */
static bool open_temporary(rt_sink *s, size_t size)
{
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        snprintf(s->temporary, size, "%s.%ld.%d.tmp", s->path, (long)getpid(), i);
        s->fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (s->fd >= 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    return rt_fail_io(s->err, s->path, "create it", errno);
}

/* The temporary file lies in the same folder, as a file cannot be renamed to another disk. */
bool rt_sink_open(rt_sink *s, const char *path, tec_error *err)
{
    size_t size = strlen(path) + 48;

    *s = (rt_sink){.path = path, .fd = -1, .err = err};
    if (base_is_special(path))
        return open_special(s);
    s->temporary = rt_alloc(size, err);
    if (s->temporary && open_temporary(s, size))
        return true;
    rt_free(s->temporary);
    return false;
}

rt_sink rt_sink_bytes(rt_bytes *bytes, tec_error *err)
{
    return (rt_sink){.path = "module in memory", .bytes = bytes, .fd = -1, .err = err};
}

/* After a failure nothing more is written; rt_sink_close reports it. `at` counts also what was not written,
 * so that places in the table are the same. */
void rt_sink_put(rt_sink *s, const void *data, size_t n)
{
    const char *from = data;

    s->at += n;
    if (s->bytes) {
        rt_bytes_add(s->bytes, data, n);
        s->failed |= s->bytes->failed;
        return;
    }
    while (n > 0 && !s->failed) {
        ssize_t done = write(s->fd, from, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            rt_fail_io(s->err, s->path, "write it", done < 0 ? errno : ENOSPC);
            s->failed = true;
            return;
        }
        from += done;
        n -= (size_t)done;
    }
}

/* Up to a page. */
void rt_sink_pad(rt_sink *s, uint64_t align)
{
    static const char zeros[RT_PAGE];

    if (s->at % align)
        rt_sink_put(s, zeros, align - s->at % align);
}

/* Renames the finished file to its name, or removes it: nobody sees half a file. */
bool rt_sink_close(rt_sink *s)
{
    if (s->bytes)
        return !s->failed || rt_fail_memory(s->err, (size_t)s->at);
    if (close(s->fd) != 0 && !s->failed) {
        rt_fail_io(s->err, s->path, "write it", errno);
        s->failed = true;
    }
    if (!s->failed && s->temporary && rename(s->temporary, s->path) != 0) {
        rt_fail_io(s->err, s->path, "rename a file to it", errno);
        s->failed = true;
    }
    if (s->failed && s->temporary)
        unlink(s->temporary);
    rt_free(s->temporary);
    return !s->failed;
}

void rt_sink_put_weights(rt_sink *s, const rt_module_desc *m)
{
    for (int32_t i = 0; i < m->n_constants; i++) {
        size_t size = (size_t)rt_constant_bytes(&m->constants[i]);

        if (size == 0)
            continue;
        rt_sink_pad(s, RT_WEIGHT_ALIGN);
        rt_sink_put(s, m->constants[i].data, size);
    }
}
