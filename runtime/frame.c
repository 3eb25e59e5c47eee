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
void rt_footer_write(const rt_footer *footer, uint8_t bytes[RT_FOOTER_BYTES])
{
    const uint64_t words[] = {footer->file_size,    footer->elf_size,   footer->elf_checksum,
                              footer->table_offset, footer->n_sections, footer->table_checksum};

    memcpy(bytes, magic, sizeof magic);
    put_number(bytes + 8, footer->version, 4);
    put_number(bytes + 12, footer->abi, 4);
    for (int i = 0; i < BASE_COUNT(words); i++)
        put_number(bytes + 16 + 8 * i, words[i], 8);
    put_number(bytes + 64, rt_checksum(bytes, 64), 8);
}

/* Tells apart "no module at all" (no magic) from "a damaged one" (wrong checksum). */
rt_footer_state rt_footer_read(rt_footer *footer, const uint8_t bytes[RT_FOOTER_BYTES])
{
    uint64_t *words[] = {&footer->file_size,    &footer->elf_size,   &footer->elf_checksum,
                         &footer->table_offset, &footer->n_sections, &footer->table_checksum};

    if (memcmp(bytes, magic, sizeof magic) != 0)
        return RT_FOOTER_ABSENT;
    if (get_number(bytes + 64, 8) != rt_checksum(bytes, 64))
        return RT_FOOTER_DAMAGED;
    footer->version = (uint32_t)get_number(bytes + 8, 4);
    footer->abi = (uint32_t)get_number(bytes + 12, 4);
    for (int i = 0; i < BASE_COUNT(words); i++)
        *words[i] = get_number(bytes + 16 + 8 * i, 8);
    return RT_FOOTER_GOOD;
}

/*     kind 0, offset 8, size 16, checksum 24
 */
void rt_section_write(const rt_section *section, uint8_t bytes[RT_ROW_BYTES])
{
    put_number(bytes, section->kind, 8);
    put_number(bytes + 8, section->offset, 8);
    put_number(bytes + 16, section->size, 8);
    put_number(bytes + 24, section->checksum, 8);
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
uint64_t rt_weights_checksum(const rt_module_desc *module, const uint8_t *weights, bool *padded)
{
    uint64_t sum = BASE_HASH_SEED, end = 0;

    *padded = true;
    for (int32_t i = 0; i < module->n_constants; i++) {
        const rt_constant_desc *constant = &module->constants[i];
        uint64_t size = (uint64_t)rt_constant_bytes(constant), at = rt_weight_next(end);

        if (size == 0)
            continue;
        if (weights && !all_zero(weights + end, at - end))
            *padded = false;
        sum = base_hash(weights ? weights + at : constant->data, size, sum);
        end = at + size;
    }
    return sum;
}

/* The last constant is not padded. */
uint64_t rt_weights_size(const rt_module_desc *module)
{
    uint64_t end = 0;

    for (int32_t i = 0; i < module->n_constants; i++) {
        uint64_t size = (uint64_t)rt_constant_bytes(&module->constants[i]);

        end = size ? rt_weight_next(end) + size : end;
    }
    return end;
}

/* ---- sink ---- */

enum { MAX_ATTEMPTS = 100 };

/* A device such as /dev/stdout cannot be renamed to, and is written directly. */
static bool open_special(rt_sink *sink)
{
    sink->fd = open(sink->path, O_WRONLY | O_CLOEXEC);
    return sink->fd >= 0 || rt_fail_io(sink->err, sink->path, "open it", errno);
}

/* The name ends in the process and a number that is free, so that writers of one path do not meet. */
static bool open_temporary(rt_sink *sink, size_t size)
{
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        snprintf(sink->temporary, size, "%s.%ld.%d.tmp", sink->path, (long)getpid(), i);
        sink->fd = open(sink->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (sink->fd >= 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    return rt_fail_io(sink->err, sink->path, "create it", errno);
}

/* The temporary file lies in the same folder, as a file cannot be renamed to another disk. */
bool rt_sink_open(rt_sink *sink, const char *path, tec_error *err)
{
    size_t size = strlen(path) + 48;

    *sink = (rt_sink){.path = path, .fd = -1, .err = err};
    if (base_is_special(path))
        return open_special(sink);
    sink->temporary = rt_alloc(size, err);
    if (sink->temporary && open_temporary(sink, size))
        return true;
    rt_free(sink->temporary);
    return false;
}

rt_sink rt_sink_bytes(rt_bytes *bytes, tec_error *err)
{
    return (rt_sink){.path = "module in memory", .bytes = bytes, .fd = -1, .err = err};
}

/* After a failure nothing more is written; rt_sink_close reports it. `at` counts also what was not written,
 * so that places in the table are the same. */
void rt_sink_put(rt_sink *sink, const void *data, size_t size)
{
    const char *from = data;

    sink->at += size;
    if (sink->bytes) {
        rt_bytes_add(sink->bytes, data, size);
        sink->failed |= sink->bytes->failed;
        return;
    }
    while (size > 0 && !sink->failed) {
        ssize_t done = write(sink->fd, from, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            rt_fail_io(sink->err, sink->path, "write it", done < 0 ? errno : ENOSPC);
            sink->failed = true;
            return;
        }
        from += done;
        size -= (size_t)done;
    }
}

/* Up to a page. */
void rt_sink_pad(rt_sink *sink, uint64_t align)
{
    static const char zeros[RT_PAGE];

    if (sink->at % align)
        rt_sink_put(sink, zeros, align - sink->at % align);
}

/* Renames the finished file to its name, or removes it: nobody sees half a file. */
bool rt_sink_close(rt_sink *sink)
{
    if (sink->bytes)
        return !sink->failed || rt_fail_memory(sink->err, (size_t)sink->at);
    if (close(sink->fd) != 0 && !sink->failed) {
        rt_fail_io(sink->err, sink->path, "write it", errno);
        sink->failed = true;
    }
    if (!sink->failed && sink->temporary && rename(sink->temporary, sink->path) != 0) {
        rt_fail_io(sink->err, sink->path, "rename a file to it", errno);
        sink->failed = true;
    }
    if (sink->failed && sink->temporary)
        unlink(sink->temporary);
    rt_free(sink->temporary);
    return !sink->failed;
}

void rt_sink_put_weights(rt_sink *sink, const rt_module_desc *module)
{
    for (int32_t i = 0; i < module->n_constants; i++) {
        size_t size = (size_t)rt_constant_bytes(&module->constants[i]);

        if (size == 0)
            continue;
        rt_sink_pad(sink, RT_WEIGHT_ALIGN);
        rt_sink_put(sink, module->constants[i].data, size);
    }
}
