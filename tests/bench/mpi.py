#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares an MPI on Pumice with the same MPI over TCP: latency, bandwidth, message rate, MPI_Put, allreduce.

    tests/bench/mpi.py               Open MPI and MPICH, five repetitions
    tests/bench/mpi.py --quick       Open MPI alone, three repetitions, fewer measures
    tests/bench/mpi.py -k latency    only some measures

Every repetition runs each measure on each transport in turn. So a machine that becomes slower becomes slower for all of them. The
tables show medians. A ratio is the median of the ratios within each repetition; above 1 Pumice is better. A figure below its target is
no failure. A missing figure is one: exit code 1. The results are also written to build/bench-mpi.json.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for folder in ("e2e/lib", "mpi"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402
import processors  # noqa: E402
import progress  # noqa: E402

MIB = 1 << 20
SECONDS_MAX = 60  # of one measurement; what takes longer is a failure of the measure

# Where the ranks are and what UCX takes; the last one is what the others are compared with.
TRANSPORTS = {
    "rc, 2 hosts": ("hosts", "rc_v,self"),
    "ud, 2 hosts": ("hosts", "ud_verbs,self"),
    "rc, one device": ("device", "rc_v,self"),
    "tcp": (None, "tcp,self"),
}

# Key: (what perf does, bytes, iterations, ranks, unit, smaller is better, part of --quick)
MEASURES = {
    "latency 8 B": ("latency", 8, 20000, 2, "µs", True, True),
    "latency 4 KiB": ("latency", 4096, 5000, 2, "µs", True, False),
    "latency 1 MiB": ("latency", MIB, 128, 2, "µs", True, False),
    "bandwidth 64 KiB": ("bandwidth", 65536, 6400, 2, "MiB/s", False, False),
    "bandwidth 1 MiB": ("bandwidth", MIB, 1280, 2, "MiB/s", False, True),
    "put 1 MiB": ("put", MIB, 1280, 2, "MiB/s", False, True),
    "message rate 8 B": ("rate", 8, 200000, 2, "M/s", False, True),
    "allreduce 8 B, 4 ranks": ("allreduce", 8, 1000, 4, "µs", True, False),
    "allreduce 64 KiB, 4 ranks": ("allreduce", 65536, 256, 4, "µs", True, False),
    "allreduce 8 B, 16 ranks": ("allreduce", 8, 2000, 16, "µs", True, True),
}

# Targets for Open MPI over rc between two hosts. Measure: (part of TCP's figure, whether it is an upper limit).
TARGETS = {"latency 8 B": (2.5, True), "bandwidth 1 MiB": (0.7, False), "put 1 MiB": (1.5, False), "allreduce 8 B, 16 ranks": (1.0, True)}


def measure(build, lab, mpi, tls, name):
    """One run of perf; its figure."""
    what, size, count, ranks = MEASURES[name][:4]
    launcher, env = table.LAUNCH[mpi]
    env = dict(env, UCX_TLS=tls, UCX_WARN_UNUSED_ENV_VARS="n")
    if lab is None:
        # Without these settings Open MPI uses UCX only for devices that it considers fast.
        env.update(UCX_NET_DEVICES="lo", OMPI_MCA_opal_common_ucx_tls="any", OMPI_MCA_opal_common_ucx_devices="any")
        log = os.path.join(build.dir, "bench-mpi.log")
    else:
        env.update(LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)))
        log = lab.log("perf")
    program = os.path.join(build.dir, "tests", "mpi", mpi, "perf")
    if not os.path.exists(program):
        raise labs.Unavailable(f"{os.path.relpath(program)} is not built")
    process = labs.Process([labs.which(launcher[0])] + launcher[1:] + ["-n", ranks, program, what, size, count], env, log)
    try:
        code = process.wait(SECONDS_MAX)
    finally:
        if process.alive():
            process.kill()
    if code != 0:
        raise labs.Trouble(f"{process.line}: " + ("took too long" if code is None else f"exit code {code}") + f": {process.output()[-300:]}")
    return float(process.output().split()[-1])


class Bench:
    def __init__(self, args):
        self.args, self.build = args, labs.Build(args.build)
        self.processors = processors.Processors(os.path.join(self.build.dir, "tests", "bench"))
        self.labs = {}
        self.values, self.why = {}, {}  # (mpi, measure, transport): figures by repetition (None: it failed); the last failure
        self.mpis = ["openmpi"] if args.quick else list(table.LAUNCH)
        self.names = [n for n, m in MEASURES.items() if (m[6] or not args.quick) and (not args.filter or any(f in n for f in args.filter))]

    def run(self):
        for topology in ("hosts", "device"):
            self.labs[topology] = labs.Lab(self.build, topology, (), self.args.block, spread=True)
        begin, slowest, done = time.monotonic(), 0.0, 0
        for repetition in range(self.args.repetitions):
            started = time.monotonic()
            if done and started - begin + slowest > self.args.budget:
                break
            measures = len(self.mpis) * len(self.names) * len(TRANSPORTS)
            progress.repetition(repetition + 1, self.args.repetitions, measures, started - begin)
            for mpi in self.mpis:
                for name in self.names:
                    for transport in TRANSPORTS:
                        self.once(mpi, name, transport)
            slowest = max(slowest, time.monotonic() - started)
            done += 1
        return done, time.monotonic() - begin

    def once(self, mpi, name, transport):
        where, tls = TRANSPORTS[transport]
        key = (mpi, name, transport)
        progress.measure(" / ".join(key))
        try:
            figure = self.processors.run(lambda: measure(self.build, self.labs.get(where), mpi, tls, name))
        except (labs.Unavailable, labs.Trouble, OSError, ValueError, IndexError) as e:
            figure, self.why[key] = None, " ".join(str(e).split())[:300]
        self.values.setdefault(key, []).append(figure)

    def median(self, mpi, name, transport):
        good = [v for v in self.values.get((mpi, name, transport), []) if v]
        return statistics.median(good) if good else None

    def ratio(self, mpi, name, transport):
        """Pumice's figure divided by TCP's."""
        pairs = [(a, b) for a, b in zip(self.values.get((mpi, name, transport), []), self.values.get((mpi, name, "tcp"), [])) if a and b]
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def print_tables(self, done, seconds):
        progress.measure("")
        print(f"{done} repetitions in {seconds:.0f} s on {os.cpu_count()} CPUs, Linux {platform.release()}; medians, and how many times better than TCP;\n"
              f"{self.processors.told()}")
        for mpi in self.mpis:
            print(f"\n{mpi:34}" + "".join(f"{t:>24}" for t in TRANSPORTS))
            for name in self.names:
                unit, less = MEASURES[name][4:6]
                line = f"  {name + ', ' + unit:32}"
                for transport in TRANSPORTS:
                    value, ratio = self.median(mpi, name, transport), self.ratio(mpi, name, transport)
                    text = "-" if value is None else number(value)
                    if ratio and transport != "tcp":
                        text += f"  ({number(1 / ratio if less else ratio)} ×)"
                    line += f"{text:>24}"
                print(line)
        self.print_targets()
        for key, why in self.why.items():
            print(f"failed: {' / '.join(key)}: {why}")

    def wanted(self):
        """The targets of the selected measures: name and the reached part of TCP's figure (None: not measured)."""
        return [(name, self.ratio("openmpi", name, "rc, 2 hosts")) for name in TARGETS if name in self.names]

    def print_targets(self):
        print("\nwhat is wanted of Open MPI over rc between 2 hosts, as parts of TCP's figures")
        for name, ratio in self.wanted():
            limit, at_most = TARGETS[name]
            reached = ratio is not None and (ratio <= limit if at_most else ratio >= limit)
            told = "NOT MEASURED" if ratio is None else "met" if reached else "MISSED"
            print(f"  {name:32}{'-' if ratio is None else number(ratio):>10}   {'at most' if at_most else 'at least'} {limit}   {told}")

    def write_json(self, path, done, seconds):
        tree = {"cpus": os.cpu_count(), "kernel": platform.release(), "repetitions": done, "seconds": round(seconds, 1),
                "processors": self.processors.told(),
                "measures": [{"mpi": m, "measure": n, "transport": t, "unit": MEASURES[n][4], "median": self.median(m, n, t), "values": v,
                              "of_tcp": self.ratio(m, n, t), "failure": self.why.get((m, n, t))} for (m, n, t), v in self.values.items()]}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tree, f, indent=1, ensure_ascii=False)
        print(f"\nwritten to {os.path.relpath(path)}")

    def close(self):
        for lab in self.labs.values():
            lab.close()


def number(v):
    return f"{v:.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Open MPI alone, three repetitions, fewer measures")
    parser.add_argument("-r", "--repetitions", type=int, help="repetitions (5; with --quick 3)")
    parser.add_argument("--budget", type=float, default=900, help="begin no repetition that would end after so many seconds (900)")
    parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only measures with TEXT in their name")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.61", metavar="A.B.C", help="addresses A.B.C.* (127.0.61)")
    args = parser.parse_args()
    args.repetitions = args.repetitions or (3 if args.quick else 5)
    bench = Bench(args)
    missing = bench.build.missing()
    if missing:
        print(f"not built: {' '.join(missing)} (run make)")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    try:
        done, seconds = bench.run()
        bench.print_tables(done, seconds)
        bench.write_json(os.path.join(bench.build.dir, "bench-mpi.json"), done, seconds)
    finally:
        bench.close()
    return 1 if any(ratio is None for _, ratio in bench.wanted()) else 0


if __name__ == "__main__":
    sys.exit(main())
