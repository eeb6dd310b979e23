#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified MPIs over UCX on Pumice: the programs of tests/mpi with Open MPI and with MPICH; ucx_info and ucx_perftest, fi_info and
fi_pingpong.

    tests/mpi/run.py                       the quick set
    tests/mpi/run.py --matrix              every MPI, transport, number of ranks and hosts, without and with faults
    tests/mpi/run.py --long                the daemons' memory over a thousand times MPI_Init and MPI_Finalize
    tests/mpi/run.py --full                all cases
    tests/mpi/run.py --basic               a few tests of UCX's and libfabric's tools; `make test` runs these
    tests/mpi/run.py --mpi                 a few jobs of both MPIs; `make test` runs these
    tests/mpi/run.py -k openmpi/ud -k ucx  cases whose name contains one of these, or matches one as an fnmatch pattern

A failure prints the job's output and the command that repeats it. Exit code 1: a case failed.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e/lib"))

import cases as table  # noqa: E402
import habits  # noqa: E402
import jobs  # noqa: E402
import lab as labs  # noqa: E402
import libfabric  # noqa: E402
import runner  # noqa: E402
import ucx  # noqa: E402

# The checks of cases that are not jobs which pass or die.
CHECKS = {**ucx.CHECKS, **libfabric.CHECKS, **habits.CHECKS}


class Runner(runner.Runner):
    script, block, settle = "tests/mpi/run.py", "127.0.32", 30
    takes_faults = False  # it has cases with faults

    def key(self, case):
        return (case.hosts, case.devices, case.faults, case.memory, case.user)

    def make_lab(self, case):
        return labs.Lab(self.build, case.topology, case.options, self.args.block, case.user, "pumice0", devices=case.devices)

    def perform(self, case, lab):
        CHECKS.get(case.check, jobs.check_job)(case, lab, self.build)


def main():
    parser = Runner.parser(__doc__)
    for name, text in (("basic", "the few that need no MPI"), ("mpi", "a few jobs of both MPIs"), ("matrix", "everything with everything"),
                       ("long", "a thousand jobs")):
        parser.add_argument("--" + name, action="store_true", help=text)
    args = parser.parse_args()
    chosen = next((s for s in ("basic", "matrix", "long") if getattr(args, s)), "mpi_basic" if args.mpi else "quick")
    return Runner.main(args, [c for c in table.all_cases() if args.full or getattr(c, chosen)])


if __name__ == "__main__":
    sys.exit(main())
