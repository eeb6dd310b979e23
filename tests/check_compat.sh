#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Does docs/compatibility.md explain every reason for which a test of rdma-core is skipped?
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
sed -n 's/^tests[^ ]* skip //p' tests/e2e/programs/pyverbs.expected | sort -u | {
    while read -r reason; do
        # Numbers and names of this machine are not repeated there.
        key=$(printf '%s' "$reason" | sed 's/ by \/dev.*//; s/Create Raw Packet QP .*/Create Raw Packet QP/')
        grep -qF "$key" docs/compatibility.md || { echo "docs/compatibility.md does not explain: $reason"; failed=1; }
    done
    exit $failed
}
