#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the results of tests/bench/run.py (build/bench.json) as an SVG picture: Pumice beside its alternatives.

    tests/bench/plot.py [RESULTS.json [PICTURE.svg]]

A bar is the median of the repetitions, the line on it reaches from the smallest to the largest. A result that is missing has no bar.
"""

import json
import os
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "pumice", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})

from matplotlib import pyplot  # noqa: E402

OURS, OTHERS = "#2b6cb0", "#b8bec7"
# Title, whether less is better, and the bars: label and key of the measure.
PANELS = (
    ("1 MiB messages, MiB/s", False, (
        ("Pumice, one device", "device/ib_write_bw/1048576"),
        ("Pumice, between hosts", "hosts/ib_write_bw/1048576"),
        ("soft-RoCE", "rxe/ib_write_bw/1048576"),
        ("iperf3, TCP", "tcp/iperf3"),
        ("UCX over TCP", "ucx/put_bw/1048576"),
        ("libfabric tcp;ofi_rxm", "libfabric/tcp;ofi_rxm/1048576"),
        ("libfabric udp;ofi_rxd", "libfabric/udp;ofi_rxd/1048576"))),
    ("64 B messages, millions/s", False, (
        ("Pumice, one device", "device/ib_send_bw/64"),
        ("Pumice, between hosts", "hosts/ib_send_bw/64"),
        ("soft-RoCE", "rxe/ib_send_bw/64"),
        ("UCX over TCP", "ucx/tag_bw/64"))),
    ("8 B messages, latency in µs", True, (
        ("Pumice, one device", "device/ib_send_lat/8"),
        ("Pumice, between hosts", "hosts/ib_send_lat/8"),
        ("soft-RoCE", "rxe/ib_send_lat/8"),
        ("UDP sockets, busy", "raw/udp-busy"),
        ("UDP sockets, blocking", "raw/udp-block"),
        ("UCX over TCP", "ucx/tag_lat/8"),
        ("libfabric tcp;ofi_rxm", "libfabric/tcp;ofi_rxm/8"),
        ("libfabric udp;ofi_rxd", "libfabric/udp;ofi_rxd/8"))),
)


def number(v):
    return f"{v:,.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}"


def bars(panel, measures):
    """The bars that have a result: label, median, smallest, largest."""
    for label, key in panel:
        m = measures.get(key)
        good = [v for v in m["values"] if v is not None] if m else []
        if good:
            yield label, m["median"], min(good), max(good)


def draw(axes, title, less, found):
    labels, medians, least, most = zip(*found)
    rows = range(len(found))
    axes.barh(rows, medians, color=[OURS if "Pumice" in text else OTHERS for text in labels], height=0.7)
    axes.errorbar(medians, rows, xerr=([m - a for m, a in zip(medians, least)], [b - m for m, b in zip(medians, most)]),
                  fmt="none", ecolor="#444444", elinewidth=0.8)
    axes.set_yticks(rows, labels)
    axes.invert_yaxis()
    axes.set_title(f"{title} ({'less' if less else 'more'} is better)", loc="left", fontweight="bold")
    axes.set_xlim(0, max(most) * 1.16)
    for row, (m, b) in enumerate(zip(medians, most)):
        axes.text(b + max(most) * 0.012, row, number(m), va="center")
    axes.spines[["top", "right"]].set_visible(False)


def picture(results):
    """The figure, or None if there is nothing to draw."""
    panels = [(title, less, list(bars(panel, results["measures"]))) for title, less, panel in PANELS]
    panels = [p for p in panels if p[2]]
    if not panels:
        return None
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(8, sum(0.8 + 0.27 * len(p[2]) for p in panels)), squeeze=False,
                                   gridspec_kw={"height_ratios": [len(p[2]) for p in panels]})
    for a, panel in zip(axes[:, 0], panels):
        draw(a, *panel)
    figure.text(0.01, 0.004, f"{results['cpus']} processors, Linux {results['kernel']}, medians of {results['repetitions']} repetitions "
                "(line: smallest to largest); between hosts: UDP over loopback", fontsize=7)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    return figure


def main():
    build = os.environ.get("BUILD", "build")
    source = sys.argv[1] if len(sys.argv) > 1 else os.path.join(build, "bench.json")
    target = sys.argv[2] if len(sys.argv) > 2 else os.path.join(build, "bench.svg")
    if len(sys.argv) > 3 or source.startswith("-"):
        sys.exit(__doc__)
    try:
        with open(source, encoding="utf-8") as f:
            results = json.load(f)
    except (OSError, ValueError) as e:
        sys.exit(f"plot.py: {source}: {e}: `make bench` writes it")
    figure = picture(results)
    if figure is None:
        print(f"no picture: {source} has none of the results that it would show")
        return
    figure.savefig(target, metadata={"Date": None, "Title": "Pumice beside its alternatives"})
    print(f"written to {os.path.relpath(target)}")


if __name__ == "__main__":
    main()
