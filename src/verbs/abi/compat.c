// SPDX-License-Identifier: BSD-2-Clause
/* Exports the functions of the first ABI of libibverbs, IBVERBS_1.0 of 2005. Its structures differ from today's, so a
 * program can't use objects of this library through it. Its device list is empty, so a program gets no object to call
 * the other functions with. All other functions fail. */
#include "src/verbs/abi/stubs.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#define OLD(name) VB_SYMVER(old_##name, ibv_##name, "IBVERBS_1.0")
#define OLD_INT(name) VB_STUB_INT(old_##name) OLD(name)
#define OLD_MINUS(name) VB_STUB_MINUS(old_##name) OLD(name)
#define OLD_PTR(name) VB_STUB_PTR(old_##name) OLD(name)
#define OLD_VOID(name) VB_STUB_VOID(old_##name) OLD(name)

VB_EXPORT void *old_get_device_list(int *num);
VB_EXPORT void *old_get_device_list(int *num)
{
    if (num)
        *num = 0;
    return calloc(1, sizeof(void *));
}
OLD(get_device_list);

VB_EXPORT void old_free_device_list(void *list);
VB_EXPORT void old_free_device_list(void *list)
{
    free(list);
}
OLD(free_device_list);

VB_EXPORT uint64_t old_get_device_guid(void);
VB_EXPORT uint64_t old_get_device_guid(void)
{
    return 0;
}
OLD(get_device_guid);

OLD_PTR(get_device_name);
OLD_PTR(open_device);
OLD_PTR(alloc_pd);
OLD_PTR(reg_mr);
OLD_PTR(create_cq);
OLD_PTR(create_srq);
OLD_PTR(create_qp);
OLD_PTR(create_ah);

OLD_MINUS(close_device);
OLD_MINUS(get_async_event);
OLD_MINUS(get_cq_event);
OLD_MINUS(query_gid);
OLD_MINUS(query_pkey);

OLD_INT(query_device);
OLD_INT(query_port);
OLD_INT(dealloc_pd);
OLD_INT(dereg_mr);
OLD_INT(resize_cq);
OLD_INT(destroy_cq);
OLD_INT(modify_srq);
OLD_INT(query_srq);
OLD_INT(destroy_srq);
OLD_INT(modify_qp);
OLD_INT(query_qp);
OLD_INT(destroy_qp);
OLD_INT(destroy_ah);
OLD_INT(attach_mcast);
OLD_INT(detach_mcast);

OLD_VOID(ack_async_event);
OLD_VOID(ack_cq_events);

/* Drivers of that time called this when they were loaded. */
VB_STUB_VOID(old_register_driver)
VB_SYMVER(old_register_driver, ibv_register_driver, "IBVERBS_1.1");
