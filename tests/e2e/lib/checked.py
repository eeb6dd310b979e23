# SPDX-License-Identifier: BSD-2-Clause
"""The findings of the checker in programs under test. The checker writes them to files, as under `pumice run --check`. So the output of a
program stays as its test expects it. src/check/base/report.h explains the files."""

import dataclasses
import os
import re


@dataclasses.dataclass(frozen=True)
class Finding:
    text: str  # the rule and its sentence
    calls: tuple  # "module+offset" of the place, the innermost one first

    def key(self):
        """The same for findings that differ by numbers only, and by the place in a program or library."""
        return re.sub(r"0x[0-9a-f]+|\d+", "N", self.text), self.calls[0].rpartition("+")[0] if self.calls else ""

    def __str__(self):
        return self.text + "".join(f"\n    {'from' if i else 'in'} {c}" for i, c in enumerate(self.calls))


def read(path):
    """The findings of one process. It may still write its last line."""
    traces, found = {}, []
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            field = line.rstrip("\n").split("\t")
            if field[0] == "T" and len(field) >= 2:
                traces[field[1]] = tuple(f"{os.path.basename(m)}+0x{o}" for m, o in zip(field[2::2], field[3::2]))
            elif field[0] == "F" and len(field) == 8:
                found.append(Finding(f"{field[2]}: {field[7]}", traces.get(field[3], ())))
    return found


PRINTED = "finding: "


def parse(output):
    """The findings that another program has printed, after PRINTED and the name of a test."""
    found = []
    for line in output.splitlines():
        if line.startswith(PRINTED):
            found.append(Finding(line.removeprefix(PRINTED), ()))
        elif found and line.startswith(("    in ", "    from ")):
            found[-1] = Finding(found[-1].text, (*found[-1].calls, line.split()[-1]))
    return found


class Reports:
    """A folder to which programs with this environment write."""

    def __init__(self, folder, env):
        self.folder = folder
        env["PUMICE_CHECK_DIR"] = folder

    def begin(self):
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o1777)  # programs may run as another user

    def findings(self):
        """Each once."""
        found = {}
        for name in sorted(os.listdir(self.folder)):
            for finding in read(os.path.join(self.folder, name)):
                found.setdefault(finding.key(), finding)
        return list(found.values())
