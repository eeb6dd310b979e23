// SPDX-License-Identifier: BSD-2-Clause
/* A hostile member of a daemon's group, and a bystander. hostile.py runs both, as two users.
 *
 *     hostile attack NAME [SECONDS [SEED]]   NAME: of the table below, or "random": several of them at once, each for a
 *                                            few seconds; half of them end by SIGKILL
 *     hostile bystander FROM TO              measures transfers between two devices, see bystander.h
 *     hostile list                           prints the names of the attacks
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soak/hostile/attacks.h"
#include "tests/soak/hostile/bystander.h"
#include "tests/soak/hostile/effort.h"

/* Only processor time: so much does the kernel take from the daemon and the bystander for any busy process. */
static void burn(void)
{
    while (effort_goes_on())
        continue;
}

static const struct attack {
    const char *name;
    void (*run)(void);
} attacks[] = {
    {"burn", burn},
    {"objects", attack_objects},
    {"status", attack_status},
    {"halfopen", attack_halfopen},
    {"descriptors", attack_descriptors},
    {"garbage", attack_garbage},
    {"doorbells", attack_doorbells},
    {"bulk", attack_bulk},
    {"across", attack_across},
    {"small", attack_small},
    {"tags", attack_tags},
    {"memory", attack_memory},
    {"deaths", attack_deaths},
};
enum { ATTACKS = sizeof(attacks) / sizeof(attacks[0]), AT_ONCE = 3 };

static pid_t start(const struct attack *a, double seconds)
{
    uint64_t seed = rnd(UINT32_MAX);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        effort_start(seed, seconds);
        if (!freopen("/dev/null", "w", stdout)) /* of checks that fail */
            _exit(1);
        a->run();
        _exit(0);
    }
    return pid;
}

static void attack_randomly(void)
{
    pid_t pid[AT_ONCE] = {0};
    double end[AT_ONCE];
    while (effort_goes_on()) {
        for (unsigned i = 0; i < AT_ONCE; i++) {
            if (pid[i] > 0 && effort_left() < end[i])
                kill(pid[i], SIGKILL);
            if (pid[i] > 0 && waitpid(pid[i], NULL, WNOHANG) == 0)
                continue;
            pid[i] = start(&attacks[1 + rnd(ATTACKS - 1)], 1 + (double)rnd(30) / 10);
            end[i] = effort_left() - (rnd(2) ? 8 : (double)rnd(20) / 10);
        }
        usleep(10000);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        if (pid[i] > 0 && kill(pid[i], SIGKILL) == 0)
            waitpid(pid[i], NULL, 0);
    }
}

/* An attack that ends early, since the daemon has ended its session or it has spoiled its own memory, begins again. */
static void attack_steadily(const struct attack *a)
{
    while (effort_goes_on()) {
        pid_t pid = start(a, effort_left());
        if (pid > 0)
            waitpid(pid, NULL, 0);
        usleep(1000);
    }
}

static int attack(const char *name, double seconds, uint64_t seed)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
    effort_start(seed, seconds);
    printf("attack %s, seed %llu\n", name, (unsigned long long)seed);
    fflush(stdout);
    if (strcmp(name, "random") == 0) {
        attack_randomly();
        return 0;
    }
    for (unsigned i = 0; i < ATTACKS; i++) {
        if (strcmp(attacks[i].name, name) == 0) {
            attack_steadily(&attacks[i]);
            return 0;
        }
    }
    return 2;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "attack") == 0)
        return attack(argv[2], argc > 3 ? atof(argv[3]) : 10, argc > 4 ? strtoull(argv[4], NULL, 0) : 1);
    if (argc == 4 && strcmp(argv[1], "bystander") == 0)
        return bystander(argv[2], argv[3]);
    if (argc != 2 || strcmp(argv[1], "list") != 0)
        return 2;
    for (unsigned i = 0; i < ATTACKS; i++)
        printf("%s\n", attacks[i].name);
    return 0;
}
