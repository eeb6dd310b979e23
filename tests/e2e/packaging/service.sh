#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon works with what the systemd units leave it. It reaches the memory of programs of its own user. It reaches the memory of other
# users by the descriptors that their programs pass. As root, the daemon and the program run as two other users without capabilities.
. "$(dirname "$0")/../lib/common.bash"
units=$root/packaging/systemd
block=127.51.$(($$ % 256))
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
chmod 755 "$dir"

# Each system call that the daemon lives by is one that the units allow: in one of the sets that they name, in none that they take away.
if have "system calls that the units allow" systemd-analyze; then
    calls() # SET: the calls in it
    {
        systemd-analyze syscall-filter "$1" 2>/dev/null | sed 's/#.*//' | awk '$1 ~ /^@/ && NR > 1 { print $1 } $1 ~ /^[a-z]/ { print $1 }' |
            while read -r call; do
                case $call in
                "$1") ;;
                @*) calls "$call" ;;
                *) echo "$call" ;;
                esac
            done
    }
    for unit in system user; do
        file=$units/$unit/pumiced.service.in
        allowed=$(sed -n 's/^SystemCallFilter=@/@/p' "$file" | tr ' ' '\n' | while read -r s; do calls "$s"; done)
        denied=$(sed -n 's/^SystemCallFilter=~//p' "$file" | tr ' ' '\n' | while read -r s; do calls "$s"; done)
        [ "$(echo "$allowed" | wc -l)" -gt 100 ] || { fail "$unit: what do $(grep SystemCallFilter "$file") allow?"; continue; }
        for call in process_vm_readv process_vm_writev pread64 pwrite64 preadv pwritev memfd_create mmap fcntl sendmmsg recvmmsg sendmsg recvmsg \
            setsockopt epoll_wait epoll_ctl eventfd2 timerfd_create timerfd_settime sched_yield clone futex getrandom pidfd_open openat unlink; do
            echo "$allowed" | grep -qx "$call" || fail "$unit: $call is in no set that is allowed"
            echo "$denied" | grep -qx "$call" && fail "$unit: $call is taken away"
        done
        # The user's unit relies on the filter for what the system's unit has settings for.
        for call in clock_settime settimeofday adjtimex init_module finit_module delete_module syslog sethostname setdomainname mount pivot_root \
            chroot bpf capset ioperm kexec_load reboot ptrace perf_event_open; do
            echo "$allowed" | grep -qx "$call" && ! echo "$denied" | grep -qx "$call" && fail "$unit: $call is allowed"
        done
    done
    # In a user namespace of its own, the daemon could not reach the memory of any program. Without /proc/PID it could not open mem there.
    grep -qE '^(PrivateUsers=(yes|true)|DynamicUser=)' "$units"/*/*.service.in && fail "a user namespace"
    # In the user's unit nothing may need one, either: without privileges, systemd makes one for what changes the file system.
    grep -E '^(Private(Tmp|Devices|Mounts)|Protect(System|Home|Proc|KernelTunables|ControlGroups)|Read(Only|Write)Paths|TemporaryFileSystem)=' \
        "$units/user/pumiced.service.in" && fail "the user's unit has settings for which systemd makes a user namespace"
fi

# traffic AS SOCKET: 200 messages that the program checks itself
traffic()
{
    local preload=${asan:+$asan:}$library
    "$@" env LD_PRELOAD="$preload" PUMICE_SOCKET="$dir/s/s" sh -c 'ibv_rc_pingpong -c -p '$port' -g 0 -n 100 >/dev/null & s=$!
        for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; ibv_rc_pingpong -c -p '$port' -g 0 -n 100 127.0.0.1 && wait $s && exit; done; kill $s; exit 1' 2>&1
}
memory() # the ways of the sessions that are there
{
    "$pumice" status --json --socket "$dir/s/s" | python3 -c 'import json, sys
print(*{s["memory"] for s in json.load(sys.stdin)["hosts"][0]["status"]["devices"][0]["sessions"]})'
}
start() # LAUNCHER... -- OPTION...
{
    local before=()
    while [ "$1" != -- ]; do
        before+=("$1")
        shift
    done
    shift
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    "${before[@]}" "$BUILD/bin/pumiced" --socket "$dir/s/s" --address "$block.1" --log-level info --ready-fd 3 "$@" 3>"$dir/ready" 2>"$dir/log" &
    pids=($!)
    read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }
}
stop()
{
    kill "${pids[@]}"
    wait "${pids[@]}"
    pids=()
    rm -f "$dir/s/s"
}
port=$((21000 + $$ % 20000))
need ibv_rc_pingpong setpriv
mkdir "$dir/s"

# The user's unit: no new privileges.
start setpriv --no-new-privs --
out=$(traffic setpriv --no-new-privs) || fail "a user's own: $out"
has "a user's own" "$(cat "$dir/log")" "memory by process_vm"
stop

# The system's: a user of its own, no capability; the program is another's, in the group.
if [ "$(id -u)" = 0 ] && getent group nogroup >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$BUILD/bin/pumiced" &&
    setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$library"; then
    gid=$(getent group nogroup | cut -d: -f3)
    chown 65533:"$gid" "$dir/s"
    chmod 755 "$dir/s"
    none="--bounding-set=-all --inh-caps=-all --no-new-privs"
    # shellcheck disable=SC2086
    start setpriv --reuid=65533 --regid="$gid" --clear-groups $none -- --group nogroup
    # shellcheck disable=SC2086
    out=$(traffic setpriv --reuid=65532 --regid="$gid" --clear-groups $none) || fail "another user's: $out"
    has "another user's" "$(cat "$dir/log")" "uid 65532, memory by proc_mem"
    out=$(traffic setpriv --reuid=65531 --regid=65531 --clear-groups $none) && fail "a user who is not in the group gets in"
    stop
else
    skip_part "the system's unit: not root, or others can't read the build"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
