/* tests/graph/onnx/planned.c -- the plan of a whole model, as text: each model of tests/models. */
#include "tests/graph/survive.h"

#include <glob.h>

#include "tec/graph.h"

TestSuite(planned, .init = open_context, .fini = close_context, .timeout = 300);

/* Convolutions, constants of all shapes, a symbolic batch; on this CPU and on a device. */
Test(planned, text_of_a_model_gives_the_same_module)
{
    const char *const targets[] = {"llvm -mcpu=x86-64-v3", "opencl"};
    glob_t models;

    cr_assert_eq(glob(TEC_SOURCE_DIR "/tests/models/*/model.onnx", 0, NULL, &models), 0);
    for (size_t i = 0; i < models.gl_pathc; i++)
        for (int t = 0; t < 2; t++) {
            graph_module *m = tec_graph_import(cx, models.gl_pathv[i], NULL);

            cr_assert(m, "%s", tec_context_error(cx));
            module_survives(m, target_parse(cx, targets[t]));
        }
    globfree(&models);
}
