#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice doctor finds obstacles: on imitated machines, whose files lie below a directory, and with limits that this script sets.
. "$(dirname "$0")/../lib/common.bash"
also_clean() { [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid"; }; }

# verdict JSON CHECK: its worst verdict; mend JSON CHECK: how to mend it
verdict()
{
    python3 -c 'import json, sys
order = ["ok", "unknown", "warn", "fail"]
found = [c["verdict"] for c in json.load(sys.stdin)["checks"] if c["check"] == sys.argv[1]]
print(max(found, key=order.index) if found else "none")' "$2" <<<"$1"
}
mend()
{
    python3 -c 'import json, sys; print(" ".join(c["mend"] for c in json.load(sys.stdin)["checks"] if c["check"] == sys.argv[1]))' "$2" <<<"$1"
}

# A healthy machine.
well=$dir/well
mkdir -p "$well"/proc/{net,self,sys/kernel/yama,sys/net/core} "$well"/sys/module "$well"/sys/devices/system/clocksource/clocksource0 "$well"/dev/shm
header='  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops'
printf '%s\n' "$header" '  1: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0 0' >"$well/proc/net/udp"
echo "$header" >"$well/proc/net/udp6"
echo 0 >"$well/proc/sys/kernel/yama/ptrace_scope"
echo 4194304 >"$well/proc/sys/net/core/rmem_max"
echo tsc >"$well/sys/devices/system/clocksource/clocksource0/current_clocksource"
sick() # NAME: a copy to be made ill
{
    rm -rf "$dir/sick"
    cp -r "$well" "$dir/sick"
}
doctor() { "$pumice" doctor "$@" 2>&1; }

out=$(doctor --json --sysroot "$well")
[ $? -le 1 ] || fail "exit code"
for c in library daemon running port memfd proc_mem files; do
    is "$c of a healthy machine" "$(verdict "$out" $c)" ok
done
for c in buffers mtu firewall process_vm memlock shm clock processors; do
    [ "$(verdict "$out" $c)" != none ] || fail "$c is not checked"
done
is "librdmacm is not needed" "$(verdict "$out" rdma_cm)" ok
has "no librdmacm" "$out" "librdmacm is not installed"
text=$(doctor --sysroot "$well")
has "text" "$text" "ok    port"
has "quiet" "$(doctor --sysroot "$well" --quiet)" "Pumice"
[[ $(doctor --sysroot "$well" --quiet) != *"ok    "* ]] || fail "--quiet tells what is fine"

# librdmacm, and the rdma_cm of a kernel.
sick
mkdir -p "$dir/sick/usr/lib/x86_64-linux-gnu" "$dir/sick/dev/infiniband"
touch "$dir/sick/usr/lib/x86_64-linux-gnu/librdmacm.so.1.3.44.0"
ln -s librdmacm.so.1.3.44.0 "$dir/sick/usr/lib/x86_64-linux-gnu/librdmacm.so.1"
touch "$dir/sick/dev/infiniband/rdma_cm"
out=$(doctor --json --sysroot "$dir/sick")
has "librdmacm" "$out" "librdmacm 1.3.44.0 is installed"
has "rdma_cm of the kernel" "$out" "also has the rdma_cm of its kernel"

# soft-RoCE has the port.
sick
echo '  2: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0' >>"$dir/sick/proc/net/udp"
mkdir "$dir/sick/sys/module/rdma_rxe"
out=$(doctor --json --sysroot "$dir/sick"); is "exit code with rxe" $? 1
is "rxe" "$(verdict "$out" port)" fail
has "rxe" "$(mend "$out" port)" "modprobe -r rdma_rxe"
rmdir "$dir/sick/sys/module/rdma_rxe"
is "somebody else has it" "$(verdict "$(doctor --json --sysroot "$dir/sick")" port)" fail
sick
echo '  2: 00000000000000000000000000000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0' \
    >>"$dir/sick/proc/net/udp6"
is "IPv6 has it" "$(verdict "$(doctor --json --sysroot "$dir/sick")" port)" fail
sick
echo '  2: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0' >>"$dir/sick/proc/net/udp"
is "one address is taken" "$(verdict "$(doctor --json --sysroot "$dir/sick")" port)" ok

# Settings of the kernel.
sick
echo 212992 >"$dir/sick/proc/sys/net/core/rmem_max"
echo 1 >"$dir/sick/proc/sys/kernel/yama/ptrace_scope"
echo acpi_pm >"$dir/sick/sys/devices/system/clocksource/clocksource0/current_clocksource"
rmdir "$dir/sick/dev/shm"
out=$(doctor --json --sysroot "$dir/sick")
for c in buffers process_vm clock shm; do
    is "$c" "$(verdict "$out" $c)" warn
done
has "buffers" "$(mend "$out" buffers)" "sysctl -w net.core.rmem_max="
has "ptrace scope" "$(mend "$out" process_vm)" "kernel.yama.ptrace_scope=0"
has "shm" "$(mend "$out" shm)" "--shm-size"
doctor --strict --sysroot "$dir/sick" >/dev/null && fail "--strict: exit code"

# Limits that are really there.
out=$( (ulimit -l 64; doctor --json --sysroot "$well") )
is "memlock" "$(verdict "$out" memlock)" warn
has "memlock" "$(mend "$out" memlock)" "ulimit -l unlimited"
out=$( (ulimit -n 100; doctor --json --sysroot "$well") )
is "files" "$(verdict "$out" files)" warn
out=$(taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')" "$pumice" doctor --json --sysroot "$well")
is "one processor" "$(verdict "$out" processors)" warn

# A seccomp filter that refuses process_vm_readv, as containers have it.
case $(uname -m) in
x86_64) nr=310 ;;
aarch64) nr=270 ;;
*) nr= ;;
esac
if [ -n "$nr" ]; then
    echo "Seccomp:	2" >"$well/proc/self/status"
    out=$(python3 - $nr "$pumice" doctor --json --sysroot "$well" <<'PY'
import ctypes, os, struct, sys
nr = int(sys.argv[1])
# ld nr; if it is process_vm_readv: errno 1; else allow
code = b"".join(struct.pack("HBBI", *i) for i in [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)])
buf = ctypes.create_string_buffer(code)
class Prog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
prog = Prog(4, ctypes.addressof(buf))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(prog)) == 0
os.execv(sys.argv[2], sys.argv[2:])
PY
)
    is "seccomp" "$(verdict "$out" process_vm)" warn
    has "seccomp" "$(mend "$out" process_vm)" "--cap-add SYS_PTRACE"
    rm "$well/proc/self/status"
fi

# Firewalls, in a network namespace.
ns=pdoc$$
also_clean()
{
    ip netns del $ns 2>/dev/null
}
if [ "$(id -u)" = 0 ] && command -v nft >/dev/null && ip netns add $ns 2>/dev/null && ip -n $ns link set lo up &&
    ip netns exec $ns nft add table inet filter 2>/dev/null; then
    nft() { ip netns exec $ns nft "$@"; }
    there() { ip netns exec $ns "$pumice" doctor --json --sysroot "$well" 2>&1; }
    is "no firewall" "$(verdict "$(there)" firewall)" ok
    nft add chain inet filter input '{ type filter hook input priority 0; policy drop; }'
    out=$(there)
    is "a firewall that drops the rest" "$(verdict "$out" firewall)" warn
    has "a firewall that drops the rest" "$(mend "$out" firewall)" "udp dport 4791 accept"
    nft add rule inet filter input udp dport 4791 accept
    is "what mends it" "$(verdict "$(there)" firewall)" ok
    nft flush chain inet filter input
    nft chain inet filter input '{ policy accept; }'
    nft add rule inet filter input udp dport 4791 drop
    is "a rule that drops the port" "$(verdict "$(there)" firewall)" warn
    nft flush chain inet filter input
    nft add chain inet filter output '{ type filter hook output priority 0; }'
    nft add rule inet filter output udp dport 4791 drop
    out=$(there)
    is "sending is forbidden" "$(verdict "$out" firewall)" fail
    has "sending is forbidden" "$out" "does not let packets to UDP port 4791 leave"
else
    skip_part "firewalls: not root, no network namespaces or no nft"
fi

# A daemon that answers, and one that does not.
out=$(doctor --json --sysroot "$well" --socket "$dir/none"); is "exit code without the daemon that is asked for" $? 1
is "no daemon" "$(verdict "$out" running)" fail
mkfifo "$dir/ready"
"$BUILD/bin/pumiced" --socket "$dir/s" --address 127.48.$(($$ % 256)).1 --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
pids+=($!)
read -r -t 20 _ <"$dir/ready" || fail "the daemon does not start: $(cat "$dir/log")"
is "a daemon" "$(verdict "$(doctor --json --sysroot "$well" --socket "$dir/s")" running)" ok
has "it is not in the way" "$(doctor --socket "$dir/s")" "a daemon with 1 device answers"
# The daemon's session, and whether it matters. Without session groups in Linux, and with an imitated /proc, doctor reports nothing.
echo 1 >"$well/proc/sys/kernel/sched_autogroup_enabled"
here_now() { doctor --json --sysroot "$well" --socket "$dir/s"; }
is "a kernel without such groups" "$(verdict "$(here_now)" session)" none
# Sees a daemon in group $1 from group $2, as a shell does that becomes the command: its process number is known then.
from()
{
    mkdir -p "$well/proc/${pids[-1]}"
    echo "/autogroup-$1 nice 0" >"$well/proc/${pids[-1]}/autogroup"
    bash -c 'mkdir -p "$1/proc/$$" && echo "/autogroup-$2 nice 0" >"$1/proc/$$/autogroup" &&
        exec "$3" doctor --json --sysroot "$1" --socket "$4"' - "$well" "$2" "$pumice" "$dir/s" 2>&1
}
is "a daemon of this session" "$(verdict "$(from 7 7)" session)/$(mend "$(from 7 7)" session)" ok/
has "a daemon of another session" "$(mend "$(from 7 77)" session)" "kernel.sched_autogroup_enabled=0"
echo 0 >"$well/proc/sys/kernel/sched_autogroup_enabled"
is "sessions don't matter" "$(verdict "$(from 7 77)" session)" none
if [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ] && [ -s /proc/self/autogroup ]; then
    there_now() { setsid --wait "$pumice" doctor --json --socket "$dir/s"; }
    is "a real daemon of this session" "$(mend "$(doctor --json --socket "$dir/s")" session)" ""
    has "a real daemon of another session" "$(mend "$(there_now)" session)" "kernel.sched_autogroup_enabled=0"
else
    skip_part "real daemons in other sessions: this kernel does not schedule by session"
fi
out=$(doctor one two); has "two arguments" "$out" "takes one file at most"

# Symbols of libibverbs that libraries and programs import.
is "the libraries here" "$(verdict "$(doctor --json)" symbols)" ok
is "no libraries" "$(verdict "$(doctor --json --sysroot "$well")" symbols)" ok
if have "libraries that import more" cc ibv_devinfo; then
    out=$(doctor --json ibv_devinfo)
    is "a program of this system" "$(verdict "$out" program)" ok
    is "no such program" "$(verdict "$(doctor --json no-such-program)" program)" fail
    is "a script" "$(verdict "$(doctor --json "$0")" program)" unknown
    sick
    mkdir -p "$dir/sick/usr/lib/any-linux-gnu/"{libibverbs,ucx} "$dir/sick/etc/libibverbs.d" "$dir/sick/opt"
    future_library "$dir/sick/usr/lib/any-linux-gnu/libibverbs/libnew-rdmav99.so" || fail "making a library"
    out=$(doctor --json --sysroot "$dir/sick")
    is "a provider library" "$(verdict "$out" symbols)" warn
    has "a provider library" "$out" "libnew-rdmav99.so imports ibv_of_the_future of IBVERBS_PRIVATE_99"
    has "a provider library" "$(mend "$out" symbols)" "an older rdma-core: this client library has the versions up to IBVERBS_1.18 and IBVERBS_PRIVATE_65"
    mv "$dir/sick/usr/lib/any-linux-gnu/libibverbs/libnew-rdmav99.so" "$dir/sick/opt/libnew-rdmav99.so"
    is "no provider library" "$(verdict "$(doctor --json --sysroot "$dir/sick")" symbols)" ok
    echo "driver /opt/libnew" >"$dir/sick/etc/libibverbs.d/new.driver"
    has "a configured provider library" "$(doctor --sysroot "$dir/sick")" "/opt/libnew-rdmav99.so imports"
    mv "$dir/sick/opt/libnew-rdmav99.so" "$dir/sick/usr/lib/any-linux-gnu/ucx/libuct_ib.so.0"
    out=$(doctor --json --sysroot "$dir/sick")
    is "UCX" "$(verdict "$out" symbols)" warn
    has "UCX" "$out" "UCX can't load its transports over verbs"
    # A program whose library wants a symbol that is not there.
    future_library "$dir/libfuture.so" || fail "making a library"
    echo 'int use(void); int main(void) { return use(); }' | cc -x c - -x none "$dir/libfuture.so" -Wl,-rpath,"$dir" -Wl,--unresolved-symbols=ignore-all -o "$dir/program" ||
        fail "making a program"
    out=$(doctor --json "$dir/program"); is "exit code" $? 1
    is "a program" "$(verdict "$out" program)" fail
    has "a program" "$out" "$dir/libfuture.so imports ibv_of_the_future of IBVERBS_PRIVATE_99"
    has "the library alone" "$(doctor "$dir/libfuture.so")" "so it can't be loaded"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
