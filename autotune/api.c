/* autotune/api.c -- the public face of autotune/: include/tec/records.h over autotune/source.h. */
#include "tec/records.h"

#include "autotune/source.h"
#include "base/guard.h"
#include "compiler/options.h"

static void close_store(void *db)
{
    store_close(db);
}

TEC_GIVE tec_records *tec_records_open(tec_context *cx, const char *path)
{
    BASE_GUARD(cx, NULL);
    if (!path)
        return base_fail(cx, TEC_INVALID, base_where(cx), "no path of records");
    base_held held;
    store *db = store_open(cx, path, &(store_options){.read_only = true, .must_exist = true});

    base_hold(cx, &held, close_store, db);
    tec_records *r = db ? tune_source(cx, db) : NULL;
    base_keep(&held);
    return r;
}

void tec_records_close(TEC_TAKE tec_records *r)
{
    if (r)
        store_close(r->data);
}

const char *tec_records_trace(const tec_records *r, const tec_def *d, const tec_build_options *options)
{
    BASE_GUARD(r && d ? d->cx : NULL, NULL);
    const space_task *task = r && d ? space_task_new(d->cx, d, NULL) : NULL;
    comp_options o;

    if (!task || !comp_read_options(d->cx, options, NULL, &o))
        return NULL;
    return r->best(r, d->cx, task, o.target, NULL);
}
