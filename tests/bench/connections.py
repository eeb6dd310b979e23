#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures connections by rdma_cm: how many per second beside TCP, how long each step takes, and what a live connection costs.

    tests/bench/connections.py [--live N] [--repetitions N]

Each repetition measures rdma_cm between two hosts, rdma_cm within one device, and TCP, one after the other. The table shows medians. A
connection is made, carries three messages of 256 bytes there and back, and is closed. The client is one process, or four.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e/lib"), os.path.join(os.path.dirname(HERE), "rdmacm")]

import idle_qps  # noqa: E402
import lab as labs  # noqa: E402
import pairs  # noqa: E402

CONNECTIONS = {1: 1000, 4: 2000}
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy")
CMTIME_CONNECTIONS = 200


class Server:
    """A process of a lab that listens, and is killed in the end."""

    def __init__(self, lab, *argv):
        self.port = labs.tcp_port()
        self.process = lab.start(lab.server, [*argv, "-p", self.port], "server")
        pairs.wait_ready(self.process, lab.server, "cm", self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()


def client(lab, argv, seconds=120):
    process = lab.start(lab.client, argv, "client")
    code = process.wait(seconds)
    process.kill()
    if code != 0:
        raise labs.Trouble(f"exit code {code}{pairs.told(process)}")
    return process.output()


def by_rdma_cm(lab, build, processes):
    program = pairs.locate("churn", build)
    with Server(lab, program) as server:
        out = client(lab, [program, "-p", server.port, "-s", lab.server.address, "-n", processes, "-c", CONNECTIONS[processes]])
    return float(re.search(r": (\d+) per second", out).group(1))


def by_tcp(build, address, processes):
    argv = [os.path.join(build.dir, "tests", "bench", "tcp_connections"), address, str(processes), str(10 * CONNECTIONS[processes])]
    return float(subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout)


def cmtime(lab):
    """Microseconds for each step, on average of the connections."""
    with Server(lab, labs.which("cmtime")) as server:
        out = client(lab, [labs.which("cmtime"), "-p", server.port, "-s", lab.server.address, "-c", CMTIME_CONNECTIONS])
    return {step: float(re.search(rf"^{step} *:.* ([\d.]+)$", out, re.M).group(1)) for step in STEPS}


def live(lab, build, count):
    """Bytes of memory of the daemon for each live connection: its own, and shared with the program."""
    program = pairs.locate("churn", build)
    pid = lab.client.daemon.pid
    with Server(lab, program) as server:
        before = idle_qps.resident(pid)
        argv = [program, "-p", str(server.port), "-s", lab.server.address, "-n", "1", "-c", str(count), "-l", "-w"]
        with subprocess.Popen(argv, env=dict(os.environ, **lab.client.env()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            said = p.stdout.readline()
            if said != f"live {count}\n":
                raise labs.Trouble(f"no {count} connections: {said}{p.stdout.read()}{pairs.told(server.process)}")
            after = idle_qps.resident(pid)
            p.stdin.close()
            p.stdout.read()
    return [(a - b) / count for a, b in zip(after, before)]


def measure(args):
    build = labs.Build(args.build)
    with labs.Lab(build, "hosts", (), args.block) as two, labs.Lab(build, "device", (), args.block) as one:
        rates, steps = {}, []
        for _ in range(args.repetitions):
            for processes in CONNECTIONS:
                rates.setdefault(("rdma_cm between two hosts", processes), []).append(by_rdma_cm(two, build, processes))
                rates.setdefault(("rdma_cm within one device", processes), []).append(by_rdma_cm(one, build, processes))
                rates.setdefault(("TCP on loopback", processes), []).append(by_tcp(build, args.block + ".250", processes))
            steps.append(cmtime(two))
        print("connections per second         1 process   4 processes")
        for what in dict.fromkeys(what for what, _ in rates):
            print(f"    {what:26}" + "".join(f"{statistics.median(rates[what, n]):14.0f}" for n in CONNECTIONS))
        print(f"cmtime, {CMTIME_CONNECTIONS} connections between two hosts: microseconds for each connection")
        print("    " + ", ".join(f"{step} {statistics.median(s[step] for s in steps):.0f}" for step in STEPS))
        own, shared = live(two, build, args.live)
        print(f"{args.live} live connections between two hosts: {own:.0f} bytes of the daemon's own memory and {shared:.0f} of shared rings each")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", type=int, default=10000, help="connections at the same time (10000)")
    parser.add_argument("--repetitions", type=int, default=3, help="(3)")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.62", metavar="A.B.C", help="addresses for the hosts (127.0.62)")
    args = parser.parse_args()
    labs.end_when_told()
    try:
        measure(args)
    except labs.Unavailable as e:
        print(f"connections by rdma_cm: skipped: {e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
