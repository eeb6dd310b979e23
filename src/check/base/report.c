// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/base/report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/check/base/inside.h"

#define TRACES_MAX 65536u /* those of higher numbers are written again each time */

static _Atomic unsigned char written[TRACES_MAX / 8]; /* a bit for each backtrace */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool report_wanted(void)
{
    static int wanted = -1;

    if (wanted < 0)
        wanted = getenv("PUMICE_CHECK_DIR") != NULL;
    return wanted;
}

/* --- addresses --------------------------------------------------------------------------------- */

/* The path of a module. Of the program, the loader knows the name by which it was called. Tabs and ends of line would be
 * read as ends of fields. */
static void path_of(const Dl_info *i, char path[PATH_MAX])
{
    const char *name = i->dli_fname ? i->dli_fname : "";

    if (name[0] && !strchr(name, '/')) {
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

        path[n < 0 ? 0 : n] = 0;
    } else if (!realpath(name, path)) {
        snprintf(path, PATH_MAX, "%s", name);
    }
    for (char *c = path; (c = strpbrk(c, "\t\n"));)
        *c = '?';
}

/* Returns the offset in the module. The address follows a call, so the byte before it belongs to the line of the call. */
static unsigned long resolve(const void *address, Dl_info *i, char module[PATH_MAX])
{
    uintptr_t call = (uintptr_t)address - 1;
    bool known = address && dladdr((const void *)call, i); // NOLINT: it is only looked up

    if (!known)
        *i = (Dl_info){0};
    path_of(i, module);
    return known ? call - (uintptr_t)i->dli_fbase : 0;
}

bool report_is_of_library(const void *address, const char *name)
{
    Dl_info i;
    const char *file, *slash;

    if (!address || !dladdr(address, &i) || !i.dli_fname)
        return false;
    slash = strrchr(i.dli_fname, '/');
    file = slash ? slash + 1 : i.dli_fname;
    return strncmp(file, name, strlen(name)) == 0;
}

void report_describe(const void *address, char *text, unsigned long size)
{
    char module[PATH_MAX];
    Dl_info i = {0};
    unsigned long offset = resolve(address, &i, module);

    snprintf(text, size, "%s in %s+0x%lx", i.dli_sname ? i.dli_sname : "?", module, offset);
}

/* --- the file ---------------------------------------------------------------------------------- */

static void append(const char *line, size_t length)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%d", getenv("PUMICE_CHECK_DIR"), getpid());
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, line, length) != (ssize_t)length) { /* the disk is full: nothing can be done about it here */
    }
    close(fd);
}

void report_line(const char *format, ...)
{
    char *line = NULL;
    va_list ap;

    inside_enter();
    va_start(ap, format);
    int n = vasprintf(&line, format, ap);
    va_end(ap);
    if (n > 0)
        append(line, (size_t)n);
    if (n >= 0)
        free(line);
    inside_leave();
}

/* Was it written before? Now it is. */
static bool test_and_set(unsigned id)
{
    bool before = false;

    if (id >= TRACES_MAX)
        return false;
    if (written[id / 8] & (1u << id % 8))
        return true;
    pthread_mutex_lock(&lock);
    before = written[id / 8] & (1u << id % 8);
    written[id / 8] |= (unsigned char)(1u << id % 8);
    pthread_mutex_unlock(&lock);
    return before;
}

unsigned report_trace(const struct trace *t)
{
    char module[PATH_MAX], *line = NULL;
    size_t length = 0;

    if (!t)
        return 0;
    if (test_and_set(t->id))
        return t->id;
    inside_enter();
    FILE *out = open_memstream(&line, &length);
    if (!out) {
        inside_leave();
        return 0;
    }
    fprintf(out, "T\t%u", t->id);
    for (unsigned i = 0; i < t->n; i++) {
        Dl_info info = {0};
        unsigned long offset = resolve(t->at[i], &info, module);

        fprintf(out, "\t%s\t%lx", module, offset);
    }
    fputc('\n', out);
    if (fclose(out) == 0)
        append(line, length);
    free(line);
    inside_leave();
    return t->id;
}

void report_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    for (unsigned i = 0; i < sizeof(written); i++)
        written[i] = 0;
}
