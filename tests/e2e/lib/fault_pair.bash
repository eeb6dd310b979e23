# SPDX-License-Identifier: BSD-2-Clause
# For tests of faults, after common.bash: rdma_endurance on both hosts of a lab, and the counters that faults concern.

need python3
export endurance=$BUILD/tests/verbs/rdma_endurance
port=$((24000 + $$ % 20000))

cat >"$dir/pair" <<'SH'
# PORT ARGUMENT...: runs the program on both hosts. Then NAME=VALUE of host 1 and of host 0.
port=$1
shift
pumice on 0 -- "$endurance" -p "$port" >"$dir/server" 2>&1 &
sleep 0.3
pumice on 1 -- "$endurance" -p "$port" "$@" 127.0.0.1 >"$dir/client" 2>&1 && echo client=ok
wait $! && echo server=ok
for host in 1 0; do
    pumice status --json --host $host | python3 -c 'import json, sys
for name, n in json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["counters"].items():
    if n and ("fault" in name or "rnr" in name or name in ("rx_icrc_errors", "rx_malformed")):
        print(f"host{sys.argv[1]}.{name}={n}")' $host
done
SH

# run_pair OPTION VALUE ARGUMENT...: in a lab with this option of pumice run. Sets `out`.
run_pair()
{
    port=$((port + 1))
    out=$(timeout 120 "$pumice" run --hosts 2 "$1" "$2" -- bash "$dir/pair" $port "${@:3}" 2>&1)
}

# value NAME: of a counter; 0 if the output does not have it.
value()
{
    local v
    v=$(sed -n "s/^$1=//p" <<<"$out")
    echo "${v:-0}"
}

# passes WHAT: both programs ended well.
passes()
{
    has "$1" "$out" client=ok
    has "$1" "$out" server=ok
}
