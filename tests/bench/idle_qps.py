#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what an idle queue pair costs the daemon: private memory, and touched pages of the QP's rings.

    tests/bench/idle_qps.py [NUMBER [DEPTH]]      (4096 queue pairs of 128 requests)
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e/lib"))

import lab as labs  # noqa: E402


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [int(fields[k].split()[0]) << 10 for k in ("RssAnon", "RssShmem")]


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    depth = sys.argv[2] if len(sys.argv) > 2 else "128"
    build = labs.Build(labs.default_build())
    with labs.Lab(build, "device", block="127.0.60") as lab:
        before = resident(lab.server.daemon.pid)
        with subprocess.Popen([os.path.join(build.dir, "tests", "bench", "idle_qps"), str(number), depth], env=dict(os.environ, **lab.server.env()),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            if p.stdout.readline() != "ready\n":
                return 1
            after = resident(lab.server.daemon.pid)
            p.stdin.close()
        anon, shared = ((a - b) / number for a, b in zip(after, before))
        print(f"{number} idle RC queue pairs of {depth} requests: {anon:.0f} bytes of the daemon's own memory and {shared:.0f} of shared rings each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
