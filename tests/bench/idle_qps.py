#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what idle queue pairs cost: the daemon's own memory, touched pages of their rings, the rates of creating,
connecting and destroying them, and the latency of a message between two other queue pairs. It fails if the daemon's own
memory is more than is wanted.

    tests/bench/idle_qps.py [NUMBER [DEPTH]]      (65534 queue pairs of 16 requests)
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e/lib"))

import lab as labs  # noqa: E402


WANTED = 1024  # bytes of the daemon's own memory for each
ENOUGH = 32768  # fewer queue pairs say little: tables and the heap of the daemon grow in steps


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [int(fields[k].split()[0]) << 10 for k in ("RssAnon", "RssShmem")]


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 65534  # with the two that measure the latency, all of a device
    depth = sys.argv[2] if len(sys.argv) > 2 else "16"
    build = labs.Build(labs.default_build())
    with labs.Lab(build, "device", block="127.0.60") as lab:
        with subprocess.Popen([os.path.join(build.dir, "tests", "bench", "idle_qps"), str(number), depth], env=dict(os.environ, **lab.server.env()),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            begin = p.stdout.readline().split()
            before = resident(lab.server.daemon.pid)
            p.stdin.write("\n")
            p.stdin.flush()
            ready = p.stdout.readline().split()
            if len(begin) != 2 or len(ready) != 4:
                return 1
            after = resident(lab.server.daemon.pid)
            p.stdin.close()
            destroyed = p.stdout.readline().strip()
        anon, shared = ((a - b) / number for a, b in zip(after, before))
        created, connected, idle = ready[1:]
        print(f"{number} idle RC queue pairs of {depth} requests: {anon:.0f} bytes of the daemon's own memory (wanted: at most {WANTED}) "
              f"and {shared:.0f} of shared rings each")
        print(f"queue pairs per second: {created} created, {connected} connected, {destroyed} destroyed")
        print(f"a message between two other queue pairs takes {idle} us, and {begin[1]} us without the idle ones")
        if number >= ENOUGH and anon > WANTED:
            print(f"missed: {anon:.0f} bytes", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
