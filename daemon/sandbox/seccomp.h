// SPDX-License-Identifier: BSD-2-Clause
/* The system calls that the daemon may make (seccomp). A call that is not allowed fails with EPERM. */
#ifndef PUMICE_DAEMON_SANDBOX_SECCOMP_H
#define PUMICE_DAEMON_SANDBOX_SECCOMP_H

/* For all threads that there are, and those that they start later: only the calls that some thread of the daemon needs. No
 * execution of programs, no new processes, no executable memory, no connections, no raw or packet sockets, no tracing, no
 * signals to other processes, no changes of rights, mounts or namespaces. 0 or -errno. */
int seccomp_daemon(void);

/* In addition, for threads that handle packets and requests: no call that creates, changes or removes files, and no
 * accepting of connections. 0 or -errno. */
int seccomp_device(void);

#endif
