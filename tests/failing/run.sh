#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Makes each call of a daemon fail in turn (tests/failing/each_call.c), between two daemons on addresses of their own.
# usage: run.sh [options and kinds of each_call]        exit 0 or 1; BUILD: the folder of the build (build)
. "$(dirname "$0")/../e2e/lib/common.bash"
[ -z "${SANITIZED:-}" ] || skip "a sanitizer has allocation functions of its own"
library=$BUILD/tests/failing/libfailing.so
address=127.$((60 + $$ / 250 % 20)).$(($$ % 250)).1
peer=${address%.1}.2
truncate -s 4096 "$dir/page"

start() # NAME ADDRESS VARIABLE=VALUE...: the daemon's number in $pid, when it is ready
{
    local name=$1 on=$2 line
    shift 2
    mkfifo "$dir/$name.ready"
    env "$@" "$BUILD/bin/pumiced" --socket "$dir/$name" --address "$on" --ready-fd 3 3>"$dir/$name.ready" 2>"$dir/$name.log" &
    pid=$!
    pids+=("$pid")
    read -r -t 20 line <"$dir/$name.ready"
    [ "$line" = ready ] || { echo "a daemon does not start:"; cat "$dir/$name.log"; exit 1; }
}
start other "$peer"
# With one arena, the C library maps memory for none of the threads that allocate for the first time in the middle of the test.
start own "$address" MALLOC_ARENA_MAX=1 LD_PRELOAD="$library" FAILING_PAGE="$dir/page" ${FAILING_TRACE:+FAILING_TRACE=yes}
env LD_PRELOAD="$BUILD/lib/pumice/libibverbs.so.1" PUMICE_SOCKET="$dir/own" VT_PEER_SOCKET="$dir/other" VT_DAEMON_PID="$pid" \
    FAILING_PAGE="$dir/page" "$BUILD/tests/failing/each_call" "$@" || failures=1
if [ $failures -gt 0 ]; then
    echo "# the daemon said, at the end:"
    tail -n 60 "$dir/own.log" | sed 's/^/#   /'
fi
exit $((failures > 0))
