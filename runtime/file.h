/* runtime/file.h -- inside the room: the frame of a module file, shared by its writer and its reader:
 * footer, section table, checksums.
 *
 *     [ELF shared object] [zeros] [section] [zeros] [section] ... [section table] [footer]
 *
 * docs/module.md has the byte table.
 * Lifetime, Errors, Threads: see the functions; the structs are plain data.
 */
#ifndef RUNTIME_FILE_H
#define RUNTIME_FILE_H

#include "runtime/alloc.h"
#include "runtime/format.h"

enum {
    RT_FORMAT_VERSION = 5,
    RT_FOOTER_BYTES = 72,
    RT_ROW_BYTES = 32,
    RT_PAGE = 4096, /* the weights begin at a multiple; so do the sections as a whole */
    RT_SECTION_ALIGN = 64
};

typedef struct {
    uint32_t version, abi;
    uint64_t file_size;
    uint64_t elf_size, elf_checksum;
    uint64_t table_offset, n_sections, table_checksum;
} rt_footer;

typedef struct {
    uint64_t kind, offset, size, checksum;
} rt_section;

void rt_footer_write(const rt_footer *footer, uint8_t bytes[RT_FOOTER_BYTES]);
typedef enum { RT_FOOTER_GOOD, RT_FOOTER_ABSENT, RT_FOOTER_DAMAGED } rt_footer_state;
rt_footer_state rt_footer_read(rt_footer *footer, const uint8_t bytes[RT_FOOTER_BYTES]);
void rt_section_write(const rt_section *section, uint8_t bytes[RT_ROW_BYTES]);
rt_section rt_section_read(const uint8_t bytes[RT_ROW_BYTES]);

uint64_t rt_checksum(const void *data, size_t size);
/* Over the constants' bytes alone, in their order; *padded says whether the bytes between them are zero,
 * where `weights` holds them all as in the file. weights NULL: the bytes behind each constant's `data`. */
uint64_t rt_weights_checksum(const rt_module_desc *module, const uint8_t *weights, bool *padded);
uint64_t rt_weights_size(const rt_module_desc *module);
const char *rt_section_name(uint64_t kind);

/* A file being written beside its final name; or bytes in memory. */
typedef struct {
    const char *path;
    rt_bytes *bytes; /* NULL: a file */
    char *temporary;
    int fd;
    uint64_t at;
    tec_error *err;
    bool failed;
} rt_sink;
bool rt_sink_open(rt_sink *sink, const char *path, tec_error *err);
rt_sink rt_sink_bytes(rt_bytes *bytes, tec_error *err); /* added to *bytes */
void rt_sink_put(rt_sink *sink, const void *data, size_t size);
void rt_sink_pad(rt_sink *sink, uint64_t align);
/* Renames the file to its name, or removes it when anything failed; false then. */
bool rt_sink_close(rt_sink *sink);
void rt_sink_put_weights(rt_sink *sink,
                         const rt_module_desc *module); /* each constant at its place from here on */

/* Writes the constants as a .safetensors file and says in *beside (but for its name) how to find them
 * there. */
bool rt_safetensors_write(const rt_module_desc *module, const char *path, rt_beside *beside, tec_error *err);

/* Read-only bytes of a file or of main memory, however they came here. `{0}` is empty. */
typedef struct {
    const uint8_t *data;
    void *base; /* what to give back */
    size_t length;
    enum { RT_BLOB_NONE, RT_BLOB_MAPPED, RT_BLOB_ALLOCATED } how;
} rt_blob;
/* Where the bytes come from: an open file, or the caller's memory. */
typedef struct {
    const char *name; /* in messages */
    uint64_t size;
    const uint8_t *bytes; /* NULL: a file */
    int fd;
} rt_source;

/* Of memory: a view of the source's bytes, which must stay while the view is used. */
bool rt_blob_map(rt_blob *blob, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err);
bool rt_blob_read(rt_blob *blob, const rt_source *from, uint64_t offset, uint64_t size, tec_error *err);
void rt_blob_free(rt_blob *blob);

/* A module file, opened and checked; `desc` points into it. */
typedef struct {
    rt_module_desc desc;
    rt_arena arena;
    rt_blob meta; /* the bytes of the metadata sections */
    rt_blob elf;  /* mapped; given back once the code is loaded */
    rt_blob weights;
} rt_file;
bool rt_file_open(rt_file *file, const char *path, const tec_module_options *options, tec_error *err);
/* The same of a file's bytes in memory. They are copied, but for `elf`, which is a view of them. */
bool rt_file_open_bytes(rt_file *file, const void *data, size_t size, const tec_module_options *options,
                        tec_error *err);
void rt_file_close(rt_file *file);
/* Points each constant at its bytes. The constants are the arena's, or another copy that may be changed. */
void rt_place_constants(const rt_module_desc *module, const uint8_t *weights);

/* The loaded code of a module file: what dlclose takes. The file's first bytes must be those of `elf`. */
void *rt_code_open(const char *path, const rt_blob *elf, tec_error *err);
/* The same of code that lies in memory alone; `name` is for messages. */
void *rt_code_open_bytes(const char *name, const rt_blob *elf, tec_error *err);

#endif
