#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks that our libibverbs.so.1 has the symbols of every release of rdma-core in the table, and no others. Checks also that it has all
# symbols of the system's library, and all that the programs and libraries on this machine import.
# usage: abi_symbols.sh [OUR-LIBRARY]        exit 0 or 1
set -u
here=$(dirname "$0")
table=$here/../../src/verbs/abi/rdma-core-symbols.tsv
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

[ -e "$ours" ] || { echo "not ok - no $ours"; exit 1; }

defined "$ours" >"$tmp/ours"
cut -d' ' -f1,2 "$tmp/ours" | sort -u >"$tmp/have"

# Each release of the table. A release is a number; HEAD is newer than all of these.
awk -v out=rows -f "$here/../../src/verbs/abi/symbols.awk" "$table" >"$tmp/rows"
for release in $(awk -F'\t' '{ print $3; print $4 }' "$tmp/rows" | sort -uV); do
    awk -F'\t' -v release="$release" 'function n(r) { return r == "HEAD" ? 1000000 : r + 0 }
        n($3) <= n(release) && n(release) <= n($4) { print $2, $1 }' "$tmp/rows" | sort >"$tmp/release"
    comm -23 "$tmp/release" "$tmp/have" | tee "$tmp/missing"
    [ -s "$tmp/release" ] && [ ! -s "$tmp/missing" ]
    check "rdma-core $release: $(wc -l <"$tmp/release") symbols" $?
done
awk -F'\t' '{ print $2, $1 }' "$tmp/rows" | sort >"$tmp/all"
comm -13 "$tmp/all" "$tmp/have" | tee "$tmp/more"
[ ! -s "$tmp/more" ]
check "no version that the table does not have" $?

if [ -e "$system" ]; then
    # Our defaults may be newer than the system's.
    defined "$system" | cut -d' ' -f1-3 >"$tmp/system"
    cut -d' ' -f1-3 "$tmp/ours" | sort >"$tmp/kinds"
    comm -23 "$tmp/system" "$tmp/kinds" >"$tmp/missing"
    cat "$tmp/missing"
    [ -s "$tmp/system" ] && [ ! -s "$tmp/missing" ]
    check "all $(wc -l <"$tmp/system") versioned symbols of $system" $?
    # A program that is linked now gets the default version, which is the same for all public functions.
    defined "$system" | grep ' default$' | grep -v PRIVATE >"$tmp/defaults"
    comm -23 "$tmp/defaults" "$tmp/ours" | tee "$tmp/missing"
    [ -s "$tmp/defaults" ] && [ ! -s "$tmp/missing" ]
    check "the same default versions" $?
else
    echo "# skipped: the system's library: there is no $system"
fi

objdump -p "$ours" | grep -q 'SONAME *libibverbs.so.1$'
check "the name is libibverbs.so.1" $?

# A symbol without a version must be a deliberate replacement of a function of libc.
objdump -T "$ours" | awk '!/\*UND\*/ && /Base/ && $NF != "libibverbs.so.1" { print $NF }' | sort >"$tmp/base"
sed 's/#.*//; /^ *$/d' "$here/abi_base.txt" | sort >"$tmp/base-allowed"
comm -23 "$tmp/base" "$tmp/base-allowed"
[ -z "$(comm -23 "$tmp/base" "$tmp/base-allowed")" ]
check "nothing else is exported" $?

# Everything on this machine that is linked with libibverbs: providers, librdmacm, perftest, pyverbs, rdma-core's tools, UCX, libfabric.
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
