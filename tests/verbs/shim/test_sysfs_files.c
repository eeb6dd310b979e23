// SPDX-License-Identifier: BSD-2-Clause
/* Files that programs look for: the device in /dev/infiniband and its attributes in /sys/class/infiniband, by every
 * function of libc that the library replaces. All other files are unchanged. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/verbs/vt.h"

static char device[256], attributes[256];

static bool reads(const char *name, const char *expected)
{
    char path[512], text[256] = "";
    snprintf(path, sizeof(path), "%s/%s", attributes, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    FILE *f = fopen(path, "r");
    char line[256] = "";
    bool same = f && fgets(line, sizeof(line), f) && strcmp(line, text) == 0;
    if (f)
        fclose(f);
    return n > 0 && same && strcmp(text, expected) == 0;
}

static bool lists(const char *path, const char *name)
{
    DIR *dir = opendir(path);
    bool found = false;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        found |= strcmp(e->d_name, name) == 0;
    if (dir)
        closedir(dir);
    return found;
}

static void attributes_there(struct ibv_device *d)
{
    struct ibv_context *c = ibv_open_device(d);
    need(c);
    union ibv_gid gid;
    char text[64], path[512];
    need(ibv_query_gid(c, 1, 0, &gid) == 0);
    int at = 0;
    for (int i = 0; i < 16; i += 2)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%02x%02x", i ? ":" : "", gid.raw[i], gid.raw[i + 1]);
    strcpy(text + at, "\n");
    ok(reads("ports/1/gids/0", text), "the GID");
    ok(reads("ports/1/gid_attrs/types/0", "RoCE v2\n"), "its type");
    ok(reads("ports/1/gid_attrs/ndevs/0", "lo\n"), "its interface");
    ok(reads("ports/1/link_layer", "Ethernet\n") && reads("ports/1/state", "4: ACTIVE\n"), "the port");
    ok(reads("node_type", "1: CA\n") && reads("device/numa_node", "-1\n"), "the node");
    uint64_t guid = be64toh(ibv_get_device_guid(d));
    snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
             (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
    ok(reads("node_guid", text), "the GUID");
    ok(lists("/sys/class/infiniband", ibv_get_device_name(d)), "the class lists the device");
    snprintf(path, sizeof(path), "%s/device/net", attributes);
    ok(lists(path, "lo"), "the device lists its interface");
    struct stat st;
    struct stat64 st64;
    ok(stat(attributes, &st) == 0 && S_ISDIR(st.st_mode) && stat64(attributes, &st64) == 0 && S_ISDIR(st64.st_mode) &&
           lstat(attributes, &st) == 0 && lstat64(attributes, &st64) == 0 && access(attributes, R_OK) == 0,
       "the directory by stat, lstat and access");
    snprintf(path, sizeof(path), "%s/ibdev", d->dev_path);
    ok(access(path, R_OK) == 0, "the directory of the verbs class");
    ibv_close_device(c);
}

static void device_there(void)
{
    struct stat st;
    ok(stat(device, &st) == 0 && S_ISCHR(st.st_mode), "the device is a character device");
    ok(access(device, R_OK | W_OK) == 0, "and accessible");
    int fd = open(device, O_RDWR | O_CLOEXEC);
    ok(fd >= 0, "and opens");
    close(fd);
}

/* rdma-core's tests find the interface so. (By LD_LIBRARY_PATH only programs that are linked with the library get
 * it.) */
static void seen_by_ls(void)
{
    char command[600], line[64] = "";
    if (!getenv("LD_PRELOAD")) {
        printf("# the library is not preloaded: ls can't see it\n");
        return;
    }
    snprintf(command, sizeof(command), "ls %s/device/net/", attributes);
    FILE *f = popen(command, "r");
    ok(f && fgets(line, sizeof(line), f) && line[0] > ' ' && pclose(f) == 0, "ls lists the interface");
}

/* statx by a pointer to the function, whose type says nothing of paths that must be there. */
static int (*volatile any_statx)(int, const char *, int, unsigned, struct statx *) = statx;

static bool same_statx(int fd, int flags)
{
    struct statx lib, kernel;
    errno = 0;
    int got = any_statx(fd, NULL, flags, STATX_BASIC_STATS, &lib), got_errno = errno;
    errno = 0;
    long expected = syscall(SYS_statx, fd, NULL, flags, STATX_BASIC_STATS, &kernel);
    return got == expected && got_errno == errno && (got != 0 || lib.stx_ino == kernel.stx_ino);
}

static void no_path(void)
{
    int fd = open("/dev/null", O_RDONLY);
    need(fd >= 0);
    ok(same_statx(fd, AT_EMPTY_PATH), "statx of a descriptor without a path does what the kernel does");
    ok(same_statx(fd, 0), "statx without a path, and without AT_EMPTY_PATH, too");
    close(fd);
    struct statx st;
    if (syscall(SYS_statx, AT_FDCWD, NULL, AT_EMPTY_PATH, STATX_BASIC_STATS, &st) != 0)
        printf("# skipped: statx of a descriptor without a path: this kernel is older than 6.11\n");
}

static void others_not(const char *name)
{
    char path[512], buf[64];
    struct stat st;
    errno = 0;
    ok(access("/dev/infiniband/uverbs_nobody", F_OK) == -1 && errno == ENOENT, "no other device");
    ok(open("/dev/infiniband/../null/x", O_RDONLY) == -1, "no way out of the directory");
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/no_such_file", name);
    ok(stat(path, &st) == -1 && errno == ENOENT, "no other attribute");
    snprintf(path, sizeof(path), "/sys/class/infiniband_else/%s", name);
    ok(access(path, F_OK) == -1 && errno == ENOENT, "no other class");
    ok(opendir("/no/such/directory") == NULL && errno == ENOENT, "a directory that is not there");
    /* By a pointer to the function, whose type says nothing of paths that must be there, as the declaration does. */
    int (*volatile any_stat)(const char *, struct stat *) = stat;
    ok(any_stat(NULL, &st) == -1 && errno == EFAULT, "no path at all");
    ok(readlink("/proc/self/exe", buf, sizeof(buf)) > 0, "links are read");
    errno = 77;
    ok(stat("/dev/null", &st) == 0 && errno == 77, "success leaves errno alone");
    snprintf(path, sizeof(path), "%s/test_sysfs_files.%d", P_tmpdir, (int)getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0640);
    ok(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777 & ~0640) == 0 && (st.st_mode & 0600) == 0600,
       "files are created with their mode");
    close(fd);
    unlink(path);
    fd = open(P_tmpdir, O_TMPFILE | O_RDWR, 0600);
    /* The file system of the folder need not have them. Then the error is the kernel's own. */
    ok(fd >= 0 || errno == EOPNOTSUPP || errno == EISDIR, "temporary files, too");
    if (fd >= 0)
        close(fd);
}

int main(void)
{
    VT_OWN("files of sysfs from the client library");
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);
    if (!list || num == 0) {
        printf("skip - no RDMA device\n");
        return 77;
    }
    snprintf(device, sizeof(device), "/dev/infiniband/%s", list[0]->dev_name);
    snprintf(attributes, sizeof(attributes), "%s", list[0]->ibdev_path);
    device_there();
    attributes_there(list[0]);
    seen_by_ls();
    others_not(ibv_get_device_name(list[0]));
    no_path();
    pid_t child = fork();
    if (child == 0)
        _exit(access(device, F_OK) == 0 ? 0 : 1);
    int status = -1;
    ok(waitpid(child, &status, 0) == child && status == 0, "a child sees the same");
    setenv("PUMICE_SOCKET", "/no/such/socket", 1);
    unsetenv("PUMICE_LAB");
    ok(access(device, F_OK) == -1 && errno == ENOENT, "without a daemon there is nothing");
    ibv_free_device_list(list);
    return vt_failed;
}
