// SPDX-License-Identifier: BSD-2-Clause
/* The checks of `pumice doctor`: what on this machine has ever stopped anybody, and the command that mends it. */
#ifndef PUMICE_CMD_CHECKUP_H
#define PUMICE_CMD_CHECKUP_H

#include <stdbool.h>
#include <stddef.h>

enum check_verdict {
    V_FINE,
    V_UNKNOWN, /* it can't be found out (by this user) */
    V_WARN, /* it works, but worse, or something else on the machine won't */
    V_FAIL, /* it does not work */
};
struct finding {
    const char *name; /* of the check */
    enum check_verdict verdict;
    char text[400];
    char mend[300]; /* a command, or what to do; empty: nothing */
};
#define FINDINGS_MAX 48

struct checkup {
    const char *sysroot; /* what stands before /proc and /sys in the names of files; "" but in tests */
    struct finding finding[FINDINGS_MAX];
    unsigned n;
};

/* Adds one. mend: a text with %-less content, "" for none. */
void checkup_add(struct checkup *c, const char *name, enum check_verdict v, const char *mend, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* First line of a file below the sysroot, without the newline; false: it can't be read. */
bool checkup_read(const struct checkup *c, const char *path, char *out, size_t size);

/* Each adds one finding or more. */
void checkup_installed(struct checkup *c); /* library and daemon */
void checkup_memory(struct checkup *c); /* process_vm, /proc/self/mem, ptrace scope, seccomp */
void checkup_limits(struct checkup *c); /* memlock, files, shared memory, sealed memory */
void checkup_machine(struct checkup *c); /* clock, processors */
void checkup_port(struct checkup *c); /* who has UDP port 4791 */
void checkup_buffers(struct checkup *c);
void checkup_mtu(struct checkup *c);
void checkup_firewall(struct checkup *c);

#endif
