// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/error_text.h"

#include <errno.h>
#include <stdio.h>

int error_invalid_value(char why[ERROR_TEXT_MAX], const char *name, const char *value, const char *expected)
{
    snprintf(why, ERROR_TEXT_MAX, "%s: invalid value \"%.80s\": expected %s", name, value, expected);
    return -EINVAL;
}
