#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Compares the ABI of the client library with that of the system's libibverbs, by abidiff of libabigail: no function and no variable of the
# system's library is missing, with its version, its kind and its size. Where debug symbols of the system's library are installed, abidiff
# compares the types of functions, too. Usage: check_abi.sh LIBRARY
set -u
ours=${1:?usage: check_abi.sh LIBRARY}
command -v abidiff >/dev/null || { echo "skip: no abidiff (abigail-tools)"; exit 77; }
system=$(PATH=$PATH:/sbin ldconfig -p | awk '$1 == "libibverbs.so.1" && /x86-64|aarch64|AArch64|64bit|ELF/ { print $NF; exit }')
[ -n "$system" ] || system=$(find /usr/lib /lib -name libibverbs.so.1 2>/dev/null | head -1)
[ -n "$system" ] || { echo "skip: no libibverbs of the system"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

compare() # LIBRARY: bits of the exit code: 1, 2 errors, 4 the ABI differs, 8 it is incompatible
{
    abidiff --no-added-syms --d1 /usr/lib/debug "$system" "$1" >"$tmp/report" 2>&1
}

compare "$ours"
code=$?
if [ $((code & ~4)) -ne 0 ] || ! grep -q 'Functions changes summary: 0 Removed' "$tmp/report" || ! grep -q 'Variables changes summary: 0 Removed' "$tmp/report"; then
    echo "the ABI is not that of $system (abidiff: exit code $code):"
    cat "$tmp/report"
    failed=1
fi

# The check can fail: a library with a single function of the system's is incompatible.
echo 'IBVERBS_1.1 { global: ibv_get_device_list; };' >"$tmp/map"
echo 'void **ibv_get_device_list(int *n) { *n = 0; return 0; }' |
    cc -shared -fPIC -x c - -o "$tmp/libibverbs.so.1" -Wl,-soname,libibverbs.so.1 -Wl,--version-script="$tmp/map" || exit 1
compare "$tmp/libibverbs.so.1"
[ $(($? & 8)) -ne 0 ] && grep -q 'ibv_open_device' "$tmp/report" || { echo "a library without ibv_open_device passes"; failed=1; }
[ $failed = 0 ] && echo "no symbol of $system is missing"
exit $failed
