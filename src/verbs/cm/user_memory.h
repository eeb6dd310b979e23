// SPDX-License-Identifier: BSD-2-Clause
/* Copies between the library and addresses in commands of the program. As in the kernel, an address that is not mapped
 * is an error of the command, and no crash. */
#ifndef PUMICE_SRC_VERBS_CM_USER_MEMORY_H
#define PUMICE_SRC_VERBS_CM_USER_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Both return 0 or -EFAULT. */
int vb_user_read(void *to, uint64_t from, size_t len);
int vb_user_write(uint64_t to, const void *from, size_t len);

#endif
