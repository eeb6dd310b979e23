#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares Pumice with TCP where processors are scarce: beside computing processes, with a quota, with all on one processor.

    tests/bench/crowded.py               three repetitions
    tests/bench/crowded.py --quick       one repetition, fewer loads
    tests/bench/crowded.py -k stream     only some cells, by LOAD/MEASURE

The measures are UCX's own test, with Pumice (rc_v) and over TCP in turn: an 8-byte ping-pong, a stream of 64 KiB; an allreduce of 16 ranks of
Open MPI; and, with Pumice alone, a thread that polls once after each WRITE that it posts. (That has no counterpart over TCP: a WRITE needs
nothing of the peer's program. Over TCP a program there reads each message, so its share of the processors would decide.)

A ratio is the median of the ratios within each repetition; above 1 Pumice is better. The verdict tells whether that is as wanted. With the load
"none" nothing is wanted. The benchmark only reports. The results are also written to build/bench-crowded.json.
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
import verdict  # noqa: E402

SECONDS_MAX = 20  # of one measurement; what takes longer is a failure of the measure
COMPUTE = ["sh", "-c", "while :; do :; done"]
# Load: (computing processes, part of one processor that all may use together, whether all are on one processor)
LOADS = {"none": (0, None, False), "1 computes": (1, None, False), "2 compute": (2, None, False), "4 compute": (4, None, False),
         "20 compute": (20, None, False), "quota 1": (0, 1.0, False), "quota 0.5": (0, 0.5, False), "one processor": (0, None, True)}
QUICK = ("none", "1 computes", "4 compute", "quota 0.5")
# Measure: (unit, smaller is better, the run that shows it, which of the run's figures it is)
MEASURES = {"ping-pong 8 B, median": ("µs", True, "ping-pong", 0), "ping-pong 8 B, mean": ("µs", True, "ping-pong", 1),
            "ping-pong 8 B, 99 %": ("µs", True, "ping-pong 99 %", 0), "stream 64 KiB": ("MiB/s", False, "stream", 0),
            "allreduce 8 B, 16 ranks, median": ("µs", True, "allreduce", 1), "allreduce 8 B, 16 ranks, mean": ("µs", True, "allreduce", 0),
            "allreduce 8 B, 16 ranks, 99 %": ("µs", True, "allreduce", 2), "posts, each polled once": ("/s", False, "posts", 0),
            "post and poll, median": ("µs", True, "posts", 1), "post and poll, 99 %": ("µs", True, "posts", 2)}
ALONE = "posts"  # the run that has no TCP side
# The least ratios that are wanted of the stream: that of earlier runs. Their ranges in MiB/s, Pumice : TCP, were 1,680-1,810 : 540-705 beside
# one computing process, 835-1,060 : 210-485 beside four, 1,500-1,820 : 121 on one processor, and 632 : 650 with half a processor. Both sides ran
# in the same minute, so a slow run of one is taken for a slow run of the other: each ratio is that of the lower ends, rounded down.
AHEAD = {"1 computes": 3.1, "4 compute": 3.9, "one processor": 12}
# The cells that have a verdict. Where processors are scarce, Pumice is wanted to be as good as TCP at least.
WANTED = {(load, measure): verdict.Wanted(f"{load}: {measure}", AHEAD.get(load, 1) if run == "stream" else 1)
          for load in LOADS for measure, (_, _, run, _) in MEASURES.items() if load != "none" and run != ALONE}


class TookTooLong(labs.Trouble):
    """A measurement did not end within SECONDS_MAX."""


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
        """This process leaves the group. All that it has started must have ended."""
        try:
            with open(os.path.join(os.path.dirname(self.path), "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
            os.rmdir(self.path)
        except OSError:
            pass


class Load:
    """The state of the machine during the measures of one row. All that is started meanwhile inherits the quota and the processor."""

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
        # (load, measure, "rc" or "tcp"): figures by repetition (None: it failed), the last failure, and whether it took too long.
        self.values, self.why, self.slow = {}, {}, set()

    def chosen(self):
        """The loads, with the measures of each."""
        for load in QUICK if self.args.quick else LOADS:
            measures = [m for m in MEASURES if not self.args.filter or any(f in f"{load}/{m}" for f in self.args.filter)]
            if measures:
                yield load, measures

    def run(self):
        begin = time.monotonic()
        for repetition in range(self.args.repetitions):
            progress.repetition(repetition + 1, self.args.repetitions, sum(len(runs_of(m)) for _, m in self.chosen()), time.monotonic() - begin)
            for load, measures in self.chosen():
                self.row(load, measures)
        progress.measure("")
        return time.monotonic() - begin

    def row(self, name, measures):
        load = lab = None
        try:
            load = Load(name)
            lab = labs.Lab(self.build, "hosts", (), self.args.block, device="pumice0")
            for run in runs_of(measures):
                for way in ("rc",) if run == ALONE else ("rc", "tcp"):
                    progress.measure(f"{name} / {run} / {way}")
                    self.once(name, run, way, [m for m in measures if MEASURES[m][2] == run], lab)
        except (labs.Unavailable, labs.Trouble) as e:
            for measure in measures:
                self.values.setdefault((name, measure, "rc"), []).append(None)
                self.why[name, measure, "rc"] = str(e).split("\n", maxsplit=1)[0]
        finally:
            for thing in (lab, load):
                if thing is not None:
                    thing.close()

    def once(self, load, run, way, measures, lab):
        """One run, and its figures for these measures."""
        figures, why, slow = None, None, False
        try:
            figures = self.figures(run, way, lab)
        except (labs.Unavailable, labs.Trouble, OSError, ValueError, IndexError) as e:
            why, slow = " ".join(str(e).split())[:300], isinstance(e, TookTooLong)
        for measure in measures:
            key = (load, measure, way)
            self.values.setdefault(key, []).append(figures[MEASURES[measure][3]] if figures else None)
            if why:
                self.why[key] = why
            if slow:
                self.slow.add(key)

    def figures(self, run, way, lab):
        if run == "allreduce":
            return [float(f) for f in self.finish(mpi_job.start(self.build, lab, way, 16, "times", 8, 200)).split()[-3:]]
        if run == ALONE:
            return self.posts(lab)
        if run == "stream":
            return self.ucx(lab, way, ["-t", "tag_bw", "-s", 65536, "-n", 2000], 5)
        return self.ucx(lab, way, ["-t", "tag_lat", "-s", 8, "-n", 2000, "-R", 99 if "99" in run else 50], 1, 3)

    def finish(self, process):
        try:
            code = process.wait(SECONDS_MAX)
            if code is None:
                raise TookTooLong(f"took longer than {SECONDS_MAX} s: {process.line}: {process.output()[-300:]}")
            if code != 0:
                raise labs.Trouble(f"exit code {code}: {process.line}: {process.output()[-300:]}")
            return process.output()
        finally:
            if process.alive():
                process.kill()

    def ucx(self, lab, way, args, *columns):
        tool, port = labs.which("ucx_perftest"), labs.tcp_port()
        env = [dict(host.env(), UCX_TLS="rc_v,self") if way == "rc" else mpi_job.TCP for host in lab.hosts]
        server = labs.Process([tool, "-p", port], {**env[0], **mpi_job.QUIET}, lab.log("server"))
        try:
            labs.wait_listening(server, port)
            client = labs.Process([tool, "-p", port, "127.0.0.1", "-w", 100, "-f", *args], {**env[1], **mpi_job.QUIET}, lab.log("client"))
            field = self.finish(client).strip().splitlines()[-1].split()
            return [float(field[c]) for c in columns]
        finally:
            if server.alive():
                server.kill()

    def posts(self, lab):
        """From one device to another of the same daemon."""
        host = labs.Host(lab, "posts", f"{self.args.block}.251", (), (), [f"{self.args.block}.252"]).start()
        try:
            program = os.path.join(self.build.dir, "tests", "bench", "post_poll")
            return [float(f) for f in self.finish(host.run([program, 1, 1], "posts")).split()]
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

    def judge(self, load, measure):
        """The row of a cell in the table of wanted figures."""
        wanted, ratio, (ours, theirs) = WANTED[load, measure], self.ratio(load, measure), [(load, measure, way) for way in ("rc", "tcp")]
        if ratio is None and self.median(ours) and theirs in self.slow:
            return wanted.row(None, verdict.MET, f"TCP takes longer than {SECONDS_MAX} s")
        if ratio is None and self.median(theirs):
            return wanted.row(None, verdict.MISSED, self.why.get(ours, "")[:60])
        return wanted.row(ratio, note="" if ratio else self.why.get(ours, "")[:60])

    def print_table(self, seconds):
        print(f"{self.args.repetitions} repetitions in {seconds:.0f} s on {os.cpu_count()} CPUs, Linux {platform.release()}; medians of Pumice and TCP, "
              f"and how many times better Pumice is\n\n{'load':16}{'measure':38}{'Pumice':>12}{'TCP':>12}{'ratio':>8}{'wanted':>8}")
        for load, measures in self.chosen():
            for measure in measures:
                figures = [self.median((load, measure, way)) for way in ("rc", "tcp")] + [self.ratio(load, measure)]
                ours, theirs, ratio = ["-" if v is None else verdict.number(v) for v in figures]
                row = self.judge(load, measure) if (load, measure) in WANTED else {}
                print(f"{load:16}{measure + ', ' + MEASURES[measure][0]:38}{ours:>12}{theirs:>12}{ratio:>8}{row.get('least', ''):>8}  "
                      f"{row.get('verdict', '')}".rstrip())
        for key, why in self.why.items():
            print(f"failed: {' / '.join(key)}: {why}")

    def write_json(self, path, seconds):
        tree = {"cpus": os.cpu_count(), "kernel": platform.release(), "seconds": round(seconds, 1),
                "cells": [{"load": load, "measure": measure, "unit": MEASURES[measure][0], "way": way, "median": self.median((load, measure, way)), "values": values,
                           "ratio": self.ratio(load, measure), "failure": self.why.get((load, measure, way))}
                          for (load, measure, way), values in self.values.items()],
                "wanted": [self.judge(*cell) for cell in WANTED]}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tree, f, indent=1, ensure_ascii=False)
        print(f"\nwritten to {os.path.relpath(path)}")


def runs_of(measures):
    """The runs that these measures need."""
    return list(dict.fromkeys(MEASURES[m][2] for m in measures))


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
