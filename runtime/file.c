/* file.c -- opens a module file, or its bytes in memory, and holds every byte of it against what it claims to
 * be.
 *
 * Footer, then table, then the shared object and the metadata by their checksums, then the description as a
 * whole: nothing is allocated for a count or a size before the check against the size of the file. The
 * weights' place is checked always, their bytes on request.
 */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `of` tells which sections there are; rows are in `section` in the order of the file. */
typedef struct {
    rt_file *out;
    rt_source source;
    rt_footer footer;
    rt_section section[RT_SECTION_END];
    const rt_section *of[RT_SECTION_END]; /* by kind; NULL: absent */
    const tec_module_options *options;
    tec_error *err;
} reader;

#define DAMAGED(r, fmt, ...)                                                                                 \
    rt_fail((r)->err, TEC_INVALID, "%s: damaged module: " fmt, (r)->source.name, __VA_ARGS__)

/* Without waiting: a named pipe of this name would block the open until somebody writes. */
static bool open_regular(rt_source *source, const char *path, tec_error *err)
{
    struct stat st;

    *source = (rt_source){.name = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (source->fd < 0)
        return rt_fail_io(err, path, "open it", errno);
    if (fstat(source->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(source->fd);
        return rt_fail(err, TEC_IO, "%s: is not a file", path);
    }
    source->size = (uint64_t)st.st_size;
    return true;
}

/* ---- footer and table ---- */

/* Versions first, so that a newer file is reported as newer and not as damaged. */
static bool check_footer(reader *in)
{
    const rt_footer *footer = &in->footer;

    if (footer->version != RT_FORMAT_VERSION)
        return rt_fail(in->err, TEC_UNSUPPORTED,
                       "%s: the module has format version %u, but this runtime reads version %d",
                       in->source.name, footer->version, RT_FORMAT_VERSION);
    if (footer->abi != TEC_KERNEL_ABI)
        return rt_fail(in->err, TEC_UNSUPPORTED,
                       "%s: the module has kernels of ABI version %u, but this runtime calls version %d",
                       in->source.name, footer->abi, TEC_KERNEL_ABI);
    if (footer->file_size != in->source.size)
        return DAMAGED(in, "says that it has %llu bytes, has %llu", (unsigned long long)footer->file_size,
                       (unsigned long long)in->source.size);
    if (footer->n_sections >= RT_SECTION_END)
        return DAMAGED(in, "has %llu sections", (unsigned long long)footer->n_sections);
    if (footer->table_offset > in->source.size ||
        in->source.size - footer->table_offset != footer->n_sections * RT_ROW_BYTES + RT_FOOTER_BYTES ||
        footer->elf_size > footer->table_offset)
        return DAMAGED(in, "%s", "its section table does not lie before its footer");
    return true;
}

/* What to do, where the name is that of something to compile. */
static const char *advice(const char *name)
{
    static const struct {
        const char *ending, *text;
    } rows[] = {
        {".onnx", "; 'tec compile' makes one of it"},
        {".tecp", "; 'tec compile' makes one of it"},
        {".te", "; 'tec te -o' makes one of it"},
    };
    const char *ending = strrchr(name, '.');

    for (size_t i = 0; ending && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(ending, rows[i].ending) == 0)
            return rows[i].text;
    return "";
}

/* The footer lies at the end of the file, behind the shared object and the sections. */
static bool read_footer(reader *in)
{
    rt_blob bytes = {0};
    rt_footer_state state;

    if (in->source.size < RT_FOOTER_BYTES)
        return rt_fail(in->err, TEC_INVALID, "%s: not a module: the file has only %llu bytes%s",
                       in->source.name, (unsigned long long)in->source.size, advice(in->source.name));
    if (!rt_blob_read(&bytes, &in->source, in->source.size - RT_FOOTER_BYTES, RT_FOOTER_BYTES, in->err))
        return false;
    state = rt_footer_read(&in->footer, bytes.data);
    rt_blob_free(&bytes);
    if (state == RT_FOOTER_ABSENT)
        return rt_fail(in->err, TEC_INVALID, "%s: not a module, or cut off: there is no footer at its end%s",
                       in->source.name, advice(in->source.name));
    if (state == RT_FOOTER_DAMAGED)
        return DAMAGED(in, "%s", "its footer does not match its checksum");
    return check_footer(in);
}

/* Sections follow each other, of rising kinds, with less than a page between them. */
static bool check_row(reader *in, uint64_t index, uint64_t end)
{
    const rt_section *section = &in->section[index];

    if (section->kind == 0 || section->kind >= RT_SECTION_END ||
        (index > 0 && section->kind <= in->section[index - 1].kind))
        return DAMAGED(in, "section %llu is of kind %llu", (unsigned long long)index,
                       (unsigned long long)section->kind);
    if (section->offset < end || section->offset > in->footer.table_offset ||
        section->size > in->footer.table_offset - section->offset)
        return DAMAGED(in, "section '%s' does not lie inside the file", rt_section_name(section->kind));
    if (section->offset - end >= RT_PAGE || section->offset % RT_SECTION_ALIGN)
        return DAMAGED(in, "section '%s' is not where it should be", rt_section_name(section->kind));
    in->of[section->kind] = section;
    return true;
}

/* Sections lie in order without overlaps or holes, and the required ones are there. */
static bool check_rows(reader *in, const uint8_t *rows)
{
    uint64_t end = in->footer.elf_size;

    if (rt_checksum(rows, in->footer.n_sections * RT_ROW_BYTES) != in->footer.table_checksum)
        return DAMAGED(in, "%s", "its section table does not match its checksum");
    for (uint64_t i = 0; i < in->footer.n_sections; i++) {
        in->section[i] = rt_section_read(rows + i * RT_ROW_BYTES);
        if (!check_row(in, i, end))
            return false;
        end = in->section[i].offset + in->section[i].size;
    }
    if (in->footer.table_offset - end >= RT_PAGE)
        return DAMAGED(in, "%s", "there is a hole before its section table");
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++)
        if (!in->of[kind])
            return DAMAGED(in, "section '%s' is missing", rt_section_name((uint64_t)kind));
    return true;
}

/* Its length was compared with the file by check_footer. */
static bool read_table(reader *in)
{
    rt_blob rows = {0};
    bool ok;

    if (in->footer.n_sections == 0)
        return DAMAGED(in, "%s", "has no sections");
    if (!rt_blob_read(&rows, &in->source, in->footer.table_offset, in->footer.n_sections * RT_ROW_BYTES,
                      in->err))
        return false;
    ok = check_rows(in, rows.data);
    rt_blob_free(&rows);
    return ok;
}

/* ---- metadata ---- */

/* Mapped, not read: a large module's code is compared with what the loader has and needs no copy. */
static bool read_elf(reader *in)
{
    rt_blob *elf = &in->out->elf;

    if (!rt_blob_map(elf, &in->source, 0, in->footer.elf_size, in->err))
        return false;
    if (rt_checksum(elf->data, in->footer.elf_size) != in->footer.elf_checksum)
        return DAMAGED(in, "%s", "its code does not match its checksum");
    return true;
}

/* Bytes that belong to nothing are zero, so that no byte of the file can change unseen. */
static bool check_gap(reader *in, uint64_t begin, uint64_t end)
{
    rt_blob gap = {0};
    bool zero = true;

    if (!rt_blob_read(&gap, &in->source, begin, end - begin, in->err))
        return false;
    for (uint64_t i = 0; i < end - begin; i++)
        zero = zero && gap.data[i] == 0;
    rt_blob_free(&gap);
    return zero ||
           DAMAGED(in, "bytes %llu to %llu are not zero", (unsigned long long)begin, (unsigned long long)end);
}

/* Gaps are shorter than a page (check_row), so reading them costs little. */
static bool check_gaps(reader *in)
{
    uint64_t end = in->footer.elf_size;

    for (uint64_t i = 0; i < in->footer.n_sections; i++) {
        if (!check_gap(in, end, in->section[i].offset))
            return false;
        end = in->section[i].offset + in->section[i].size;
    }
    return check_gap(in, end, in->footer.table_offset);
}

/* The bytes of a small section, within `meta`. */
static const uint8_t *section_bytes(const reader *in, const rt_section *section)
{
    return in->out->meta.data + (section->offset - in->of[RT_SECTION_INFO]->offset);
}

/* The checksum first: a decoder's message about damaged bytes would mislead. */
static bool decode_section(reader *in, rt_section_kind kind)
{
    const rt_section *section = in->of[kind];
    tec_error inner = {0};

    if (rt_checksum(section_bytes(in, section), section->size) != section->checksum)
        return DAMAGED(in, "section '%s' does not match its checksum", rt_section_name(kind));
    if (rt_module_decode(&in->out->desc, kind, section_bytes(in, section), section->size, &in->out->arena,
                         &inner))
        return true;
    if (inner.status == TEC_NO_MEMORY)
        return rt_fail(in->err, inner.status, "%s: %s", in->source.name, inner.text);
    return DAMAGED(in, "section '%s' %s", rt_section_name(kind), inner.text);
}

/* All sections of metadata are one range, which is read at once and decoded section by section. */
static bool read_metadata(reader *in)
{
    const rt_section *last = in->of[in->of[RT_SECTION_BESIDE] ? RT_SECTION_BESIDE : RT_SECTION_LAST];
    uint64_t begin = in->of[RT_SECTION_INFO]->offset;
    tec_error inner = {0};

    if (in->of[RT_SECTION_BESIDE] && in->of[RT_SECTION_WEIGHTS])
        return DAMAGED(in, "%s", "its weights are both inside and beside it");
    if (!rt_blob_read(&in->out->meta, &in->source, begin, last->offset + last->size - begin, in->err))
        return false;
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++)
        if (!decode_section(in, (rt_section_kind)kind))
            return false;
    if (!rt_module_check(&in->out->desc, &inner))
        return inner.status == TEC_NO_MEMORY
                   ? rt_fail(in->err, inner.status, "%s: %s", in->source.name, inner.text)
                   : DAMAGED(in, "%s", inner.text);
    return (!rt_has_host_code(&in->out->desc) || in->footer.elf_size > 0) ||
           DAMAGED(in, "%s", "has functions but no code");
}

/* ---- weights ---- */

/* Weights of a file stay where they are unless the caller wants a copy; those in the caller's memory are
 * copied. */
static bool load_weights(reader *in, const rt_source *from, uint64_t offset, uint64_t size)
{
    if (from->bytes || (in->options && in->options->copy_weights))
        return rt_blob_read(&in->out->weights, from, offset, size, in->err);
    return rt_blob_map(&in->out->weights, from, offset, size, in->err);
}

/* Only on request: weights of gigabytes take seconds to read. */
static bool verify_weights(reader *in, uint64_t checksum, const char *path)
{
    bool padded;

    if (!in->options || !in->options->verify_weights)
        return true;
    if (rt_weights_checksum(&in->out->desc, in->out->weights.data, &padded) != checksum || !padded)
        return rt_fail(in->err, TEC_INVALID, "%s: damaged module: its weights do not match their checksum",
                       path);
    return true;
}

/* Constants say how many bytes they need, and the section must have exactly these. */
static bool read_inside(reader *in)
{
    const rt_section *section = in->of[RT_SECTION_WEIGHTS];
    uint64_t size = rt_weights_size(&in->out->desc);

    if ((section ? section->size : 0) != size)
        return DAMAGED(in, "has %llu bytes of weights; expected %llu",
                       (unsigned long long)(section ? section->size : 0), (unsigned long long)size);
    if (!section)
        return true;
    return load_weights(in, &in->source, section->offset, section->size) &&
           verify_weights(in, section->checksum, in->source.name);
}

/* The path of the file that is called `name` in the module's folder. */
static char *path_beside(const reader *in, const char *name)
{
    const char *slash = strrchr(in->source.name, '/');
    size_t folder = slash ? (size_t)(slash - in->source.name) + 1 : 0;
    char *path = rt_alloc(folder + strlen(name) + 1, in->err);

    if (path) {
        memcpy(path, in->source.name, folder);
        strcpy(path + folder, name);
    }
    return path;
}

/* The weights' file must be the one that the module was written with: its header is compared by checksum. */
static bool check_beside(reader *in, const rt_source *file, const rt_beside *beside)
{
    rt_blob head = {0};
    bool same;

    if (beside->offset > file->size || file->size - beside->offset != beside->size ||
        beside->offset % RT_WEIGHT_ALIGN)
        return rt_fail(in->err, TEC_INVALID,
                       "%s: has %llu bytes, but '%s' expects weights of %llu bytes from byte %llu on",
                       file->name, (unsigned long long)file->size, in->source.name,
                       (unsigned long long)beside->size, (unsigned long long)beside->offset);
    if (!rt_blob_map(&head, file, 0, beside->offset, in->err))
        return false;
    same = rt_checksum(head.data, beside->offset) == beside->head_checksum;
    rt_blob_free(&head);
    return same || rt_fail(in->err, TEC_INVALID, "%s: holds other weights than those that '%s' was made with",
                           file->name, in->source.name);
}

/* The file is closed again: a mapping stays without it. */
static bool open_beside(reader *in, const rt_beside *beside, const char *path)
{
    rt_source file;
    bool ok;

    if (!open_regular(&file, path, in->err))
        return false;
    ok = check_beside(in, &file, beside) && load_weights(in, &file, beside->offset, beside->size) &&
         verify_weights(in, beside->checksum, path);
    close(file.fd);
    return ok;
}

/* Finds the file of weights beside the module by its name alone: a module cannot name a file in another
 * folder. */
static bool read_beside(reader *in)
{
    const rt_section *section = in->of[RT_SECTION_BESIDE];
    rt_beside b = {0};
    char *path;
    bool ok;

    if (rt_checksum(section_bytes(in, section), section->size) != section->checksum ||
        !rt_beside_decode(&b, section_bytes(in, section), section->size, NULL) || !b.name || !*b.name ||
        strchr(b.name, '/') || b.size != rt_weights_size(&in->out->desc))
        return DAMAGED(in, "%s", "it does not say well where its weights are");
    if (in->source.bytes)
        return rt_fail(in->err, TEC_UNSUPPORTED,
                       "%s: the weights are in a separate file, '%s': open the module by its path",
                       in->source.name, b.name);
    path = path_beside(in, b.name);
    ok = path && open_beside(in, &b, path);
    rt_free(path);
    return ok;
}

/* In the order and at the places that the writer gave them. The description is this module's own, so it may
 * be changed. */
void rt_place_constants(const rt_module_desc *module, const uint8_t *weights)
{
    rt_constant_desc *constants = (rt_constant_desc *)(uintptr_t)module->constants;
    uint64_t end = 0;

    for (int32_t i = 0; i < module->n_constants; i++) {
        uint64_t size = (uint64_t)rt_constant_bytes(&constants[i]);

        if (size == 0)
            continue;
        constants[i].data = weights + rt_weight_next(end);
        end = rt_weight_next(end) + size;
    }
}

/* ---- the whole ---- */

/* Each step uses only what the steps before it have checked. */
static bool read_all(reader *in)
{
    if (!read_footer(in) || !read_table(in) || !read_elf(in) || !check_gaps(in) || !read_metadata(in))
        return false;
    if (!(in->of[RT_SECTION_BESIDE] ? read_beside(in) : read_inside(in)))
        return false;
    rt_place_constants(&in->out->desc, in->out->weights.data);
    return true;
}

/* After an error *file is empty. */
bool rt_file_open(rt_file *file, const char *path, const tec_module_options *options, tec_error *err)
{
    reader r = {.out = file, .options = options, .err = err};
    bool ok;

    *file = (rt_file){0};
    if (!open_regular(&r.source, path, err))
        return false;
    ok = read_all(&r);
    close(r.source.fd);
    if (!ok)
        rt_file_close(file);
    return ok;
}

bool rt_file_open_bytes(rt_file *file, const void *data, size_t size, const tec_module_options *options,
                        tec_error *err)
{
    reader r = {.out = file, .source = {"module in memory", size, data, -1}, .options = options, .err = err};

    *file = (rt_file){0};
    if (read_all(&r))
        return true;
    rt_file_close(file);
    return false;
}

void rt_file_close(rt_file *file)
{
    rt_blob_free(&file->weights);
    rt_blob_free(&file->elf);
    rt_blob_free(&file->meta);
    rt_arena_free(&file->arena);
    *file = (rt_file){0};
}
