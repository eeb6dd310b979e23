#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Wireshark reads messages of connection management as wire/cm_msg.c writes them: each field that tshark or our dissector knows has the
# value that was written, and no packet is malformed.
# Usage: cm_tshark.sh [cm_gen program]. Exit code 77: tshark or python3 is missing.
set -eu

here=$(dirname "$0")
gen=${1:-${BUILD:-$here/../../../build}/tests/e2e/capture/cm_gen}
for tool in tshark python3; do
    command -v $tool >/dev/null || { echo "skip: no $tool"; exit 77; }
done
lua=$here/../../../pcap/wireshark/pumice.lua
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$gen" "$dir/cm.pcapng" >"$dir/expected"
fields=$(awk '{ print $2 }' "$dir/expected" | sort -u)
set --
for field in $fields; do
    set -- "$@" -e "$field"
done
# HOME: no personal preferences.
HOME=$dir tshark -X "lua_script:$lua" -r "$dir/cm.pcapng" -T fields "$@" >"$dir/got" 2>"$dir/stderr"
wrong=$(HOME=$dir tshark -X "lua_script:$lua" -r "$dir/cm.pcapng" -Y '_ws.malformed || _ws.short || _ws.lua.error' 2>/dev/null)
[ -z "$wrong" ] || { echo "cm_tshark: tshark complains about: $wrong" >&2; exit 1; }
python3 - "$dir/expected" "$dir/got" $fields <<'PYTHON'
import ipaddress, sys

def number(text):
    try:
        return int(text.replace("True", "1").replace("False", "0"), 0)
    except ValueError:
        return ipaddress.ip_address(text)

names = sys.argv[3:]
packets = [dict(zip(names, line.rstrip("\n").split("\t"))) for line in open(sys.argv[2])]
checked = bad = 0
for line in open(sys.argv[1]):
    packet, name, value = line.split()
    got = packets[int(packet) - 1][name]
    checked += 1
    if got == "" or number(got) != number(value):
        bad += 1
        print(f"packet {packet}: {name} is {value}, tshark reads '{got}'", file=sys.stderr)
print(f"{checked} fields of {len(packets)} messages agree" if not bad else f"{bad} of {checked} fields differ")
sys.exit(bad > 0)
PYTHON
