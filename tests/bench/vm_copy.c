// SPDX-License-Identifier: BSD-2-Clause
/* Measures the highest bandwidth of copies between processes by system call: process_vm_readv of a child's memory.
 *
 *     vm_copy SIZE SECONDS
 *
 * Prints MiB/s. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: vm_copy SIZE SECONDS\n"), 2;

    size_t size = strtoull(argv[1], NULL, 0);
    double seconds = atof(argv[2]), start, end;
    char *memory = NULL, *copy = NULL;
    long long bytes = 0;
    pid_t child;

    /* AMD's Zen 3 is slow where the copy begins 1 to 31 bytes behind the source, counted within pages. */
    if (posix_memalign((void **)&memory, PAGE, size) != 0 || posix_memalign((void **)&copy, PAGE, size) != 0)
        return fprintf(stderr, "out of memory\n"), 1;
    memset(memory, 1, size);
    memset(copy, 2, size);
    if ((child = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(memory, 3, size); /* its own pages */
        for (;;)
            pause();
    }

    struct iovec local = {copy, size}, remote = {memory, size};

    start = now_s();
    do {
        for (int i = 0; i < 100; i++) {
            if (process_vm_readv(child, &local, 1, &remote, 1, 0) != (ssize_t)size) {
                perror("process_vm_readv");
                kill(child, SIGKILL);
                return 1;
            }
            bytes += (long long)size;
        }
        end = now_s();
    } while (end - start < seconds);
    kill(child, SIGKILL);
    printf("%.1f\n", (double)bytes / (end - start) / 1048576);
    return 0;
}
