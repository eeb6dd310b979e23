#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what the documentation says about files and names.

1. Each relative link of a Markdown file leads to a file, and to a heading of it if it names one.
2. In tables with the columns Code or Tests, and in text, `path` names a file by the end of its path; there must be one
   such file. Names that follow it in the same cell, such as `function`, must be in that file. In the column Tests, `sim`
   stands for tests/sim/scenarios/cases.c.
3. Paths in text, such as `daemon/net/udp.c`, exist. In docs/architecture.md, names that follow a file directly, as in
   `net/udp_tx.c` `udp_add`, must be in that file, and the list of the folders is the one of check_pure.py.
4. README.md has at most 700 words before the section about the limits, so that a new user reads it to the end.

Usage: check_docs.py [FILE...]; without FILE all Markdown files of the project.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = re.compile(r"^[A-Za-z0-9_.*/-]+\.(c|h|py|sh|lua|md|bash|txt|yml|expected)$")
NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]*$")
FOLDERS = ("wire/", "system/", "include/", "daemon/", "pcap/", "src/", "tests/", "docs/", "examples/", "packaging/")
TICKS = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
bad = 0


def complain(file, number, text):
    global bad
    print(f"{file}:{number}: {text}")
    bad += 1


def known_files():
    try:
        out = subprocess.run(["git", "-C", ROOT, "ls-files"], stdout=subprocess.PIPE, check=True, text=True).stdout
        files = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        files = []
        for folder, dirs, names in os.walk(ROOT):
            dirs[:] = [d for d in dirs if not d.startswith((".", "build"))]
            files += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return files


FILES = known_files()


def find(token):
    return [f for f in FILES if f == token or f.endswith("/" + token)]


def text_of(file):
    try:
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def check_cell(file, number, cell, sim):
    at = None
    for token in TICKS.findall(cell):
        if sim and token == "sim":
            at = "tests/sim/scenarios/cases.c"
        elif FILE.match(token):
            found = find(token)
            at = found[0] if len(found) == 1 else None
            if len(found) != 1:
                complain(file, number, f"`{token}`: " + ("no such file" if not found else "is " + " or ".join(found)))
        elif at and NAME.match(token) and not re.search(rf"(?<![\w-]){re.escape(token)}(?![\w-])", text_of(at)):
            complain(file, number, f"there is no `{token}` in {at}")
        elif not at and NAME.match(token):
            if subprocess.run(["git", "-C", ROOT, "grep", "-qw", token, "--", "daemon", "src", "wire", "pcap"],
                              check=False).returncode:
                complain(file, number, f"there is no `{token}`")


def check_text(file, number, line):
    for token in TICKS.findall(line):
        path = token.rstrip("/")
        if token.startswith(FOLDERS) and " " not in token and "*" not in token and "{" not in token and \
                not os.path.exists(os.path.join(ROOT, path)):
            complain(file, number, f"`{token}`: no such file")


def anchors(file):
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "")).strip().lower().replace(" ", "-")
            for h in re.findall(r"^#+ (.*)$", text_of(file), re.M)}


def check_links(file, number, line):
    for link in LINK.findall(line):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(file), path)) if path else file
        if not os.path.exists(os.path.join(ROOT, target)):
            complain(file, number, f"the link {link} leads nowhere")
        elif anchor and anchor not in anchors(target):
            complain(file, number, f"{target} has no heading #{anchor}")


def check(file):
    columns, code = [], False
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if line.startswith("```"):
            code = not code
        if code:
            continue
        check_links(file, number, line)
        if not line.startswith("|"):
            columns = []
            check_text(file, number, line)
            continue
        cells = [c.strip() for c in line.strip().strip("|").split(" | ")] if "---" not in line else []
        if not columns:
            columns = [c.strip() for c in line.strip().strip("|").split("|")]
            continue
        if len(cells) != len(columns):
            check_text(file, number, line)
            continue
        for column, cell in zip(columns, cells):
            if column in ("Code", "Tests"):
                check_cell(file, number, cell, column == "Tests")
            else:
                check_text(file, number, cell)


def check_names(file):
    """Names directly behind a file, in a paragraph."""
    for paragraph in re.split(r"\n\n|\n\|", text_of(file)):
        number = text_of(file)[:text_of(file).find(paragraph)].count("\n") + 1
        for token, names in re.findall(r"`([^`\s]+\.[chly]\w*)`((?:,?\s+`\w+`)+)", paragraph):
            check_cell(file, number, f"`{token}` {names}", False)


def check_order(file):
    pure = re.search(r'^ORDER = """\n(.*?)^"""', text_of("tests/check_pure.py"), re.M | re.S)
    block = re.search(r"^## The order of the folders.*?^```\n(.*?)^```", text_of(file), re.M | re.S)
    if not pure or not block or block.group(1).split() != pure.group(1).split():
        complain(file, 1, "the list of the folders is not that of `tests/check_pure.py --order`")


def check_length(file, heading, limit):
    words = len(text_of(file).partition(f"\n## {heading}")[0].split())
    if words > limit:
        complain(file, 1, f"{words} words before the section “{heading}”; at most {limit}")


ARCHITECTURE = "docs/architecture.md"
if len(sys.argv) == 1:
    check_names(ARCHITECTURE)
    check_order(ARCHITECTURE)
    check_length("README.md", "What works, and the limits", 700)
for name in sys.argv[1:] or [f for f in FILES if f.endswith(".md")]:
    check(os.path.relpath(os.path.abspath(name), ROOT) if len(sys.argv) > 1 else name)
if not bad:
    print("the files and names in the documentation exist")
sys.exit(bad > 0)
