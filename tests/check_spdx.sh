#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every source file says its licence in one of its first two lines.
cd "$(dirname "$0")/.." || exit 1
files=$(find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o \
    -name '*.map' -o -name '*.lua' -o -name Makefile -o -path './.ci/*' \) -print)
[ -n "$files" ] || exit 1
# shellcheck disable=SC2086
bad=$(for f in $files; do head -n 2 "$f" | grep -q 'SPDX-License-Identifier: BSD-2-Clause' || echo "$f"; done)
if [ -n "$bad" ]; then
    echo "no line '// SPDX-License-Identifier: BSD-2-Clause' at the top of:"
    echo "$bad"
    exit 1
fi
echo "$(echo "$files" | wc -l) files name their licence"
