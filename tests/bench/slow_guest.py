#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares the latency of Pumice with that of soft-RoCE where processors are slow: in the guest of tests/rxe, which QEMU emulates.

    tests/bench/slow_guest.py          three repetitions (`make bench-guest`; at the end of `make test-rxe`, too)

ib_send_lat sends messages of 2 bytes over soft-RoCE, within one device of Pumice, and between two hosts of Pumice, in turn. All of it runs in
the guest. The daemons keep to a processor each, as in tests/bench/run.py. A ratio is the median of the ratios within each repetition.

The benchmark only reports. Exit code: 77 if this machine can't run the guest, 1 if a program in it fails. The results are also written to
build/bench-guest.json, and `make bench` shows those of the last run.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for folder in ("e2e/lib", "rdmacm", "rxe"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import lab as labs  # noqa: E402
import machine  # noqa: E402
import verdict  # noqa: E402

ITERATIONS = 2000
PORT = 18517
SECONDS_MAX = 180  # of one measurement
SOFT_ROCE = "soft-RoCE"
# Place: how many hosts of Pumice.
PUMICE = {"Pumice, one device": 1, "Pumice, two hosts": 2}
WANTED = {place: verdict.Wanted(f"slow guest: 2 B latency, {place} ÷ {SOFT_ROCE}", 2, at_most=True) for place in PUMICE}

# $1: options of ib_send_lat. $2, $3: what stands before the server and the client. It prints the lines of the client.
PAIR = """
$2 ib_send_lat $1 >/dev/null 2>&1 &
until grep -qE ':{port:04X} [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done
$3 ib_send_lat $1 127.0.0.1 && wait $!
"""


def script(build, place):
    """The command for the guest. soft-RoCE has the RoCE port in the guest's own network namespace, so Pumice has another one."""
    options = f"-F -s 2 -n {ITERATIONS} -p {PORT}"
    pair = shlex.quote(PAIR.format(port=PORT))
    if place == SOFT_ROCE:
        return f"sh -c {pair} sh {shlex.quote(options + ' -d rxe0 -x 1')} '' ''"
    hosts = PUMICE[place]
    inner = f"ip link set lo up; exec {build.pumice} run --hosts {hosts} --cpus spread -- sh -c {pair} sh {shlex.quote(options + ' -x 0')}"
    inner += f" '{build.pumice} on 0 --' '{build.pumice} on {hosts - 1} --'"
    return f"unshare -n sh -c {shlex.quote(inner)}"


def latency(guest, build, place):
    """The typical and the mean latency in microseconds."""
    output = guest.run(script(build, place), SECONDS_MAX)
    field = re.search(r"^ *2 +\d+ +(.*)$", output, re.M)
    if not field:
        raise labs.Trouble(f"no result of {place}:\n{output}")
    field = field.group(1).split()
    return float(field[2]), float(field[3])


def measure(build, repetitions):
    """The figures of each place, by repetition."""
    guest = machine.Guest(os.environ.get("RXE_DIR") or os.path.join(build.dir, "rxe"))
    guest.start()
    try:
        kernel = guest.run("uname -r").strip()
        figures = {place: [] for place in (SOFT_ROCE, *PUMICE)}
        for _ in range(repetitions):
            for place, values in figures.items():
                values.append(latency(guest, build, place))
    finally:
        guest.stop()
    return kernel, figures


def report(build, kernel, figures):
    typical = {place: [t for t, _ in values] for place, values in figures.items()}
    ratio = {place: statistics.median(a / b for a, b in zip(typical[place], typical[SOFT_ROCE])) for place in PUMICE}
    print(f"ib_send_lat, 2 B, in a guest with emulated processors, Linux {kernel}: medians of {len(typical[SOFT_ROCE])} repetition(s), in µs\n\n"
          f"{'':24}{'typical':>10}{'mean':>10}{'ratio':>8}")
    for place, values in figures.items():
        mean = statistics.median(m for _, m in values)
        print(f"{place:24}{verdict.number(statistics.median(typical[place])):>10}{verdict.number(mean):>10}"
              f"{verdict.number(ratio[place]) if place in ratio else '':>8}  ({' '.join(verdict.number(t) for t in typical[place])})")
    rows = [WANTED[place].row(ratio[place]) for place in PUMICE]
    print()
    verdict.print_rows(rows)
    path = os.path.join(build.dir, "bench-guest.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"kernel": kernel, "seconds": time.time(), "us": figures, "wanted": rows}, f, indent=1, ensure_ascii=False)
    print(f"\nwritten to {os.path.relpath(path)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--repetitions", type=int, default=3, help="(3)")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    args = parser.parse_args()
    build = labs.Build(args.build)
    if build.missing():
        print(f"not built: {' '.join(build.missing())} (run make)")
        return 2
    labs.end_when_told()
    os.environ.setdefault("RXE_ACCEL", "tcg")  # with KVM its processors are not slow
    try:
        report(build, *measure(build, args.repetitions))
    except labs.Unavailable as e:
        print(f"skip: {e}")
        return 77
    except labs.Trouble as e:
        print(f"no result: {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
