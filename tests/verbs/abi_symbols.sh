#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Does our libibverbs.so.1 offer what the system's does, version by version, and all that the programs and libraries which load it ask for?
# usage: abi_symbols.sh [OUR-LIBRARY]        exit 0, 1, or 77 if the system has no libibverbs to compare with
set -u
ours=${1:-build/lib/pumice/libibverbs.so.1}
libdir=/usr/lib/$(cc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
system=$libdir/libibverbs.so.1
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

check() # NAME STATUS
{
    if [ "$2" -eq 0 ]; then echo "ok - $1"; else echo "not ok - $1"; failed=1; fi
}

# Lines "name version type default|old" of the symbols that a library defines.
defined()
{
    objdump -T "$1" | awk '!/\*UND\*/ && /IBVERBS_/ {
        v = $(NF - 1); old = v ~ /^\(/ ? "old" : "default"; gsub(/[()]/, "", v)
        if ($NF !~ /^IBVERBS_/) print $NF, v, ($0 ~ / DO /) ? "object" : "function", old }' | sort
}

# Lines "name version" that a file wants of libibverbs.
wanted()
{
    objdump -T "$1" 2>/dev/null | awk '/\*UND\*/ && /IBVERBS_/ { v = $(NF - 1); gsub(/[()]/, "", v); print $NF, v }' | sort -u
}

[ -e "$system" ] || { echo "skip - no $system"; exit 77; }
[ -e "$ours" ] || { echo "not ok - no $ours"; exit 1; }

defined "$system" >"$tmp/system"
defined "$ours" >"$tmp/ours"
comm -23 "$tmp/system" "$tmp/ours" >"$tmp/missing"
cat "$tmp/missing"
[ -s "$tmp/system" ] && [ ! -s "$tmp/missing" ]
check "all $(wc -l <"$tmp/system") versioned symbols of $system" $?

objdump -p "$ours" | grep -q 'SONAME *libibverbs.so.1$'
check "the name is libibverbs.so.1" $?

# A symbol without a version must be a deliberate replacement of a function of libc.
objdump -T "$ours" | awk '!/\*UND\*/ && /Base/ && $NF != "libibverbs.so.1" { print $NF }' | sort >"$tmp/base"
sed 's/#.*//; /^ *$/d' "$(dirname "$0")/abi_base.txt" | sort >"$tmp/base-allowed"
comm -23 "$tmp/base" "$tmp/base-allowed"
[ -z "$(comm -23 "$tmp/base" "$tmp/base-allowed")" ]
check "nothing else is exported" $?

# Everything on this machine that is linked with libibverbs: providers, librdmacm, perftest, pyverbs, rdma-core's tools, UCX, libfabric.
cut -d' ' -f1,2 "$tmp/ours" | sort -u >"$tmp/have"
users=0
for f in "$libdir"/libmlx*.so.* "$libdir"/libefa.so.* "$libdir"/libibverbs/*.so "$libdir"/librdmacm.so.* "$libdir"/libfabric.so.* \
    "$libdir"/ucx/*.so* /usr/lib/python3/dist-packages/pyverbs/*.so /usr/lib/python3/dist-packages/pyverbs/*/*.so \
    /usr/lib/python3/dist-packages/pyverbs/*/*/*.so /usr/bin/ib* /usr/bin/raw_ethernet_* /usr/bin/rping /usr/bin/rdma_*; do
    [ -f "$f" ] && [ ! -h "$f" ] || continue
    wanted "$f" >"$tmp/wanted"
    [ -s "$tmp/wanted" ] || continue
    users=$((users + 1))
    comm -23 "$tmp/wanted" "$tmp/have" | sed "s|^|$f wants |" >>"$tmp/unmet"
done
touch "$tmp/unmet"
cat "$tmp/unmet"
[ ! -s "$tmp/unmet" ]
check "all that $users programs and libraries here import" $?
exit $failed
