// SPDX-License-Identifier: BSD-2-Clause
/* Turns the status document of a daemon into rows, as iproute2's rdma tool has them. A row is a JSON object with the names
 * and the order of fields of that tool. Keys and addresses are texts such as "0x1f00", since JSON has no hexadecimal
 * numbers. */
#ifndef PUMICE_SRC_CMD_RDMA_ROWS_H
#define PUMICE_SRC_CMD_RDMA_ROWS_H

#include <jansson.h>
#include <stdbool.h>

/* A kind of objects. Kinds that the rdma tool does not have: mw, xrcd, tm. */
struct row_kind {
    const char *name;
    bool has_port; /* its objects belong to a port of a device, and not to the device */
    const char *fields; /* all fields that a row can have, with a space after each */
    /* Appends the fields of the object to the row. */
    void (*fill)(json_t *row, const json_t *device, const json_t *object);
    const char *list; /* of the device's objects in the status document */
};
/* The kinds end with one without a name. */
extern const struct row_kind row_kinds[];
/* NULL: there is no such kind. */
const struct row_kind *row_kind_find(const char *name);

/* The IDs of rdma_cm (kind cm_id) on the device of this name, as a new reference. An ID of no device in particular, such as
 * a listener at all addresses, is on each device, as with the rdma tool. */
json_t *rows_cm_ids(const json_t *status, const char *name);

/* Rows about the device with this index: itself, its port, and how many objects it has. details: with the fields that
 * the rdma tool shows for -d. They return new references. */
json_t *row_dev(const json_t *device, unsigned index, bool details);
json_t *row_link(const json_t *device, unsigned index, bool details);
json_t *row_summary(const json_t *device, unsigned index);
/* A row about an object of that kind. NULL: the kind does not have this object (an SRQ without tag matching). */
json_t *row_object(const struct row_kind *kind, const json_t *device, unsigned index, const json_t *object);

#endif
