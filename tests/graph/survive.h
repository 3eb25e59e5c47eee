/* tests/graph/survive.h -- that a module file is the same whether its plan was printed and parsed or not.
 *
 *     const char *plan = module_survives(m, target);
 */
#ifndef TESTS_GRAPH_SURVIVE_H
#define TESTS_GRAPH_SURVIVE_H

#include <stdlib.h>
#include <unistd.h>

#include "graph/build.h"
#include "graph/describe.h"
#include "graph/planned.h"
#include "tests/graph/kit.h"

static inline const char *bytes_of(const graph_built *b, const rt_module_desc *desc, size_t *size)
{
    char path[] = "/tmp/planned-XXXXXX";

    close(mkstemp(path));
    cr_assert(comp_write(cx, b->code, desc, path, 0), "%s", tec_context_error(cx));
    const char *bytes = base_read_file(cx, path, size);
    unlink(path);
    cr_assert(bytes);
    return bytes;
}

/* Gives the text of the plan. */
static inline const char *module_survives(graph_module *m, const target *t)
{
    graph_built *b = graph_build(m, &(graph_build_options){.target = t});

    cr_assert(b, "%s", tec_context_error(cx));
    const char *plan = graph_text(cx, b->planned, GRAPH_TEXT_FULL);
    const graph_module *again = graph_parse(cx, "plan.graph", plan, NULL);
    cr_assert(again, "%s\n%s", tec_context_error(cx), plan);
    cr_assert_str_eq(graph_text(cx, again, GRAPH_TEXT_FULL), plan);
    rt_module_desc desc = *comp_desc(b->code);
    cr_assert(graph_describe(again, &desc), "%s", tec_context_error(cx));
    size_t n_first, n_second;
    const char *first = bytes_of(b, &b->desc, &n_first), *second = bytes_of(b, &desc, &n_second);
    cr_assert(n_first == n_second && memcmp(first, second, n_first) == 0,
              "the module differs from that of its printed plan:\n%s", plan);
    return plan;
}

#endif
