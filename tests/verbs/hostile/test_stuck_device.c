// SPDX-License-Identifier: BSD-2-Clause
/* The thread of a device hangs. The main thread goes on: it answers what it can, and fails the rest in bounded time, with
 * a reason. When the device's thread goes on, everything works again. A program that opens the device meanwhile waits.
 * The test stops that thread with ptrace. */
#include <dirent.h>
#include <sys/ptrace.h>

#include "pumice/abi_capture.h"
#include "tests/verbs/hostile/hostile.h"

/* Finds the thread of the first device. 0: there is none. */
static pid_t device_thread(pid_t daemon)
{
    char path[300], name[32] = "";
    struct dirent *e;
    pid_t found = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)daemon);
    DIR *dir = opendir(path);
    while (dir && !found && (e = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", (int)daemon, e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof(name), f) && strncmp(name, "pumice0", 7) == 0)
            found = (pid_t)atoi(e->d_name);
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return found;
}

static bool stop_thread(pid_t thread)
{
    int status;

    return ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0 &&
           waitpid(thread, &status, __WALL) == thread;
}

/* A request that needs the device. Returns its status. */
static int request(const struct hostile *h, uint32_t op, const void *rq, size_t len, char *why)
{
    int sock = hostile_connect(h), rc;

    need(hostile_send(sock, op, rq, len, NULL, 0));
    rc = hostile_reply(sock, why, why ? PM_WHY_MAX : 0);
    close(sock);
    return rc;
}

static void hangs(const struct hostile *h)
{
    struct pm_capture_req capture = {.flags = PM_CAPTURE_OUT, .ring_bytes = PM_CAPTURE_RING_MIN};
    struct pm_counter_req counter = {.device = "pumice0", .file = "port_xmit_data"};
    struct pm_open_req open = {.abi_version = PM_ABI_VERSION};
    struct pm_check_req check = {.device = 0, .id = 1};
    struct pm_fault_req fault = {.spec = "loss=1%"};
    char why[PM_WHY_MAX] = "";

    ok(request(h, PM_OP_OPEN, &open, sizeof(open), why) == -ETIMEDOUT && strstr(why, "does not answer"),
       "OPEN fails, with a reason");
    ok(request(h, PM_OP_CAPTURE, &capture, sizeof(capture), NULL) == -ETIMEDOUT, "CAPTURE fails");
    ok(request(h, PM_OP_COUNTER, &counter, sizeof(counter), NULL) == -ETIMEDOUT, "COUNTER fails");
    ok(request(h, PM_OP_CHECK, &check, sizeof(check), NULL) == -ETIMEDOUT, "CHECK fails");
    ok(request(h, PM_OP_FAULT, &fault, sizeof(fault), NULL) == -ETIMEDOUT, "FAULT fails");
    ok(hostile_answers(h, PM_OP_LIST), "LIST is answered");
    ok(hostile_answers(h, PM_OP_STATUS), "STATUS is answered");
    double began = vt_now();
    for (unsigned i = 0; i < 20; i++)
        need(request(h, PM_OP_OPEN, &open, sizeof(open), NULL) == -ETIMEDOUT);
    ok(vt_now() - began < 10, "further requests do not wait again");
}

/* Starts a program that opens the device. It exits with 0 if it has opened it. */
static pid_t start_program(const struct hostile *h)
{
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0) {
        setenv("PUMICE_SOCKET", h->socket, 1);
        struct ibv_device **list = ibv_get_device_list(NULL);
        _exit(!list || !list[0] || !ibv_open_device(list[0]));
    }
    return pid;
}

int main(void)
{
    struct pm_capture_req rq = {.flags = PM_CAPTURE_OUT, .ring_bytes = PM_CAPTURE_RING_MIN};
    struct hostile h;

    VT_OWN("a device whose thread hangs");
    alarm(200);
    hostile_start(&h, -1, NULL, NULL);
    need(hostile_bystander(&h));
    int capturing = hostile_connect(&h);
    need(hostile_send(capturing, PM_OP_CAPTURE, &rq, sizeof(rq), NULL, 0) && hostile_reply(capturing, NULL, 0) == 0);
    pid_t thread = device_thread(h.daemon);
    need(thread > 0);
    if (!stop_thread(thread)) {
        hostile_stop(&h);
        printf("skip - can't stop a thread with ptrace: %s\n", strerror(errno));
        return 77;
    }
    close(capturing); /* its end needs the device's thread */
    pid_t program = start_program(&h);
    int status;
    hangs(&h);
    need(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
    bool served = false;
    for (unsigned i = 0; i < 100 && !served; i++) {
        usleep(50000);
        served = hostile_bystander(&h);
    }
    ok(served, "everything works when the thread goes on");
    ok(waitpid(program, &status, 0) == program && status == 0, "a program waits for the device");
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
