// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/replay/run_arguments.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/run/run.h"

void run_arguments_add(struct run_arguments *a, const char *text)
{
    if (a->n == RUN_ARGUMENTS_MAX) {
        say("the command has too many arguments: at most %d are allowed", RUN_ARGUMENTS_MAX);
        exit(EXIT_OWN);
    }
    a->argv[a->n++] = (char *)(uintptr_t)text;
    a->argv[a->n] = NULL;
}

void run_arguments_add_all(struct run_arguments *a, char *const *words)
{
    for (; *words; words++)
        run_arguments_add(a, *words);
}

/* Appends an option, such as --script, whose file is in the recording: as a file in memory. Returns 0, or -1 after printing
 * an error. */
static int add_file(struct run_arguments *a, const struct recording *r, const char *name, char option[64])
{
    const char *text = json_string_value(json_object_get(r->run, name));

    if (!text)
        return 0;
    int fd = memfd_create("pumice-recording", 0); /* stays open: processes of pumice shrink inherit it */
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        say("can't make a file in memory for the recorded %s: %s", name, strerror(errno));
        return -1;
    }
    snprintf(option, 64, "--%s=/proc/self/fd/%d", name, fd);
    run_arguments_add(a, option);
    return 0;
}

int run_arguments_add_options(struct run_arguments *a, const struct recording *r)
{
    static char script[64], net[64];
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(r->run, "options"), i, item) {
        const char *option = json_string_value(item);

        if (!run_option_is_recorded(option)) {
            say("the recording has \"%.100s\" among its options, which is no option that a recording may have: remove "
                "it from run.json",
                option);
            return -1;
        }
        run_arguments_add(a, option);
    }
    return add_file(a, r, "script", script) == 0 ? add_file(a, r, "net", net) : -1;
}

void run_arguments_add_command(struct run_arguments *a, const struct recording *r)
{
    const json_t *item;
    size_t i;

    run_arguments_add(a, "--");
    json_array_foreach (json_object_get(r->run, "command"), i, item)
        run_arguments_add(a, json_string_value(item));
}
