#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs of tests/verbs on any RDMA device, with the libibverbs that programs find, and prints a table.

`make test-verbs DEVICE=NAME` builds the programs and calls this. docs/conformance.md explains the results. A program
whose source has the mark VT_OWN tests something of Pumice's own. It is not run, and counted as not for this device."""

import argparse
import fnmatch
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OWN = re.compile(r'VT_OWN\("([^"]*)"\)')


class Result:
    """What a program printed, counted by kinds of lines."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.own = []
        self.seconds = 0.0

    def read(self, output):
        part = ""
        for line in output.splitlines():
            if line.startswith("# part: "):
                part = line[8:]
            elif line.startswith("ok - "):
                self.passed += 1
            elif line.startswith("not ok - "):
                what = re.sub(r" \(line \d+, errno [^)]*\)$", "", line[9:])  # the errno may be an older one
                self.failed.append(f"{part}: {what}" if part else what)
            elif line.startswith("# skipped: "):
                self.skipped.append(line[11:])
            elif line.startswith("skip - "):
                self.skipped.append(line[7:])
            elif line.startswith("# own: "):
                self.own.append(line[7:])
            elif line.startswith("own - "):
                self.own.append(line[6:])


def run(program, name, log, limit):
    """Runs one program. An end that no line explains is a failed check, too."""
    result = Result(name)
    begin = time.monotonic()
    with open(log, "wb") as out:
        try:
            code = subprocess.run([program], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=limit,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            code = None
    result.seconds = time.monotonic() - begin
    result.read(log.read_text(errors="replace"))
    if code is None:
        result.failed.append(f"no end after {limit} seconds")
    elif code not in (0, 77) and not result.failed:
        result.failed.append(f"signal {-code}" if code < 0 else f"exit code {code}")
    elif code == 0 and result.passed == 0 and not result.skipped:
        result.failed.append("no check was made")
    return result


def describe(build, environment):
    """Prints the device. Ends if the tests can't run on it."""
    done = subprocess.run([build / "tests/verbs/describe"], env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode != 0:
        sys.exit(f"conformance: the device can't be tested{': ' + done.stderr if done.stderr else ''}")
    return done.stdout


def table(results):
    """The results as rows of text: a heading for each folder, a row for each program."""
    rows = [f"{'':32}{'passed':>8}{'failed':>8}{'skipped':>8}{'own':>8}"]
    folder = ""
    for r in results:
        if r.name.split("/")[0] != folder:
            folder = r.name.split("/")[0]
            rows.append(folder)
        rows.append(f"  {r.name.split('/')[1]:30}{r.passed:8}{len(r.failed):8}{len(r.skipped):8}{len(r.own):8}")
    return rows


def listed(title, results, field):
    lines = [f"  {r.name}: {text}" for r in results for text in getattr(r, field)]
    if lines:
        print(f"\n{title}:")
        print("\n".join(lines))


def markdown(path, text, results):
    """Writes the table for a document."""
    lines = [text.replace("\n", "  \n"), "| program | passed | failed | skipped | not for this device |", "|---|---|---|---|---|"]
    for r in results:
        if r.passed or r.failed or r.skipped:
            lines.append(f"| `{r.name}` | {r.passed} | {len(r.failed)} | {len(r.skipped)} | {len(r.own)} |")
    path.write_text("\n".join(lines) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description="Runs the verbs tests on any RDMA device. The exit code is 0 if no check failed.")
    parser.add_argument("--device", required=True, help="the name of the device, as ibv_devices shows it")
    parser.add_argument("--peer", help="a second device of this machine, which the first one reaches: tests also run between both")
    parser.add_argument("--port", type=int, help="the port of the devices (1)")
    parser.add_argument("--gid", type=int, help="the index of the GID (the best of the table: RoCE v2 with an IPv4 address)")
    parser.add_argument("--only", default="*", help="a pattern: only programs whose names match, such as 'datapath/*'")
    parser.add_argument("--build", type=Path, default=Path("build"), help="the folder of the build (build)")
    parser.add_argument("--limit", type=int, default=900, help="seconds that a program may take (900)")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    return parser.parse_args()


def main():
    options = arguments()
    build = options.build.resolve()
    logs = build / "log" / "conformance"
    logs.mkdir(parents=True, exist_ok=True)
    os.environ["PUMICE_TEST_DEVICE"] = options.device
    for variable, value in (("PEER", options.peer), ("PORT", options.port), ("GID", options.gid)):
        if value is not None:
            os.environ["PUMICE_TEST_" + variable] = str(value)
    text = describe(build, os.environ) + f"kernel: {platform.release()}, date: {time.strftime('%Y-%m-%d')}\n"
    begin = time.monotonic()
    results = []
    for source in sorted(HERE.glob("*/test_*.c")):
        name = f"{source.parent.name}/{source.stem}"
        if not fnmatch.fnmatch(name, options.only):
            continue
        own = OWN.search(source.read_text())
        if own:
            result = Result(name)
            result.own.append(own.group(1))
        elif not (build / "tests/verbs" / name).exists():
            sys.exit(f"conformance: {name} is not built: make test-verbs DEVICE={options.device} builds it")
        else:
            result = run(build / "tests/verbs" / name, name, logs / (name.replace("/", "-") + ".log"), options.limit)
            print(f"{name:34} {'FAIL' if result.failed else 'ok':4} {result.seconds:7.1f} s", flush=True)
        results.append(result)
    print()
    print("\n".join(table(results)))
    listed("failed", results, "failed")
    listed("skipped, with the reason", results, "skipped")
    listed("not for this device: Pumice's own", results, "own")
    counts = [sum(r.passed for r in results)] + [sum(len(getattr(r, f)) for r in results) for f in ("failed", "skipped", "own")]
    if options.markdown:
        markdown(options.markdown, text, results)
    print(f"\n{counts[0]} checks passed, {counts[1]} failed, {counts[2]} parts skipped, {counts[3]} not for this device, "
          f"in {time.monotonic() - begin:.0f} s; logs: {logs}")
    if counts[0] + counts[1] + counts[2] == 0:
        print("nothing was run")
        sys.exit(1)
    sys.exit(1 if counts[1] else 0)


if __name__ == "__main__":
    main()
