// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/environment.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/options.h"

#define PREFIX "PUMICED_"
#define NAME_MAX_LEN 64

/* Writes the name of the option's variable. */
static void variable_of(const char *option, char name[NAME_MAX_LEN])
{
    snprintf(name, NAME_MAX_LEN, PREFIX "%s", option);
    for (char *p = name; *p; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

const char *environment_value(const char *option)
{
    char name[NAME_MAX_LEN];

    variable_of(option, name);
    return getenv(name);
}

/* Reports the first variable with the prefix that belongs to no option. */
static int check_names(char why[ERROR_TEXT_MAX])
{
    for (char **e = environ; e && *e; e++) {
        size_t len = strcspn(*e, "=");
        bool known = strncmp(*e, PREFIX, sizeof(PREFIX) - 1) != 0 || strncmp(*e, "PUMICED_OPTIONS=", len + 1) == 0;
        char name[NAME_MAX_LEN];

        for (const struct option_def *o = options; o->name && !known; o++) {
            variable_of(o->name, name);
            known = strlen(name) == len && memcmp(name, *e, len) == 0;
        }
        if (known)
            continue;
        snprintf(why, ERROR_TEXT_MAX, "the environment has %.*s, but pumiced has no such option: pumiced(8) lists all",
                 len < 80 ? (int)len : 80, *e);
        return -EINVAL;
    }
    return 0;
}

/* Each word of the value adds a device. */
static int add_devices(const struct option_def *o, struct settings *s, const char *value, char why[ERROR_TEXT_MAX])
{
    char *words = strdup(value), *rest = NULL;
    int rc = words ? 0 : -ENOMEM;

    if (!words)
        snprintf(why, ERROR_TEXT_MAX, "out of memory");
    for (char *w = words ? strtok_r(words, " ", &rest) : NULL; w && !rc; w = strtok_r(NULL, " ", &rest))
        rc = option_set(o, s, w, why);
    free(words);
    return rc;
}

int environment_read(struct settings *s, char why[ERROR_TEXT_MAX])
{
    if (check_names(why) != 0)
        return -EINVAL;
    for (const struct option_def *o = options; o->name; o++) {
        const char *value = o->set ? environment_value(o->name) : NULL;
        char text[ERROR_TEXT_MAX], name[NAME_MAX_LEN];
        int rc;

        if (!value)
            continue;
        rc = o->flags & OPTION_DEVICE ? add_devices(o, s, value, text) : option_set(o, s, value, text);
        if (rc == 0)
            continue;
        variable_of(o->name, name);
        snprintf(why, ERROR_TEXT_MAX, "%s: %.*s", name, ERROR_TEXT_MAX - NAME_MAX_LEN - 2, text);
        return rc;
    }
    s->devices_replaceable = s->devices != 0; /* by those of the command line */
    return 0;
}
