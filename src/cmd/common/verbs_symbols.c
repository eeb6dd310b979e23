// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/verbs_symbols.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cmd/common/loaded_libraries.h"
#include "src/cmd/common/paths.h"

#define VERBS_SONAME "libibverbs.so.1"

int verbs_symbols_ours(struct elf_symbols *ours)
{
    char dir[PATH_MAX], path[PATH_MAX + sizeof(VERBS_SONAME) + 1];

    if (!paths_library(dir))
        return -ENOENT;
    snprintf(path, sizeof(path), "%s/%s", dir, VERBS_SONAME);
    return elf_symbols_defined(path, ours);
}

void verbs_symbols_newest(const struct elf_symbols *ours, char *out, size_t size)
{
    int public = 0, private = 0, n;

    for (size_t i = 0; i < ours->n; i++) {
        const struct elf_symbol *s = &ours->symbol[i];

        if (!s->name[0] && sscanf(s->version, "IBVERBS_1.%d", &n) == 1 && n > public)
        public = n;
        if (!s->name[0] && sscanf(s->version, "IBVERBS_PRIVATE_%d", &n) == 1 && n > private)
        private = n;
    }
    snprintf(out, size, "IBVERBS_1.%d and IBVERBS_PRIVATE_%d", public, private);
}

int verbs_symbols_check(const struct elf_symbols *ours, const char *path, struct verbs_missing *missing)
{
    struct elf_symbols theirs = {0};
    int rc = elf_symbols_imported(path, VERBS_SONAME, &theirs);

    *missing = (struct verbs_missing){0};
    for (size_t i = 0; rc == 0 && i < theirs.n; i++) {
        const struct elf_symbol *s = &theirs.symbol[i];

        /* A missing version comes first in the list. A symbol of it says more. */
        if (elf_symbols_have(ours, s) || (!s->name[0] && missing->n))
            continue;
        if (s->name[0] && (!missing->symbol[0] || strncmp(missing->symbol, "version ", 8) == 0)) {
            snprintf(missing->symbol, sizeof(missing->symbol), "%s of %s", s->name, s->version);
            missing->n = 0;
        } else if (!missing->symbol[0]) {
            snprintf(missing->symbol, sizeof(missing->symbol), "version %s", s->version);
        }
        missing->n++;
    }
    elf_symbols_free(&theirs);
    if (rc || !missing->n)
        return rc;
    snprintf(missing->file, sizeof(missing->file), "%s", path);
    return 1;
}

/* A search through a file and its libraries. */
struct search {
    const struct elf_symbols *ours;
    struct verbs_missing *missing;
    int found; /* as verbs_symbols_check returns it */
};

static void check_library(void *closure, const char *soname, const char *library)
{
    struct search *s = closure;

    if (library && s->found == 0 && strcmp(soname, VERBS_SONAME) != 0)
        s->found = verbs_symbols_check(s->ours, library, s->missing);
}

int verbs_symbols_check_all(const struct elf_symbols *ours, const char *path, struct verbs_missing *missing)
{
    struct search s = {.ours = ours, .missing = missing, .found = verbs_symbols_check(ours, path, missing)};
    int rc = s.found ? 0 : loaded_libraries(path, check_library, &s);

    return rc ? rc : s.found;
}

/* --- installed files ---------------------------------------------------------------------------------------------- */

/* The directories of libraries, for glob(3). */
static const char *const lib_dirs[] = {"/usr/lib/*", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"};

#define FILES_MAX 128

/* Real paths, each once. */
struct file_list {
    char *path[FILES_MAX];
    unsigned n;
};

static void add_file(struct file_list *list, const char *path)
{
    char *real = realpath(path, NULL);

    if (!real)
        return;
    for (unsigned i = 0; i < list->n; i++)
        if (strcmp(list->path[i], real) == 0) {
            free(real);
            return;
        }
    if (list->n < FILES_MAX)
        list->path[list->n++] = real;
    else
        free(real);
}

/* Adds the files that match a pattern. */
static void __attribute__((format(printf, 2, 3))) find_files(struct file_list *list, const char *format, ...)
{
    char pattern[PATH_MAX];
    glob_t found;
    va_list ap;

    va_start(ap, format);
    int len = vsnprintf(pattern, sizeof(pattern), format, ap);
    va_end(ap);
    if (len < 0 || (size_t)len >= sizeof(pattern) || glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_file(list, found.gl_pathv[i]);
    globfree(&found);
}

/* Adds the libraries that a file of /etc/libibverbs.d names by path: "driver /opt/x/libfoo" means
 * /opt/x/libfoo-rdmavN.so. A name without a slash is a library in one of lib_dirs. */
static void find_configured(struct file_list *list, const char *root, const char *config)
{
    FILE *file = fopen(config, "re");
    char line[PATH_MAX], name[PATH_MAX];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, " driver %4000s", name) == 1 && name[0] == '/')
            find_files(list, "%s%s-rdmav*.so", root, name);
    if (file)
        fclose(file);
}

/* Calls use for each file, and frees the list. */
static void use_files(struct file_list *list, void (*use)(void *closure, const char *path), void *closure)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (use)
            use(closure, list->path[i]);
        free(list->path[i]);
    }
}

void verbs_symbols_providers(const char *root, void (*use)(void *closure, const char *path), void *closure)
{
    struct file_list found = {0}, configs = {0};

    for (size_t i = 0; i < sizeof(lib_dirs) / sizeof(lib_dirs[0]); i++)
        find_files(&found, "%s%s/libibverbs/*.so", root, lib_dirs[i]);
    find_files(&configs, "%s/etc/libibverbs.d/*", root);
    for (unsigned i = 0; i < configs.n; i++)
        find_configured(&found, root, configs.path[i]);
    use_files(&configs, NULL, NULL);
    use_files(&found, use, closure);
}

void verbs_symbols_rdmacm(const char *root, void (*use)(void *closure, const char *path), void *closure)
{
    struct file_list found = {0};

    for (size_t i = 0; i < sizeof(lib_dirs) / sizeof(lib_dirs[0]); i++)
        find_files(&found, "%s%s/librdmacm.so.1", root, lib_dirs[i]);
    use_files(&found, use, closure);
}

static void check_module(void *closure, const char *path)
{
    struct search *s = closure;

    if (s->found == 0)
        s->found = verbs_symbols_check_all(s->ours, path, s->missing);
}

/* Adds the modules of the UCX that the loader finds in LD_LIBRARY_PATH. Returns false if there is no UCX. */
static bool find_own_ucx(struct file_list *list)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    struct file_list ucx = {0};

    while (path && *path && !ucx.n) {
        int len = (int)strcspn(path, ":;");

        find_files(&ucx, "%.*s/libucs.so*", len, path);
        if (ucx.n)
            find_files(list, "%.*s/ucx/libuct_ib*.so*", len, path);
        path += len + (path[len] != 0);
    }
    use_files(&ucx, NULL, NULL);
    return ucx.n > 0;
}

int verbs_symbols_check_ucx(const struct elf_symbols *ours, const char *root, struct verbs_missing *missing)
{
    struct search s = {.ours = ours, .missing = missing};
    struct file_list found = {0};

    if (!find_own_ucx(&found))
        for (size_t i = 0; i < sizeof(lib_dirs) / sizeof(lib_dirs[0]); i++)
            find_files(&found, "%s%s/ucx/libuct_ib*.so*", root, lib_dirs[i]);
    use_files(&found, check_module, &s);
    return s.found;
}
