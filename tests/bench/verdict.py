# SPDX-License-Identifier: BSD-2-Clause
"""Wanted figures of the benchmarks, and how a measured figure is judged. Each benchmark writes the rows of its wanted figures into its JSON
file, as the list "wanted". tests/bench/verdicts.py prints all of them."""

import dataclasses

NOT_MEASURED, AIM, MET, MISSED = "not measured", "aim", "met", "MISSED"


@dataclasses.dataclass
class Wanted:
    """A figure that the project wants to reach."""
    label: str
    least: float
    aim: float = None  # what would be better still
    at_most: bool = False  # smaller is better: least is the largest figure that is wanted
    unit: str = "×"

    def verdict(self, value):
        """value: the measured figure; None: it was not measured."""
        if value is None:
            return NOT_MEASURED
        if self.aim is not None and self._reached(value, self.aim):
            return AIM
        return MET if self._reached(value, self.least) else MISSED

    def _reached(self, value, limit):
        return value <= limit if self.at_most else value >= limit

    def row(self, value, verdict=None, note=""):
        """For a JSON file. verdict: if it does not follow from the value. note: why there is no value, for example."""
        return {"label": self.label, "value": value, "unit": self.unit, "least": self.least, "aim": self.aim, "at_most": self.at_most,
                "verdict": verdict or self.verdict(value), "note": note}


def number(v):
    """A figure with three digits or more."""
    digits = 0 if abs(v) >= 100 or v == 0 else 1 if abs(v) >= 10 else 2 if abs(v) >= 0.1 else 4
    return f"{v:.{digits}f}"


def limit(least, at_most):
    return ("≤ " if at_most else "≥ ") + format(least, "g")


def print_rows(rows, width=66):
    """A table: figure, value, what is wanted, verdict."""
    print(f"{'figure':{width}} {'value':>12} {'wanted':>10} {'aim':>10}  verdict")
    for row in rows:
        value = "-" if row["value"] is None else f"{number(row['value'])} {row['unit']}"
        aim = "" if row["aim"] is None else limit(row["aim"], row["at_most"])
        note = f" ({row['note']})" if row["note"] else ""
        print(f"{row['label']:{width}} {value:>12} {limit(row['least'], row['at_most']):>10} {aim:>10}  {row['verdict']}{note}")
