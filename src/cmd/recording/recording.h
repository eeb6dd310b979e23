// SPDX-License-Identifier: BSD-2-Clause
/* A recording: a directory with what `pumice run --record` writes down about a run, and `pumice replay` reads.
 *
 *     run.json          what ran: the command, the options, the seed, versions, and how it ended
 *     decisions.jsonl   which packets were struck by faults: a line of JSON for each
 *
 * docs/replay.md explains the members. The files may come from anywhere: all of their content is checked. */
#ifndef PUMICE_SRC_CMD_RECORDING_RECORDING_H
#define PUMICE_SRC_CMD_RECORDING_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/cmd/recording/decision_text.h"

#define RECORDING_FORMAT "pumice recording"
#define RECORDING_VERSION 1

struct recording {
    json_t *run; /* run.json. If it was read, it has all members that docs/replay.md names, of their types */
    struct host_decision *decision;
    size_t n;
};

/* Reads a recording. Returns 0, or -1 after printing what is wrong. */
int recording_load(const char *dir, struct recording *r);
void recording_free(struct recording *r);

/* Makes the directory, or checks that it is empty or has a recording, which recording_save then replaces. Returns 0, or
 * -1 after printing an error. */
int recording_prepare(const char *dir);
/* Writes a recording into a directory that recording_prepare has accepted. Returns 0, or -1 after printing an error. */
int recording_save(const char *dir, const struct recording *r);

/* Removes the files of a recording, and its directory if that is empty then. */
void recording_remove(const char *dir);

/* Parses run.json, as recording_load does. Returns NULL with a sentence in why if it is wrong. */
json_t *recording_parse_run(const char *text, size_t len, char why[DECISION_WHY_MAX]);
/* Parses decisions.jsonl. Sorts the decisions. Returns false with a sentence in why. */
bool recording_parse_decisions(const char *text, size_t len, struct recording *r, char why[DECISION_WHY_MAX]);

#endif
