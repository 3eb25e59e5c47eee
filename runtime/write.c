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
static void add_section(writer *out, rt_section_kind kind, const rt_bytes *bytes)
{
    rt_sink_pad(&out->sink, RT_SECTION_ALIGN);
    out->section[out->n_sections++] =
        (rt_section){kind, out->sink.at, bytes->n, rt_checksum(bytes->data, bytes->n)};
    rt_sink_put(&out->sink, bytes->data, bytes->n);
}

/* Sections of rising kinds, which the reader demands. */
static bool add_metadata(writer *out)
{
    bool ok = true;

    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST && ok; kind++) {
        rt_bytes bytes = {0};

        ok = rt_module_encode(out->m, (rt_section_kind)kind, &bytes, out->err);
        if (ok)
            add_section(out, (rt_section_kind)kind, &bytes);
        rt_bytes_free(&bytes);
    }
    return ok;
}

/* On a page of their own, so that they can be mapped. */
static void add_weights(writer *out)
{
    bool padded;

    rt_sink_pad(&out->sink, RT_PAGE);
    out->section[out->n_sections++] = (rt_section){RT_SECTION_WEIGHTS, out->sink.at, rt_weights_size(out->m),
                                                   rt_weights_checksum(out->m, NULL, &padded)};
    rt_sink_put_weights(&out->sink, out->m);
}

static bool add_beside(writer *out, const rt_beside *beside)
{
    rt_bytes bytes = {0};
    bool ok = rt_beside_encode(beside, &bytes, out->err);

    if (ok)
        add_section(out, RT_SECTION_BESIDE, &bytes);
    rt_bytes_free(&bytes);
    return ok;
}

/* Table and footer; the table begins aligned, so readers can use it in place. */
static void add_table(writer *out, const void *elf, size_t elf_size)
{
    uint8_t rows[RT_SECTION_END * RT_ROW_BYTES], footer[RT_FOOTER_BYTES];
    size_t size = out->n_sections * RT_ROW_BYTES;
    rt_footer f = {.version = RT_FORMAT_VERSION,
                   .abi = TEC_KERNEL_ABI,
                   .elf_size = elf_size,
                   .elf_checksum = rt_checksum(elf, elf_size),
                   .n_sections = out->n_sections};

    for (uint64_t i = 0; i < out->n_sections; i++)
        rt_section_write(&out->section[i], rows + i * RT_ROW_BYTES);
    rt_sink_pad(&out->sink, RT_SECTION_ALIGN);
    f.table_offset = out->sink.at;
    f.table_checksum = rt_checksum(rows, size);
    rt_sink_put(&out->sink, rows, size);
    f.file_size = out->sink.at + RT_FOOTER_BYTES;
    rt_footer_write(&f, footer);
    rt_sink_put(&out->sink, footer, sizeof footer);
}

/* Into the sink, which is closed. Also after a failure the sink has to be closed, which removes the file. */
static bool put_module(writer *out, const void *elf, size_t elf_size, const rt_beside *beside)
{
    rt_sink_put(&out->sink, elf, elf_size);
    rt_sink_pad(&out->sink, RT_PAGE);
    if (!add_metadata(out) || (beside && !add_beside(out, beside)))
        out->sink.failed = true;
    else if (!beside && rt_weights_size(out->m) > 0)
        add_weights(out);
    add_table(out, elf, elf_size);
    return rt_sink_close(&out->sink);
}

/* A sink that did not open needs no closing. */
static bool write_module(writer *out, const void *elf, size_t elf_size, const char *path,
                         const rt_beside *beside)
{
    return rt_sink_open(&out->sink, path, out->err) && put_module(out, elf, elf_size, beside);
}

/* The file of weights comes first: a module that is there has its weights. The name in the module has no
 * folder: both files can be moved together. */
static bool write_beside(writer *out, const void *elf, size_t elf_size, const char *path)
{
    rt_bytes name = {0};
    rt_beside b;
    bool ok;

    rt_bytes_add(&name, path, strlen(path));
    rt_bytes_add(&name, ".safetensors", sizeof ".safetensors");
    if (name.failed)
        return rt_fail_memory(out->err, name.cap);
    ok = rt_safetensors_write(out->m, (char *)name.data, &b, out->err);
    if (ok) {
        const char *slash = strrchr((char *)name.data, '/');

        b.name = slash ? slash + 1 : (char *)name.data;
        ok = write_module(out, elf, elf_size, path, &b);
    }
    rt_bytes_free(&name);
    return ok;
}

/* Large weights go to a file beside the module unless the flags say where. False with an error; no file is
 * left then. */
bool rt_module_write(const rt_module_desc *module, const void *elf, size_t elf_size, const char *path,
                     unsigned flags, tec_error *err)
{
    writer w = {.m = module, .err = err};
    uint64_t weights;

    if (!rt_module_check(module, err))
        return false;
    if (rt_has_host_code(module) && elf_size == 0)
        return rt_fail(err, TEC_INVALID, "%s: has functions but no shared object", path);
    weights = rt_weights_size(module);
    if (weights > 0 &&
        ((flags & RT_WEIGHTS_BESIDE) || (weights >= BESIDE_FROM && !(flags & RT_WEIGHTS_INSIDE))))
        return write_beside(&w, elf, elf_size, path);
    return write_module(&w, elf, elf_size, path, NULL);
}

/* Weights are always inside. */
bool rt_module_bytes(const rt_module_desc *module, const void *elf, size_t elf_size, rt_bytes *out,
                     tec_error *err)
{
    writer w = {.m = module, .err = err, .sink = rt_sink_bytes(out, err)};

    return rt_module_check(module, err) && put_module(&w, elf, elf_size, NULL);
}
