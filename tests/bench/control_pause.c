// SPDX-License-Identifier: BSD-2-Clause
/* How long control work keeps a device's thread from packets: the status of a device with many objects, and the end of
 * their session. This program is the device's thread. It runs the loop's steps and measures each turn. A second thread
 * asks for the status.
 *
 *     control_pause [QPS [MRS]]
 *
 * For each kind of work it prints how long all of it takes in one go, and the longest turn when it is cut into slices.
 * The time of the processor leaves out the time in which other programs ran. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "daemon/status/status.h"
#include "tests/unit/daemon/daemon_fixture.h"

static const struct user root = {.known = true, .administers = true};
static struct fixture f;
static _Atomic bool done;

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double wall_ms(void)
{
    return (double)clock_ns() / 1e6;
}

static struct session *crowd(unsigned qps, unsigned mrs)
{
    struct session *s = fixture_session(&f);
    uint32_t pd = s ? fixture_pd(&f, s) : 0;
    static uint8_t memory[4096];
    struct fixture_cq cq;
    struct fixture_qp qp;

    if (!s || fixture_cq(&f, s, 4, 0, &cq) != 0)
        return NULL;
    for (unsigned i = 0; i < qps; i++) {
        if (fixture_qp(&f, s, pd, cq.rep.handle, 16, &qp) != 0)
            return NULL;
        munmap(qp.page, qp.rep.size);
    }
    for (unsigned i = 0; i < mrs; i++) {
        if (fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE) == 0)
            return NULL;
    }
    return s;
}

static void *ask(void *arg)
{
    (void)arg;
    json_decref(status_device(f.device, &root));
    atomic_store(&done, true);
    return NULL;
}

static bool is_done(void)
{
    return atomic_load(&done);
}

static bool has_ended(void)
{
    return f.device->num_sessions == 0;
}

struct turns {
    unsigned n; /* with control work */
    double cpu, wall; /* of the longest */
};

/* Runs the loop until the work is done. */
static struct turns run_until(bool (*end)(void))
{
    struct turns t = {0};

    while (!end()) {
        double cpu = cpu_ms(), wall = wall_ms();

        ev_run(f.device->loop, EVRUN_NOWAIT);
        device_pass(f.device, clock_ns());
        cpu = cpu_ms() - cpu;
        wall = wall_ms() - wall;
        t.n += cpu > 0.02;
        t.cpu = cpu > t.cpu ? cpu : t.cpu;
        t.wall = wall > t.wall ? wall : t.wall;
    }
    return t;
}

static void print(const char *what, double whole, const struct turns *t)
{
    printf("%-20s %10.2f %10u %14.3f %14.3f\n", what, whole, t->n, t->cpu, t->wall);
}

int main(int argc, char **argv)
{
    mallopt(M_MXFAST, 0); /* as in pumiced */
    unsigned qps = argc > 1 ? (unsigned)atoi(argv[1]) : DEVICE_MAX_QP;
    unsigned mrs = argc > 2 ? (unsigned)atoi(argv[2]) : DEVICE_MAX_QP;
    struct session *s = fixture_start(&f) ? crowd(qps, mrs) : NULL;
    struct turns t;
    pthread_t asker;

    if (!s) {
        fprintf(stderr, "no %u queue pairs and %u regions: check vm.max_map_count and the limit of open files\n", qps,
                mrs);
        return 1;
    }
    printf("%u queue pairs, %u regions\n%-20s %10s %10s %14s %14s\n", qps, mrs, "milliseconds", "in one go", "slices",
           "longest (cpu)", "longest (wall)");

    /* Three times: memory that earlier answers freed may make later ones slower. */
    f.device->running = true;
    struct turns longest = {0};
    for (unsigned i = 0; i < 3; i++) {
        atomic_store(&done, false);
        if (pthread_create(&asker, NULL, ask, NULL) != 0)
            return 1;
        t = run_until(is_done);
        pthread_join(asker, NULL);
        longest.n = t.n;
        longest.cpu = t.cpu > longest.cpu ? t.cpu : longest.cpu;
        longest.wall = t.wall > longest.wall ? t.wall : longest.wall;
    }
    f.device->running = false;
    double whole = cpu_ms();
    json_decref(status_device(f.device, &root));
    whole = cpu_ms() - whole;
    print("status", whole, &longest);

    whole = cpu_ms();
    session_close(s);
    whole = cpu_ms() - whole;
    s = crowd(qps, mrs);
    if (!s)
        return 1;
    session_end(s);
    t = run_until(has_ended);
    print("end of the session", whole, &t);
    fixture_end(&f);
    return 0;
}
