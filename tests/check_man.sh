#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The man pages format without a warning, and each function of libpumice has one. Usage: check_man.sh PAGE...
command -v man >/dev/null && man -w man >/dev/null 2>&1 || command -v groff >/dev/null || {
    echo "skip: no man"
    exit 77
}
bad=0
top=$(dirname "$0")/..
for page; do
    # A page of one line stands for another page.
    other=$(sed -n 's/^\.so man3\/\(.*\)/\1/p' "$page")
    if [ -n "$other" ]; then
        name=$(basename "$page" .3)
        sed -n '/^\.SH NAME/{n;p}' "$(dirname "$page")/$other" | grep -qw "$name" || { echo "$page: $other does not name $name"; bad=1; }
        continue
    fi
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
    if [ -n "$warnings" ]; then
        echo "$page: $warnings"
        bad=1
    fi
done
# The functions of the library, and those that its headers define.
for name in $(sed -n 's/^ *\(pumice_[a-z0-9_]*\);/\1/p' "$top/src/dv/libpumice.map") \
    $(sed -n 's/^static inline .*\(pumice_[a-z0-9_]*\)(.*/\1/p' "$top"/include/pumice/{layout,mlx5}.h); do
    page=$top/docs/man/man3/$name.3
    [ -e "$page" ] || { echo "$name has no page"; bad=1; continue; }
    other=$(sed -n 's/^\.so man3\/\(.*\)/\1/p' "$page")
    sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$top/docs/man/man3/${other:-$name.3}" | grep -qw "$name" || { echo "$page: no synopsis of $name"; bad=1; }
done
[ $# -gt 0 ] && [ $bad -eq 0 ] && echo "$# man pages format without a warning"
exit $bad
