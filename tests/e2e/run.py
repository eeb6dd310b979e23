#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""End-to-end tests: unmodified verbs programs between virtual hosts.

    tests/e2e/run.py                     the quick set
    tests/e2e/run.py --full              all cases
    tests/e2e/run.py -k faults -k ib_read     those whose name has one of these (fnmatch patterns work, too)

A failure prints the output of both sides and the command that repeats it. Exit code 1 if anything failed.
"""

import argparse
import fnmatch
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases as table  # noqa: E402
import lab as labs  # noqa: E402

COLOUR = {"ok": "32", "FAIL": "31", "skip": "33"} if sys.stdout.isatty() else {}


def matches(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def addressed(argv, port, host, build):
    """A program of a pair with its port, and its server's address if it is the client."""
    program = build.verbs_test(argv[0]) if argv[0] == "rdma_endurance" else labs.which(argv[0])
    return [program] + argv[1:] + ["-p", str(port)] + ([host] if host else [])


class Runner:
    def __init__(self, args):
        self.args = args
        self.build = labs.Build(args.build)
        self.lab, self.lab_key, self.lab_error = None, None, None
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}
        self.reasons, self.failed = {}, []

    def lab_for(self, case):
        """Cases that want the same daemons share them, as long as these are in order."""
        key = (case.topology, case.options, case.user)
        if key == self.lab_key and self.lab is not None and self.lab.alive() and not case.python:
            return self.lab
        if key == self.lab_key and self.lab_error is not None:
            raise self.lab_error
        self.drop_lab()
        self.lab_key = None if case.python else key
        try:
            self.lab = labs.Lab(self.build, case.topology, case.options, self.args.block, case.user)
        except labs.Unavailable as e:
            self.lab_error = e
            raise
        except labs.Trouble:
            self.lab_error = labs.Trouble("no hosts for this case, see the first failure of this kind")
            raise
        return self.lab

    def drop_lab(self):
        if self.lab is not None:
            self.lab.close()
        self.lab, self.lab_key, self.lab_error = None, None, None

    def run_pair(self, case, lab):
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

    def run_case(self, case):
        if not case.lab:
            case.python(self.build, self.args)
            return
        lab = self.lab_for(case)
        try:
            if case.python:
                case.python(lab, self.args.full)
            elif case.single:
                self.run_single(case, lab)
            else:
                self.run_pair(case, lab)
            if not lab.alive() and case.python not in table.MAY_KILL_DAEMON:
                raise labs.Trouble("a daemon has died")
            if not case.python:
                lab.wait_objects_gone()
        except labs.Trouble as e:
            daemons = "".join(f"--- daemon: {h.daemon.line}\n{h.daemon.output()[-4000:]}" for h in lab.hosts if h.daemon)
            self.drop_lab()  # what comes next shall not suffer from it
            raise labs.Trouble(f"{e}\n{daemons}") from None
        if case.python:
            self.drop_lab()

    def report(self, case, verdict, seconds, text=""):
        self.count[verdict] += 1
        shown = f"\033[{COLOUR[verdict]}m{verdict:4}\033[0m" if COLOUR else f"{verdict:4}"
        print(f"{shown} {case.name} ({seconds:.1f} s)" + (f": {text}" if verdict == "skip" else ""), flush=True)
        if verdict == "FAIL":
            print("    " + text.rstrip().replace("\n", "\n    "))
            extra = f" --build {self.args.build}" if self.args.build != labs.default_build() else ""
            print(f"    repeat with: python3 tests/e2e/run.py --full --exact{extra} -k '{case.name}'\n", flush=True)
            self.failed.append(case.name)
        if verdict == "skip":
            self.reasons[text] = self.reasons.get(text, 0) + 1

    def run(self, cases):
        try:
            return self.run_all(cases)
        finally:
            self.drop_lab()

    def run_all(self, cases):
        start = time.monotonic()
        for case in cases:
            begin = time.monotonic()
            try:
                self.run_case(case)
                verdict, text = "ok", ""
            except labs.Unavailable as e:
                verdict, text = "skip", str(e)
            except (labs.Trouble, OSError, ValueError, KeyError) as e:
                verdict, text = "FAIL", f"{type(e).__name__}: {e}" if not isinstance(e, labs.Trouble) else str(e)
            self.report(case, verdict, time.monotonic() - begin, text)
            if verdict == "FAIL" and self.args.stop:
                break
        for reason, n in self.reasons.items():
            print(f"skipped {n}: {reason}")
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
    parser.add_argument("--block", default="127.0.50", metavar="A.B.C", help="addresses A.B.C.* for the hosts (127.0.50)")
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
