// SPDX-License-Identifier: BSD-2-Clause
/* For programs that call functions which the system's library may not have. The functions are weak: their addresses are
 * NULL if the library with which the program runs has none. */
#ifndef PUMICE_TESTS_VERBS_LATER_H
#define PUMICE_TESTS_VERBS_LATER_H

#include "src/verbs/base/verbs_v65.h"
#include "tests/verbs/device.h"

#pragma weak ibv_reg_mr_ex
#pragma weak ibv_alloc_buf
#pragma weak ibv_free_buf
#pragma weak ibv_reg_buf_mr
#pragma weak ibv_export_buf_dmabuf_fd
#pragma weak ibv_alloc_dmah
#pragma weak ibv_dealloc_dmah
#pragma weak ibv_dm_export_dmabuf_fd
#pragma weak ibv_query_port_speed
#pragma weak _ibv_query_comp_cntr_caps
#pragma weak ibv_create_comp_cntr
#pragma weak ibv_destroy_comp_cntr
#pragma weak ibv_set_comp_cntr
#pragma weak ibv_set_err_comp_cntr
#pragma weak ibv_inc_comp_cntr
#pragma weak ibv_inc_err_comp_cntr
#pragma weak ibv_read_comp_cntr
#pragma weak ibv_read_err_comp_cntr
#pragma weak ibv_qp_attach_comp_cntr

/* Ends the program if the library has no such function. On Pumice that is an error. */
#define need_function(name)                                                                                            \
    do {                                                                                                               \
        if (!(name))                                                                                                   \
            vt_skip("the library has no " #name);                                                                      \
    } while (0)

#endif
