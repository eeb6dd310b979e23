#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests when the client library makes the daemon the tracer of a program (PR_SET_PTRACER): only if the daemon can't reach the memory of the
# program in another way, because a program may have chosen a tracer of its own. As root, a program of another user stands for such a case.
. "$(dirname "$0")/../lib/common.bash"
need cc ibv_devinfo
library=$BUILD/lib/pumice/libibverbs.so.1
ldd "$library" | grep -q libasan && skip "a library with a sanitizer must be loaded first"
address=127.53.$(($$ % 256)).1
chmod 755 "$dir"
cc -shared -fPIC -x c - -o "$dir/spy.so" <<'C' || exit 1
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
    unsigned long a[4];
    va_list ap;

    va_start(ap, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(ap, unsigned long);
    va_end(ap);
    if (option == PR_SET_PTRACER)
        fprintf(stderr, "tracer %ld\n", (long)a[0]);
    return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}
C

start() # OPTION...: a daemon
{
    rm -f "$dir/ready"
    mkfifo "$dir/ready"
    "$BUILD/bin/pumiced" --socket "$dir/s" --address "$address" --ready-fd 3 "$@" 3>"$dir/ready" 2>"$dir/log" &
    pids=($!)
    read -r -t 20 _ <"$dir/ready" || { echo "the daemon does not start: $(cat "$dir/log")"; exit 1; }
}
stop()
{
    kill "${pids[0]}"
    wait "${pids[0]}" 2>/dev/null
    pids=()
}
devinfo() # COMMAND...: prints the tracers that the program asks for
{
    PUMICE_SOCKET=$dir/s LD_PRELOAD=$dir/spy.so:$library "$@" ibv_devinfo >"$dir/out" 2>"$dir/err" || fail "ibv_devinfo: $(cat "$dir/err")"
    has "ibv_devinfo" "$(cat "$dir/out")" "hca_id"
    grep '^tracer' "$dir/err"
}

start
is "memory by process_vm: tracers" "$(devinfo env)" ""
stop
start --memory proc_mem
is "memory by /proc/PID/mem: tracers" "$(devinfo env)" ""
stop
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid 65534 --regid 65534 --clear-groups test -r "$library"; then
    start --memory process_vm --group nogroup
    is "memory that can't be reached: tracers" "$(devinfo setpriv --reuid 65534 --regid 65534 --clear-groups)" "tracer ${pids[0]}"
    stop
else
    echo "# skipped: a program of another user: not root, or the build is not readable for others"
fi

[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))
