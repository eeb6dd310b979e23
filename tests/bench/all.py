#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs all benchmarks of `make bench`, one after the other, and then prints the table of wanted figures.

    tests/bench/all.py [OPTIONS of tests/bench/run.py]

A figure that is missed is no failure. A benchmark that fails to run is one, but the others run all the same, and the table is printed in any
case. Exit code: 1 if a benchmark failed to run.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e/lib"))

import lab as labs  # noqa: E402

SKIPPED = 77


def parts(build, options):
    """Name, command, and the file in the build folder that it writes."""
    def tool(name):
        return os.path.join(build.dir, "tests", "bench", name)

    def program(name, *args):
        return [os.path.join(HERE, name), *args]

    return (("tag matching", [tool("tm_depth")], None),
            ("layouts", [build.pumice, "run", "--hosts", "2", "--", tool("layout")], None),
            ("idle queue pairs", program("idle_qps.py", "--report"), "bench-idle.json"),
            ("connections", program("connections.py"), None),
            ("control work beside packets", [tool("control_pause")], None),
            ("crowded machines", program("crowded.py", "-r", "1"), "bench-crowded.json"),
            ("Pumice and its alternatives", program("run.py", *options), "bench.json"),
            ("picture", program("plot.py", os.path.join(build.dir, "bench.json"), os.path.join(build.dir, "bench.svg")), "bench.svg"))


def run(argv):
    """Returns the exit code. If this program is ended, the other one ends first."""
    try:
        process = subprocess.Popen(argv)
    except OSError as e:
        print(e, file=sys.stderr)
        return 127
    try:
        return process.wait()
    except KeyboardInterrupt:  # The terminal sends it to both.
        process.wait()
        raise
    except SystemExit:
        process.terminate()
        process.wait()
        raise


def main():
    if any(option in ("-h", "--help") for option in sys.argv[1:]):
        print(__doc__)
        return 0
    build = labs.Build(labs.default_build())
    labs.end_when_told()
    failed = []
    for name, argv, result in parts(build, sys.argv[1:]):
        if result and os.path.exists(os.path.join(build.dir, result)):
            os.remove(os.path.join(build.dir, result))  # the table shows no older figures as those of this run
        print(f"\n=== {name}\n", flush=True)
        code = run(argv)
        if code not in (0, SKIPPED):
            failed.append(f"{name} (exit code {code})")
    print("\n=== wanted figures\n", flush=True)
    if run([os.path.join(HERE, "verdicts.py")]) != 0:
        failed.append("the table")
    if failed:
        print("failed to run: " + ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
