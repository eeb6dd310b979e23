# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# For scripts with daemons of their own, and a program that holds still with connected queue pairs (tests/verbs/stuck.c). To be read
# after common.bash.
stuck=$BUILD/tests/verbs/stuck
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')

# start_daemon NAME ADDRESS [OPTION...]: a daemon with socket $dir/NAME, through the command in the array `before`; its PID is in $started
before=()
start_daemon()
{
    local name=$1 address=$2
    shift 2
    rm -f "$dir/$name.ready"
    mkfifo "$dir/$name.ready"
    "${before[@]}" "$BUILD/bin/pumiced" --socket "$dir/$name" --address "$address" --ready-fd 3 "$@" 3>"$dir/$name.ready" 2>"$dir/$name.log" &
    started=$!
    pids+=($started)
    read -r -t 20 _ <"$dir/$name.ready" || { echo "the daemon does not start: $(cat "$dir/$name.log")"; exit 1; }
}

# scene NAME SOCKET PEER: a program connects a queue pair of each daemon, and holds still; qp is the first, rest has the others. 1: it
# could not.
scene()
{
    coproc P { LD_PRELOAD=${asan:+$asan:}$library PUMICE_SOCKET=$dir/$2 VT_PEER_SOCKET=$dir/$3 exec "$stuck" "$1" 2>&1; }
    program=$P_PID
    exec 7>&"${P[1]}"
    # shellcheck disable=SC2034 # for the caller
    read -r -t 30 qp rest <&"${P[0]}"
    [[ $qp == 0x* ]]
}
end()
{
    exec 7>&-
    [ -z "${P[1]:-}" ] || eval "exec ${P[1]}>&-"
    wait "$program" 2>/dev/null
}
