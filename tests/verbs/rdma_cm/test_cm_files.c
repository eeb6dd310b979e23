// SPDX-License-Identifier: BSD-2-Clause
/* The device of connection management as a file: opening, its state, duplicates, closing. The program runs again with
 * librspreload, which replaces some of the same functions, before and behind our library. */
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "tests/verbs/device.h"
#include "tests/verbs/rdma_cm/fake.h"

static bool is_channel(int fd)
{
    return cm_create(fd, 1) != 0;
}

static void opens(void)
{
    int plain = open(CM_FILE, O_RDWR), wide = open64(CM_FILE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int at = openat(AT_FDCWD, CM_FILE, O_RDWR);
    ok(plain >= 0 && wide >= 0 && at >= 0 && is_channel(plain) && is_channel(wide) && is_channel(at),
       "open, open64 and openat open a channel");
    ok(fcntl(plain, F_GETFD) == 0 && fcntl(wide, F_GETFD) == FD_CLOEXEC, "O_CLOEXEC is honoured");
    ok((fcntl(plain, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDWR &&
           (fcntl(wide, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDWR | O_NONBLOCK),
       "the flags are those of the call");
    ok(cm_count(plain) == 3, "each is a channel of its own");
    close(wide);
    ok(cm_count(plain) == 2, "a closed channel is gone when close returns");
    close(plain);
    close(at);
}

static void state(void)
{
    int fd = cm_open(0), file = open("/proc/self/exe", O_RDONLY);
    struct stat st, again, path;
    struct stat64 wide, wide_at;
    struct statx x;
    char text[8] = "";
    ok(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode), "fstat: a character device");
    ok(fstat64(fd, &wide) == 0 && S_ISCHR(wide.st_mode) && wide.st_rdev == st.st_rdev, "fstat64: the same device");
    ok(fstatat(fd, "", &again, AT_EMPTY_PATH) == 0 && S_ISCHR(again.st_mode) && again.st_rdev == st.st_rdev,
       "fstatat: the same device");
    ok(fstatat64(fd, "", &wide_at, AT_EMPTY_PATH) == 0 && S_ISCHR(wide_at.st_mode) && wide_at.st_rdev == st.st_rdev,
       "fstatat64: the same device");
    ok(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) == 0 && S_ISCHR(x.stx_mode) &&
           makedev(x.stx_rdev_major, x.stx_rdev_minor) == st.st_rdev,
       "statx: the same device");
    ok(stat(CM_FILE, &path) == 0 && S_ISCHR(path.st_mode) && access(CM_FILE, R_OK | W_OK) == 0,
       "the file of the device is there");
    ok(fstat(file, &st) == 0 && S_ISREG(st.st_mode) && fstat(-1, &st) == -1 && errno == EBADF,
       "other files are what they are");
    int version = open("/sys/class/misc/rdma_cm/abi_version", O_RDONLY);
    ok(version >= 0 && read(version, text, sizeof(text)) == 2 && strcmp(text, "4\n") == 0, "abi_version is 4");
    ok(access("/sys/class/misc/rdma_cm_other", F_OK) == -1 && errno == ENOENT, "no other name is redirected");
    close(version);
    close(file);
    close(fd);
}

static void duplicates(void)
{
    int first = cm_open(0), fd[5], spare = open("/dev/null", O_RDWR);
    fd[0] = dup(first);
    fd[1] = dup2(first, 200);
    fd[2] = dup3(first, 201, O_CLOEXEC);
    fd[3] = fcntl(first, F_DUPFD, 100);
    fd[4] = fcntl(first, F_DUPFD_CLOEXEC, 100);
    close(first);
    bool all = fd[1] == 200 && fd[2] == 201 && fd[3] >= 100 && fd[4] > fd[3];
    for (int i = 0; i < 5; i++)
        all &= is_channel(fd[i]);
    ok(all && cm_count(fd[0]) == 1, "each duplicate is the same channel");
    ok(fcntl(fd[1], F_GETFD) == 0 && fcntl(fd[2], F_GETFD) == FD_CLOEXEC && fcntl(fd[4], F_GETFD) == FD_CLOEXEC,
       "they are closed on exec if that was asked for");
    int other = cm_open(0);
    ok(cm_count(other) == 2 && dup2(spare, fd[0]) == fd[0] && write(fd[0], "x", 1) == 1 && cm_count(other) == 2,
       "another file in place of a channel is that file");
    ok(dup2(other, other) == other && is_channel(other), "dup2 to itself changes nothing");
    errno = 0;
    ok(dup3(other, other, 0) == -1 && errno == EINVAL && is_channel(other), "dup3 to itself is an error");
    ok(dup2(-1, other) == -1 && errno == EBADF && is_channel(other), "dup2 of no file keeps the channel");
    for (int i = 1; i < 5; i++)
        close(fd[i]);
    ok(cm_count(other) == 1, "with the last duplicate the channel ends");
    int third = cm_open(0);
    ok(dup2(other, third) == third && is_channel(third) && cm_count(other) == 1, "a channel in place of another one");
    close(third);
    close(other);
    close(spare);
    close(fd[0]);
}

/* The program closes a channel so that the library does not see it, and gets another file with its number. */
static void behind_our_back(void)
{
    char name[] = "/tmp/pumice-cm-XXXXXX", text[64] = "";
    int keep = cm_open(0), fd = cm_open(0);
    struct stat st;
    need(syscall(SYS_close_range, fd, fd, 0) == 0);
    int file = mkstemp(name);
    need(file == fd);
    ok(fstat(file, &st) == 0 && S_ISREG(st.st_mode), "the new file is no device");
    ok(write(file, "a command?", 10) == 10 && pread(file, text, sizeof(text), 0) == 10,
       "what is written to it is in the file");
    ok(cm_count(keep) == 1, "the channel is gone");
    int copy = dup(file);
    ok(copy >= 0 && write(copy, "more", 4) == 4 && fstat(copy, &st) == 0 && st.st_size == 14, "so is a duplicate");
    close(copy);
    ok(close(file) == 0 && fcntl(file, F_GETFD) == -1, "closing it closes the file");

    fd = cm_open(0);
    syscall(SYS_close, fd);
    int again = cm_open(0);
    ok(again == fd && is_channel(again) && cm_count(keep) == 2, "the next channel may have its number");
    close(again);
    unlink(name);

    fd = cm_open(0);
    syscall(SYS_close, fd);
    errno = 0;
    ok(write(fd, "x", 1) == -1 && errno == EBADF && fcntl(fd, F_GETFL) == -1 && close(fd) == -1,
       "a number that is no file is none");
    close(keep);
}

/* Many channels, in threads that open and close them at the same time. */
static void *open_and_close(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        int fd = open(CM_FILE, O_RDWR | O_CLOEXEC), copy = dup(fd);
        bool works = fd >= 0 && copy >= 0 && is_channel(copy);
        close(fd);
        works = works && is_channel(copy);
        close(copy);
        if (!works)
            return "failed";
    }
    return NULL;
}

/* --- with librspreload ------------------------------------------------------------------------- */
static const char *rspreload(void)
{
    static const char *const places[] = {"/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so",
                                         "/usr/lib/aarch64-linux-gnu/rsocket/librspreload.so",
                                         "/usr/lib64/rsocket/librspreload.so"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

static void again_with(const char *first, const char *second)
{
    char both[512];
    int status = -1;
    snprintf(both, sizeof(both), "%s:%s", first, second);
    printf("# LD_PRELOAD=%s\n", both);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", both, 1);
        execl("/proc/self/exe", "test_cm_files", "again", NULL);
        _exit(9);
    }
    ok(waitpid(child, &status, 0) == child && status == 0, "with librspreload");
}

int main(int argc, char **argv)
{
    (void)argv;
    VT_OWN("files of the client library");
    const char *own = getenv("LD_PRELOAD"), *rs = rspreload();
    fake_start(false);
    opens();
    state();
    duplicates();
    behind_our_back();
    pthread_t thread[4];
    void *failed;
    for (int i = 0; i < 4; i++)
        need(pthread_create(&thread[i], NULL, open_and_close, NULL) == 0);
    bool all = true;
    for (int i = 0; i < 4; i++)
        all &= pthread_join(thread[i], &failed) == 0 && !failed;
    ok(all, "several threads open and close channels");
    int fd = cm_open(0);
    ok(cm_count(fd) == 1, "no channel is left over");
    close(fd);
    if (argc == 1 && own && rs) {
        again_with(own, rs);
        again_with(rs, own);
    }
    return fake_end();
}
