// SPDX-License-Identifier: BSD-2-Clause
/* Describes the file of a program, so that a replay can tell that it is another one. */
#ifndef PUMICE_SRC_CMD_RECORDING_PROGRAM_FILE_H
#define PUMICE_SRC_CMD_RECORDING_PROGRAM_FILE_H

#include <jansson.h>

/* The path of the command's file and a hash of its content, as the member "program" of a recording. hash is "" if the
 * file can't be read. NULL: out of memory, or the path is not UTF-8. */
json_t *program_file_describe(const char *command);

#endif
