// SPDX-License-Identifier: BSD-2-Clause
/* The checks of `pumice doctor` that concern the installation, memory, limits and processors. */
#ifndef PUMICE_SRC_CMD_NET_CHECK_SYSTEM_H
#define PUMICE_SRC_CMD_NET_CHECK_SYSTEM_H

#include "src/cmd/net/doctor_report.h"

/* Each function checks the following, and adds one finding or more. */

/* The client library and the daemon are installed. */
void check_installed(struct doctor_report *report);
/* The daemon can reach the memory of programs: process_vm, /proc/self/mem, ptrace scope, seccomp. */
void check_memory(struct doctor_report *report);
/* Locked memory, open files, shared memory, sealed memory (memfd). */
void check_limits(struct doctor_report *report);
/* The clock source and the number of processors. */
void check_machine(struct doctor_report *report);

#endif
