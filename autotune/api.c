/* autotune/api.c -- the public face of autotune/: include/tec/records.h over autotune/source.h. */
#include "tec/records.h"

#include "autotune/source.h"
#include "compiler/options.h"

TEC_GIVE tec_records *tec_records_open(tec_context *cx, const char *path)
{
    store *db = store_open(cx, path, &(store_options){.read_only = true, .must_exist = true});

    return db ? tune_source(cx, db) : NULL;
}

void tec_records_close(TEC_TAKE tec_records *r)
{
    if (r)
        store_close(r->data);
}

const char *tec_records_trace(const tec_records *r, const tec_def *d, const tec_build_options *options)
{
    const space_task *task = r && d ? space_task_new(d->cx, d, NULL) : NULL;
    comp_options o;

    if (!task || !comp_read_options(d->cx, options, NULL, &o))
        return NULL;
    return r->best(r, d->cx, task, o.target, NULL);
}
