/* file.c -- opens a module file, or its bytes in memory, and holds every byte of it against what it claims to
 * be.
 *
 * Footer, then table, then the shared object and the metadata by their checksums, then the description as a
 * whole: nothing is allocated for a count or a size before it has been held against the size of the file. The
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
static bool open_regular(rt_source *s, const char *path, tec_error *err)
{
    struct stat st;

    *s = (rt_source){.name = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (s->fd < 0)
        return rt_fail_io(err, path, "open it", errno);
    if (fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(s->fd);
        return rt_fail(err, TEC_IO, "%s: is not a file", path);
    }
    s->size = (uint64_t)st.st_size;
    return true;
}

/* ---- footer and table ---- */

/* Versions first, so that a newer file is reported as newer and not as damaged. */
static bool check_footer(reader *r)
{
    const rt_footer *f = &r->footer;

    if (f->version != RT_FORMAT_VERSION)
        return rt_fail(r->err, TEC_UNSUPPORTED, "%s: module format version %u; this runtime reads version %d",
                       r->source.name, f->version, RT_FORMAT_VERSION);
    if (f->abi != TEC_KERNEL_ABI)
        return rt_fail(r->err, TEC_UNSUPPORTED,
                       "%s: kernels of ABI version %u; this runtime calls version %d", r->source.name, f->abi,
                       TEC_KERNEL_ABI);
    if (f->file_size != r->source.size)
        return DAMAGED(r, "says that it has %llu bytes, has %llu", (unsigned long long)f->file_size,
                       (unsigned long long)r->source.size);
    if (f->n_sections >= RT_SECTION_END)
        return DAMAGED(r, "has %llu sections", (unsigned long long)f->n_sections);
    if (f->table_offset > r->source.size ||
        r->source.size - f->table_offset != f->n_sections * RT_ROW_BYTES + RT_FOOTER_BYTES ||
        f->elf_size > f->table_offset)
        return DAMAGED(r, "%s", "its section table does not lie before its footer");
    return true;
}

/* The footer lies at the end of the file, behind the shared object and the sections. */
static bool read_footer(reader *r)
{
    rt_blob bytes = {0};
    rt_footer_state state;

    if (r->source.size < RT_FOOTER_BYTES)
        return rt_fail(r->err, TEC_INVALID, "%s: not a module: %llu bytes are too few", r->source.name,
                       (unsigned long long)r->source.size);
    if (!rt_blob_read(&bytes, &r->source, r->source.size - RT_FOOTER_BYTES, RT_FOOTER_BYTES, r->err))
        return false;
    state = rt_footer_read(&r->footer, bytes.data);
    rt_blob_free(&bytes);
    if (state == RT_FOOTER_ABSENT)
        return rt_fail(r->err, TEC_INVALID, "%s: not a module, or cut off: there is no footer at its end",
                       r->source.name);
    if (state == RT_FOOTER_DAMAGED)
        return DAMAGED(r, "%s", "its footer does not match its checksum");
    return check_footer(r);
}

/* Sections follow each other, of rising kinds, with less than a page between them. */
static bool check_row(reader *r, uint64_t i, uint64_t end)
{
    const rt_section *s = &r->section[i];

    if (s->kind == 0 || s->kind >= RT_SECTION_END || (i > 0 && s->kind <= r->section[i - 1].kind))
        return DAMAGED(r, "section %llu is of kind %llu", (unsigned long long)i, (unsigned long long)s->kind);
    if (s->offset < end || s->offset > r->footer.table_offset || s->size > r->footer.table_offset - s->offset)
        return DAMAGED(r, "section '%s' does not lie inside the file", rt_section_name(s->kind));
    if (s->offset - end >= RT_PAGE || s->offset % RT_SECTION_ALIGN)
        return DAMAGED(r, "section '%s' is not where it should be", rt_section_name(s->kind));
    r->of[s->kind] = s;
    return true;
}

/* Sections lie in order without overlaps or holes, and the required ones are there. */
static bool check_rows(reader *r, const uint8_t *rows)
{
    uint64_t end = r->footer.elf_size;

    if (rt_checksum(rows, r->footer.n_sections * RT_ROW_BYTES) != r->footer.table_checksum)
        return DAMAGED(r, "%s", "its section table does not match its checksum");
    for (uint64_t i = 0; i < r->footer.n_sections; i++) {
        r->section[i] = rt_section_read(rows + i * RT_ROW_BYTES);
        if (!check_row(r, i, end))
            return false;
        end = r->section[i].offset + r->section[i].size;
    }
    if (r->footer.table_offset - end >= RT_PAGE)
        return DAMAGED(r, "%s", "there is a hole before its section table");
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++)
        if (!r->of[kind])
            return DAMAGED(r, "section '%s' is missing", rt_section_name((uint64_t)kind));
    return true;
}

/* Its length was held against the file by check_footer. */
static bool read_table(reader *r)
{
    rt_blob rows = {0};
    bool ok;

    if (r->footer.n_sections == 0)
        return DAMAGED(r, "%s", "has no sections");
    if (!rt_blob_read(&rows, &r->source, r->footer.table_offset, r->footer.n_sections * RT_ROW_BYTES, r->err))
        return false;
    ok = check_rows(r, rows.data);
    rt_blob_free(&rows);
    return ok;
}

/* ---- metadata ---- */

/* Mapped, not read: a large module's code is compared with what the loader has and needs no copy. */
static bool read_elf(reader *r)
{
    rt_blob *elf = &r->out->elf;

    if (!rt_blob_map(elf, &r->source, 0, r->footer.elf_size, r->err))
        return false;
    if (rt_checksum(elf->data, r->footer.elf_size) != r->footer.elf_checksum)
        return DAMAGED(r, "%s", "its code does not match its checksum");
    return true;
}

/* Bytes that belong to nothing are zero, so that no byte of the file can change unseen. */
static bool check_gap(reader *r, uint64_t begin, uint64_t end)
{
    rt_blob gap = {0};
    bool zero = true;

    if (!rt_blob_read(&gap, &r->source, begin, end - begin, r->err))
        return false;
    for (uint64_t i = 0; i < end - begin; i++)
        zero = zero && gap.data[i] == 0;
    rt_blob_free(&gap);
    return zero ||
           DAMAGED(r, "bytes %llu to %llu are not zero", (unsigned long long)begin, (unsigned long long)end);
}

/* Gaps are shorter than a page (check_row), so reading them costs little. */
static bool check_gaps(reader *r)
{
    uint64_t end = r->footer.elf_size;

    for (uint64_t i = 0; i < r->footer.n_sections; i++) {
        if (!check_gap(r, end, r->section[i].offset))
            return false;
        end = r->section[i].offset + r->section[i].size;
    }
    return check_gap(r, end, r->footer.table_offset);
}

/* The bytes of a small section, within `meta`. */
static const uint8_t *section_bytes(const reader *r, const rt_section *s)
{
    return r->out->meta.data + (s->offset - r->of[RT_SECTION_INFO]->offset);
}

/* The checksum first: a decoder's message about damaged bytes would mislead. */
static bool decode_section(reader *r, rt_section_kind kind)
{
    const rt_section *s = r->of[kind];
    tec_error inner = {0};

    if (rt_checksum(section_bytes(r, s), s->size) != s->checksum)
        return DAMAGED(r, "section '%s' does not match its checksum", rt_section_name(kind));
    if (rt_module_decode(&r->out->desc, kind, section_bytes(r, s), s->size, &r->out->arena, &inner))
        return true;
    if (inner.status == TEC_NO_MEMORY)
        return rt_fail(r->err, inner.status, "%s: %s", r->source.name, inner.text);
    return DAMAGED(r, "section '%s' %s", rt_section_name(kind), inner.text);
}

/* All sections of metadata are one range, which is read at once and decoded section by section. */
static bool read_metadata(reader *r)
{
    const rt_section *last = r->of[r->of[RT_SECTION_BESIDE] ? RT_SECTION_BESIDE : RT_SECTION_LAST];
    uint64_t begin = r->of[RT_SECTION_INFO]->offset;
    tec_error inner = {0};

    if (r->of[RT_SECTION_BESIDE] && r->of[RT_SECTION_WEIGHTS])
        return DAMAGED(r, "%s", "its weights are both inside and beside it");
    if (!rt_blob_read(&r->out->meta, &r->source, begin, last->offset + last->size - begin, r->err))
        return false;
    for (int kind = RT_SECTION_INFO; kind <= RT_SECTION_LAST; kind++)
        if (!decode_section(r, (rt_section_kind)kind))
            return false;
    if (!rt_module_check(&r->out->desc, &inner))
        return inner.status == TEC_NO_MEMORY
                   ? rt_fail(r->err, inner.status, "%s: %s", r->source.name, inner.text)
                   : DAMAGED(r, "%s", inner.text);
    return (!rt_has_host_code(&r->out->desc) || r->footer.elf_size > 0) ||
           DAMAGED(r, "%s", "has functions but no code");
}

/* ---- weights ---- */

/* Weights of a file stay where they are unless the caller wants a copy; those in the caller's memory are
 * copied. */
static bool load_weights(reader *r, const rt_source *from, uint64_t offset, uint64_t size)
{
    if (r->options && r->options->copy_weights)
        return rt_blob_read_huge(&r->out->weights, from, offset, size, r->err);
    if (from->bytes)
        return rt_blob_read(&r->out->weights, from, offset, size, r->err);
    return rt_blob_map(&r->out->weights, from, offset, size, r->err);
}

/* Only on request: weights of gigabytes take seconds to read. */
static bool verify_weights(reader *r, uint64_t checksum, const char *path)
{
    bool padded;

    if (!r->options || !r->options->verify_weights)
        return true;
    if (rt_weights_checksum(&r->out->desc, r->out->weights.data, &padded) != checksum || !padded)
        return rt_fail(r->err, TEC_INVALID, "%s: damaged module: its weights do not match their checksum",
                       path);
    return true;
}

/* Constants say how many bytes they need, and the section must have exactly these. */
static bool read_inside(reader *r)
{
    const rt_section *s = r->of[RT_SECTION_WEIGHTS];
    uint64_t size = rt_weights_size(&r->out->desc);

    if ((s ? s->size : 0) != size)
        return DAMAGED(r, "has %llu bytes of weights; expected %llu", (unsigned long long)(s ? s->size : 0),
                       (unsigned long long)size);
    if (!s)
        return true;
    return load_weights(r, &r->source, s->offset, s->size) && verify_weights(r, s->checksum, r->source.name);
}

/* The path of the file that is called `name` in the module's folder. */
static char *path_beside(const reader *r, const char *name)
{
    const char *slash = strrchr(r->source.name, '/');
    size_t folder = slash ? (size_t)(slash - r->source.name) + 1 : 0;
    char *path = rt_alloc(folder + strlen(name) + 1, r->err);

    if (path) {
        memcpy(path, r->source.name, folder);
        strcpy(path + folder, name);
    }
    return path;
}

/* The weights' file must be the one that the module was written with: its header is compared by checksum. */
static bool check_beside(reader *r, const rt_source *file, const rt_beside *b)
{
    rt_blob head = {0};
    bool same;

    if (b->offset > file->size || file->size - b->offset != b->size || b->offset % RT_WEIGHT_ALIGN)
        return rt_fail(r->err, TEC_INVALID,
                       "%s: has %llu bytes; '%s' expects weights of %llu bytes from %llu on", file->name,
                       (unsigned long long)file->size, r->source.name, (unsigned long long)b->size,
                       (unsigned long long)b->offset);
    if (!rt_blob_map(&head, file, 0, b->offset, r->err))
        return false;
    same = rt_checksum(head.data, b->offset) == b->head_checksum;
    rt_blob_free(&head);
    return same || rt_fail(r->err, TEC_INVALID, "%s: holds other weights than those that '%s' was made with",
                           file->name, r->source.name);
}

/* The file is closed again: a mapping stays without it. */
static bool open_beside(reader *r, const rt_beside *b, const char *path)
{
    rt_source file;
    bool ok;

    if (!open_regular(&file, path, r->err))
        return false;
    ok = check_beside(r, &file, b) && load_weights(r, &file, b->offset, b->size) &&
         verify_weights(r, b->checksum, path);
    close(file.fd);
    return ok;
}

/* Finds the file of weights beside the module by its name alone: a module cannot name a file in another
 * folder. */
static bool read_beside(reader *r)
{
    const rt_section *s = r->of[RT_SECTION_BESIDE];
    rt_beside b = {0};
    char *path;
    bool ok;

    if (rt_checksum(section_bytes(r, s), s->size) != s->checksum ||
        !rt_beside_decode(&b, section_bytes(r, s), s->size, NULL) || !b.name || !*b.name ||
        strchr(b.name, '/') || b.size != rt_weights_size(&r->out->desc))
        return DAMAGED(r, "%s", "it does not say well where its weights are");
    if (r->source.bytes)
        return rt_fail(r->err, TEC_UNSUPPORTED,
                       "%s: its weights lie in a file of their own, '%s': open the module by its path",
                       r->source.name, b.name);
    path = path_beside(r, b.name);
    ok = path && open_beside(r, &b, path);
    rt_free(path);
    return ok;
}

/* In the order and at the places that the writer gave them. The description is this module's own, so it may
 * be changed. */
void rt_place_constants(const rt_module_desc *m, const uint8_t *weights)
{
    rt_constant_desc *constants = (rt_constant_desc *)(uintptr_t)m->constants;
    uint64_t end = 0;

    for (int32_t i = 0; i < m->n_constants; i++) {
        uint64_t size = (uint64_t)rt_constant_bytes(&constants[i]);

        if (size == 0)
            continue;
        constants[i].data = weights + rt_weight_next(end);
        end = rt_weight_next(end) + size;
    }
}

/* ---- the whole ---- */

/* Each step uses only what the steps before it have checked. */
static bool read_all(reader *r)
{
    if (!read_footer(r) || !read_table(r) || !read_elf(r) || !check_gaps(r) || !read_metadata(r))
        return false;
    if (!(r->of[RT_SECTION_BESIDE] ? read_beside(r) : read_inside(r)))
        return false;
    rt_place_constants(&r->out->desc, r->out->weights.data);
    return true;
}

/* After an error *f is empty. */
bool rt_file_open(rt_file *f, const char *path, const tec_module_options *options, tec_error *err)
{
    reader r = {.out = f, .options = options, .err = err};
    bool ok;

    *f = (rt_file){0};
    if (!open_regular(&r.source, path, err))
        return false;
    ok = read_all(&r);
    close(r.source.fd);
    if (!ok)
        rt_file_close(f);
    return ok;
}

bool rt_file_open_bytes(rt_file *f, const void *data, size_t size, const tec_module_options *options,
                        tec_error *err)
{
    reader r = {.out = f, .source = {"module in memory", size, data, -1}, .options = options, .err = err};

    *f = (rt_file){0};
    if (read_all(&r))
        return true;
    rt_file_close(f);
    return false;
}

void rt_file_close(rt_file *f)
{
    rt_blob_free(&f->weights);
    rt_blob_free(&f->elf);
    rt_blob_free(&f->meta);
    rt_arena_free(&f->arena);
    *f = (rt_file){0};
}
