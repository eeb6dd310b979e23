#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens and closes connections by rdma_cm, in many processes at once, with faults and sudden deaths.

    tests/soak/connections.py [--connections N] [--processes N] [--rounds N] [--seed N]

The processes are those of tests/rdmacm/churn.c. In each round, half of the connections are between two hosts and half within one device.
Some of the clients are killed in the middle. At the end of a round, the servers are killed. Then no daemon may have an object left, and its
memory must be the same as after the first round. A sanitizer keeps freed memory back, so that memory is only printed there.
"""

import argparse
import itertools
import os
import random
import re
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e/lib"), os.path.join(os.path.dirname(HERE), "rdmacm")]

import lab as labs  # noqa: E402
import pairs  # noqa: E402
import soak  # noqa: E402

FAULTS = ["--min-timeout-us", "100000", "--fault", "loss=1%,dup=1%,reorder=2%"]
SECONDS_PER_CONNECTION = 0.1  # at most, on average
MEMORY_SLACK = 4 << 20  # bytes that a daemon may grow by


class Pair:
    """A server on one host of a lab, and the processes of a client on the other."""

    def __init__(self, lab, build, connections, processes):
        self.lab, self.connections = lab, connections
        program, port = pairs.locate("churn", build), labs.tcp_port()
        self.server = lab.start(lab.server, [program, "-p", port], "server")
        pairs.wait_ready(self.server, lab.server, "cm", port)
        self.client = lab.start(lab.client, [program, "-p", port, "-s", lab.server.address, "-n", processes, "-c", connections, "-k"], "client")

    def finish(self):
        """Returns how many connections there were, and how many processes were killed."""
        code = self.client.wait(60 + self.connections * SECONDS_PER_CONNECTION)
        said = pairs.told(self.client, self.server)
        alive = self.server.alive()
        self.client.kill()
        self.server.kill()
        self.lab.processes.clear()
        if code != 0 or not alive:
            raise labs.Trouble(f"the client {'did not end' if code is None else f'exited with {code}'}; the server {'ran' if alive else 'ended'}{said}")
        found = re.search(r"^ok (\d+) connections, .* (\d+) killed", self.client.output(), re.M)
        return int(found.group(1)), int(found.group(2))


def quiet(laboratories, memory, most):
    for lab in laboratories:
        if not lab.alive():
            raise labs.Trouble("a daemon has died:\n" + "".join(h.daemon.output()[-4000:] for h in lab.hosts))
        lab.wait_objects_gone(60)
        for host in lab.hosts:
            end = time.monotonic() + 5
            while True:  # a daemon gives memory back a second later
                anon, shared = soak.Soak.resident(host)
                grown = anon - memory.setdefault(host, anon)
                if grown <= most or time.monotonic() > end:
                    break
                time.sleep(0.1)
            print(f"    {host.name} at {host.address}: {anon >> 10} KiB, {shared >> 10} KiB shared, {grown >> 10:+d} KiB since the first round", flush=True)
            if grown > most:
                raise labs.Trouble(f"the daemon at {host.address} has grown by {grown >> 10} KiB")


def run(args):
    build = labs.Build(args.build)
    faults = FAULTS + ["--seed", str(args.seed)]
    begin, total, killed, memory = time.monotonic(), 0, 0, {}
    most = float("inf") if build.sanitizers() else MEMORY_SLACK
    with labs.Lab(build, "hosts", faults, args.block) as two, labs.Lab(build, "device", faults, args.block) as one:
        for number in itertools.count():
            share, processes = args.connections // args.rounds // 2, max(args.processes // 2, 1)
            for pair in [Pair(lab, build, share, processes) for lab in (two, one)]:
                made, dead = pair.finish()
                total, killed = total + made, killed + dead
            print(f"round {number}, {time.monotonic() - begin:.0f} s: {total} connections, {killed} processes killed in the middle", flush=True)
            quiet((two, one), memory, most)
            if total >= args.connections:
                break
    print(f"{total} connections, {total / (time.monotonic() - begin):.0f} per second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=100000, help="(100000)")
    parser.add_argument("--processes", type=int, default=16, help="that connect at the same time (16)")
    parser.add_argument("--rounds", type=int, default=10, help="at least; killed processes do not make all of their connections (10)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the faults (random)")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.61", metavar="A.B.C", help="addresses for the hosts (127.0.61)")
    args = parser.parse_args()
    print(f"connections: seed {args.seed}", flush=True)
    return labs.exit_code_of(lambda: run(args), args.seed)


if __name__ == "__main__":
    sys.exit(main())
