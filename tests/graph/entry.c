/* tests/graph/entry.c -- the lines on which a program declares its constructors. */
#include "graph/entry.h"
#include "tests/graph/kit.h"

TestSuite(entry, .init = open_context, .fini = close_context);

static const rt_constructor_desc tree[] = {{.name = "Leaf"}, {.name = "Node"}}, list[] = {{.name = "Nil"}};
static const rt_data_desc data[] = {{"Tree", tree, 2}, {"List", list, 1}};

Test(entry, constructors_stand_in_front_of_the_parameters)
{
    const rt_line_desc lines[] = {{-7, 3}, {-6, 4}, {-5, 0}, {-4, 8}, {0, 9}};
    const rt_routine_desc main = {.n_params = 4, .lines = lines, .n_lines = 5};
    const rt_program_desc program = {.data = data, .n_data = 2, .functions = &main, .n_functions = 1};

    cr_assert_eq(graph_constructor_line(&program, 0, 0), 3);
    cr_assert_eq(graph_constructor_line(&program, 0, 1), 4);
    cr_assert_eq(graph_constructor_line(&program, 1, 0), 0);
    cr_assert_eq(rt_line_of(&main, -4), 8);
}
