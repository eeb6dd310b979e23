# SPDX-License-Identifier: BSD-2-Clause
"""The common part of the runners of end-to-end tests. A runner selects cases by name and runs one after the other. Cases with the same key
share a laboratory (lab.Lab). A runner prints a verdict for each case, and the command that repeats a failure. It leaves nothing behind
when it is told to end."""

import argparse
import dataclasses
import fnmatch
import os
import sys
import time

import captured
import lab as labs
import unkind_findings

COLOUR = {"ok": "32", "FAIL": "31", "skip": "33"} if sys.stdout.isatty() else {}


def matches(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def with_faults(case, spec):
    return dataclasses.replace(case, options=(*case.options, "--fault", spec, "--seed", "7"))


class Runner:
    """A case has a name, and quick (whether it is in the quick set); what else it has is the subclass's business."""

    script = None  # path from the top of the source tree, for the command that repeats a case
    block = None  # the first three numbers of the addresses of hosts, unless told otherwise
    takes_faults = True  # cases have options of the daemons
    settle = 5  # seconds after a case in which the daemons must have forgotten all objects

    def __init__(self, args):
        self.args = args
        self.build = labs.Build(args.build)
        self.build.checks = args.check
        self.findings = {}  # of the checker: the first case that has it
        self.lab, self.lab_key, self.lab_error = None, None, None
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}
        self.skipped, self.failed = [], []
        self.less_unkind = 0  # cases whose devices are not unkind in each way that was wanted

    # --- for subclasses ---

    def key(self, case):
        """Cases with the same key share daemons, as long as these are in order. None: this case wants its own."""
        raise NotImplementedError

    def make_lab(self, case):
        raise NotImplementedError

    def perform(self, case, lab):
        """Runs the case; raises lab.Trouble or lab.Unavailable if it does not pass."""
        raise NotImplementedError

    def needs_lab(self, _case):
        return True

    def perform_alone(self, case):
        """Runs a case that needs no lab."""

    def may_end_daemons(self, _case):
        return False

    # --- laboratories ---

    def kinds(self, case):
        """How unkind the devices of a case are."""
        return unkind_findings.kinds_for(self.script, case.name, self.args.unkind) if self.args.unkind else None

    def lab_for(self, case):
        key, kinds = self.key(case), self.kinds(case)
        self.build.daemon_options = ["--unkind", kinds, "--seed", self.args.seed] if kinds else []
        if key is not None:
            key = (key, kinds)
        if key is not None and key == self.lab_key:
            if self.lab_error is not None:
                raise self.lab_error
            if self.lab is not None and self.lab.alive():
                return self.lab
        self.drop_lab()
        self.lab_key = key
        try:
            self.lab = self.make_lab(case)
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

    # --- cases ---

    def run_case(self, case):
        if not self.needs_lab(case):
            self.perform_alone(case)
            return
        self.less_unkind += self.kinds(case) != self.args.unkind
        lab = self.lab_for(case)
        try:
            self.perform_captured(case, lab)
            self.keep_findings(case, lab.findings())
            if not lab.alive() and not self.may_end_daemons(case):
                raise labs.Trouble("a daemon has died")
            if self.key(case) is not None:
                lab.wait_objects_gone(self.settle)
        except labs.Trouble as e:
            daemons = "".join(f"--- daemon: {h.daemon.line}\n{h.daemon.output()[-4000:]}" for h in lab.hosts if h.daemon)
            self.drop_lab()  # what comes next shall not suffer from it
            raise labs.Trouble(f"{e}\n{daemons}") from None
        if self.key(case) is None:
            self.drop_lab()

    def keep_findings(self, case, found):
        for finding in found:
            self.findings.setdefault(finding.key(), (case.name, finding))

    def perform_captured(self, case, lab):
        """Runs the case; with --lint, its packets are captured and judged."""
        if not self.args.lint:
            self.perform(case, lab)
            return
        os.makedirs(self.args.lint, exist_ok=True)
        capture = captured.Capture(lab, self.build.pumice, os.path.join(self.args.lint, case.name.replace("/", "-") + ".pcapng"))
        try:
            self.perform(case, lab)
        finally:
            capture.end()
        capture.judge()

    def report(self, case, verdict, seconds, text=""):
        self.count[verdict] += 1
        shown = f"\033[{COLOUR[verdict]}m{verdict:4}\033[0m" if COLOUR else f"{verdict:4}"
        print(f"{shown} {case.name} ({seconds:.1f} s)" + (f": {text}" if verdict == "skip" else ""), flush=True)
        if verdict == "FAIL":
            print("    " + text.rstrip().replace("\n", "\n    "))
            extra = f" --build {self.args.build}" if self.args.build != labs.default_build() else ""
            extra += "".join(f" --{name} '{value}'" for name in ("lint", "fault") if (value := getattr(self.args, name, None)))
            kinds = self.kinds(case)
            extra += (f" --unkind {kinds} --seed {self.args.seed}" if kinds else "") + (" --check" if self.args.check else "")
            print(f"    repeat with: python3 {self.script} --full --exact{extra} -k '{case.name}'\n", flush=True)
            self.failed.append(case.name)
        if verdict == "skip":
            self.skipped.append(f"{case.name}: {text}")

    def run(self, cases):
        """Runs them; returns the exit code: 1 if any has failed, 77 (automake's for a test that was skipped) if all were skipped."""
        start = time.monotonic()
        try:
            self.run_all(cases)
        finally:
            self.drop_lab()
        for line in self.skipped:
            print(f"# skipped: {line}")  # tests/run.sh counts these
        for name in self.failed:
            print(f"failed: {name}")
        for name, finding in self.findings.values():
            print(f"finding: {name}: {finding}")
        if self.less_unkind:
            print(f"{self.less_unkind} cases ran without the kinds that their programs don't bear (tests/e2e/lib/unkind_findings.py)")
        print(f"{self.count['ok']} passed, {self.count['FAIL']} failed, {self.count['skip']} skipped in {time.monotonic() - start:.0f} s")
        if not self.count["ok"] and not self.failed:
            print("skip: " + (self.skipped[0] if self.skipped else "nothing was tested"))
            return 77
        return 1 if self.failed else 0

    def run_all(self, cases):
        for case in cases:
            begin = time.monotonic()
            verdict, text = "ok", ""
            try:
                self.run_case(case)
            except labs.Unavailable as e:
                verdict, text = "skip", str(e)
            except labs.Trouble as e:
                verdict, text = "FAIL", str(e)
            except (OSError, ValueError, KeyError) as e:
                verdict, text = "FAIL", f"{type(e).__name__}: {e}"
            self.report(case, verdict, time.monotonic() - begin, text)
            if verdict == "FAIL" and self.args.stop:
                break

    # --- the command line ---

    @classmethod
    def parser(cls, description):
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only cases with TEXT in their name")
        parser.add_argument("-x", "--exclude", action="append", default=[], metavar="TEXT", help="not these")
        parser.add_argument("--exact", action="store_true", help="-k gives whole names")
        parser.add_argument("--full", action="store_true", help="all cases instead of the quick set")
        parser.add_argument("--list", action="store_true", help="print the names and exit")
        parser.add_argument("--stop", action="store_true", help="stop at the first failure")
        parser.add_argument("--lint", metavar="DIR", help="capture the packets of each case, and let the linter judge them; the captures that it refuses stay in DIR")
        if cls.takes_faults:
            parser.add_argument("--fault", metavar="SPEC", help="the daemons of cases without faults inject these faults")
        parser.add_argument("--unkind", metavar="KINDS", help="the devices are unkind: all, or kinds with commas between")
        parser.add_argument("--seed", default="1", metavar="N", help="the seed of their decisions (1)")
        parser.add_argument("--check", action="store_true", help="check the programs' use of verbs; the findings are listed at the end, and change no verdict")
        parser.add_argument("--build", default=labs.default_build(), metavar="DIR", help="what to test (build)")
        parser.add_argument("--block", default=cls.block, metavar="A.B.C", help=f"addresses A.B.C.* for the hosts ({cls.block})")
        return parser

    @staticmethod
    def chosen(args, cases):
        """Those that the command line asks for. cases: all that its other options allow."""
        if args.exact:
            return [c for c in cases if c.name in args.filter]
        return [c for c in cases if matches(c.name, args.filter) and not (args.exclude and matches(c.name, args.exclude))]

    @classmethod
    def main(cls, args, cases):
        """All that remains to be done with the arguments and the cases; returns the exit code."""
        cases = cls.chosen(args, cases)
        if cls.takes_faults and args.fault:
            cases = [with_faults(c, args.fault) for c in cases if "--fault" not in c.options]
        if args.list:
            print("\n".join(c.name for c in cases))
            return 0
        if not cases:
            print("no case has such a name")
            return 2
        labs.end_when_told()
        runner = cls(args)
        missing = runner.build.missing()
        if missing:
            print(f"not built: {' '.join(missing)} (run make)")
            return 2
        return runner.run(cases)
