/* context.c -- the context: its errors, its log, where its caller stands; and the facts about the library as a whole.
 *
 * The first error wins: base_fail after another failure changes nothing, and the notes that follow it are dropped too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"

const char *tec_status_text(tec_status status)
{
    static const char *const text[] = {
#define X(name, text) text,
        TEC_STATUS_LIST(X)
#undef X
    };

    return (unsigned)status < sizeof text / sizeof *text ? text[status] : "unknown status";
}

const char *tec_version(void)
{
    return TEC_VERSION;
}

tec_context *tec_context_new(void)
{
    tec_context *cx = calloc(1, sizeof *cx);

    if (!cx)
        abort();
    return cx;
}

tec_context *base_child(tec_context *parent)
{
    tec_context *cx = tec_context_new();

    cx->where = parent->where;
    tec_context_set_log(cx, parent->log, parent->log_user, parent->log_level);
#ifdef TEC_DEBUG
    cx->plant = parent->plant;
#endif
    return cx;
}

void base_reset(tec_context *cx)
{
    tec_context_clear(cx);
    base_arena_reset(&cx->arena);
}

void tec_context_free(tec_context *cx)
{
    if (!cx)
        return;
    base_arena_free(&cx->arena);
    free(cx->error);
    free(cx);
}

tec_status tec_context_status(const tec_context *cx)
{
    return cx->status;
}

const char *tec_context_error(const tec_context *cx)
{
    return cx->error;
}

void tec_context_clear(tec_context *cx)
{
    free(cx->error);
    cx->error = NULL;
    cx->status = TEC_OK;
    cx->noting = false;
}

tec_context *tec_here(tec_context *cx, const char *file, int line)
{
    if (cx)
        cx->where = (base_loc){file, line};
    return cx;
}

base_loc base_where(const tec_context *cx)
{
    return cx->where;
}

void base_set_where(tec_context *cx, base_loc loc)
{
    cx->where = loc;
}

bool base_failed(const tec_context *cx)
{
    return cx->status != TEC_OK;
}

void base_adopt(tec_context *cx, const tec_context *from)
{
    cx->noting = !base_failed(cx) && base_failed(from);
    if (!cx->noting)
        return;
    cx->status = from->status;
    cx->error = strdup(from->error);
    if (!cx->error)
        abort();
}

/* A formatted text in memory of its own, which the caller frees. */
static char *format(const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = base_print(NULL, 0, fmt, again);
    va_end(again);
    char *text = malloc((size_t)n + 1);
    if (!text)
        abort();
    base_print(text, (size_t)n + 1, fmt, args);
    return text;
}

/* Appends "FILE:LINE: WORD: message" to the error text, on a line of its own. */
static void append(tec_context *cx, base_loc loc, const char *word, const char *fmt, va_list args)
{
    char *message = format(fmt, args);
    size_t before = cx->error ? strlen(cx->error) : 0;
    size_t size = before + strlen(message) + (loc.file ? strlen(loc.file) : 0) + 64;
    char *text = realloc(cx->error, size);

    if (!text)
        abort();
    cx->error = text;
    const char *newline = before ? "\n" : "";
    if (!loc.file)
        snprintf(text + before, size - before, "%s%s: %s", newline, word, message);
    else if (loc.line > 0)
        snprintf(text + before, size - before, "%s%s:%d: %s: %s", newline, loc.file, loc.line, word, message);
    else
        snprintf(text + before, size - before, "%s%s: %s: %s", newline, loc.file, word, message);
    free(message);
}

static void fail(tec_context *cx, tec_status status, base_loc loc, const char *fmt, va_list args)
{
    cx->noting = !base_failed(cx);
    if (!cx->noting)
        return;
    cx->status = status == TEC_OK ? TEC_INTERNAL : status;
    append(cx, loc, "error", fmt, args);
}

void *base_fail(tec_context *cx, tec_status status, base_loc loc, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(cx, status, loc, fmt, args);
    va_end(args);
    return NULL;
}

void base_note(tec_context *cx, base_loc loc, const char *fmt, ...)
{
    va_list args;

    if (!cx->noting)
        return;
    va_start(args, fmt);
    append(cx, loc, "note", fmt, args);
    va_end(args);
}

#ifdef TEC_DEBUG
/* The process ends here, so its own diagnostics are the only place left for the reason. */
void *base_bug(tec_context *cx, const char *file, int line, const char *fmt, ...)
{
    va_list args;

    (void)cx;
    fprintf(stderr, "%s:%d: internal error: ", file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
#else
void *base_bug(tec_context *cx, const char *file, int line, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(cx, TEC_INTERNAL, (base_loc){file, line}, fmt, args);
    va_end(args);
    return NULL;
}
#endif

void tec_context_set_log(tec_context *cx, tec_log_fn *fn, void *user, int level)
{
    cx->log = fn;
    cx->log_user = user;
    cx->log_level = level;
}

int base_log_level(const tec_context *cx)
{
    return cx->log ? cx->log_level : 0;
}

void base_log(tec_context *cx, int level, const char *fmt, ...)
{
    va_list args;

    if (level > base_log_level(cx))
        return;
    va_start(args, fmt);
    char *text = format(fmt, args);
    va_end(args);
    cx->log(cx->log_user, level, text);
    free(text);
}
