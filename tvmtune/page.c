/* tvmtune/page.c -- see page.h. cmake/embed.cmake makes the arrays. */
#include "tvmtune/page.h"

#include <string.h>

#include "tvmtune/page_data.h"

const tvm_page *tvm_page_at(const char *path)
{
    static const tvm_page pages[] = {
        {"/", "text/html; charset=utf-8", page_html, sizeof page_html},
        {"/page.css", "text/css; charset=utf-8", page_css, sizeof page_css},
        {"/page.js", "text/javascript; charset=utf-8", page_js, sizeof page_js},
    };

    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}
