// SPDX-License-Identifier: BSD-2-Clause
/* The result of `pumice doctor`: a list of findings. Each check adds one finding or more. */
#ifndef PUMICE_SRC_CMD_NET_DOCTOR_REPORT_H
#define PUMICE_SRC_CMD_NET_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum finding_verdict {
    FINDING_OK,
    FINDING_UNKNOWN, /* this user can't find it out */
    FINDING_WARN, /* Pumice works, but slower, or another program on this machine may not work */
    FINDING_FAIL, /* Pumice does not work */
};
struct finding {
    const char *check; /* name of the check */
    enum finding_verdict verdict;
    char text[400]; /* what was found */
    char fix[300]; /* a command, or what to do; "": nothing to do */
};
#define FINDINGS_MAX 48

struct doctor_report {
    const char *sysroot; /* prefix of paths below /proc, /sys and /dev; "" except in tests */
    struct finding finding[FINDINGS_MAX];
    unsigned n;
};

/* Adds a finding. fix may be ""; it is not a format. Findings beyond FINDINGS_MAX are dropped. */
void doctor_report_add(struct doctor_report *report, const char *check, enum finding_verdict v, const char *fix,
                       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Is the first finding of this check ok, or is there none? */
bool doctor_report_is_ok(const struct doctor_report *report, const char *check);

/* Reads the first line of a file below the sysroot, without the newline. Returns false if the file can't be read. */
bool doctor_report_read(const struct doctor_report *report, const char *path, char *out, size_t size);

#endif
