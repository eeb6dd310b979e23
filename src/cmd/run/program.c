// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/run/program.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/paths.h"

/* True if path is an entry of the list, whose entries are separated by colons or spaces. */
static bool in_list(const char *list, const char *path)
{
    size_t len = strlen(path);

    for (const char *p = list; (p = strstr(p, path)) != NULL; p++)
        if ((p == list || p[-1] == ':' || p[-1] == ' ') && (p[len] == 0 || p[len] == ':' || p[len] == ' '))
            return true;
    return false;
}

int program_preload(const char *dir, char *out, size_t size)
{
    const char *before = getenv("LD_PRELOAD");
    char path[PATH_MAX];

    if (strpbrk(dir, ": \t\n;")) {
        say("the loader can't preload a library from '%s': the path must not contain spaces, colons or semicolons",
            dir);
        return -1;
    }
    snprintf(path, sizeof(path), "%.*s/libibverbs.so.1", PATH_MAX - 32, dir);
    if (!before || !before[0])
        snprintf(out, size, "%s", path);
    else if (in_list(before, path))
        snprintf(out, size, "%s", before);
    else
        snprintf(out, size, "%s:%s", before, path); /* at the end, because a sanitizer must be first */
    return 0;
}

void program_exec(char **command)
{
    char path[PATH_MAX];

    execvp(command[0], command);
    int err = errno;

    /* If no directory of PATH has the command, but this user may not search one of them, execvp fails with
     * EACCES, too. */
    if (err == EACCES && paths_command(command[0], path) == ENOENT)
        err = ENOENT;
    say("%s: %s", command[0], err == ENOENT ? "no such command" : strerror(err));
    _exit(err == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC);
}
