#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints all wanted figures of the benchmarks in one table, with a verdict each. `make bench` ends with it.

    tests/bench/verdicts.py [--build DIR]

The figures come from the JSON files that the benchmarks have written. A figure without a result is in the table, too: "not measured". The
exit code does not depend on the verdicts.
"""

import argparse
import collections
import json
import os
import sys
import time

sys.dont_write_bytecode = True

import run  # first: the others look into folders that have a run.py, too
import crowded
import idle_qps
import slow_guest
import verdict

# Title, JSON file, the wanted figures, and what writes the file.
SOURCES = (
    ("Beside TCP, libfabric and soft-RoCE", "bench.json", run.TARGETS, "tests/bench/run.py"),
    ("Idle queue pairs", "bench-idle.json", [idle_qps.WANTED], "tests/bench/idle_qps.py"),
    ("Where processors are scarce: how many times better than TCP", "bench-crowded.json", crowded.WANTED.values(), "make bench-crowded"),
    ("Where processors are slow", "bench-guest.json", slow_guest.WANTED.values(), "make bench-guest, make test-rxe"),
)


def read(path):
    """The rows of a JSON file, and when it was written. None: there is no such file, or it has no such rows."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)["wanted"], time.strftime("%Y-%m-%d %H:%M", time.localtime(os.fstat(f.fileno()).st_mtime))
    except (OSError, ValueError, KeyError):
        return None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=run.labs.default_build(), metavar="DIR")
    build = parser.parse_args().build
    count = collections.Counter()
    for title, name, wanted, writer in SOURCES:
        rows, when = read(os.path.join(build, name))
        print(f"{title} ({f'{name} of {when}' if rows else f'no {name}: {writer}'})")
        rows = rows or [w.row(None) for w in wanted]
        verdict.print_rows(rows)
        print()
        count.update(row["verdict"] for row in rows)
    print(f"{count[verdict.AIM]} reach their aim, {count[verdict.MET]} are met, {count[verdict.MISSED]} are missed, {count[verdict.NOT_MEASURED]} are not measured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
