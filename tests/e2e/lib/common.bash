# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# The common part of the scripts of tests/e2e. They begin with
#   . "$(dirname "$0")/../lib/common.bash"
# and end with
#   exit $((failures > 0))
# It gives them
#   root, lib     the top of the source tree, and this folder
#   here          the folder of the script
#   BUILD         the build; its commands are found first
#   pumice        the command
#   dir           a directory of their own, where labs and sockets are, too. It goes in the end; so do the processes in the array pids
# and the functions below. A script with more to clean up has a function also_clean.
set -u
lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${lib%/tests/e2e/lib}
here=$(cd "$(dirname "$0")" && pwd)
BUILD=$(realpath "${BUILD:-$root/build}")
export BUILD PATH=$BUILD/bin:$PATH
pumice=$BUILD/bin/pumice
dir=$(mktemp -d) || exit 1
export dir TMPDIR=$dir
. "$lib/checks.bash"
unset XDG_RUNTIME_DIR PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS PUMICE_SPREAD
pids=()

cleanup()
{
    if [ ${#pids[@]} -gt 0 ]; then
        kill "${pids[@]}" 2>/dev/null
        wait "${pids[@]}" 2>/dev/null
    fi
    declare -F also_clean >/dev/null && also_clean
    rm -rf "$dir"
}
trap cleanup EXIT

need() # TOOL...: without one of them the script is skipped
{
    local tool
    for tool; do
        command -v "$tool" >/dev/null || skip "no $tool"
    done
}

# await_listener PORT...: until programs listen at these TCP ports, for at most 20 s each. Other shells can have it by export -f.
await_listener()
{
    local port i
    for port; do
        for ((i = 0; i < 400; i++)); do
            grep -qsE "$(printf ':%04X' "$port") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 && break
            sleep 0.05
        done
    done
}

# await_unchanged FILE: until its size has been the same for a second, for at most 20 s
await_unchanged()
{
    local size=-1 now i same=0
    for ((i = 0; i < 200 && same < 10; i++)); do
        now=$(stat -c %s "$1" 2>/dev/null)
        same=$((now == size ? same + 1 : 0)) size=$now
        sleep 0.1
    done
}

# future_library FILE: makes a shared library that imports ibv_of_the_future of IBVERBS_PRIVATE_99 from libibverbs.so.1, as libraries of a
# later rdma-core do that no Pumice knows yet
future_library()
{
    local stub
    stub=$(mktemp -d -p "$dir") || return 1
    echo 'IBVERBS_PRIVATE_99 { global: ibv_of_the_future; };' >"$stub/map"
    echo 'int ibv_of_the_future(void) { return 0; }' | cc -shared -fPIC -x c - -o "$stub/libibverbs.so.1" -Wl,-soname,libibverbs.so.1 \
        -Wl,--version-script="$stub/map" || return 1
    echo 'int ibv_of_the_future(void); int use(void) { return ibv_of_the_future(); }' | cc -shared -fPIC -x c - -x none "$stub/libibverbs.so.1" \
        -o "$1" || return 1
}

# router NET MTU: the network namespaces ${ns}a and ${ns}b, with the addresses NET.1.1 and NET.2.1 on interfaces e0 with an MTU of 9000, and
# between them ${ns}r, a router (NET.1.2 and NET.2.2) whose interface e2, towards b, has that MTU. It fails where that can't be: not as root, or without `ip`.
router()
{
    local net=$1 mtu=$2 n where interface
    [ "$(id -u)" = 0 ] && command -v ip >/dev/null || return 1
    for n in a r b; do
        ip netns add "$ns$n" 2>/dev/null && ip -n "$ns$n" link set lo up || return 1
    done
    ip -n "${ns}a" link add e0 type veth peer name e1 netns "${ns}r" 2>/dev/null || return 1
    ip -n "${ns}b" link add e0 type veth peer name e2 netns "${ns}r" || return 1
    ip -n "${ns}a" address add "$net.1.1/24" dev e0 && ip -n "${ns}r" address add "$net.1.2/24" dev e1 &&
        ip -n "${ns}b" address add "$net.2.1/24" dev e0 && ip -n "${ns}r" address add "$net.2.2/24" dev e2 || return 1
    while read -r where interface mtu; do
        ip -n "$ns$where" link set "$interface" mtu "$mtu" up || return 1
    done <<END
a e0 9000
r e1 9000
r e2 $mtu
b e0 9000
END
    ip -n "${ns}a" route add default via "$net.1.2" && ip -n "${ns}b" route add default via "$net.2.2" &&
        ip netns exec "${ns}r" sysctl -qw net.ipv4.ip_forward=1
}

no_router() # takes it away
{
    local n
    for n in a r b; do
        ip netns del "$ns$n" 2>/dev/null
    done
}
