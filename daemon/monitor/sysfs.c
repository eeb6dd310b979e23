// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/threads/file_thread.h"
#include "pumice/abi_cm.h"
#include "pumice/version.h"

/* A tree under construction. Other users may write to the directory of the socket, /tmp for example, and prepare a
 * link there. So all access goes through a descriptor of the root, which must be a directory of this daemon's user that
 * no other user may write to. Then the links and files below it are the daemon's own. */
struct tree {
    int root; /* -1: none */
    char path[256]; /* of the current directory, relative to the root */
    int error; /* the first error, as errno */
};

static void fail(struct tree *t, int error)
{
    if (!t->error)
        t->error = error;
}

static void set_path(struct tree *t, const char *fmt, va_list ap)
{
    int n = vsnprintf(t->path, sizeof(t->path), fmt, ap);

    if (n < 0 || (size_t)n >= sizeof(t->path))
        fail(t, ENAMETOOLONG);
}

/* The next files are those of this directory, which exists. */
static void go_to(struct tree *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void go_to(struct tree *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_path(t, fmt, ap);
    va_end(ap);
}

/* Makes a directory and its parents. */
static void directory(struct tree *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void directory(struct tree *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_path(t, fmt, ap);
    va_end(ap);
    if (t->error)
        return;
    for (char *p = t->path;; p++) {
        char at = *p;

        if (at != '/' && at != 0)
            continue;
        *p = 0;
        if (mkdirat(t->root, t->path, 0755) != 0 && errno != EEXIST)
            fail(t, errno);
        *p = at;
        if (at == 0)
            break;
    }
}

/* Opens a file of the tree for writing, and empties it. NULL: an error. */
static FILE *open_file(struct tree *t, const char *path)
{
    int fd = openat(t->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (!f) {
        fail(t, errno);
        if (fd >= 0)
            close(fd);
    }
    return f;
}

/* Writes a file in the directory made last. As in sysfs, every file ends with a newline. */
static void file(struct tree *t, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void file(struct tree *t, const char *name, const char *fmt, ...)
{
    char path[sizeof(t->path) + 64];
    va_list ap;

    if (t->error)
        return;
    snprintf(path, sizeof(path), "%s/%s", t->path, name);
    FILE *f = open_file(t, path);
    if (!f)
        return;
    va_start(ap, fmt);
    int n = vfprintf(f, fmt, ap);
    va_end(ap);
    bool failed = n < 0 || fputc('\n', f) == EOF;
    if (fclose(f) != 0 || failed)
        t->error = EIO;
}

/* The CPUs of this machine, as "ff" and "0-7". No CPU is nearer to the device than the others. */
static void cpus(struct tree *t)
{
    long n = sysconf(_SC_NPROCESSORS_CONF);
    char mask[160] = "";
    size_t at = 0;

    if (n < 1 || n > 512)
        n = n < 1 ? 1 : 512;
    for (long word = (n + 31) / 32 - 1; word >= 0; word--) {
        long bits = n - 32 * word < 32 ? n - 32 * word : 32;
        unsigned value = bits == 32 ? UINT32_MAX : (1u << bits) - 1;

        at += (size_t)snprintf(mask + at, sizeof(mask) - at, at ? ",%08x" : "%x", value);
    }
    file(t, "local_cpus", "%s", mask);
    file(t, "local_cpulist", "0-%ld", n - 1);
}

/* The client library shows the value, which it gets from the daemon when the file is read. A program without the
 * library sees "N/A" instead of an outdated number. */
static void counter(void *tree, const char *dir, const char *name)
{
    struct tree *t = tree;
    char file_name[96];

    snprintf(file_name, sizeof(file_name), "%s/%s", dir, name);
    file(t, file_name, "N/A");
}

/* The file replaces an older one at once, so that readers see the old text or the new one. text NULL: there is no
 * file. */
static void replace_file(struct tree *t, const char *name, const char *text)
{
    char path[sizeof(t->path) + 64], new_path[sizeof(t->path) + 64];

    snprintf(path, sizeof(path), "%s/%s", t->path, name);
    if (t->error)
        return;
    if (!text) {
        unlinkat(t->root, path, 0);
        return;
    }
    /* Beside the directory, so that nobody sees it there. */
    snprintf(new_path, sizeof(new_path), "%s.new", t->path);
    FILE *f = open_file(t, new_path);
    if (!f)
        return;
    bool failed = fchmod(fileno(f), 0644) != 0 || fprintf(f, "%s\n", text) < 0;
    if (fclose(f) != 0 || failed || renameat(t->root, new_path, t->root, path) != 0)
        fail(t, EIO);
}

/* The files of the GID table. As in the kernel, an empty entry has a GID of zeros, and no type and no interface. */
static void gids(struct tree *t, const struct device *d)
{
    static const uint8_t zero[16];

    for (unsigned i = 0; i < (unsigned)ENGINE_MAX_GIDS << d->limits.gid_v1; i++) {
        const struct gid_entry *e = gid_table_at(&d->gids, device_gid_entry(d, i));
        const uint8_t *g = e ? e->gid : zero;
        char name[12], gid[40];
        size_t at = 0;

        for (unsigned k = 0; k < 16; k += 2)
            at += (size_t)snprintf(gid + at, sizeof(gid) - at, k ? ":%02x%02x" : "%02x%02x", g[k], g[k + 1]);
        snprintf(name, sizeof(name), "%u", i);
        go_to(t, "infiniband/%s/ports/1/gids", d->name);
        replace_file(t, name, gid);
        go_to(t, "infiniband/%s/ports/1/gid_attrs/types", d->name);
        replace_file(t, name, !e ? NULL : device_gid_is_v1(d, i) ? "IB/RoCE v1" : "RoCE v2");
        go_to(t, "infiniband/%s/ports/1/gid_attrs/ndevs", d->name);
        replace_file(t, name, e ? d->netdev.name : NULL);
    }
}

/* The entries of the GID table that are empty for ever. */
static void empty_gids(struct tree *t, const struct device *d)
{
    directory(t, "infiniband/%s/ports/1/gids", d->name);
    for (unsigned i = (unsigned)ENGINE_MAX_GIDS << d->limits.gid_v1; i < device_gid_table_len(d); i++) {
        char name[12];

        snprintf(name, sizeof(name), "%u", i);
        file(t, name, "0000:0000:0000:0000:0000:0000:0000:0000");
    }
}

static void port(struct tree *t, const struct device *d)
{
    directory(t, "infiniband/%s/ports/1/counters", d->name);
    directory(t, "infiniband/%s/ports/1/hw_counters", d->name);
    directory(t, "infiniband/%s/ports/1", d->name);
    counter_name_files(counter, t);
    file(t, "state", "4: ACTIVE");
    file(t, "phys_state", "5: LinkUp");
    file(t, "link_layer", "Ethernet");
    file(t, "rate", "100 Gb/sec (4X EDR)"); /* the same as query_port */
    file(t, "lid", "0x0");
    file(t, "sm_lid", "0x0");
    file(t, "sm_sl", "0");
    file(t, "lid_mask_count", "0");
    file(t, "cap_mask", "0x04010000");
    empty_gids(t, d);
    directory(t, "infiniband/%s/ports/1/gid_attrs/types", d->name);
    directory(t, "infiniband/%s/ports/1/gid_attrs/ndevs", d->name);
    gids(t, d);
    directory(t, "infiniband/%s/ports/1/pkeys", d->name);
    file(t, "0", "0xffff");
}

static void guid_file(struct tree *t, const char *name, uint64_t guid)
{
    file(t, name, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48 & 0xffff), (unsigned)(guid >> 32 & 0xffff),
         (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

static void device(struct tree *t, const struct device *d)
{
    directory(t, "infiniband/%s", d->name);
    file(t, "node_type", "1: CA");
    file(t, "node_desc", "Pumice %s", d->name);
    guid_file(t, "node_guid", d->guid);
    guid_file(t, "sys_image_guid", d->guid);
    file(t, "fw_ver", "%s", PUMICE_VERSION);
    file(t, "hw_rev", "0x0");
    file(t, "board_id", "PUMICE");
    directory(t, "infiniband/%s/device", d->name);
    file(t, "numa_node", "-1");
    cpus(t);
    directory(t, "infiniband/%s/device/net/%s", d->name, d->netdev.name);
    port(t, d);
    directory(t, "infiniband_verbs/uverbs_%s", d->name);
    file(t, "ibdev", "%s", d->name);
    file(t, "abi_version", "1");
}

/* The directory of the kernel's device of connection management. */
static void connection_management(struct tree *t)
{
    directory(t, "misc/rdma_cm");
    file(t, "abi_version", "%d", PM_CM_ABI_VERSION);
}

/* --- the root ---------------------------------------------------------------------------------- */

#define DEPTH_MAX 8u /* of directories in a tree that is removed; those of a daemon have fewer */

static void root_path(const char *socket_path, char path[256])
{
    snprintf(path, 256, "%s" PM_SYSFS_SUFFIX, socket_path);
}

/* Opens the root, which exists. Fails with EPERM if another user could write to it. */
static void open_root(struct tree *t, const char *socket_path)
{
    struct stat st;

    root_path(socket_path, t->path);
    t->error = 0;
    t->root = open(t->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (t->root < 0)
        fail(t, errno == ELOOP || errno == ENOTDIR ? EPERM : errno);
    else if (fstat(t->root, &st) != 0)
        fail(t, errno);
    else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
        fail(t, EPERM);
}

static void close_root(struct tree *t)
{
    if (t->root >= 0)
        close(t->root);
    t->root = -1;
}

/* Removes a file, a link, or a directory with all that is in it. It follows no link. */
static void remove_tree(int parent, const char *name, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        unlinkat(parent, name, 0);
        return;
    }
    while (depth < DEPTH_MAX && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove_tree(fd, e->d_name, depth + 1);
    }
    closedir(dir);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void sysfs_create(const char *socket_path, struct device *const *dev, unsigned devices)
{
    /* All users may read the tree. The directory of the socket keeps out users that may not enter it. */
    mode_t old = umask(022);
    struct tree t;

    sysfs_remove(socket_path);
    root_path(socket_path, t.path);
    int rc = mkdir(t.path, 0755) == 0 || errno == EEXIST ? 0 : errno;
    open_root(&t, socket_path);
    t.error = rc ? rc : t.error;
    for (unsigned i = 0; i < devices; i++) {
        if (!t.error)
            device(&t, dev[i]);
        dev[i]->control_path = socket_path;
    }
    connection_management(&t);
    close_root(&t);
    umask(old);
    if (t.error)
        log_warn("%s" PM_SYSFS_SUFFIX ": %s; programs that read /sys/class/infiniband will not find the devices",
                 socket_path, strerror(t.error));
}

static void update_gids(void *device)
{
    const struct device *d = device;
    struct tree t;

    open_root(&t, d->control_path);
    if (!t.error)
        gids(&t, d);
    close_root(&t);
    if (t.error)
        log_warn("%s" PM_SYSFS_SUFFIX ": %s; programs that read /sys/class/infiniband will not find all GIDs of %s",
                 d->control_path, strerror(t.error), d->name);
}

void sysfs_update_gids(struct device *d)
{
    if (d->control_path)
        file_thread_do(update_gids, d);
}

void sysfs_remove(const char *socket_path)
{
    char path[256];

    root_path(socket_path, path);
    remove_tree(AT_FDCWD, path, 0);
}
