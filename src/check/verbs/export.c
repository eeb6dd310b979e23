// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/export.h"

void export_made(enum kind kind, const void *object, const struct trace *where)
{
    records_lock();
    record_add(kind, object, kind == KIND_PD ? sizeof(struct pd_record) : sizeof(struct record), where);
    records_unlock();
}

void export_destroyed(enum kind kind, const void *object, int rc, const struct trace *where)
{
    records_lock();
    struct record *r = record_find(kind, object, where ? where->at[0] : NULL);
    if (r)
        record_destroyed(r, rc, where);
    records_unlock();
}
