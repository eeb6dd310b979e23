#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what idle queue pairs cost: the daemon's own memory, touched pages of their rings, the rates of creating,
connecting and destroying them, and the latency of a message between two other queue pairs.

    tests/bench/idle_qps.py [--report] [NUMBER [DEPTH]]      (65534 queue pairs of 16 requests)

Exit code: 1 if the daemon's own memory is more than is wanted, 2 if there is no result. With --report, as in `make bench`, a figure that is
missed is no failure. The results are also written to build/bench-idle.json.
"""

import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e/lib"))

import lab as labs  # noqa: E402
import verdict  # noqa: E402

WANTED = verdict.Wanted("idle RC queue pair, the daemon's own memory", 1024, at_most=True, unit="bytes")
ENOUGH = 32768  # fewer queue pairs say little: tables and the heap of the daemon grow in steps


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [int(fields[k].split()[0]) << 10 for k in ("RssAnon", "RssShmem")]


def wanted(number=0, anon=None):
    """The row of the table of wanted figures."""
    if anon is not None and number < ENOUGH:
        return WANTED.row(None, note=f"{number} queue pairs are too few")
    return WANTED.row(anon)


def measure(build, number, depth):
    """Bytes of the daemon's own and of shared memory for each queue pair, queue pairs per second (created, connected, destroyed), and the
    microseconds of a message without and with the idle ones. None: the program failed."""
    with labs.Lab(build, "device", block="127.0.60") as lab:
        with subprocess.Popen([os.path.join(build.dir, "tests", "bench", "idle_qps"), str(number), str(depth)], env=dict(os.environ, **lab.server.env()),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            begin = p.stdout.readline().split()
            if len(begin) != 2:
                return None
            before = resident(lab.server.daemon.pid)
            p.stdin.write("\n")
            p.stdin.flush()
            ready = p.stdout.readline().split()
            if len(ready) != 4:
                return None
            after = resident(lab.server.daemon.pid)
            p.stdin.close()
            destroyed = p.stdout.readline().strip()
    created, connected, idle = ready[1:]
    return [(a - b) / number for a, b in zip(after, before)], (created, connected, destroyed), (begin[1], idle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="a figure that is missed is no failure")
    # With the two that measure the latency, all of a device.
    parser.add_argument("number", type=int, nargs="?", default=65534, metavar="NUMBER", help="idle queue pairs (65534)")
    parser.add_argument("depth", type=int, nargs="?", default=16, metavar="DEPTH", help="requests of each (16)")
    args = parser.parse_args()
    build = labs.Build(labs.default_build())
    labs.end_when_told()
    result = measure(build, args.number, args.depth)
    if result is None:
        return 2
    (anon, shared), (created, connected, destroyed), (alone, idle) = result
    row = wanted(args.number, anon)
    print(f"{args.number} idle RC queue pairs of {args.depth} requests: {anon:.0f} bytes of the daemon's own memory (wanted: at most {WANTED.least}) "
          f"and {shared:.0f} of shared rings each")
    print(f"queue pairs per second: {created} created, {connected} connected, {destroyed} destroyed")
    print(f"a message between two other queue pairs takes {idle} us, and {alone} us without the idle ones")
    with open(os.path.join(build.dir, "bench-idle.json"), "w", encoding="utf-8") as f:
        json.dump({"number": args.number, "depth": args.depth, "own": anon, "shared": shared, "created": float(created), "connected": float(connected),
                   "destroyed": float(destroyed), "us": float(idle), "us_alone": float(alone), "wanted": [row]}, f, indent=1, ensure_ascii=False)
    if row["verdict"] == verdict.MISSED:
        print(f"missed: {anon:.0f} bytes", file=sys.stderr)
        return 0 if args.report else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
