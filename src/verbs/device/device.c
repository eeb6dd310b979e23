// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/device/device.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/verbs/device/spread.h"
#include "src/verbs/session/autostart.h"
#include "src/verbs/session/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_device *devices; /* all devices that are held; under the lock */

/* Runs in the child of a fork. Another thread of the parent may have held the lock. The list itself is consistent at
 * any time. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    vb_autostart_in_child();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* Writes one line to stderr, once per process, because programs ask for devices again and again. */
static void hint(const char *path, int error, const char *why)
{
    static atomic_flag given = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&given))
        return;
    if (why[0])
        fprintf(stderr, "pumice: no RDMA devices: %s: %s\n", path, why);
    else if (error == -EACCES)
        fprintf(stderr,
                "pumice: no RDMA devices: this user may not use the daemon at %s (`pumice doctor` says who may). Start "
                "the program with `pumice run -- CMD` for a daemon of your own.\n",
                path);
    else if (error == -EPROTO)
        fprintf(stderr,
                "pumice: no RDMA devices: the daemon at %s is of another version than this library. "
                "Use `pumice run` and the library of one installation.\n",
                path);
    else
        fprintf(stderr,
                "pumice: no RDMA devices: no daemon at %s (%s). Start the program with `pumice run -- CMD`, or start "
                "pumiced and set " PM_ENV_SOCKET " to its socket, or set " PM_ENV_AUTOSTART "=1 to have one started.\n",
                path, strerror(-error));
}

/* Asks the daemon for its devices, on a connection of its own. path[size] becomes the path of its socket. Returns 0 or
 * -errno. */
static int query_list(char *path, size_t size, struct pm_list_rep *rep, char why[PM_WHY_MAX])
{
    struct vb_session s;
    int rc = vb_autostart_connect(&s, path, size, why);
    if (rc)
        return rc;
    struct vb_call call = {.op = PM_OP_LIST, .rep = rep, .rep_len = sizeof(*rep), .why = why};
    rc = vb_session_call(&s, &call);
    vb_session_close(&s);
    pthread_mutex_destroy(&s.lock);
    if (rc == 0 && (rep->abi_version != PM_ABI_VERSION || rep->num > PM_DEVICES_MAX))
        rc = -EPROTO;
    return rc;
}

static struct vb_device *find(const char *path, const struct pm_device_desc *desc)
{
    for (struct vb_device *d = devices; d; d = d->next)
        if (!strcmp(d->socket, path) && !strcmp(d->desc.name, desc->name) && d->desc.guid == desc->guid)
            return d;
    return NULL;
}

/* Makes a device, and puts it into the list of held devices. The caller holds the lock and takes the reference. */
static struct vb_device *make(const char *path, uint32_t index, const struct pm_device_desc *desc)
{
    struct vb_device *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->index = index;
    d->desc = *desc;
    snprintf(d->socket, sizeof(d->socket), "%s", path);
    d->dev.node_type = IBV_NODE_CA;
    d->dev.transport_type = IBV_TRANSPORT_IB;
    /* Paths like those of a kernel device, with names that no kernel device has. */
    snprintf(d->dev.name, sizeof(d->dev.name), "%s", desc->name);
    snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs_%s", desc->name);
    snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "/sys/class/infiniband_verbs/uverbs_%s", desc->name);
    snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "/sys/class/infiniband/%s", desc->name);
    d->next = devices;
    devices = d;
    return d;
}

void vb_device_hold(struct vb_device *d)
{
    pthread_mutex_lock(&lock);
    d->refs++;
    pthread_mutex_unlock(&lock);
}

void vb_device_drop(struct vb_device *d)
{
    pthread_mutex_lock(&lock);
    if (--d->refs == 0) {
        struct vb_device **p = &devices;
        while (*p != d)
            p = &(*p)->next;
        *p = d->next;
        free(d);
    }
    pthread_mutex_unlock(&lock);
}

VB_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    char path[sizeof(((struct vb_device *)0)->socket)] = "", why[PM_WHY_MAX] = "";
    struct pm_list_rep rep = {.num = 0};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    int rc = query_list(path, sizeof(path), &rep, why);
    if (rc == -EIO) /* that daemon was about to end */
        rc = query_list(path, sizeof(path), &rep, why);
    if (rc) {
        hint(path, rc, why);
        rep.num = 0;
    }
    if (num_devices)
        *num_devices = 0;
    uint32_t first, num = 0;
    vb_spread_choose(&rep, &first, path, __builtin_return_address(0));
    struct ibv_device **list = calloc(rep.num + 1, sizeof(*list));
    if (!list)
        return NULL;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < rep.num; i++) {
        rep.device[i].name[PM_NAME_MAX - 1] = 0;
        rep.device[i].netdev[PM_NAME_MAX - 1] = 0;
        struct vb_device *d = find(path, &rep.device[i]);
        if (!d)
            d = make(path, first + i, &rep.device[i]);
        if (!d)
            break;
        d->index = first + i;
        d->refs++;
        list[num++] = &d->dev;
    }
    pthread_mutex_unlock(&lock);
    if (num_devices)
        *num_devices = (int)num;
    return list;
}

VB_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    for (size_t i = 0; list && list[i]; i++)
        vb_device_drop(vb_dev(list[i]));
    free(list);
}

VB_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

/* The kernel assigned no index to this device. Callers ask the kernel's netlink for the device with a returned index, so
 * a number of our own would name an unrelated device, or none. */
VB_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

VB_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(vb_dev(device)->desc.guid);
}
