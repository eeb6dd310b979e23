#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares Pumice with TCP where processors are scarce: beside computing processes, with a quota, with all on one processor.

    tests/bench/crowded.py               three repetitions
    tests/bench/crowded.py --quick       one repetition, fewer loads
    tests/bench/crowded.py -k stream     only some cells, by LOAD/MEASURE

The measures are UCX's own test, with Pumice (rc_v) and over TCP in turn: an 8-byte ping-pong (median, mean, and 99th percentile), a stream of
64 KiB; an allreduce of 16 ranks of Open MPI; and, with Pumice alone, a thread that polls once after each WRITE that it posts. A
ratio is the median of the ratios within each repetition; above 1 Pumice is better. The benchmark only reports: what is behind TCP is marked. The
results are also written to build/bench-crowded.json.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for folder in ("e2e/lib", "mpi"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import lab as labs  # noqa: E402
import mpi_job  # noqa: E402
import progress  # noqa: E402

SECONDS_MAX = 20  # of one measurement; what takes longer is a failure of the measure
COMPUTE = ["sh", "-c", "while :; do :; done"]
# Load: (computing processes, part of one processor that all may use together, whether all are on one processor)
LOADS = {"none": (0, None, False), "1 computes": (1, None, False), "2 compute": (2, None, False), "4 compute": (4, None, False),
         "20 compute": (20, None, False), "quota 1": (0, 1.0, False), "quota 0.5": (0, 0.5, False), "one processor": (0, None, True)}
QUICK = ("none", "1 computes", "4 compute", "quota 0.5")
# Measure: (unit, smaller is better, with TCP, too)
MEASURES = {"ping-pong 8 B, median": ("µs", True, True), "ping-pong 8 B, mean": ("µs", True, True), "ping-pong 8 B, 99 %": ("µs", True, True), "stream 64 KiB": ("MiB/s", False, True),
            "allreduce 8 B, 16 ranks": ("µs", True, True), "posts, each polled once": ("/s", False, False)}


class Quota:
    """A control group that may use a part of one processor. Needs root, and a file system of control groups (version 1 or 2)."""

    def __init__(self, part):
        two = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.path = f"/sys/fs/cgroup/{'' if two else 'cpu/'}pumice-bench-{os.getpid()}"
        limit = ("cpu.max", f"{int(part * 100000)} 100000") if two else ("cpu.cfs_quota_us", str(int(part * 100000)))
        try:
            os.mkdir(self.path)
            self._write(*limit)
            self._write("cgroup.procs", str(os.getpid()))
        except OSError as e:
            self.close()
            raise labs.Unavailable(f"no quota for this user: {e}") from None

    def _write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
            f.write(text)

    def close(self):
        """This process leaves the group. What it has started must have ended."""
        try:
            with open(os.path.join(os.path.dirname(self.path), "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
            os.rmdir(self.path)
        except OSError:
            pass


class Load:
    """The state of the machine during the measures of one row. What is started meanwhile inherits the quota and the processor."""

    def __init__(self, name):
        count, part, one = LOADS[name]
        self.before, self.computing = os.sched_getaffinity(0), []
        self.quota = Quota(part) if part else None
        if one:
            os.sched_setaffinity(0, {min(self.before)})
        # In the process group and the session of this program, so that they share the processors as programs of one terminal do.
        self.computing = [subprocess.Popen(COMPUTE, stdin=subprocess.DEVNULL) for _ in range(count)]

    def close(self):
        for process in self.computing:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, self.before)
        if self.quota:
            self.quota.close()


class Bench:
    def __init__(self, args):
        self.args, self.build = args, labs.Build(args.build)
        self.values, self.why = {}, {}  # (load, measure, "rc" or "tcp"): figures by repetition (None: it failed); the last failure

    def chosen(self):
        """The loads, with the measures of each."""
        for load in QUICK if self.args.quick else LOADS:
            measures = [m for m in MEASURES if not self.args.filter or any(f in f"{load}/{m}" for f in self.args.filter)]
            if measures:
                yield load, measures

    def run(self):
        begin = time.monotonic()
        for repetition in range(self.args.repetitions):
            progress.repetition(repetition + 1, self.args.repetitions, sum(len(m) for _, m in self.chosen()), time.monotonic() - begin)
            for load, measures in self.chosen():
                self.row(load, measures)
        progress.measure("")
        return time.monotonic() - begin

    def row(self, name, measures):
        load = lab = None
        try:
            load = Load(name)
            lab = labs.Lab(self.build, "hosts", (), self.args.block, device="pumice0")
            for measure in measures:
                for way in ("rc", "tcp") if MEASURES[measure][2] else ("rc",):
                    progress.measure(f"{name} / {measure} / {way}")
                    self.once((name, measure, way), lab)
        except (labs.Unavailable, labs.Trouble) as e:
            for measure in measures:
                self.values.setdefault((name, measure, "rc"), []).append(None)
                self.why[name, measure, "rc"] = str(e).split("\n", maxsplit=1)[0]
        finally:
            for thing in (lab, load):
                if thing is not None:
                    thing.close()

    def once(self, key, lab):
        _, measure, way = key
        try:
            if measure.startswith("allreduce"):
                figure = self.allreduce(lab, way)
            elif measure.startswith("posts"):
                figure = self.posts(lab)
            elif measure.startswith("stream"):
                figure = self.ucx(lab, way, ["-t", "tag_bw", "-s", 65536, "-n", 2000], 5)
            else:
                args = ["-t", "tag_lat", "-s", 8, "-n", 2000, "-R", 99 if "99" in measure else 50]
                figure = self.ucx(lab, way, args, 3 if "mean" in measure else 1)
        except (labs.Unavailable, labs.Trouble, OSError, ValueError, IndexError) as e:
            figure, self.why[key] = None, " ".join(str(e).split())[:300]
        self.values.setdefault(key, []).append(figure)

    def finish(self, process):
        try:
            code = process.wait(SECONDS_MAX)
            if code != 0:
                raise labs.Trouble(("took too long" if code is None else f"exit code {code}") + f": {process.line}: {process.output()[-300:]}")
            return process.output()
        finally:
            if process.alive():
                process.kill()

    def ucx(self, lab, way, args, column):
        tool, port = labs.which("ucx_perftest"), labs.tcp_port()
        env = [dict(host.env(), UCX_TLS="rc_v,self") if way == "rc" else mpi_job.TCP for host in lab.hosts]
        server = labs.Process([tool, "-p", port], {**env[0], **mpi_job.QUIET}, lab.log("server"))
        try:
            labs.wait_listening(server, port)
            client = labs.Process([tool, "-p", port, "127.0.0.1", "-w", 100, "-f", *args], {**env[1], **mpi_job.QUIET}, lab.log("client"))
            return float(self.finish(client).strip().splitlines()[-1].split()[column])
        finally:
            if server.alive():
                server.kill()

    def allreduce(self, lab, way):
        return float(self.finish(mpi_job.start(self.build, lab, way, 16, "allreduce", 8, 200)).split()[-1])

    def posts(self, lab):
        """From one device to another of the same daemon."""
        host = labs.Host(lab, "posts", f"{self.args.block}.251", (), (), [f"{self.args.block}.252"]).start()
        try:
            program = os.path.join(self.build.dir, "tests", "bench", "post_poll")
            return float(self.finish(host.run([program, 1, 1], "posts")))
        finally:
            host.stop()

    def ratio(self, load, measure):
        """How many times better than TCP; None: not measured, or without TCP."""
        pairs = [(a, b) for a, b in zip(self.values.get((load, measure, "rc"), []), self.values.get((load, measure, "tcp"), [])) if a and b]
        ratios = [b / a if MEASURES[measure][1] else a / b for a, b in pairs]
        return statistics.median(ratios) if ratios else None

    def median(self, key):
        good = [v for v in self.values.get(key, []) if v]
        return statistics.median(good) if good else None

    def print_table(self, seconds):
        print(f"{self.args.repetitions} repetitions in {seconds:.0f} s on {os.cpu_count()} CPUs, Linux {platform.release()}; medians of Pumice and TCP, "
              f"and how many times better Pumice is\n\n{'load':16}{'measure':30}{'Pumice':>12}{'TCP':>12}{'ratio':>8}")
        for load, measures in self.chosen():
            for measure in measures:
                ours, theirs, ratio = self.median((load, measure, "rc")), self.median((load, measure, "tcp")), self.ratio(load, measure)
                behind = "  behind" if ratio is not None and ratio < 1 else ""
                print(f"{load:16}{measure + ', ' + MEASURES[measure][0]:30}{number(ours):>12}{number(theirs):>12}{number(ratio):>8}{behind}")
        for key, why in self.why.items():
            print(f"failed: {' / '.join(key)}: {why}")

    def write_json(self, path, seconds):
        tree = {"cpus": os.cpu_count(), "kernel": platform.release(), "seconds": round(seconds, 1),
                "cells": [{"load": load, "measure": measure, "unit": MEASURES[measure][0], "way": way, "median": self.median((load, measure, way)), "values": values,
                           "ratio": self.ratio(load, measure), "failure": self.why.get((load, measure, way))}
                          for (load, measure, way), values in self.values.items()]}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tree, f, indent=1, ensure_ascii=False)
        print(f"\nwritten to {os.path.relpath(path)}")


def number(v):
    return "-" if v is None else f"{v:.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition, fewer loads")
    parser.add_argument("-r", "--repetitions", type=int, help="repetitions (3; with --quick 1)")
    parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only cells with TEXT in LOAD/MEASURE")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.63", metavar="A.B.C", help="addresses A.B.C.* (127.0.63)")
    args = parser.parse_args()
    args.repetitions = args.repetitions or (1 if args.quick else 3)
    bench = Bench(args)
    missing = bench.build.missing()
    if missing:
        print(f"not built: {' '.join(missing)} (run make)")
        return 2
    labs.end_when_told()
    seconds = bench.run()
    bench.print_table(seconds)
    bench.write_json(os.path.join(bench.build.dir, "bench-crowded.json"), seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
