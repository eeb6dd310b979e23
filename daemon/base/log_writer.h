// SPDX-License-Identifier: BSD-2-Clause
/* Writes the lines of the log to standard error, in a thread of its own. So a reader that does not read (a terminal
 * after ^S, a full pipe, a hung file system) stops no other thread. Up to LOG_WRITER_BYTES wait for the reader. Further
 * lines are dropped and counted. When the waiting lines are written, a line says how many are missing. */
#ifndef PUMICE_DAEMON_BASE_LOG_WRITER_H
#define PUMICE_DAEMON_BASE_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_WRITER_BYTES (256u << 10) /* of lines that wait, with 4 bytes for each line */
#define LOG_WRITER_LINE 16384u /* longer lines are dropped */

/* Makes the line that reports n dropped lines, in at most `size` bytes. Returns its length; 0: none. */
typedef size_t log_gap_line(uint64_t n, char *line, size_t size);

/* Starts the thread. It calls enter() first, unless that is NULL. False: there is no thread, and log_writer_put writes
 * itself. */
bool log_writer_start(log_gap_line *gap_line, void (*enter)(void));
/* Ends the thread, at most wait_ms after the call. If lines still wait then, they and all later lines are lost. Else
 * log_writer_put writes itself from now on. */
void log_writer_stop(unsigned wait_ms);

/* Takes one line, which ends with a newline. Any thread may call it. It does not block while the thread runs. */
void log_writer_put(const char *line, size_t len);

/* The number of lines that were dropped since the start, because nobody read them or because they could not be
 * written. */
uint64_t log_writer_dropped(void);

#endif
