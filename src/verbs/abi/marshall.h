// SPDX-License-Identifier: BSD-2-Clause
/* Exported functions that librdmacm uses: conversions between the structures of the kernel's interface and those of the
 * verbs API, and two helpers that read sysfs. The public headers of Debian do not declare them. */
#ifndef PUMICE_SRC_VERBS_ABI_MARSHALL_H
#define PUMICE_SRC_VERBS_ABI_MARSHALL_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/* The directory where sysfs is mounted: SYSFS_PATH of the environment, or /sys. Valid until the environment changes. */
const char *ibv_get_sysfs_path(void);
/* Reads dir/file into buf[size] and cuts off a final newline. Returns the bytes read, or -1 with errno. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

#endif
