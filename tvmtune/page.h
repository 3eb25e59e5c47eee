/* tvmtune/page.h -- inside the room: the files of tvmtune/page/, which the build puts into the program.
 *
 *     const tvm_page *p = tvm_page_at("/");     // NULL: there is none
 */
#ifndef TVMTUNE_PAGE_H
#define TVMTUNE_PAGE_H

#include <stddef.h>

typedef struct {
    const char *path, *type;
    const unsigned char *data;
    size_t size;
} tvm_page;

const tvm_page *tvm_page_at(const char *path);

#endif
