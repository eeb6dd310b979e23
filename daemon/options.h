// SPDX-License-Identifier: BSD-2-Clause
/* The options of the daemon, in one table. The command line (daemon/command_line.h), the environment
 * (daemon/environment.h), the configuration file (daemon/config.h) and the reload at SIGHUP (daemon/reload.h) all use
 * this table. A unit test compares it with the manual page docs/man/pumiced.8.
 *
 * An option has the same name in the configuration file and, after two dashes, on the command line. Both accept the
 * same values and report the same errors. */
#ifndef PUMICE_DAEMON_OPTIONS_H
#define PUMICE_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/settings.h"

enum option_flag {
    /* `name = value` in the configuration file sets it. */
    OPTION_IN_FILE = 1,
    /* SIGHUP changes it while the daemon runs. The others wait for a restart. */
    OPTION_RELOAD = 2,
    /* Adds a device. Such options in the environment replace all devices of the file, which has sections for them. Those
     * on the command line replace all others. */
    OPTION_DEVICE = 4,
};

struct option_def {
    const char *name;
    /* Placeholder of the value in --help. A choice has its values here, separated by |. NULL: there is no value. */
    const char *argument;
    uint8_t help_group; /* --help lists the groups in this order */
    uint8_t flags; /* enum option_flag */
    /* Parses a value. 0, or -EINVAL with why. NULL: the option is no setting; the command line handles it itself. */
    int (*set)(const struct option_def *o, struct settings *s, const char *value, char why[ERROR_TEXT_MAX]);
    /* The bytes of struct settings that the option sets. Size 0: another option has them, or there are none. */
    size_t offset, size;
    const char *help;
    /* For numbers: the range, the name of the value in errors, and the meaning of 0 (NULL: no special one). */
    uint64_t min, max;
    const char *unit, *zero;
    const char *alias; /* another spelling in the configuration file; NULL: none */
    char letter; /* short form on the command line; 0: none */
};

/* The table ends with a row without a name. */
extern const struct option_def options[];
#define OPTIONS_MAX 64u /* more than there are rows */

/* Sets the option. Its member `set` is not NULL. 0, or -EINVAL with why. */
int option_set(const struct option_def *o, struct settings *s, const char *value, char why[ERROR_TEXT_MAX]);

/* Sets one option by its name or its alias. 0, or -EINVAL with why. */
int options_set(struct settings *s, const char *name, const char *value, char why[ERROR_TEXT_MAX]);

/* True if the option has the same value in a and b. */
bool option_is_equal(const struct option_def *o, const struct settings *a, const struct settings *b);
/* Copies the value of the option. */
void option_copy(const struct option_def *o, struct settings *to, const struct settings *from);

#endif
