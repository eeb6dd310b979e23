// SPDX-License-Identifier: BSD-2-Clause
/* Names that other programs choose, such as that of a process, for logs, terminals and JSON. */
#ifndef PUMICE_DAEMON_BASE_PRINTABLE_H
#define PUMICE_DAEMON_BASE_PRINTABLE_H

/* Replaces each byte of a control character, and each byte that is not part of valid UTF-8, by '?'. A name that was cut
 * in the middle of a character ends with '?'. */
void make_printable(char *text);

#endif
