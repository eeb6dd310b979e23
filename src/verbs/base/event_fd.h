// SPDX-License-Identifier: BSD-2-Clause
/* The descriptor that a program polls for events of the daemon.
 *
 * The events come through a pipe. When the daemon dies, poll(2) reports POLLHUP for the pipe but not POLLIN. Linux
 * reports POLLIN, because the event that says so can be read, and many programs look for POLLIN only. So the program
 * does not get the pipe but an epoll instance that contains it. This descriptor is readable if the pipe has data, and
 * if the pipe has ended. The library keeps the pipe for itself. */
#ifndef PUMICE_SRC_VERBS_BASE_EVENT_FD_H
#define PUMICE_SRC_VERBS_BASE_EVENT_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Creates a descriptor without a pipe, which is closed on exec. Returns -errno after an error. */
int vb_event_fd_create(void);
/* Adds the pipe. Returns 0 or -errno. */
int vb_event_fd_watch(int fd, int pipe);
/* Reads from the pipe, as read(2). Whether it blocks depends on O_NONBLOCK of fd. It is a cancellation point. */
ssize_t vb_event_fd_read(int fd, int pipe, void *to, size_t len);
/* The program has got all events of a dead daemon: the descriptor is never readable again. */
void vb_event_fd_silence(int fd, int pipe);
/* Waits for an event of a silent descriptor, which never comes. Returns -1 with errno: EAGAIN if fd has O_NONBLOCK, or
 * EINTR after a signal. It is a cancellation point. */
int vb_event_fd_wait(int fd);
/* Is fd a descriptor that contains this pipe? False if the program has closed one of them, and another file has its
 * number. */
bool vb_event_fd_has(int fd, int pipe);

#endif
