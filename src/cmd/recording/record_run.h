// SPDX-License-Identifier: BSD-2-Clause
/* `pumice run --record` and `--replay`: gives each daemon of the lab memory for the decisions about packets, and makes
 * a recording of it. */
#ifndef PUMICE_SRC_CMD_RECORDING_RECORD_RUN_H
#define PUMICE_SRC_CMD_RECORDING_RECORD_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/cmd/common/targets.h"
#include "src/cmd/recording/recording.h"

struct record_run {
    const char *record, *replay; /* directories; NULL: none */
    json_t *options; /* of pumice run, those that a replay needs */
    json_t *texts; /* of the files of --script and --net, by these names; NULL: none */
    struct recording planned; /* what to replay */
    unsigned hosts; /* that have memory */
    struct record_host {
        int fd;
        struct pm_decisions_page *page;
        size_t size;
    } host[HOSTS_MAX];
};

/* Reads the recording to replay, and makes the memory for so many hosts. Does nothing without record and replay.
 * Returns 0, or -1 after printing an error. */
int record_start(struct record_run *r, unsigned hosts, char **command);

/* Keeps the text of the file of an option for the recording; "": there is none. Returns 0, or -1 after printing an
 * error. */
int record_text(struct record_run *r, const char *option, const char *text);

/* The descriptor of the memory of a host, for its daemon; -1: none. */
int record_fd(const struct record_run *r, unsigned host);

/* After the daemons have ended: says which planned decisions met no packet, writes the recording, and says how to repeat
 * the run if it failed. code: the exit code of the command. Returns that of pumice. */
int record_finish(struct record_run *r, char **command, int code);

#endif
