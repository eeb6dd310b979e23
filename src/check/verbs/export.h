// SPDX-License-Identifier: BSD-2-Clause
/* The checker is preloaded into a program and replaces verbs. All of these replacements use this. */
#ifndef PUMICE_SRC_CHECK_VERBS_EXPORT_H
#define PUMICE_SRC_CHECK_VERBS_EXPORT_H

#include "src/check/base/trace.h"
#include "src/check/objects/records.h"

#define EXPORT __attribute__((visibility("default")))

/* A verb made an object, which needs no more than a record. NULL: it failed. */
void export_made(enum kind kind, const void *object, const struct trace *where);
/* A verb destroyed an object, or returned an error. */
void export_destroyed(enum kind kind, const void *object, int rc, const struct trace *where);

#endif
