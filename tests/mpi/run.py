#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified MPIs over UCX on Pumice: the programs of tests/mpi with Open MPI and with MPICH, and ucx_perftest.

    tests/mpi/run.py                     the quick set
    tests/mpi/run.py --full              all cases
    tests/mpi/run.py -k openmpi/ud -k ucx     those whose name has one of these (fnmatch patterns work, too)

A failure prints the job's output and the command that repeats it. Exit code 1 if anything failed.
"""

import argparse
import fnmatch
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402


def matches(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def packets(lab):
    """Packets that all hosts have sent so far."""
    return sum(d["counters"]["sent_pkts"] for h in lab.hosts for d in h.status()["devices"])


def environment(case, lab):
    """What a process needs to be on the lab's host of its local rank, and UCX to use this transport."""
    env = dict(lab.client_env, LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)),
               UCX_TLS=table.TRANSPORTS[case.transport])
    if case.mpi:
        env.update(table.LAUNCH[case.mpi][1])
    return env


def run_job(case, lab, build):
    """mpirun; returns its exit code (None: it did not end) and the process."""
    launcher = table.LAUNCH[case.mpi][0]
    program = os.path.join(build.dir, "tests", "mpi", case.mpi, case.program)
    mpirun = labs.which(launcher[0])
    if not os.path.exists(program):
        raise labs.Unavailable(f"{os.path.relpath(program)} is not built")
    argv = [mpirun] + launcher[1:] + ["-n", str(case.ranks), program] + list(case.args)
    process = labs.Process(argv, environment(case, lab), lab.log("mpirun"))
    lab.processes.append(process)
    code = process.wait(case.timeout)
    if code is None:
        process.kill()
    return code, process


def check_job(case, lab, build):
    before = packets(lab)
    code, process = run_job(case, lab, build)
    out = process.output()
    told = f"--- {process.line}\n{out}"
    if code is None:
        raise labs.Trouble(f"the job did not end within {case.timeout:.0f} s\n{told}")
    if case.death:
        if code == 0 or "begun" not in out or "passed" in out:
            raise labs.Trouble(f"the job should have failed after it has begun; exit code {code}\n{told}")
    elif code != 0:
        raise labs.Trouble(f"exit code {code}\n{told}")
    elif "skip: " in out:
        raise labs.Unavailable(out.partition("skip: ")[2].splitlines()[0])
    elif out.splitlines().count("passed") != 1:
        raise labs.Trouble(f"the job did not say that it passed\n{told}")
    # Wire-up alone takes some twenty packets for each rank.
    if packets(lab) - before < (10 if case.death else 100) * case.ranks:
        raise labs.Trouble(f"the job did not use the device\n{told}")


def check_perftest(case, lab):
    """Server on the first host, client on the last."""
    tool = labs.which("ucx_perftest")
    port = labs.tcp_port()
    count = 200 if case.size <= 65536 else 20
    before = packets(lab)
    # `env` is what sets the environment, so that the line that is printed repeats it.
    common = ["env", "UCX_TLS=" + table.TRANSPORTS[case.transport], tool, "-p", str(port)]
    test = ["-t", case.program, "-n", str(count), "-w", "10", "-s", str(case.size)]
    result = lab.pair(common, common + [lab.server_tcp()] + test, port, case.timeout)
    told = "".join(f"--- {who}: {p.line}\n{p.output()}" for who, p, _ in result)
    for who, process, code in reversed(result):
        if code != 0:
            raise labs.Trouble(f"the {who} " + ("did not end" if code is None else f"exited with {code}") + f"\n{told}")
        if " ERROR " in process.output():
            raise labs.Trouble(f"the {who} reports an error\n{told}")
    if "Final:" not in result[1][1].output():
        raise labs.Trouble(f"no result\n{told}")
    if packets(lab) - before < count:
        raise labs.Trouble(f"the test did not use the device\n{told}")


class Runner:
    def __init__(self, args):
        self.args, self.build = args, labs.Build(args.build)
        self.lab, self.key = None, None
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}
        self.failed = []

    def drop_lab(self):
        if self.lab is not None:
            self.lab.close()
        self.lab, self.key = None, None

    def lab_for(self, case):
        key = (case.hosts, case.faults)
        if self.lab is None or key != self.key or not self.lab.alive():
            self.drop_lab()
            self.lab = labs.Lab(self.build, "hosts" if case.hosts == 2 else "device", case.options, self.args.block)
            self.key = key
        return self.lab

    def run_case(self, case):
        lab = self.lab_for(case)
        try:
            if case.mpi:
                check_job(case, lab, self.build)
            else:
                check_perftest(case, lab)
            if not lab.alive():
                raise labs.Trouble("a daemon has died")
            lab.wait_objects_gone(30)
        except labs.Trouble as e:
            daemons = "".join(f"--- daemon: {h.daemon.line}\n{h.daemon.output()[-4000:]}" for h in lab.hosts)
            self.drop_lab()  # what comes next shall not suffer from it
            raise labs.Trouble(f"{e}\n{daemons}") from None

    def report(self, case, verdict, seconds, text):
        self.count[verdict] += 1
        print(f"{verdict:4} {case.name} ({seconds:.1f} s)" + (f": {text}" if verdict == "skip" else ""), flush=True)
        if verdict == "FAIL":
            print("    " + text.rstrip().replace("\n", "\n    "))
            extra = f" --build {self.args.build}" if self.args.build != labs.default_build() else ""
            print(f"    repeat with: python3 tests/mpi/run.py --full --exact{extra} -k '{case.name}'\n", flush=True)
            self.failed.append(case.name)

    def run(self, cases):
        start = time.monotonic()
        try:
            for case in cases:
                begin = time.monotonic()
                verdict, text = "ok", ""
                try:
                    self.run_case(case)
                except labs.Unavailable as e:
                    verdict, text = "skip", str(e)
                except (labs.Trouble, OSError, ValueError, KeyError) as e:
                    verdict, text = "FAIL", str(e) if isinstance(e, labs.Trouble) else f"{type(e).__name__}: {e}"
                self.report(case, verdict, time.monotonic() - begin, text)
                if verdict == "FAIL" and self.args.stop:
                    break
        finally:
            self.drop_lab()
        for name in self.failed:
            print(f"failed: {name}")
        print(f"{self.count['ok']} passed, {self.count['FAIL']} failed, {self.count['skip']} skipped in {time.monotonic() - start:.0f} s")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only cases with TEXT in their name")
    parser.add_argument("-x", "--exclude", action="append", default=[], metavar="TEXT", help="not these")
    parser.add_argument("--exact", action="store_true", help="-k gives whole names")
    parser.add_argument("--full", action="store_true", help="all cases instead of the quick set")
    parser.add_argument("--list", action="store_true", help="print the names and exit")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR", help="what to test (build)")
    parser.add_argument("--block", default="127.0.32", metavar="A.B.C", help="addresses A.B.C.* for the hosts (127.0.32)")
    args = parser.parse_args()

    cases = [c for c in table.all_cases() if args.full or c.quick]
    if args.exact:
        cases = [c for c in cases if c.name in args.filter]
    else:
        cases = [c for c in cases if matches(c.name, args.filter) and not (args.exclude and matches(c.name, args.exclude))]
    if args.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases:
        print("no case has such a name")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    runner = Runner(args)
    missing = runner.build.missing()
    if missing:
        print(f"not built: {' '.join(missing)} (run make)")
        return 2
    return runner.run(cases)


if __name__ == "__main__":
    sys.exit(main())
