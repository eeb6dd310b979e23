#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each lab has its own TCP port for libfabric's name server, so two labs at the same time don't get each other's addresses.
. "$(dirname "$0")/../lib/common.bash"
need python3 timeout
block=127.93.$(($$ % 256)) # of loopback addresses, so that two runs at once don't meet
variable=FI_VERBS_DGRAM_NAME_SERVER_PORT
unset $variable

# As libfabric does: the first process of a lab listens on the port, the second one finds it in use. Each asks the server, which answers
# with the name of its lab.
cat >"$dir/program.py" <<'END'
import os, socket, sys, time
lab, other, host = sys.argv[1], sys.argv[2], sys.argv[3]
port = int(os.environ["FI_VERBS_DGRAM_NAME_SERVER_PORT"])
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    server.bind(("0.0.0.0", port))
    server.listen()
except OSError as error:
    sys.exit(f"{lab}: no server on port {port}: {error}")
print(f"{lab} host {host} listens on {port}", flush=True)
open(lab, "w").close()
end = time.monotonic() + 60
while not os.path.exists(other): # both servers at the same time
    if time.monotonic() > end:
        sys.exit(f"{lab}: the other lab has no server")
    time.sleep(0.01)
END

lab() # NAME OTHER ADDRESSES
{
    # shellcheck disable=SC2016
    timeout 60 "$pumice" run --addresses "$3" -- sh -c 'cd "$TMPDIR" && pumice on 1 -- sh -c "echo on $0 \$FI_VERBS_DGRAM_NAME_SERVER_PORT" &&
        pumice on 0 -- python3 program.py "$0" "$1" 0 && python3 program.py "$0" "$1" again' "$1" "$2" >"$dir/$1.out" 2>&1
}
lab first second "$block.1,$block.2" &
pids=($!)
lab second first "$block.3,$block.4"
is "the second lab" $? 0
wait "${pids[0]}"
is "the first lab" $? 0
pids=()
for l in first second; do
    out=$(<"$dir/$l.out")
    declare "$l=$(sed -n "s/^on $l //p" "$dir/$l.out")"
    has "one port for all hosts" "$out" "$l host 0 listens on ${!l}"
    has "the port stays with the lab" "$out" "$l host again listens on ${!l}"
done
[ "$first" != "$second" ] || fail "both labs have port $first"
[[ $first =~ ^[1-9][0-9]+$ ]] || fail "port '$first'"

# While the lab has the port, the kernel gives it to no program that asks for any port.
# shellcheck disable=SC2016
"$pumice" run --addresses "$block.1" -- python3 -c '
import os, socket
port = int(os.environ["FI_VERBS_DGRAM_NAME_SERVER_PORT"])
with socket.socket() as s:
    try:
        s.bind(("0.0.0.0", port))
    except OSError:
        raise SystemExit(0)
raise SystemExit(f"any program can take port {port}")' || fail "the port is not reserved"

out=$(env $variable=7000 "$pumice" run --addresses "$block.1,$block.2" -- pumice on 1 -- printenv $variable)
is "a port of the user" "$out" 7000
exit $((failures > 0))
