// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/finding.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 1000u /* findings at more places are not kept */
#define TEXT_MAX 512

static struct finding {
    enum rule rule;
    const void *where;
    uint64_t count;
    char text[TEXT_MAX]; /* of the first one */
} found[PLACES_MAX];
static unsigned places;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The path of a module. Of the program, the loader knows the name by which it was called. */
static void path_of(const Dl_info *i, char path[PATH_MAX])
{
    const char *name = i->dli_fname ? i->dli_fname : "";

    if (name[0] && !strchr(name, '/')) {
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

        path[n < 0 ? 0 : n] = 0;
    } else if (!realpath(name, path)) {
        snprintf(path, PATH_MAX, "%s", name);
    }
}

/* For the file. Tabs and ends of line are not in texts, and not in the names of usual modules. */
static void write_line(const struct finding *f, const char *module, unsigned long offset)
{
    const char *dir = getenv("PUMICE_CHECK_DIR");
    char path[PATH_MAX], line[PATH_MAX + TEXT_MAX + 100];

    snprintf(path, sizeof(path), "%s/%d", dir, getpid());
    int n = snprintf(line, sizeof(line), "%llu\t%s\t%s\t%lx\t%s\n", (unsigned long long)f->count, rule_name(f->rule),
                     module, offset, f->text);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n) { /* the disk is full: nothing can be done about it here */
    }
    close(fd);
}

static void print(const struct finding *f, const Dl_info *i, const char *module, unsigned long offset)
{
    if (f->count > 1)
        fprintf(stderr, "pumice check: %s: the same again, %llu times in all (%s+0x%lx)\n", rule_name(f->rule),
                (unsigned long long)f->count, module, offset);
    else
        fprintf(stderr, "pumice check: %s: %s (%s in %s+0x%lx)\n", rule_name(f->rule), f->text,
                i->dli_sname ? i->dli_sname : "?", module, offset);
}

static void report(const struct finding *f)
{
    Dl_info i = {0};
    char module[PATH_MAX];
    /* The address follows a call, so the byte before it belongs to the line of the call. */
    uintptr_t call = (uintptr_t)f->where - 1;
    unsigned long offset = 0;

    if (f->where && dladdr((void *)call, &i)) // NOLINT: it is only looked up
        offset = call - (uintptr_t)i.dli_fbase;
    path_of(&i, module);
    if (getenv("PUMICE_CHECK_DIR"))
        write_line(f, module, offset);
    else
        print(f, &i, module, offset);
}

/* NULL: too many places. *is_new: this is the first one of its place. */
static struct finding *find(enum rule rule, const void *where, bool *is_new)
{
    for (unsigned i = 0; i < places; i++) {
        if (found[i].rule == rule && found[i].where == where)
            return &found[i];
    }
    if (places == PLACES_MAX)
        return NULL;
    *is_new = true;
    found[places] = (struct finding){.rule = rule, .where = where};
    return &found[places++];
}

void finding_add(enum rule rule, const void *where, const char *format, ...)
{
    bool is_new = false;
    va_list ap;

    pthread_mutex_lock(&lock);
    struct finding *f = find(rule, where, &is_new);
    if (f)
        f->count++;
    if (is_new) {
        va_start(ap, format);
        vsnprintf(f->text, sizeof(f->text), format, ap);
        va_end(ap);
        report(f);
    }
    pthread_mutex_unlock(&lock);
}

void finding_end(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < places; i++) {
        if (found[i].count > 1)
            report(&found[i]);
    }
    places = 0;
    pthread_mutex_unlock(&lock);
}

void finding_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    places = 0;
}
