# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The common part of scripts about captures. Include it after common.bash.
lua=$root/pcap/wireshark/pumice.lua

shark() # OPTION...: tshark without personal preferences
{
    HOME=$dir XDG_CONFIG_HOME=$dir tshark "$@" 2>/dev/null
}

# dissect FILE OPTION...: with the dissector, in two passes, with comments in both; what it complains about on stderr comes last
dissect()
{
    local file=$1
    shift
    HOME=$dir XDG_CONFIG_HOME=$dir tshark -X "lua_script:$lua" -2 -R frame -r "$file" "$@" 2>"$dir/err"
    grep -vE 'Running as user|^$' "$dir/err" | head -3
}

# accepted FILE PACKETS OPTION...: the linter, with its options, finds no violation in at least so many packets, and to the dissector
# nothing is malformed. (But what a fault has damaged may be, since its opcode may have become another: then wrong=_ws.lua.error.)
wrong='_ws.malformed || _ws.lua.error'
accepted()
{
    local file=$1 least=$2 packets
    shift 2
    pumice lint "$@" "$file" >"$dir/out" || fail "$file: $(tail -6 "$dir/out")"
    packets=$(sed -n 's/.* \([0-9]*\) RoCEv2 packets.*/\1/p' "$dir/out")
    [ "${packets:-0}" -ge "$least" ] || fail "$file: only ${packets:-0} packets"
    dissect "$file" -Y "$wrong" >"$dir/out"
    [ ! -s "$dir/out" ] || fail "$file: $(head -3 "$dir/out")"
    echo "${file##*/}: $packets packets"
}
