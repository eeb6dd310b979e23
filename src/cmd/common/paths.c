// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/paths.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"

#define LIBRARY "libibverbs.so.1"

void paths_self(char *out)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

    out[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(out, '/');
    *(slash ? slash : out) = 0;
}

/* Writes the path dir/rest to out, without "..", "." and symbolic links. */
static bool resolve(const char *dir, const char *rest, char *out)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", dir, rest);
    return realpath(path, out) != NULL;
}

bool paths_daemon(char *out)
{
    static const char *const places[] = {"pumiced", "../libexec/pumice/pumiced", "../sbin/pumiced"};
    char self[PATH_MAX];

    paths_self(self);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (resolve(self, places[i], out) && access(out, X_OK) == 0)
            return true;
    if (paths_command("pumiced", out) == 0)
        return true;
    say("can't find pumiced: it is not in %s, %s/../libexec/pumice, %s/../sbin or PATH (to build it: make)", self, self,
        self);
    return false;
}

bool paths_library(char *out)
{
    char self[PATH_MAX];

    paths_self(self);
    if (resolve(self, "../lib/pumice/" LIBRARY, out)) {
        *strrchr(out, '/') = 0;
        return true;
    }
    say("can't find the client library: there is no %s/../lib/pumice/" LIBRARY " (to build it: make)", self);
    return false;
}

static bool executable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int paths_command(const char *name, char *out)
{
    const char *path = getenv("PATH");
    int err = ENOENT;

    if (strchr(name, '/')) {
        snprintf(out, PATH_MAX, "%s", name);
        return executable(name) ? 0 : access(name, F_OK) == 0 || errno == EACCES ? EACCES : ENOENT;
    }
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        size_t len = strcspn(path, ":");

        snprintf(out, PATH_MAX, "%.*s%s%s", (int)len, path, len ? "/" : "", name);
        if (executable(out))
            return 0;
        if (access(out, F_OK) == 0)
            err = EACCES;
        if (path[len] == 0)
            break;
        path += len + 1;
    }
    return err;
}

enum linkage {
    LINKAGE_DYNAMIC, /* also any file that is not an ELF file */
    LINKAGE_STATIC,
    LINKAGE_OTHER_MACHINE, /* another word size or processor */
};

/* Reads the ELF headers of a file. A dynamically linked program has a program header that names the loader. */
static enum linkage linkage(const char *path)
{
    enum linkage found = LINKAGE_DYNAMIC;
    ElfW(Ehdr) mine, head;
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = open(path, O_RDONLY | O_CLOEXEC);

    if (self < 0 || fd < 0 || pread(self, &mine, sizeof(mine), 0) != sizeof(mine) ||
        pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        goto out;
    if (head.e_ident[EI_CLASS] != mine.e_ident[EI_CLASS] || head.e_machine != mine.e_machine) {
        found = LINKAGE_OTHER_MACHINE;
        goto out;
    }
    found = LINKAGE_STATIC;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) ph;

        if (pread(fd, &ph, sizeof(ph), (off_t)(head.e_phoff + i * sizeof(ph))) != sizeof(ph) || ph.p_type == PT_INTERP)
            found = LINKAGE_DYNAMIC;
    }
out:
    close(self);
    close(fd);
    return found;
}

void paths_warn_no_preload(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 &&
        (((st.st_mode & S_ISUID) && st.st_uid != getuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getgid())))
        say("%s is setuid or setgid, so the system does not preload the client library: it will see no Pumice device",
            path);
    else if (getxattr(path, "security.capability", NULL, 0) > 0 && getuid() != 0)
        say("%s has file capabilities, so the system does not preload the client library: it will see no Pumice device",
            path);
    switch (linkage(path)) {
    case LINKAGE_DYNAMIC:
        break;
    case LINKAGE_STATIC:
        say("%s is statically linked and can't preload the client library: it will see no Pumice device", path);
        break;
    case LINKAGE_OTHER_MACHINE:
        say("%s is for another architecture than Pumice and can't preload the client library", path);
        break;
    }
}
