# SPDX-License-Identifier: BSD-2-Clause
"""Progress of a benchmark, on stderr. On a terminal it is one line that changes with each measure. Elsewhere, in a log for example, it is
a line at the beginning of each repetition."""

import sys


def repetition(number, total, measures, seconds):
    """The repetition with this number (from 1) begins, so many seconds after the first one began."""
    if not sys.stderr.isatty():
        so_far = f", {seconds:.0f} s so far" if number > 1 else ""
        print(f"repetition {number} of {total}: {measures} measures{so_far}", file=sys.stderr, flush=True)


def measure(text):
    """Shows the current measure. An empty text clears the line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
