#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""End-to-end tests: unmodified verbs programs between virtual hosts.

    tests/e2e/programs/run.py                       the quick set
    tests/e2e/programs/run.py --full                all cases
    tests/e2e/programs/run.py -k faults -k ib_read  cases whose name contains one of these, or matches one as an fnmatch pattern

A failure prints the output of both sides and the command that repeats it. Exit code 1: a case failed.
"""

import os
import sys

sys.dont_write_bytecode = True
for folder in ("../lib", "../capture"): # capture: icrc_check
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), folder))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402
import runner  # noqa: E402


def addressed(argv, port, host, build):
    """A program of a pair with its port, and its server's address if it is the client."""
    program = build.verbs_test(argv[0]) if argv[0] == "rdma_endurance" else labs.which(argv[0])
    return [program] + argv[1:] + ["-p", str(port)] + ([host] if host else [])


class Runner(runner.Runner):
    script, block = "tests/e2e/programs/run.py", "127.0.50"

    def needs_lab(self, case):
        return case.lab

    def perform_alone(self, case):
        self.keep_findings(case, case.python(self.build, self.args) or ())

    def key(self, case):
        return None if case.python else (case.topology, case.options, case.user)

    def make_lab(self, case):
        return labs.Lab(self.build, case.topology, case.options, self.args.block, case.user)

    def may_end_daemons(self, case):
        return case.python in table.MAY_KILL_DAEMON

    def perform(self, case, lab):
        if case.python:
            case.python(lab, self.args.full)
        elif case.single:
            self.run_single(case, lab)
        else:
            self.run_pair(case, lab)

    @staticmethod
    def need_own_files(case):
        """perftest has files of fixed names for its XRC domains, and leaves them behind: for others than their owner that is the end."""
        for name in ("/tmp/xrc_domain_server", "/tmp/xrc_domain_client"):
            if case.client[0].startswith("ib_") and "XRC" in case.client and os.path.exists(name) and not os.access(name, os.R_OK):
                raise labs.Unavailable(f"perftest's file {name} is another user's")

    def run_pair(self, case, lab):
        self.need_own_files(case)
        port = labs.tcp_port()
        result = lab.pair(addressed(case.server, port, None, self.build), addressed(case.client, port, lab.server_tcp(), self.build), port, case.timeout)
        text = [p.output() for _, p, _ in result]
        logs = "".join(f"--- {who}: {p.line}\n{p.output()}" for who, p, _ in result)
        try:
            # A check may find that this can't be tested here; that comes before the exit codes.
            for check in case.check:
                if check is table.timestamp_supported:
                    check(text[0], text[1], case)
            for who, _, code in reversed(result):
                if code is None:
                    raise labs.Trouble(f"the {who} did not end within {case.timeout:.0f} s")
                if code != 0:
                    raise labs.Trouble(f"the {who} exited with {code}")
            for check in case.check:
                check(text[0], text[1], case)
        except labs.Trouble as e:
            raise labs.Trouble(f"{e}\n{logs}") from None

    def run_single(self, case, lab):
        process = lab.start(lab.server, [labs.which(case.single[0])] + case.single[1:], "single")
        code = process.wait(case.timeout)
        if code != 0:
            process.kill()
            raise labs.Trouble(f"exit code {code}\n--- {process.line}\n{process.output()}")
        for check in case.check:
            check(process.output(), "", lab)


def main():
    parser = Runner.parser(__doc__)
    parser.add_argument("--alone", choices=("yes", "no"), help="only cases that need the machine alone, or none of them")
    args = parser.parse_args()
    return Runner.main(args, [c for c in table.all_cases() if (args.full or c.quick) and args.alone in (None, "yes" if c.alone else "no")])


if __name__ == "__main__":
    sys.exit(main())
