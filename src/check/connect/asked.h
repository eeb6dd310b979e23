// SPDX-License-Identifier: BSD-2-Clause
/* Notes which facts about ports and GIDs the program has asked for. It only assumes all others. */
#ifndef PUMICE_SRC_CHECK_CONNECT_ASKED_H
#define PUMICE_SRC_CHECK_CONNECT_ASKED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* The program asked for the attributes of a port, or has looked at GIDs by a way that also tells their types. */
void asked_port(const struct ibv_context *context);
void asked_gid_types(void);
/* It asked for the GID of one index. */
void asked_gid(const struct ibv_context *context, int index);
/* A context is closed. */
void asked_forget(const struct ibv_context *context);

bool asked_has_port(const struct ibv_context *context);

/* Has the program chosen this index? Either it looked at types or at several GIDs, or a user gave it the number: in an
 * argument or in a variable of the environment. */
bool asked_has_chosen(const struct ibv_context *context, int index);

#endif
