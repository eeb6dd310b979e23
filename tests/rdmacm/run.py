#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs that connect by rdma_cm, between virtual hosts and within one device.

    tests/rdmacm/run.py                         the quick set, a part of `make test`
    tests/rdmacm/run.py --full                  all cases: `make test-rdmacm`
    tests/rdmacm/run.py -k rping -k ib_read     cases whose name contains one of these, or matches one as an fnmatch pattern

A failure prints the output of both sides and the command that repeats it. Exit code 1: a case failed.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e/lib"))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402
import pairs  # noqa: E402
import runner  # noqa: E402


class Runner(runner.Runner):
    script, block, settle = "tests/rdmacm/run.py", "127.0.52", 10

    def key(self, case):
        return (case.topology, case.options, case.user)

    def make_lab(self, case):
        return labs.Lab(self.build, case.topology, case.options, self.args.block, case.user)

    def perform(self, case, lab):
        if case.python:
            case.python(case, lab)
        else:
            pairs.run_pair(case, lab)


def main():
    args = Runner.parser(__doc__).parse_args()
    return Runner.main(args, [c for c in table.all_cases() if args.full or c.quick])


if __name__ == "__main__":
    sys.exit(main())
