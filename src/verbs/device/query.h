// SPDX-License-Identifier: BSD-2-Clause
/* The attributes of a device and of its port: ibv_query_device, ibv_query_port, ibv_query_pkey and their later forms.
 * All functions return 0 or an errno value. */
#ifndef PUMICE_SRC_VERBS_DEVICE_QUERY_H
#define PUMICE_SRC_VERBS_DEVICE_QUERY_H

#include <infiniband/verbs.h>
#include <stddef.h>

/* The functions that a context points to. size is the length of the structure that the program was built with. A longer
 * one is filled with zeros, a shorter one gets the first fields. */
int vb_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *in,
                       struct ibv_device_attr_ex *attr, size_t size);
int vb_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size);
int vb_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

#endif
