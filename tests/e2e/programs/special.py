# SPDX-License-Identifier: BSD-2-Clause
"""Cases that are more than a pair of programs: death, start-up errors, captures, idleness.

Cases on a lab are called with (lab, full). Cases that start their own daemons are called with (build, args). They raise lab.Trouble with
everything that is needed to understand the failure, or lab.Unavailable with the reason to skip the case.
"""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import checked
import icrc_check
import lab as labs
from lab import Trouble, Unavailable

# The verbs API's numbers
WC_WR_FLUSH_ERR = 5
WC_PEER_LOST = (9, 10, 11, 12, 13)  # REM_INV_REQ, REM_ACCESS, REM_OP, RETRY_EXC, RNR_RETRY_EXC
EVENT_DEVICE_FATAL = 8


def said(process, word):
    """The numbers in the lines of rdma_endurance that begin with the word."""
    return [[int(w) for w in line.split()[1:] if w.isdigit()] for line in process.output().splitlines() if line.startswith(word + " ")]


def need(condition, text, *processes):
    if not condition:
        raise Trouble(text + "".join(f"\n--- {p.line}\n{p.output()}" for p in processes))


# --- queries -------------------------------------------------------------------------------------------------------------

def devices_listed(out, _, lab):
    names = [line.split()[0] for line in out.splitlines()[2:] if line.strip()]
    need(names == [lab.server.device], f"ibv_devices lists {names} instead of {lab.server.device}:\n{out}")


# FLUSH and ATOMIC WRITE among the operations on on-demand regions, and in device_cap_flags_ex: ibv_devinfo has no names for them.
UNNAMED_FLAGS = ("Unknown flags: 0xC0\n", "Unknown flags: 0x14000000000\n")


def devinfo_complete(out, _, lab):
    wanted = [f"hca_id:\t{lab.server.device}", "transport:\t\t\tInfiniBand (0)", "PORT_ACTIVE (4)", "link_layer:\t\tEthernet", "RoCE v2",
              "::ffff:" + lab.server.address, "phys_port_cnt:\t\t\t1"]
    for text in wanted:
        need(text in out, f"ibv_devinfo -v does not show {text!r}:\n{out}")
    rest = out
    for text in UNNAMED_FLAGS:
        rest = rest.replace(text, "")
    need("Failed" not in rest and "Unknown" not in rest, f"ibv_devinfo -v has a surprise:\n{out}")


# --- the daemon's way to memory ------------------------------------------------------------------------------------------

def _memory_path(lab, name):
    """The forced way is what the status says, for a client that is connected."""
    server = lab.start(lab.server, [lab.build.verbs_test("rdma_endurance"), "-p", labs.tcp_port()], "server")
    client = lab.start(lab.client, [lab.build.verbs_test("rdma_endurance"), "-p", server.argv[-1], "-D", "2", lab.server_tcp()], "client") if (
        labs.wait_listening(server, int(server.argv[-1])) is None) else None
    client.wait_output("connected", 10)
    text = str(lab.client.status())
    need(name in text, f"status does not name the memory path {name}: {text}")
    other = {"process_vm": "proc_mem", "proc_mem": "process_vm"}[name]
    need(f"'{other}'" not in text, f"status names the memory path {other}, which was not allowed: {text}")
    need(client.wait(30) == 0 and server.wait(10) == 0, "the traffic failed", server, client)


def memory_path_process_vm(lab, _full):
    _memory_path(lab, "process_vm")


def memory_path_proc_mem(lab, _full):
    _memory_path(lab, "proc_mem")


# --- capture -------------------------------------------------------------------------------------------------------------

def capture_icrc(lab, _full):
    """Every packet that leaves has the right ICRC, and a Wireshark that knows nothing of us finds nothing malformed."""
    dumpcap, tshark = labs.which("dumpcap"), labs.which("tshark")
    path = os.path.join(lab.dir, "capture.pcap")
    dump = labs.Process([dumpcap, "-P", "-i", "lo", "-s", "0", "-B", "64", "-w", path, "-f", "udp port 4791"], {}, lab.log("dumpcap"), lab.server.prefix)
    lab.processes.append(dump)
    dump.wait_output("File: ", 10)
    time.sleep(0.5)  # gso = auto: the daemons see the sniffer
    program = lab.build.verbs_test("rdma_endurance")
    for number, args in enumerate((["-n", "1500", "-m", "1024"], ["-n", "600", "-m", "4096", "-r", "2"], ["-n", "600", "-m", "256", "-r", "3", "-S", "5000"])):
        port = labs.tcp_port()
        for who, process, code in lab.pair([program, "-p", port], [program] + args + ["-p", port, lab.server_tcp()], port, 60):
            need(code == 0, f"traffic {number}: the {who} exited with {code}", process)
    time.sleep(0.5)
    dump.signal(signal.SIGINT)
    dump.wait(10)
    need(re.search(r"dropped on interface 'Loopback: lo': \d+/0 ", dump.output()), "the capture lost packets", dump)
    seen, wrong, opcodes = 0, [], set()
    for frame, whole in icrc_check.frames(path):
        pair = icrc_check.icrc(frame)
        need(whole and pair is not None, f"packet {seen + 1} is cut short or no RoCE")
        seen += 1
        opcodes.add(frame[14 + (frame[14] & 15) * 4 + 8])
        if pair[0] != pair[1]:
            wrong.append(f"packet {seen}: {len(frame)} bytes, headers {frame[14:62].hex(' ', 4)}: {pair[1]:08x} instead of {pair[0]:08x}")
    need(seen > 1000, f"only {seen} RoCE packets were captured; the daemon may have sent them in large datagrams")
    need(not wrong, f"{len(wrong)} of {seen} packets have a wrong ICRC:\n" + "\n".join(wrong[:10]))
    # SEND, WRITE and READ in one and many packets, READ responses, ACK, atomics and their ACK
    missing = {0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x0a, 0x0c, 0x0d, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14} - opcodes
    need(not missing, f"opcodes that should have been captured were not: {sorted(missing)}")
    # Wireshark guesses what protocol the payload is, and this payload is random: only a packet whose innermost protocol is InfiniBand counts.
    found = subprocess.run([tshark, "-n", "-r", path, "-Y", "_ws.malformed || !infiniband", "-T", "fields", "-e", "frame.number", "-e", "frame.protocols"],
                           capture_output=True, text=True, timeout=120, check=False)
    need(found.returncode == 0, f"tshark: {found.stderr}")
    bad = [line for line in found.stdout.splitlines() if line.replace(":_ws.malformed", "").endswith((":infiniband", ":data")) or "infiniband" not in line]
    need(not bad, f"tshark finds {len(bad)} packets malformed or no RoCE:\n" + "\n".join(bad[:10]))
    return seen


# --- the command ---------------------------------------------------------------------------------------------------------

def pumice_run(build, args):
    """`pumice run --hosts 2` and `pumice on`: traffic, the exit code of the command, and nothing left behind."""
    pumice = build.pumice
    if not os.path.exists(pumice):
        raise Unavailable(f"{os.path.relpath(pumice)} is not built")
    addresses = ",".join(labs.free_addresses(args.block, 2))
    port = labs.tcp_port()
    pingpong = f"{labs.which('ibv_rc_pingpong')} -g 0 -c -p {port}"
    # The client may come before the server listens; then it tries again.
    script = (f"'{pumice}' on 0 -- {pingpong} & n=0; until '{pumice}' on 1 -- {pingpong} 127.0.0.1; do n=$((n + 1)); [ $n -lt 50 ] || exit 3; "
              f"sleep 0.1; done; wait $! && '{pumice}' status --json && exit 7")
    argv = [pumice, "run", "--hosts", "2", "--addresses", addresses, "--", "sh", "-c", script]
    out = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=_clean_env(**labs.SANITIZER_ENV), check=False)
    text = out.stdout + out.stderr
    need(out.returncode == 7, f"{' '.join(argv)}: exit code {out.returncode} instead of the command's 7\n{text}")
    need(out.stdout.count("1000 iters in") == 2 and "invalid data" not in text, f"{' '.join(argv)}: no traffic\n{text}")
    need(all(labs.address_free(a) for a in addresses.split(",")), "a daemon is left behind")


# --- death ---------------------------------------------------------------------------------------------------------------

def _endurance_pair(lab, tag, args, retry=("-t", "10", "-R", "4")):
    """Starts a pair that runs until it is stopped; returns it when traffic flows."""
    program, port = lab.build.verbs_test("rdma_endurance"), labs.tcp_port()
    server = lab.start(lab.server, [program, "-p", port, *retry], tag + ".server")
    labs.wait_listening(server, port)
    client = lab.start(lab.client, [program, "-p", port, *retry, *args, lab.server_tcp()], tag + ".client")
    client.wait_output("connected", 20)
    server.wait_output("connected", 20)
    return server, client


def kill_clients(lab, full):
    """SIGKILL in mid-transfer, by turns of the active and the passive side: the peer gets an error completion, the daemon forgets
    the dead, and an innocent pair next to them goes on with right data."""
    rounds = 200 if full else 20
    rng = random.Random(1)
    innocent = _endurance_pair(lab, "innocent", ["-D", str(rounds * 3 + 60), "-S", "16384"], retry=())
    base = [h.objects() for h in lab.hosts]
    for i in range(rounds):
        server, client = _endurance_pair(lab, "victim", ["-D", "60", "-r", str(i + 1)])
        time.sleep(rng.uniform(0, 0.1))
        victim, survivor = (client, server) if i % 2 else (server, client)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait(5)
        code = survivor.wait(15)
        counts = {line[0]: line[1] for line in said(survivor, "status")}
        need(code == 3 and any(counts.get(status) for status in WC_PEER_LOST), f"round {i}: the survivor got no error completion (exit code {code})", survivor, victim)
        # Each of 32 receive requests was outstanding at the error, or ended before it. Only an unkind device reports that later, because
        # a QP's two queues have no common order.
        ((outstanding, flushed, *_),), ((late,),) = said(survivor, "outstanding"), said(survivor, "late")
        need(late == 0 or "--unkind" in lab.build.daemon_options, f"round {i}: {late} receive requests succeeded after the error", survivor)
        need(flushed == outstanding == 32 - late, f"round {i}: the survivor's receive requests were not flushed", survivor)
        need(said(survivor, "incomplete") == [[0]], f"round {i}: the survivor's send requests did not all complete", survivor)
        need(all(p.alive() for p in innocent), f"round {i}: the innocent pair noticed", *innocent)
        _wait_objects(lab, base, f"round {i}")
        for p in (server, client):
            lab.processes.remove(p)
    innocent[1].kill()
    innocent[0].kill()
    need("wrong" not in innocent[0].output() + innocent[1].output() and "first-error" not in innocent[1].output(), "the innocent pair noticed", *innocent)
    lab.wait_objects_gone()


def _wait_objects(lab, base, when, seconds=5):
    for host, want in zip(lab.hosts, base):
        end = time.monotonic() + seconds
        while host.objects() != want:
            need(time.monotonic() < end, f"{when}: {host.name} has {host.objects()} instead of {want}")
            time.sleep(0.01)


def kill_daemon(lab, _full):
    """The daemon is killed: its clients get IBV_EVENT_DEVICE_FATAL and flushed work within a second."""
    for events in ([], ["-e"]):
        if not lab.client.daemon.alive():
            for host in lab.hosts:
                host.stop()
                host.start()
        server, client = _endurance_pair(lab, "orphan", ["-D", "60", *events], retry=())
        time.sleep(0.2)
        killed = time.monotonic() * 1000
        os.kill(lab.client.daemon.pid, signal.SIGKILL)
        orphans = [client] + ([server] if lab.client is lab.server else [])
        for p in orphans:
            need(p.wait(10) is not None, "a client of the dead daemon hangs", p)
            fatal = [line[1] for line in said(p, "event") if line[0] == EVENT_DEVICE_FATAL]
            need(fatal, "no IBV_EVENT_DEVICE_FATAL", p)
            need(fatal[0] - killed < 1000, f"IBV_EVENT_DEVICE_FATAL came {fatal[0] - killed:.0f} ms after the daemon's death", p)
            flushed = said(p, "outstanding")
            need(flushed and flushed[0][1] >= flushed[0][0], "outstanding requests were not flushed", p)
            need(flushed[0][2] - killed < 1000, f"the last flush came {flushed[0][2] - killed:.0f} ms after the daemon's death", p)
        for p in (client, server):
            p.kill()


def sleeping_daemon(lab, _full):
    """A daemon that does not run for longer than a connection's retries would take: with a longer shortest timeout (the case's option)
    nobody notices."""
    argv, port = [labs.which("ibv_xsrq_pingpong"), "-g", "0", "-m", "1024", "-n", "8000"], labs.tcp_port()
    server = lab.start(lab.server, argv + ["-p", port], "sleeping.server")
    labs.wait_listening(server, port)
    client = lab.start(lab.client, argv + ["-p", port, lab.server_tcp()], "sleeping.client")
    counter = lambda name: lab.server.status()["devices"][0]["counters"][name]  # noqa: E731
    received, before = counter("recvs"), counter("timeout_retrans")
    while counter("recvs") < received + 10:
        need(client.alive() and server.alive(), "no traffic", client, server)
    for _ in range(10):  # until it was not the client's turn to send
        lab.client.daemon.popen.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        lab.client.daemon.popen.send_signal(signal.SIGCONT)
        if counter("timeout_retrans") > before:
            break
        time.sleep(0.01)
    for p in (client, server):
        need(p.wait(80) == 0 and "success" in p.output(), "a daemon that slept broke the connection", client, server)
    need(counter("timeout_retrans") > before, "the daemon slept before there was traffic, or after it", client, server)


def stop_terminated(build, args):
    """SIGTERM: orderly end with exit code 0, the socket removed, clients told."""
    with labs.Lab(build, "device", (), args.block) as lab:
        server, client = _endurance_pair(lab, "told", ["-D", "60"], retry=())
        daemon = lab.server.daemon
        os.kill(daemon.pid, signal.SIGTERM)
        code = daemon.wait(5)
        need(code == 0, f"exit code {code} after SIGTERM", daemon)
        need(not os.path.exists(lab.server.socket), "the control socket is still there")
        for p in (server, client):
            need(p.wait(5) is not None and "event" in p.output(), "a client was not told", p)


# --- idleness ------------------------------------------------------------------------------------------------------------

def _needs_sleep(lab, what):
    """The daemons sleep, but for the watchdog, which wakes up once a second. The clock ticks of /proc/PID/stat say less: the kernel counts
    a whole tick for whoever it meets, and may meet the watchdog."""
    time.sleep(1.3)  # the thread that watches calls looks around for a second after the last one
    before = [h.daemon.cpu_use() for h in lab.hosts]
    time.sleep(3)
    for host, (ns, turns) in zip(lab.hosts, before):
        now_ns, now_turns = host.daemon.cpu_use()
        need(now_turns - turns <= 12, f"a daemon with {what} woke up {now_turns - turns} times in 3 s")
        need(now_ns - ns < 10e6, f"a daemon with {what} ran for {(now_ns - ns) / 1e6:.1f} ms in 3 s")


def idle_cpu(lab, _full):
    _needs_sleep(lab, "no clients")


def idle_cpu_with_clients(lab, _full):
    """Servers that wait for their peers, and one that has traffic behind it, post nothing: that costs nothing."""
    port = labs.tcp_port()
    pingpong = [labs.which("ibv_rc_pingpong"), "-g", "0", "-p", port]
    for who, process, code in lab.pair(pingpong, pingpong + [lab.server_tcp()], port, 30):
        need(code == 0, f"the {who} exited with {code}", process)
    for tag in ("one", "two"):
        port = labs.tcp_port()
        labs.wait_listening(lab.start(lab.server, [labs.which("ib_write_bw"), "-F", "-x", "0", "-p", port], tag), port)
    _needs_sleep(lab, "two waiting clients")


# --- pyverbs -------------------------------------------------------------------------------------------------------------

def pyverbs(build, args, *more):
    """rdma-core's own tests, against the expectation in pyverbs.expected. Returns the findings of the checker."""
    here = os.path.dirname(os.path.abspath(__file__))
    unkind = ["--unkind", args.unkind, "--seed", args.seed] if args.unkind else []
    out = subprocess.run(["/usr/bin/python3", os.path.join(here, "pyverbs.py"), "--build", build.dir, "--block", args.block,
                          *["--check"] * args.check, *unkind, *more], capture_output=True, text=True, timeout=600, check=False)
    if out.returncode == 77:
        raise Unavailable(out.stdout.strip().removeprefix("skip: "))
    need(out.returncode == 0, out.stdout + out.stderr)
    return checked.parse(out.stdout)


def pyverbs_strict(build, args):
    """Those for tag matching, on a device that is as strict as the adapters they were written for."""
    return pyverbs(build, args, "--daemon-option=--tm-profile=mlx5", "test_tag_matching")


def pyverbs_wire(build, args):
    """All of them, with the way within a device leading through the socket."""
    return pyverbs(build, args, "--daemon-option=--loopback=wire")


# --- without a daemon ----------------------------------------------------------------------------------------------------

def _scratch():
    return tempfile.TemporaryDirectory(prefix="pumice-e2e-")


def _clean_env(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PUMICE_") and k != "LD_PRELOAD"}
    env.update(more)
    return env


def no_daemon(build, _args):
    """No devices, one hint, and nothing more."""
    with _scratch() as scratch:
        env = _clean_env(LD_PRELOAD=build.preload(), PUMICE_SOCKET=os.path.join(scratch, "none.sock"), **labs.SANITIZER_ENV)
        out = subprocess.run([labs.which("ibv_devices")], env=env, capture_output=True, text=True, timeout=20, check=False)
        need(out.returncode == 0 and len(out.stdout.splitlines()) <= 2, f"ibv_devices: exit code {out.returncode}\n{out.stdout}{out.stderr}")
        hint = [line for line in out.stderr.splitlines() if line.strip()]
        need(len(hint) == 1 and "none.sock" in hint[0], f"one hint with the socket's name was to be on stderr, and there is:\n{out.stderr}")
        out = subprocess.run([labs.which("ibv_rc_pingpong"), "-g", "0"], env=env, capture_output=True, text=True, timeout=20, check=False)
        need(out.returncode == 1 and "No IB devices found" in out.stderr, f"ibv_rc_pingpong: exit code {out.returncode}\n{out.stderr}")


def loading_is_silent(build, _args):
    """A program that never calls verbs: no output, no thread, no descriptor, no connection."""
    script = "ls /proc/self/task | wc -l; ls -l /proc/self/fd | grep -c socket; true"
    with _scratch() as scratch:
        path = os.path.join(scratch, "listen.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(path)
            s.listen(1)
            s.setblocking(False)
            env = _clean_env(LD_PRELOAD=build.preload(), PUMICE_SOCKET=path, **labs.SANITIZER_ENV)
            out = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, timeout=20, check=False)
            need(out.stdout.split() == ["1", "0"] and out.stderr == "", f"threads, sockets: {out.stdout}stderr: {out.stderr}")
            try:
                s.accept()
                raise Trouble("loading the library connects to the daemon")
            except BlockingIOError:
                pass


# --- starting ------------------------------------------------------------------------------------------------------------

def _start_fails(argv, words, code, seconds=10):
    out = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, env=_clean_env(), check=False)
    text = out.stdout + out.stderr
    need(out.returncode == code, f"{' '.join(argv)}: exit code {out.returncode} instead of {code}\n{text}")
    for word in words:
        need(word in text, f"{' '.join(argv)}: the message does not say {word!r}:\n{text}")
    need("Sanitizer" not in text and len(text.splitlines()) <= 4, f"{' '.join(argv)}: this should be one clear message:\n{text}")


def start_port_busy(build, args):
    (address,) = labs.free_addresses(args.block, 1)
    with _scratch() as scratch, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((address, labs.ROCE_PORT))
        _start_fails([build.pumiced, "--socket", os.path.join(scratch, "s.sock"), "--device", "d0=" + address], [address, "4791"], 3)
        need(not os.listdir(scratch), f"files left behind: {os.listdir(scratch)}")


def start_bad_address(build, _args):
    with _scratch() as scratch:
        _start_fails([build.pumiced, "--socket", os.path.join(scratch, "s.sock"), "--device", "d0=192.0.2.77"], ["192.0.2.77"], 3)
        _start_fails([build.pumiced, "--socket", os.path.join(scratch, "s.sock"), "--device", "d0=not-an-address"], ["not-an-address"], 2)


def start_bad_socket(build, args):
    (address,) = labs.free_addresses(args.block, 1)
    with _scratch() as scratch:
        missing = os.path.join(scratch, "missing", "deep", "s.sock")
        argv = [build.pumiced, "--socket", missing, "--device", "d0=" + address]
        _start_fails(argv, [missing], 4)
        closed = os.path.join(scratch, "closed")
        os.mkdir(closed, 0o500)
        if os.geteuid() == 0:
            nobody = [labs.which("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
            daemon = shutil.copy(build.pumiced, scratch)
            os.chmod(scratch, 0o755)
            os.chmod(daemon, 0o755)
        else:
            nobody, daemon = [], build.pumiced
        path = os.path.join(closed, "s.sock")
        _start_fails(nobody + [daemon, "--socket", path, "--device", "d0=" + address], [path], 4)
        os.chmod(closed, 0o700)
        _start_fails([build.pumiced, "--socket", os.path.join(scratch, "x" * 120), "--device", "d0=" + address], ["socket"], 2)


def start_bad_option(build, _args):
    for option, value in (("--gso", "maybe"), ("--memory", "magic"), ("--loopback", "moon"), ("--fault", "loss=150%"), ("--fault", "rain=5%"), ("--device", "x")):
        _start_fails([build.pumiced, option, value], [value.partition("=")[0]], 2)
    _start_fails([build.pumiced, "--no-such-option"], ["no-such-option"], 2)


def start_second(build, args):
    """Two daemons on one control socket: the second says so, the first goes on; a stale socket of a dead one is no obstacle."""
    with labs.Lab(build, "device", (), args.block) as lab:
        (address,) = labs.free_addresses(args.block, 1)
        _start_fails([build.pumiced, "--socket", lab.server.socket, "--device", "d1=" + address], [lab.server.socket], 4)
        need(lab.server.status() is not None, "the first daemon does not answer any more")
        os.kill(lab.server.daemon.pid, signal.SIGKILL)
        lab.server.daemon.wait(5)
        need(os.path.exists(lab.server.socket), "a killed daemon can't have removed its socket")
        lab.server.start()
        lab.server.status()
