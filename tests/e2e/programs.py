# SPDX-License-Identifier: BSD-2-Clause
"""Cases of more than two programs, or of one that does not come in pairs. As in special.py, each takes a lab."""

import os
import signal
import subprocess

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
    if build.sanitizers():
        raise labs.Unavailable("pumice run preloads the library alone, not the sanitizer's")
    return program


def xrc_scale(build, _args):
    """The example that counts queue pairs."""
    program = _example(build, "xrc_scale")
    for hosts, jobs in ((2, 1), (3, 4)):
        done = subprocess.run([build.pumice, "run", "--hosts", str(hosts), "--", program, "--hosts", str(hosts), "--jobs", str(jobs)],
                              capture_output=True, text=True, timeout=60, check=False)
        rc, xrc = hosts * (hosts - 1) * jobs * jobs, 2 * hosts * (hosts - 1) * jobs
        need(done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        need(f"RC: {rc:5d} queue pairs" in done.stdout and f"XRC: {xrc:4d} queue pairs" in done.stdout, f"other numbers:\n{done.stdout}")


def transpose(build, _args):
    """The example that writes rows into columns, between two hosts and within one device."""
    program = _example(build, "transpose")
    for hosts, n in ((1, 1), (1, 130), (2, 257), (2, 1024)):
        done = subprocess.run([build.pumice, "run", "--hosts", str(hosts), "--", program, "--n", str(n)],
                              capture_output=True, text=True, timeout=60, check=False)
        need(done.returncode == 0, f"{hosts} hosts, n {n}: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
        need(f"rank 0: {n} rows of {8 * n} bytes written" in done.stdout and f"rank 1: all {n} x {n} cells are right" in done.stdout,
             f"other words:\n{done.stdout}")
    done = subprocess.run([build.pumice, "run", "--", program, "--n", "0"], capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == 2, f"--n 0: exit code {done.returncode}")


def soak(build, args):
    """A short look at what `make soak` does at length."""
    done = subprocess.run([os.path.join(labs.ROOT, "tests", "soak", "soak.py"), "--seconds", "10", "--seed", "1", "--pairs", "4", "--build", build.dir,
                           "--block", args.block], capture_output=True, text=True, timeout=200, check=False)
    if done.returncode == 77:
        raise labs.Unavailable(done.stdout.splitlines()[-1])
    need(done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:])
