/* tests/graph/onnx/planned.c -- the plan of a real network with a symbolic batch gives the same module file
 * after printing and parsing. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/build.h"
#include "graph/describe.h"
#include "graph/onnx/onnx.h"
#include "graph/text.h"

static const char *bytes_of(tec_context *cx, const graph_built *b, const rt_module_desc *desc, size_t *size)
{
    char path[] = "/tmp/planned-XXXXXX";

    close(mkstemp(path));
    cr_assert(comp_write(cx, b->code, desc, path, 0));
    const char *bytes = base_read_file(cx, path, size);
    unlink(path);
    return bytes;
}

Test(planned, a_network_survives_its_text)
{
    tec_context *cx = tec_context_new();
    graph_module *m = onnx_import(cx, TEC_SOURCE_DIR "/tests/models/digits/model.onnx", NULL);
    graph_built *b = graph_build(
        m, &(graph_build_options){.target = target_parse(cx, "llvm -mcpu=x86-64-v3 -num-cores=2")});

    cr_assert(b, "%s", tec_context_error(cx));
    const char *plan = graph_text(cx, b->planned, 0);
    const graph_module *again = graph_parse(cx, "plan.graph", plan, b->planned);
    cr_assert(again, "%s", tec_context_error(cx));
    rt_module_desc desc = *comp_desc(b->code);
    cr_assert(graph_describe(again, &desc), "%s", tec_context_error(cx));
    size_t n, k;
    const char *first = bytes_of(cx, b, &b->desc, &n), *second = bytes_of(cx, b, &desc, &k);
    cr_assert(n == k && memcmp(first, second, n) == 0);
    tec_context_free(cx);
}
