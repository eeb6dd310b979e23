// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/loaded_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Finds the path of the loader in the program header of this program, which is the first object. */
static int find_loader(struct dl_phdr_info *info, size_t size, void *closure)
{
    const char **loader = closure;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            *loader = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return 1;
}

static void run_loader(const char *loader, const char *path, int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0)
        _exit(EXIT_FAILURE);
    unsetenv("LD_PRELOAD");
    execl(loader, loader, "--list", path, NULL);
    _exit(EXIT_FAILURE);
}

/* A line is "SONAME => PATH (ADDRESS)", "SONAME => not found", "PATH (ADDRESS)" for a library that is imported by its
 * path, or "NAME (ADDRESS)" for the vDSO. */
static void parse_line(char *line, void (*use)(void *closure, const char *soname, const char *library), void *closure)
{
    char *soname = line + strspn(line, " \t"), *arrow = strstr(soname, " => ");
    char *library = arrow ? arrow + 4 : soname, *end = strstr(library, " (0x");

    if (!arrow && soname[0] != '/')
        return;
    if (arrow)
        *arrow = 0;
    if (end)
        *end = 0;
    use(closure, soname, end ? library : NULL);
}

int loaded_libraries(const char *path, void (*use)(void *closure, const char *soname, const char *library),
                     void *closure)
{
    const char *loader = NULL;
    int pipe_fds[2], status;
    char *line = NULL;
    size_t size = 0;

    dl_iterate_phdr(find_loader, &loader);
    if (!loader)
        return -ENOEXEC;
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return -errno;
    pid_t child = fork();
    if (child == 0)
        run_loader(loader, path, pipe_fds[1]);
    close(pipe_fds[1]);
    FILE *file = fdopen(pipe_fds[0], "r");
    if (!file)
        close(pipe_fds[0]);
    while (file && getline(&line, &size, file) > 0)
        parse_line(line, use, closure);
    free(line);
    if (file)
        fclose(file);
    /* The loader also fails if a symbol version is missing, after it has listed the libraries. */
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -ECHILD;
    return WIFEXITED(status) ? 0 : -ENOEXEC;
}
