// SPDX-License-Identifier: BSD-2-Clause
/* Without a daemon there are no devices, and one line on stderr says where the library looked for the daemon. Also:
 * how the environment names the socket. */
#include <sys/wait.h>

#include "tests/verbs/vt.h"

/* The stderr output of a child with these settings that asks for devices twice. */
static const char *said(const char *const set[])
{
    static char text[4096];
    int err[2], status;
    need(pipe(err) == 0);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        dup2(err[1], 2);
        static const char *const all[] = {
            "PUMICE_SOCKET",   "PUMICE_LAB",     "PUMICE_HOST",   "PUMICE_HOSTS",   "OMPI_COMM_WORLD_LOCAL_RANK",
            "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID", "XDG_RUNTIME_DIR"};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            unsetenv(all[i]);
        for (; *set; set += 2)
            setenv(set[0], set[1], 1);
        for (int i = 0; i < 2; i++) {
            int num = -1;
            struct ibv_device **list = ibv_get_device_list(&num);
            if (!list || num != 0 || list[0])
                _exit(1);
            ibv_free_device_list(list);
        }
        _exit(0);
    }
    close(err[1]);
    size_t at = 0;
    for (ssize_t n; at < sizeof(text) - 1 && (n = read(err[0], text + at, sizeof(text) - 1 - at)) > 0;)
        at += (size_t)n;
    text[at] = 0;
    close(err[0]);
    ok(waitpid(pid, &status, 0) == pid && status == 0, "no devices, and no failure");
    return text;
}
#define SAID(...) said((const char *const[]){__VA_ARGS__, NULL})

static bool tells(const char *text, const char *path)
{
    char *end = strchr(text, '\n');
    return strstr(text, path) && strstr(text, "pumice run") && end && end[1] == 0;
}

int main(void)
{
    VT_OWN("the hint without a daemon");
    ok(tells(SAID("PUMICE_SOCKET", "/nonexistent/x.sock"), "/nonexistent/x.sock "),
       "one hint, with PUMICE_SOCKET's path");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent"), "/nonexistent/host0.sock "), "a lab: host 0 by default");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent", "PUMICE_HOST", "2"), "/nonexistent/host2.sock "), "a lab: PUMICE_HOST");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent", "PUMICE_HOSTS", "2", "OMPI_COMM_WORLD_LOCAL_RANK", "3"),
             "/nonexistent/host1.sock "),
       "a lab: local rank modulo hosts, Open MPI");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent", "PUMICE_HOSTS", "3", "MPI_LOCALRANKID", "2"),
             "/nonexistent/host2.sock "),
       "MPICH");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent", "PUMICE_HOSTS", "3", "SLURM_LOCALID", "4"), "/nonexistent/host1.sock "),
       "Slurm");
    ok(tells(SAID("PUMICE_LAB", "/nonexistent", "PUMICE_HOSTS", "3", "PMI_LOCAL_RANK", "1", "PUMICE_HOST", "0"),
             "/nonexistent/host0.sock "),
       "PUMICE_HOST before the rank");
    char dir[] = "/tmp/vtXXXXXX", path[64], sock[96];
    need(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/pumice", dir);
    snprintf(sock, sizeof(sock), "%s/pumice/pumiced.sock", dir);
    if (access("/run/pumice/pumiced.sock", F_OK) != 0)
        ok(tells(SAID("XDG_RUNTIME_DIR", dir), sock), "the default is in XDG_RUNTIME_DIR");
    rmdir(dir);
    return vt_failed;
}
