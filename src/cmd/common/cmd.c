// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void say(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("pumice: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
}

long parse_number(const char *text, long least, long most)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long n = strtol(text, &end, 10);
    return errno || *end || n < least || n > most ? -1 : n;
}
