#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified MPIs over UCX on Pumice: the programs of tests/mpi with Open MPI and with MPICH, and ucx_perftest.

    tests/mpi/run.py                     the quick set
    tests/mpi/run.py --full              all cases
    tests/mpi/run.py -k openmpi/ud -k ucx     those whose name has one of these (fnmatch patterns work, too)

A failure prints the job's output and the command that repeats it. Exit code 1 if anything failed.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402
import runner  # noqa: E402


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


class Runner(runner.Runner):
    script, block, settle = "tests/mpi/run.py", "127.0.32", 30

    def key(self, case):
        return (case.hosts, case.faults)

    def make_lab(self, case):
        return labs.Lab(self.build, "hosts" if case.hosts == 2 else "device", case.options, self.args.block)

    def perform(self, case, lab):
        if case.mpi:
            check_job(case, lab, self.build)
        else:
            check_perftest(case, lab)


def main():
    args = Runner.parser(__doc__).parse_args()
    return Runner.main(args, [c for c in table.all_cases() if args.full or c.quick])


if __name__ == "__main__":
    sys.exit(main())
