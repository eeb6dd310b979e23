# SPDX-License-Identifier: BSD-2-Clause
"""Runs one module of rdma-core's pyverbs tests in this process and writes one JSON line per test to a file:
[name, "pass" | "skip" | "fail" | "error", reason].

    pyverbs_child.py TESTS_DIR MODULE OUTPUT ADDRESS [arguments of the tests: --dev --port --gid]

ADDRESS is the IP address of the device. The tests of rdma_cm would take the first one of its interface, which is another on the loopback
interface.
The line ["", "start", NAME] before each test lets the parent tell which one hung or crashed.
"""

import importlib
import json
import os
import sys
import unittest


class Recorder(unittest.TestResult):
    def __init__(self, out):
        super().__init__()
        self.out, self.recorded = out, set()

    def write(self, name, outcome, reason):
        self.out.write(json.dumps([name, outcome, reason]) + "\n")
        self.out.flush()

    def record(self, test, outcome, reason=""):
        # A test may report twice (its body, then its tearDown, or several sub-tests); the first bad news counts.
        if test.id() not in self.recorded:
            self.recorded.add(test.id())
            self.write(test.id(), outcome, reason)

    def startTest(self, test):
        super().startTest(test)
        self.write("", "start", test.id())

    def addSuccess(self, test):
        self.record(test, "pass")

    def addSkip(self, test, reason):
        self.record(test, "skip", " ".join(str(reason).split()))

    def addExpectedFailure(self, test, err):
        self.record(test, "pass", "expected failure")

    def _bad(self, test, outcome, err):
        self.record(test, outcome, self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self._bad(test, "fail", err)

    def addError(self, test, err):
        self._bad(test, "error", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(test, "fail" if issubclass(err[0], test.failureException) else "error", err)


def main():
    directory, module, output, address = sys.argv[1:5]
    sys.argv = [sys.argv[0]] + sys.argv[5:]
    os.chdir(os.path.dirname(directory))
    del sys.path[0]  # this directory has a pyverbs.py of its own
    # As their run_tests.py does: the tests import each other both as tests.base and as args_parser.
    sys.path[:0] = [os.path.dirname(directory), directory]
    from args_parser import parser
    parser.parse_args()
    base = importlib.import_module("tests.base").RDMATestCase
    if hasattr(base, "get_ip_mac_address"):  # releases without it have no tests that use an address
        base.get_ip_mac_address = staticmethod(lambda _interface: (address, "02:00:00:00:00:01"))
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module("tests." + module))
    with open(output, "a", encoding="utf-8") as out:
        suite.run(Recorder(out))


if __name__ == "__main__":
    main()
