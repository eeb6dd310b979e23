#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the programs of the folders here, each with two daemons of its own, which are two hosts: PUMICE_SOCKET leads to the first, VT_PEER_SOCKET to the other.
# usage: run.sh [-b BUILD] [-a ADDRESS] [-c DIR] [-p] [NAME ...]        exit 0 or 1; skipped programs (77) are named and don't fail
#   -a   of the first daemon (A.B.C.D; the other gets A.B+100.C.D)
#   -c   capture all packets of both, to DIR/NAME.pcapng; VT_CAPTURE: options of pumice capture
#   -p   let the programs find the library by LD_LIBRARY_PATH, not LD_PRELOAD: for builds with sanitizers
# VT_DAEMON: another command than BUILD's pumiced; it gets the arguments --socket PATH --address ADDRESS.
# VT_TIMEOUT: seconds that a program may take (400: some take a minute on processors of their own).
set -u
here=$(dirname "$0")
build=build
address=127.0.20.1
how=LD_PRELOAD
captures=
while getopts b:a:c:p o; do
    case $o in
    b) build=$OPTARG ;;
    a) address=$OPTARG ;;
    c) captures=$OPTARG ;;
    p) how=LD_LIBRARY_PATH ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- "$here"/*/test_*.c
library=$(realpath "$build/lib/pumice/libibverbs.so.1") || exit 1
[ $how = LD_PRELOAD ] || library=$(dirname "$library")
# Does a daemon answer at that socket? (That the socket is there is not enough: it listens a moment later.)
ready()
{
    [ -S "$1" ] && "$build/bin/pumice" status --socket "$1" >/dev/null 2>&1
}
# Until it captures; it ends when both daemons have.
capture_begin()
{
    # shellcheck disable=SC2086
    PUMICE_LAB=$tmp PUMICE_HOSTS=2 "$build/bin/pumice" capture ${VT_CAPTURE:-} "$captures/$name.pcapng" 2>"$tmp/capture" &
    capture=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -q 'capturing at' "$tmp/capture" && break
        sleep 0.1
    done
}
failed=0
rest=${address#*.}
peer_address=${address%%.*}.$((${rest%%.*} + 100)).${rest#*.}
# Each daemon has a second GID, as in a lab.
second=${address%%.*}.$(((${rest%%.*} + 50) % 256)).${rest#*.}
peer_second=${address%%.*}.$(((${rest%%.*} + 150) % 256)).${rest#*.}
for program in "$@"; do
    name=$(basename "$program" .c)
    source=$(echo "$here"/*/"$name.c")
    [ -x "$program" ] || program=$build/tests/verbs/$(basename "$(dirname "$source")")/$name
    tmp=$(mktemp -d) || exit 1
    ${VT_DAEMON:-"$build/bin/pumiced"} --socket "$tmp/host0.sock" --address "$address+$second" >"$tmp/log" 2>&1 &
    daemon=$!
    ${VT_DAEMON:-"$build/bin/pumiced"} --socket "$tmp/host1.sock" --address "$peer_address+$peer_second" >"$tmp/log.peer" 2>&1 &
    peer=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        ready "$tmp/host0.sock" && ready "$tmp/host1.sock" && break
        sleep 0.1
    done
    echo "# $name"
    if [ ! -S "$tmp/host0.sock" ] || [ ! -S "$tmp/host1.sock" ]; then
        echo "not ok - a daemon didn't start"
        sed 's/^/#   /' "$tmp/log" "$tmp/log.peer"
        kill $daemon $peer 2>/dev/null
        rm -rf "$tmp"
        failed=1
        continue
    fi
    [ -z "$captures" ] || capture_begin
    timeout "${VT_TIMEOUT:-400}" env VT_BUILD="$build" PUMICE_SOCKET="$tmp/host0.sock" VT_PEER_SOCKET="$tmp/host1.sock" VT_DAEMON_PID=$daemon $how="$library" "$program"
    rc=$?
    kill $daemon $peer 2>/dev/null
    wait $daemon $peer 2>/dev/null
    if [ -n "$captures" ]; then
        wait $capture
        sed 's/^/# /' "$tmp/capture"
    fi
    grep -q 'WARNING: ThreadSanitizer' "$tmp/log" "$tmp/log.peer" && rc=66
    case $rc in
    0) ;;
    77) echo "# $name skipped" ;;
    *)
        echo "# $name failed ($rc); the daemons said:"
        sed 's/^/#   /' "$tmp/log"
        sed 's/^/#   peer: /' "$tmp/log.peer"
        failed=1
        ;;
    esac
    rm -rf "$tmp"
done
exit $failed
