/* tools/tune_plot.c -- the curves of `tec tune --plot`: for each kernel its gain over the default schedule
 * after each trial, as SVG. */
#include <inttypes.h>
#include <math.h>

#include "tools/tune_show.h"

enum { WIDTH = 640, HEIGHT = 360, LEFT = 80, TOP = 50, BELOW = 45 };

/* The ends of the axes: trials from 0 on, and gains around all that is drawn. */
typedef struct {
    int64_t trials;
    double least, most;
} ranges;

static double place_y(const ranges *range, double gain)
{
    return TOP + HEIGHT - HEIGHT * (gain - range->least) / (range->most - range->least);
}

static double place_x(int64_t trial, int64_t trials)
{
    return LEFT + (double)WIDTH * (double)trial / (double)(trials > 1 ? trials : 1);
}

/* Throughput as a share of the default schedule's. */
static double gain_at(const tune_state *state, int64_t i)
{
    return isfinite(state->curve[i]) && isfinite(state->first) && state->first > 0
               ? state->first / (double)state->curve[i]
               : 0;
}

static void add_titles(tec_context *cx, base_text *svg)
{
    base_addf(cx, svg, "<text x='%d' y='24' font-size='16'>Gain of each kernel while tuning</text>\n", LEFT);
    base_addf(
        cx, svg,
        "<text transform='translate(18 %d) rotate(-90)' text-anchor='middle'>times as fast as the default "
        "schedule</text>\n",
        TOP + HEIGHT / 2);
    base_addf(cx, svg, "<text x='%d' y='%d' text-anchor='middle'>trials of the kernel</text>\n",
              LEFT + WIDTH / 2, TOP + HEIGHT + 36);
}

/* Lines and numbers of both axes. */
static void add_grid(tec_context *cx, base_text *svg, const ranges *range)
{
    enum { LINES = 4 };

    for (int i = 0; i <= LINES; i++) {
        double y = TOP + HEIGHT - (double)HEIGHT * i / LINES;

        base_addf(
            cx, svg,
            "<path d='M%d %.1fh%d' stroke='#ddd'/><text x='%d' y='%.1f' text-anchor='end'>%.2fx</text>\n",
            LEFT, y, WIDTH, LEFT - 6, y + 4, range->least + (range->most - range->least) * i / LINES);
        base_addf(cx, svg, "<text x='%.1f' y='%d' text-anchor='middle'>%" PRId64 "</text>\n",
                  place_x(range->trials * i / LINES, range->trials), TOP + HEIGHT + 18,
                  range->trials * i / LINES);
    }
}

/* Names come from models: they may have any characters. */
static void add_escaped(tec_context *cx, base_text *svg, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '&' ? "&amp;" : *text == '>' ? "&gt;" : NULL;

        if (entity)
            base_add(cx, svg, entity);
        else
            base_addn(cx, svg, text, 1);
    }
}

/* The gain of kernel index over the trials, with its name at the side. */
static void add_curve(tec_context *cx, base_text *svg, const tune_state *state, int index, int count,
                      const ranges *range)
{
    const char *color = base_format(cx, "hsl(%d,70%%,42%%)", 360 * index / count);
    bool open = false;

    base_addf(cx, svg, "<path fill='none' stroke='%s' stroke-width='1.5' d='", color);
    for (int64_t k = 0; k < state->trials; k++) {
        double gain = gain_at(state, k);

        if (gain > 0)
            base_addf(cx, svg, "%c%.1f %.1f", open ? 'L' : 'M', place_x(k + 1, range->trials),
                      place_y(range, gain));
        open |= gain > 0;
    }
    base_addf(cx, svg, "'/>\n<text x='%d' y='%d' fill='%s'>", LEFT + WIDTH + 10, TOP + 14 + 15 * index,
              color);
    add_escaped(cx, svg, state->task->name);
    base_add(cx, svg, "</text>\n");
}

/* From the slowest schedule that was the best of its kernel, or the default, to the fastest, and a bit. */
static ranges ranges_of(const tool_tune_show *show)
{
    ranges r = {1, 1, 1};

    for (int i = 0; i < show->n_tasks; i++) {
        const tune_state *t = tune_session_task(show->session, i);

        r.trials = t->trials > r.trials ? t->trials : r.trials;
        for (int64_t k = 0; k < t->trials; k++) {
            double gain = gain_at(t, k);

            r.least = gain > 0 && gain < r.least ? gain : r.least;
            r.most = gain > r.most ? gain : r.most;
        }
    }
    r.most += 0.05 * (r.most - r.least) + 0.04;
    return r;
}

/* Writes the plot; false with an error. */
bool tool_tune_plot(tool_tune_show *show, const char *path)
{
    const ranges range = ranges_of(show);
    base_text svg = {0};

    int height = TOP + HEIGHT + BELOW, legend = TOP + 20 + 15 * show->n_tasks;
    base_addf(show->cx, &svg,
              "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' "
              "font-size='12'>\n"
              "<rect width='100%%' height='100%%' fill='white'/>\n",
              LEFT + WIDTH + 330, legend > height ? legend : height);
    add_titles(show->cx, &svg);
    add_grid(show->cx, &svg, &range);
    for (int i = 0; i < show->n_tasks; i++)
        add_curve(show->cx, &svg, tune_session_task(show->session, i), i, show->n_tasks, &range);
    base_add(show->cx, &svg, "</svg>\n");
    return base_write_file(show->cx, path, svg.data, svg.n);
}
