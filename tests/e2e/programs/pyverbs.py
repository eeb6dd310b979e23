#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs rdma-core's pyverbs tests, as Debian's python3-pyverbs package ships them, with our library.

    tests/e2e/programs/pyverbs.py                 run all modules, compare with pyverbs.expected
    tests/e2e/programs/pyverbs.py test_qp         only these modules
    tests/e2e/programs/pyverbs.py --write         make the results the expectation (then review the difference)

pyverbs.expected has one line per test: name, outcome, and for a skipped test its reason. Every difference is a failure.
"""

import argparse
import gzip
import json
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import lab as labs  # noqa: E402
import unkind_findings  # noqa: E402

SOURCES = ("/usr/share/doc/rdma-core/tests", "/usr/share/doc/python3-pyverbs/tests")
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyverbs.expected")
CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyverbs_child.py")
PYTHON = "/usr/bin/python3"  # the one that Debian's extension modules are made for

MODULES = ("test_addr", "test_device", "test_pd", "test_mr", "test_cq", "test_cqex", "test_cq_events", "test_qp", "test_qpex", "test_atomic", "test_odp",
           "test_fork", "test_parent_domain", "test_relaxed_ordering", "test_shared_pd", "test_tag_matching", "test_flow", "test_rss_traffic", "test_rdmacm")
# Reasons to skip that lie in the machine or its user (huge pages, a GPU, root), not in our library: such a test may have another reason elsewhere.
MACHINE_REASONS = ("huge pages", "dmabuf", "must be done by root", "Must be run by root")
HEADER = """# The outcome of each pyverbs test of Debian's rdma-core 44 with our library: name, outcome, reason of a skip.
# Made by tests/e2e/programs/pyverbs.py --write and then reviewed; any difference is a failure.
"""


def unpack(target):
    """The tests, uncompressed, in target/tests. Makes them anew each time: nothing old can be left."""
    source = next((s for s in SOURCES if os.path.exists(os.path.join(s, "args_parser.py"))), None)
    if source is None:
        raise labs.Unavailable("no pyverbs tests on this machine (Debian: python3-pyverbs)")
    directory = os.path.join(target, "tests")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for name in os.listdir(source):
        path = os.path.join(source, name)
        if name.endswith(".gz"):
            with gzip.open(path, "rb") as f, open(os.path.join(directory, name[:-3]), "wb") as out:
                shutil.copyfileobj(f, out)
        elif name.endswith(".py"):
            shutil.copy(path, directory)
    return directory


def run_module(lab, tests, module, seconds):
    """Results of a module: name -> (outcome, reason). A test that hangs or crashes is one that failed, and those after it did not run."""
    output = lab.log(module + ".json")
    open(output, "w", encoding="utf-8").close()
    argv = [PYTHON, CHILD, tests, module, output, lab.server.address, "--dev", lab.server.device, "--port", "1", "--gid", "0"]
    process = lab.start(lab.server, argv, module)
    code = process.wait(seconds)
    if code is None:
        process.kill()
    results, running = {}, None
    with open(output, encoding="utf-8") as f:
        for name, outcome, reason in map(json.loads, f):
            if outcome == "start":
                running = reason
            else:
                results[name] = (outcome, reason)
                running = None if name == running else running
    if code != 0:
        what = f"no end after {seconds} s" if code is None else f"exit code {code}"
        results[running or f"tests.{module}"] = ("hang" if code is None else "crash", f"{what}\n{process.output()[-3000:]}")
    return results, process.line


def read_expected(path):
    expected = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, outcome, *reason = line.rstrip("\n").split(" ", 2)
                expected[name] = (outcome, reason[0] if reason else "")
    return expected


def write_expected(path, results):
    with open(path, "w", encoding="utf-8") as f:
        f.write(HEADER)
        for name in sorted(results):
            outcome, reason = results[name]
            f.write(f"{name} {outcome}{' ' + reason if outcome == 'skip' else ''}\n")


def compare(results, expected):
    """Lines that say how results differ from what was expected."""
    lines = []
    for name in sorted(set(results) | set(expected)):
        got, want = results.get(name, ("not run", "")), expected.get(name, ("unknown", ""))
        machine = any(reason in text[1] for text in (got, want) for reason in MACHINE_REASONS)
        if got[0] != want[0] or (got[0] == "skip" and got[1] != want[1] and not machine):
            lines.append(f"{name}: expected {want[0]} {want[1]}, got {got[0]} {got[1]}".rstrip())
    return lines


def run(args):
    build = labs.Build(args.build)
    build.checks = args.check
    if build.missing():
        print(f"not built: {' '.join(build.missing())} (run make)")
        return 2
    begin = time.monotonic()
    expected = read_expected(EXPECTED) if os.path.exists(EXPECTED) else {}
    modules = args.modules or MODULES
    results, lines, checks = {}, {}, {}
    unkind = ["--unkind", args.unkind, "--seed", args.seed] if args.unkind else []
    with labs.Lab(build, "device", args.daemon_option + unkind, args.block) as lab:
        tests = unpack(os.path.join(lab.dir, "pyverbs"))
        for module in modules:
            found, line = run_module(lab, tests, module, args.timeout)
            results.update(found)
            lines[module] = line
            for finding in lab.findings():
                checks.setdefault(finding.key(), f"finding: {module}: {finding}")
            count = {}
            for outcome, _ in found.values():
                count[outcome] = count.get(outcome, 0) + 1
            print(f"{module}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(count.items())), flush=True)
            if not lab.alive():
                print(f"the daemon died in {module}:\n{lab.server.daemon.output()[-4000:]}")
                lab.server.start()
                results[f"tests.{module}"] = ("crash", "the daemon died")
            try:
                lab.wait_objects_gone()
            except labs.Trouble as e:
                print(f"{module}: {e}")
                results[f"tests.{module}"] = ("fail", str(e))
    for name, (outcome, reason) in sorted(results.items()):
        if args.verbose or (outcome not in ("pass", "skip") and outcome != expected.get(name, ("",))[0]):
            print(f"{outcome} {name}" + (f"\n    {reason.rstrip()}".replace("\n", "\n    ") if reason else ""))
    if args.write:
        write_expected(EXPECTED, dict(expected, **results) if args.modules else results)
        print(f"wrote {EXPECTED}")
        return 0
    wanted = {n: e for n, e in expected.items() if n.split(".")[1] in modules}
    excuses = {n: why for n, (outcome, _) in results.items() if outcome in ("fail", "error") and (why := unkind_findings.excuse(n, args.unkind))}
    for name, why in excuses.items():
        print(f"relies on more than it may: {name}: {why}")
    differences = compare({n: r for n, r in results.items() if n not in excuses}, {n: e for n, e in wanted.items() if n not in excuses})
    for line in differences:
        print("difference: " + line.split("\n")[0])
    for finding in checks.values():
        print(finding)
    passed, skipped = (sum(1 for o, _ in results.values() if o == what) for what in ("pass", "skip"))
    print(f"{passed} passed, {len(results) - passed - skipped} failed ({len(excuses)} of them may), {skipped} skipped, {len(differences)} differences from {os.path.basename(EXPECTED)} "
          f"in {time.monotonic() - begin:.0f} s")
    if differences:
        print("repeat with: python3 tests/e2e/programs/pyverbs.py -v " + " ".join(sorted({d.split(".")[1].split(":")[0] for d in differences})))
    return 1 if differences else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="modules to run, all by default")
    parser.add_argument("--write", action="store_true", help="write pyverbs.expected")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every test's outcome")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a module (120)")
    parser.add_argument("--check", action="store_true", help="check the tests' use of verbs; the findings are listed at the end")
    parser.add_argument("--unkind", metavar="KINDS", help="the device is unkind: all, or kinds with commas between")
    parser.add_argument("--seed", default="1", metavar="N", help="the seed of its decisions (1)")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--daemon-option", action="append", default=[], metavar="OPTION", help="of the daemon, such as --daemon-option=--tm-profile=mlx5")
    parser.add_argument("--block", default="127.0.50", metavar="A.B.C", help="addresses A.B.C.* (127.0.50)")
    labs.end_when_told()
    try:
        return run(parser.parse_args())
    except labs.Unavailable as e:
        print(f"skip: {e}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
