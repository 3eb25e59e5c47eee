/* write.c -- writes a module file: the shared object, the sections, their table, the footer. */
#include <string.h>

#include "runtime/file.h"

#define BESIDE_FROM ((uint64_t)2 << 30) /* bytes of weights */

/* Rows of the table are collected as sections are written; the table comes last. */
typedef struct {
    const rt_module_desc *m;
    rt_sink sink;
    rt_section section[RT_SECTION_END];
    uint64_t n_sections;
    tec_error *err;
} writer;

/* Its place is where the sink stands after padding. */
static void add_section(writer *w, rt_section_kind kind, const rt_bytes *bytes)
{
    rt_sink_pad(&w->sink, RT_SECTION_ALIGN);
    w->section[w->n_sections++] =
        (rt_section){kind, w->sink.at, bytes->n, rt_checksum(bytes->data, bytes->n)};
    rt_sink_put(&w->sink, bytes->data, bytes->n);
}

/* Sections of rising kinds, which the reader demands. */
static bool add_metadata(writer *w)
{
    bool ok = true;

    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST && ok; kind++) {
        rt_bytes bytes = {0};

        ok = rt_module_encode(w->m, (rt_section_kind)kind, &bytes, w->err);
        if (ok)
            add_section(w, (rt_section_kind)kind, &bytes);
        rt_bytes_free(&bytes);
    }
    return ok;
}

/* On a page of their own, so that they can be mapped. */
static void add_weights(writer *w)
{
    bool padded;

    rt_sink_pad(&w->sink, RT_PAGE);
    w->section[w->n_sections++] = (rt_section){RT_SECTION_WEIGHTS, w->sink.at, rt_weights_size(w->m),
                                               rt_weights_checksum(w->m, NULL, &padded)};
    rt_sink_put_weights(&w->sink, w->m);
}

static bool add_beside(writer *w, const rt_beside *b)
{
    rt_bytes bytes = {0};
    bool ok = rt_beside_encode(b, &bytes, w->err);

    if (ok)
        add_section(w, RT_SECTION_BESIDE, &bytes);
    rt_bytes_free(&bytes);
    return ok;
}

/* Table and footer; the table begins aligned, so readers can use it in place. */
static void add_table(writer *w, const void *elf, size_t elf_size)
{
    uint8_t rows[RT_SECTION_END * RT_ROW_BYTES], footer[RT_FOOTER_BYTES];
    size_t size = w->n_sections * RT_ROW_BYTES;
    rt_footer f = {.version = RT_FORMAT_VERSION,
                   .abi = TEC_KERNEL_ABI,
                   .elf_size = elf_size,
                   .elf_checksum = rt_checksum(elf, elf_size),
                   .n_sections = w->n_sections};

    for (uint64_t i = 0; i < w->n_sections; i++)
        rt_section_write(&w->section[i], rows + i * RT_ROW_BYTES);
    rt_sink_pad(&w->sink, RT_SECTION_ALIGN);
    f.table_offset = w->sink.at;
    f.table_checksum = rt_checksum(rows, size);
    rt_sink_put(&w->sink, rows, size);
    f.file_size = w->sink.at + RT_FOOTER_BYTES;
    rt_footer_write(&f, footer);
    rt_sink_put(&w->sink, footer, sizeof footer);
}

/* Into the sink, which is closed. Also after a failure the sink has to be closed, which removes the file. */
static bool put_module(writer *w, const void *elf, size_t elf_size, const rt_beside *b)
{
    rt_sink_put(&w->sink, elf, elf_size);
    rt_sink_pad(&w->sink, RT_PAGE);
    if (!add_metadata(w) || (b && !add_beside(w, b)))
        w->sink.failed = true;
    else if (!b && rt_weights_size(w->m) > 0)
        add_weights(w);
    add_table(w, elf, elf_size);
    return rt_sink_close(&w->sink);
}

/* A sink that did not open needs no closing. */
static bool write_module(writer *w, const void *elf, size_t elf_size, const char *path, const rt_beside *b)
{
    return rt_sink_open(&w->sink, path, w->err) && put_module(w, elf, elf_size, b);
}

/* The file of weights comes first: a module that is there has its weights. The name in the module has no
 * folder: both files can be moved together. */
static bool write_beside(writer *w, const void *elf, size_t elf_size, const char *path)
{
    rt_bytes name = {0};
    rt_beside b;
    bool ok;

    rt_bytes_add(&name, path, strlen(path));
    rt_bytes_add(&name, ".safetensors", sizeof ".safetensors");
    if (name.failed)
        return rt_fail_memory(w->err, name.cap);
    ok = rt_safetensors_write(w->m, (char *)name.data, &b, w->err);
    if (ok) {
        const char *slash = strrchr((char *)name.data, '/');

        b.name = slash ? slash + 1 : (char *)name.data;
        ok = write_module(w, elf, elf_size, path, &b);
    }
    rt_bytes_free(&name);
    return ok;
}

/* Large weights go to a file beside the module unless the flags say where. False with an error; no file is
 * left then. */
bool rt_module_write(const rt_module_desc *m, const void *elf, size_t elf_size, const char *path,
                     unsigned flags, tec_error *err)
{
    writer w = {.m = m, .err = err};
    uint64_t weights;

    if (!rt_module_check(m, err))
        return false;
    if (rt_has_host_code(m) && elf_size == 0)
        return rt_fail(err, TEC_INVALID, "%s: has functions but no shared object", path);
    weights = rt_weights_size(m);
    if (weights > 0 &&
        ((flags & RT_WEIGHTS_BESIDE) || (weights >= BESIDE_FROM && !(flags & RT_WEIGHTS_INSIDE))))
        return write_beside(&w, elf, elf_size, path);
    return write_module(&w, elf, elf_size, path, NULL);
}

/* Weights are always inside. */
bool rt_module_bytes(const rt_module_desc *m, const void *elf, size_t elf_size, rt_bytes *out, tec_error *err)
{
    writer w = {.m = m, .err = err, .sink = rt_sink_bytes(out, err)};

    return rt_module_check(m, err) && put_module(&w, elf, elf_size, NULL);
}
