#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `pumice run` prints a hint if a command succeeds but its programs did not use their devices. It prints the hint in no other case.
. "$(dirname "$0")/../lib/common.bash"
need ibv_rc_pingpong ibv_devinfo timeout
block=127.92.$(($$ % 256)) # of loopback addresses, so that two runs at once don't meet
export port=$((23000 + $$ % 500))
told="no packet went over"

run() # in a lab of two hosts; output and messages in out
{
    out=$("$pumice" run --addresses $block.1,$block.2 -- "$@" 2>&1)
}

# A server without a client creates its QP, and sends nothing.
cat >"$dir/server" <<'END'
#!/bin/sh
# server HOST PORT
timeout 20 pumice on "$1" -- ibv_rc_pingpong -g 0 -p "$2" >/dev/null 2>&1 &
until pumice status --host "$1" --only qps | grep -q INIT || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
kill $!
wait $! || :
END
chmod +x "$dir/server"

run sh -c '"$TMPDIR/server" 0 $port; "$TMPDIR/server" 1 $((port + 1))'
is "two programs" $? 0
has "two programs" "$out" "$told"
has "what to do" "$out" "UCX_TLS=rc_v,self"
is "one line" "$(grep -c "$told" <<<"$out")" 1
run sh -c '"$TMPDIR/server" 1 $port; "$TMPDIR/server" 1 $((port + 1))'
has "two programs on one host" "$out" "$told"
run sh -c '"$TMPDIR/server" 0 $port; "$TMPDIR/server" 1 $((port + 1)); exit 7'
is "exit code" $? 7
hasnt "a command that fails" "$out" "$told"
run sh -c '"$TMPDIR/server" 0 $port'
hasnt "one program" "$out" "$told"
run sh -c 'pumice on 0 -- ibv_devinfo; pumice on 1 -- ibv_devinfo -v'
hasnt "no queue pair" "$out" "$told"
run true
hasnt "nothing at all" "$out" "$told"
if [ -n "${SANITIZED:-}" ]; then
    skip_part "UCX: sanitizers intercept memory calls, as UCX does"
elif have "UCX looks whether it can make queue pairs" ucx_info; then
    run ucx_info -d
    hasnt "a program that makes queue pairs to see whether it can" "$out" "$told"
fi
# shellcheck disable=SC2016
run sh -c '"$TMPDIR/server" 0 $port; "$TMPDIR/server" 1 $((port + 1))
    kill -KILL $(ps -e -o pid=,args= | awk "/[p]umiced.*$0/ { print \$1 }"); sleep 0.3' "$block.2"
hasnt "a daemon that was killed" "$out" "$told"
hasnt "a daemon that was killed" "$out" "no answer"

# With traffic, between two hosts and within one.
for hosts in "0 1" "1 1"; do
    set -- $hosts
    # shellcheck disable=SC2016
    run sh -c 'pumice on $0 -- ibv_rc_pingpong -g 0 -n 10 -p $port & for i in $(seq 100); do sleep 0.1
        pumice on $1 -- ibv_rc_pingpong -g 0 -n 10 -p $port 127.0.0.1 && wait $! && exit 0; done; exit 1' "$1" "$2"
    is "pingpong" $? 0
    has "pingpong" "$out" "10 iters"
    hasnt "pingpong" "$out" "$told"
done

# UCX sets up connections by datagrams, and then uses shared memory unless UCX_TLS forbids it.
if [ -z "${SANITIZED:-}" ] && have "UCX by itself and by transports" ucx_perftest; then
    perftest()
    {
        # shellcheck disable=SC2016
        run env "$1" sh -c 'pumice on 0 -- ucx_perftest -p $port & for i in $(seq 100); do sleep 0.1
            pumice on 1 -- ucx_perftest -p $port 127.0.0.1 -t tag_lat -n 100 -w 10 && wait $! && exit 0; done; exit 1'
        is "ucx_perftest, $1" $? 0
        has "ucx_perftest, $1" "$out" "Final:"
    }
    perftest UCX_TLS=all
    has "UCX by itself" "$out" "no packet went over the connections"
    for tls in rc_v ud_v; do
        perftest UCX_TLS=$tls,self
        hasnt "UCX by $tls" "$out" "no packet"
    done
fi

# UCX loads its transports over verbs only if all their symbols are there, and prints nothing if not. It searches them beside its own
# libraries. So a copy of UCX is made here.
ucx=$(ldd "$(command -v ucx_info)" 2>/dev/null | awk '/libuc[a-z]*\.so/ { print $3 }')
if [ -n "${SANITIZED:-}" ]; then
    skip_part "UCX without its transports over verbs: sanitizers intercept memory calls, as UCX does"
elif have "UCX without its transports over verbs" cc ucx_info; then
    told="UCX can't load its transports over verbs"
    mkdir -p "$dir/lib/ucx"
    # shellcheck disable=SC2086
    cp -L $ucx "$dir/lib" && future_library "$dir/lib/ucx/libuct_ib.so.0" || fail "making a UCX"
    run ucx_info -d
    has "UCX" "$out" "Transport: rc_verbs"
    hasnt "UCX" "$out" "$told"
    export LD_LIBRARY_PATH=$dir/lib UCX_MODULE_DIR=$dir/none # by default the directory of the installation
    run ucx_info -d
    is "UCX without verbs" $? 0
    hasnt "UCX without verbs" "$out" "Transport: rc_verbs"
    has "UCX without verbs" "$out" "$told: $dir/lib/ucx/libuct_ib.so.0 imports ibv_of_the_future of IBVERBS_PRIVATE_99"
    run sh -c "ucx_info -v; exit 3"
    is "a program that fails" $? 3
    has "a program that fails" "$out" "$told"
    run sh -c '"$TMPDIR/server" 0 $port'
    hasnt "a program that makes a queue pair" "$out" "$told"
    unset LD_LIBRARY_PATH UCX_MODULE_DIR
    run true
    hasnt "where UCX can load them" "$out" "$told"
fi
exit $((failures > 0))
