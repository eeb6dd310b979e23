# SPDX-License-Identifier: BSD-2-Clause
"""The results of tests/rxe/run.py as a table."""

import collections
import dataclasses
import json

BEGIN, END = "<!-- tests/rxe/run.py writes from here -->", "<!-- to here -->"


@dataclasses.dataclass
class Result:
    name: str
    role: str  # what Pumice is: client or server
    verdict: str  # ok, deviates, failed
    reason: str  # of a deviation
    conforms: bool  # a deviation that always shows is known, and the case was ok

    def text(self):
        return "deviates (rxe)" if self.verdict == "deviates" else self.verdict


@dataclasses.dataclass
class About:
    kernel: str
    rdma_core: str
    date: str


def save(path, results, about):
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"about": dataclasses.asdict(about), "results": [dataclasses.asdict(r) for r in results]}, f, indent=1)


def load(paths):
    """The results of several runs together; those of a later file replace earlier ones."""
    results, about = collections.OrderedDict(), None
    for path in paths:
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        about = About(**data["about"])
        for r in data["results"]:
            results[r["name"], r["role"]] = Result(**r)
    return list(results.values()), about


def by_name(results):
    """Name -> role -> result, in the order of the first role."""
    table = collections.OrderedDict()
    for r in results:
        table.setdefault(r.name, {})[r.role] = r
    return table


def print_summary(results, seconds):
    width = max((len(r.name) for r in results), default=4)
    print(f"\n{'case':{width}}  {'Pumice is the client':20}  Pumice is the server")
    for name, roles in by_name(results).items():
        cells = [roles[role].text() if role in roles else "-" for role in ("client", "server")]
        print(f"{name:{width}}  {cells[0]:20}  {cells[1]}")
    count = collections.Counter(r.verdict for r in results)
    for r in results:
        if r.verdict == "failed":
            print(f"failed: {r.name}, Pumice is the {r.role}")
        if r.conforms:
            print(f"conforms now: {r.name}, Pumice is the {r.role}")
    print(f"{count['ok']} ok, {count['deviates']} deviate (rxe), {count['failed']} failed, in {seconds:.0f} s")


def merge_groups(results):
    """What (program and case) -> list of (group, role, result)."""
    rows = collections.OrderedDict()
    for r in results:
        group, _, what = r.name.partition("/")
        rows.setdefault(what if group != "faults" else r.name, {})[group, r.role] = r
    return rows


def cell(roles, group, role, notes):
    r = roles.get((group, role))
    if r is None:
        return ""
    if r.verdict != "deviates":
        return r.verdict
    return f"deviates ({notes[r.reason]})"


def markdown(results, about):
    notes, lines = collections.OrderedDict(), []
    for r in results:
        if r.reason and r.reason not in notes:
            notes[r.reason] = len(notes) + 1
    count = collections.Counter(r.verdict for r in results)
    lines.append(f"Linux {about.kernel}, rdma-core {about.rdma_core}, {about.date}: {len(results)} results. "
                 f"{count['ok']} are ok, {count['deviates']} deviate (rxe), {count['failed']} failed.")
    lines += ["", "| Case | Client, IPv4 | Server, IPv4 | Client, IPv6 | Server, IPv6 |", "|---|---|---|---|---|"]
    for what, roles in merge_groups(results).items():
        ipv4 = "faults" if what.startswith("faults/") else "ipv4"
        cells = [cell(roles, group, role, notes) for group in (ipv4, "ipv6") for role in ("client", "server")]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    if notes:
        lines += ["", "Where soft-RoCE deviates:", ""]
        lines += [f"{number}. {reason}." for reason, number in notes.items()]
    return "\n".join(lines)


def write(path, results, about):
    """Puts the table between the marks of a page."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise SystemExit(f"{path} has no marks \"{BEGIN}\" and \"{END}\"")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text[:begin] + BEGIN + "\n\n" + markdown(results, about) + "\n\n" + text[end:])
