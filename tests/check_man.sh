#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The man pages format without a warning. Usage: check_man.sh PAGE...
command -v man >/dev/null && man -w man >/dev/null 2>&1 || command -v groff >/dev/null || {
    echo "skip: no man"
    exit 77
}
bad=0
for page; do
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    if [ -n "$warnings" ]; then
        echo "$page: $warnings"
        bad=1
    fi
done
[ $# -gt 0 ] && [ $bad -eq 0 ] && echo "$# man pages format without a warning"
exit $bad
