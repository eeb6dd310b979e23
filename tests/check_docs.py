#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the documents name what exists.

- A file name in backquotes must be the end of the path of a file in the tree: `wire/pkt.c`, `core/engine.h`.
- In the tables of docs/protocol.md and docs/design-notes.md, the names behind a file name must occur in that file. A name without
  a file before it must occur somewhere in the sources. Behind `sim` stand cases of the simulator.
- Links between the documents must lead to a file.

Usage: check_docs.py
"""
import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
TABLES = ("docs/protocol.md", "docs/design-notes.md")
SUFFIX = r"\.(?:c|h|py|sh|bash|lua|map|md)"
FILE = re.compile(r"^[\w./-]*[\w-]" + SUFFIX + "$")
NAME = re.compile(r"^[\w-]+$")

bad = 0


def complain(where, text):
    global bad
    bad += 1
    print(f"{where}: {text}")


def tree():
    out = subprocess.run(["find", ".", "-type", "f", "-not", "-path", "./.git/*", "-not", "-path", "./build*/*"], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    return [line[2:] for line in out.split("\n") if line]


class Docs:
    def __init__(self):
        self.files = tree()
        self.text = {}

    def ends(self, name):
        """The files whose paths end with this name, by whole components."""
        return [f for f in self.files if f == name or f.endswith("/" + name)]

    def read(self, path):
        if path not in self.text:
            with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
                self.text[path] = f.read()
        return self.text[path]

    def occurs(self, name, paths):
        word = re.compile(r"(?<![\w-])" + re.escape(name) + r"(?![\w-])")
        return any(word.search(self.read(p)) for p in paths)

    def check_files(self, doc, known):
        for number, line in enumerate(self.read(doc).split("\n"), 1):
            for name in re.findall(r"`([^`\s]+)`", line):
                if FILE.match(name) and "/" in name and not name.startswith("/") and name not in known and not self.ends(name):
                    complain(f"{doc}:{number}", f"there is no file {name}")
            for link in re.findall(r"\]\(([^)#\s]+)", line):
                if "://" not in link and not os.path.exists(os.path.join(ROOT, os.path.dirname(doc), link)):
                    complain(f"{doc}:{number}", f"the link {link} leads nowhere")

    def check_cell(self, where, cell, anywhere):
        """Names in backquotes: each belongs to the file before it."""
        files = None
        for name in re.findall(r"`([^`]+)`", cell):
            if FILE.match(name):
                files = self.ends(name)
                if not files:
                    complain(where, f"there is no file {name}")
            elif name == "sim":
                files = self.ends("scenarios/cases.c") or self.ends("sim/cases.c")
            elif name.startswith("unit/") or not NAME.match(name):
                continue
            elif not self.occurs(name, files or anywhere):
                complain(where, f"{name} does not occur in {', '.join(files) if files else 'any source'}")

    def check_tables(self, doc):
        sources = [f for f in self.files if f.endswith((".c", ".h", ".py", ".sh"))]
        for number, line in enumerate(self.read(doc).split("\n"), 1):
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 5 and not set(cells[0]) <= set("-: "):
                for cell in cells[3:]:
                    self.check_cell(f"{doc}:{number}", cell, sources)


docs = Docs()
for doc in sorted(f for f in docs.files if f.endswith(".md") and not f.startswith("tests/")):
    docs.check_files(doc, ())
for doc in TABLES:
    docs.check_tables(doc)
print("the documents name what exists" if bad == 0 else f"{bad} names do not exist")
sys.exit(1 if bad else 0)
