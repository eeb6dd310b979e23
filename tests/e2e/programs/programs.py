# SPDX-License-Identifier: BSD-2-Clause
"""Cases of more than two programs, or of a program that does not run as a pair. Like those in special.py, each gets a lab."""

import os
import signal
import subprocess
import time

import lab as labs
from special import need


def asyncwatch(lab, _full):
    """rdma-core's watcher of asynchronous events sees the end of the daemon."""
    watch = lab.start(lab.server, [labs.which("stdbuf"), "-oL", labs.which("ibv_asyncwatch")], "watch")
    watch.wait_output("async event FD", 10)
    os.kill(lab.server.daemon.pid, signal.SIGTERM)
    watch.wait_output("IBV_EVENT_DEVICE_FATAL", 5)
    watch.kill()


def xsrq_clients(lab, _full):
    """One server, three clients, each with a QP pair of its own, one shared receive queue."""
    port, clients = labs.tcp_port(), 3
    program = [labs.which("ibv_xsrq_pingpong"), "-g", "0", "-m", "1024", "-n", "200", "-p", port]
    server = lab.start(lab.server, program + ["-c", clients], "server")
    labs.wait_listening(server, port)
    others = [lab.start(lab.client, program + [lab.server_tcp()], "client") for _ in range(clients)]
    for p in [*others, server]:
        need(p.wait(30) == 0 and "\nsuccess\n" in p.output(), "ibv_xsrq_pingpong with three clients failed", *others, server)


def _example(build, name):
    program = os.path.join(build.dir, "examples", name)
    if not os.path.exists(program):
        raise labs.Unavailable(f"examples/{name} is not built")
    return program


def _run(build, *argv):
    """`pumice run` with these arguments."""
    return subprocess.run([build.pumice, "run", *argv], env=dict(os.environ, **labs.SANITIZER_ENV), capture_output=True, text=True, timeout=60,
                          check=False)


def xrc_scale(build, _args):
    """The example that counts queue pairs."""
    program = _example(build, "xrc_scale")
    for hosts, jobs in ((2, 1), (3, 4)):
        done = _run(build, "--hosts", str(hosts), "--", program, "--hosts", str(hosts), "--jobs", str(jobs))
        rc, xrc = hosts * (hosts - 1) * jobs * jobs, 2 * hosts * (hosts - 1) * jobs
        need(done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        need(f"RC: {rc:5d} queue pairs" in done.stdout and f"XRC: {xrc:4d} queue pairs" in done.stdout, f"other numbers:\n{done.stdout}")


def transpose(build, _args):
    """The example that writes rows into columns, between two hosts and within one device."""
    program = _example(build, "transpose")
    for hosts, n in ((1, 1), (1, 130), (2, 257), (2, 1024)):
        done = _run(build, "--hosts", str(hosts), "--", program, "--n", str(n))
        need(done.returncode == 0, f"{hosts} hosts, n {n}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        need(f"rank 0: {n} rows of {8 * n} bytes written" in done.stdout and f"rank 1: all {n} x {n} cells are right" in done.stdout,
             f"other words:\n{done.stdout}")
    done = _run(build, "--", program, "--n", "0")
    need(done.returncode == 2, f"--n 0: exit code {done.returncode}")


def _tagmpi(build, hosts, name, *args, options=()):
    """Runs a program of the small MPI; its table of counts, as {what: [offload on, offload off]}."""
    program = _example(build, os.path.join("tagmpi", name))
    argv = [build.pumice, "run", "--hosts", str(hosts), *options, "--", program, *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == 0, f"{argv}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    head, _, table = done.stdout.partition("who matched what (all ranks)")
    counts = {}
    for line in table.splitlines()[1:]:
        field = line.rsplit(maxsplit=2)
        if len(field) == 3 and field[1].isdigit():
            counts[field[0].strip()] = [int(n) for n in field[1:]]
    need(len(counts) == 7, f"no table of counts:\n{done.stdout}")
    off = [counts[k][1] for k in ("device, eager", "device, rendezvous", "ADDs to the device's list", "DELs", "SYNCs")]
    need(not any(off), f"the device matched with the offload off:\n{done.stdout}")
    matched = [sum(n[mode] for k, n in counts.items() if k.startswith(("device", "software"))) for mode in (0, 1)]
    need(matched[0] == matched[1] > 0, f"not as many messages both ways:\n{done.stdout}")
    return head, counts, matched[0]


def tagmpi(build, _args):
    """The three programs of the small MPI, between two hosts and on one, and what they say about who matched what."""
    for hosts in (1, 2):
        head, counts, n = _tagmpi(build, hosts, "pingpong", "--rounds", "20")
        need("4194304" in head and n >= 8 * 2 * 4 and counts["device, rendezvous"][0] > 0, f"other numbers:\n{head}{counts}")
    head, counts, n = _tagmpi(build, 2, "halo", "--ranks", "4", "--n", "40")
    need(n >= 40 * 8, f"too few messages: {counts}")
    _tagmpi(build, 2, "halo", "--ranks", "6", "--n", "7")
    _tagmpi(build, 2, "halo", "--ranks", "2", "--n", "1100")
    head, counts, n = _tagmpi(build, 2, "storm", "--ranks", "3", "--messages", "500")
    need(counts["software, as the receive was posted"][0] >= 1000, f"the storm was not unexpected: {counts}")
    need(counts["device, eager"][0] >= 900, f"the device did not match after the storm: {counts}")
    need("by the device: 0, by software" in head, f"other words:\n{head}")
    program = _example(build, os.path.join("tagmpi", "storm"))
    for args, code in ((["--ranks", "1"], 2), (["--offload", "maybe"], 2), (["--help"], 0)):
        done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60, check=False)
        need(done.returncode == code, f"{args}: exit code {done.returncode}")


def tagmpi_strict(build, _args):
    """The same programs, on devices that are as strict as adapters are."""
    strict = ("--tm-profile", "mlx5")
    _, counts, _ = _tagmpi(build, 2, "pingpong", "--rounds", "20", options=strict)
    need(counts["device, rendezvous"][0] > 0, f"the device fetched nothing: {counts}")
    _tagmpi(build, 2, "halo", "--ranks", "4", "--n", "40", options=strict)
    _tagmpi(build, 2, "storm", "--ranks", "3", "--messages", "500", options=strict)


def tagmpi_stress(build, _args):
    """A short look at what `make stress-tagmpi` does at length, with another seed each time."""
    program = os.path.join(build.dir, "tests", "tagmpi", "stress")
    _example(build, "tagmpi/storm")  # or it can't run
    seed = str(int(time.time()))
    for hosts, messages, options in ((2, 6000, ()), (1, 2000, ()), (2, 3000, ("--fault", "loss=2%,reorder=2%", "--seed", seed)),
                                     (2, 2000, ("--tm-profile", "mlx5"))):
        argv = [build.pumice, "run", "--hosts", str(hosts), *options, "--", program, "--messages", str(messages), "--seed", seed]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        need(done.returncode == 0, f"{' '.join(argv)}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        need("all as they must be" in done.stdout, f"other words:\n{done.stdout}")
        eager = next(line.split() for line in done.stdout.splitlines() if "device, eager" in line)
        need(int(eager[-2]) > messages // 20 and eager[-1] == "0", f"the device matched few, or with the offload off:\n{done.stdout}")


def _soak(build, args, name, *more):
    done = subprocess.run([os.path.join(labs.ROOT, "tests", "soak", name), *more, "--seed", "1", "--build", build.dir, "--block", args.block],
                          capture_output=True, text=True, timeout=200, check=False)
    if done.returncode == 77:
        raise labs.Unavailable(done.stdout.splitlines()[-1])
    need(done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:])


def soak(build, args):
    """A short look at what `make soak` does at length."""
    _soak(build, args, "soak.py", "--seconds", "10", "--pairs", "4")


def soak_connections(build, args):
    """A short look at what `make soak-connections` does at length."""
    _soak(build, args, "connections.py", "--connections", "800", "--rounds", "2", "--processes", "8")
