#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A service manager starts a daemon for the first client, and the daemon can't start. The client gets the reason. No client stays at the
# socket, for which the service manager would start the daemon again and again. After the cause is removed, the same socket works.
. "$(dirname "$0")/../lib/common.bash"
need python3 ibv_devices
library=$BUILD/lib/pumice/libibverbs.so.1
asan=$(ldd "$library" | awk '/libasan/ { print $3 }')
echo 'fault = "los=1%"' >"$dir/wrong.conf"

ASAN=$asan python3 - "$BUILD" "$dir" "127.51.$(($$ % 256)).9" <<'END' || fail "see above"
import fcntl, os, select, signal, socket, subprocess, sys

build, folder, address = sys.argv[1:]


def bound(name, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(folder + name)
    if kind != socket.SOCK_DGRAM:
        s.listen(16)
    return s


path = folder + "/s.sock"
listener = bound("/s.sock", socket.SOCK_SEQPACKET)
taken = socket.create_server(("127.0.0.1", 0))
failures = 0
preload = ":".join(filter(None, [os.environ["ASAN"], build + "/lib/pumice/libibverbs.so.1"]))


def check(good, *text):
    global failures
    if not good:
        print("FAIL:", *text)
        failures += 1


def client(verbs, path=path):
    env = dict(os.environ, PUMICE_SOCKET=path)
    command = [build + "/bin/pumice", "env"]
    if verbs:
        env["LD_PRELOAD"] = preload
        command = ["ibv_devices"]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def waiting(seconds, where=listener):
    return bool(select.select([where], [], [], seconds)[0])


def daemon(*options, passed=(listener,)):
    pid = os.fork()
    if pid == 0:
        copies = [fcntl.fcntl(s, fcntl.F_DUPFD, 50) for s in passed]
        for i, fd in enumerate(copies):
            os.dup2(fd, 3 + i)
            os.close(fd)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(passed)))
        os.execv(build + "/bin/pumiced", ["pumiced", *options])
    return pid


for options, code, reason in (
    (("--mtu", "77"), 2, "its command line is wrong"),
    (("--config", folder + "/wrong.conf"), 2, "wrong.conf:1: fault: column 1: unknown fault 'los'"),
    (("--address", "192.0.2.1"), 3, "192.0.2.1 is not an address of this host"),
    (("--address", address, "--socket", folder + "/other"), 4, "but the setting is socket = "),
    (("--address", address, "--metrics", str(taken.getsockname()[1])), 4, "metrics"),
):
    for verbs in False, True:
        c = client(verbs)
        check(waiting(30), options, "the client does not connect")
        status = os.waitstatus_to_exitcode(os.waitpid(daemon(*options), 0)[1])
        check(status == code, options, "exit code", status)
        check(not waiting(0), options, "somebody is left waiting")
        out = c.communicate(timeout=30)[0]
        check("the daemon can't start: " in out and reason in out, options, "the client says:", out)
        check(verbs or c.returncode != 0, options, "pumice env succeeds")

# Sockets that a service manager should not pass. Clients that wait there must not stay, either.
second = bound("/second", socket.SOCK_SEQPACKET)
stream, datagrams = bound("/stream", socket.SOCK_STREAM), bound("/datagrams", socket.SOCK_DGRAM)
for options, code, reason in (
    (("--address", address), 4, "is not one listening SOCK_SEQPACKET socket"),
    (("--mtu", "77"), 2, "its command line is wrong"),
):
    for passed in (listener, second), (stream, listener, datagrams), (stream,), (datagrams,):
        what = options, [s.getsockname() for s in passed]
        clients = [client(False, s.getsockname()) for s in passed if s in (listener, second)]
        visitor, sender = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if stream in passed:
            visitor.connect(folder + "/stream")
        if datagrams in passed:
            sender.sendto(b"hello", folder + "/datagrams")
        check(all(waiting(30, s) for s in passed), what, "nobody is there to be refused")
        status = os.waitstatus_to_exitcode(os.waitpid(daemon(*options, passed=passed), 0)[1])
        check(status == code, what, "exit code", status)
        check(not any(waiting(0, s) for s in passed), what, "somebody is left waiting")
        visitor.settimeout(10)
        check(stream not in passed or visitor.recv(1) == b"", what, "the stream is not ended")
        for c in clients:
            out = c.communicate(timeout=30)[0]
            check("the daemon can't start: " in out and reason in out, what, "the client says:", out)

# A program that waits must not be refused because others were.
c = client(True)
check(waiting(30), "the client does not connect")
pid = daemon("--address", address)
out = c.communicate(timeout=30)[0]
check("pumice0" in out, "no device:", out)
os.kill(pid, signal.SIGTERM)
check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "it does not end in order")
check(os.path.exists(path), "the daemon removed the service manager's socket")
sys.exit(failures > 0)
END

# A user who may not use a daemon gets a message that says which users may.
if [ "$(id -u)" = 0 ] && getent group nogroup >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$pumice"; then
    chmod 755 "$dir"
    "$BUILD/bin/pumiced" --socket "$dir/p.sock" --group nogroup --address "127.51.$(($$ % 256)).9" --ready-fd 3 3>"$dir/ready" 2>"$dir/log" &
    pids+=($!)
    for _ in $(seq 200); do
        [ -s "$dir/ready" ] && break
        sleep 0.05
    done
    for command in "env" "doctor"; do
        out=$(setpriv --reuid=65531 --regid=65531 --clear-groups "$pumice" $command --socket "$dir/p.sock" 2>&1)
        has "pumice $command as somebody else" "$out" "only members of the group nogroup may use this daemon"
    done
else
    skip_part "a user who may not use the daemon: not root, or others can't read the build"
fi
exit $((failures > 0))
