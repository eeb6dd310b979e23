#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the dependency rule of docs/architecture.md.

The folders of the product have one order, the list ORDER below. A file may include headers of its own folder and of
folders below it. It may never include a header of a folder above it. Within a folder no files include each other in
a circle. The check also holds the size of files and folders, asks for a header beside each source, and asks of the
engine's object code that it needs nothing from outside but memcpy and its like.

Usage: check_pure.py [--root DIR] [--core libcore.a --wire libwire.a] [--order] [FOLDER...]
  --order   prints the folders from the bottom to the top, and what each may use
  FOLDER    reports only what is wrong with files below these folders
"""
import argparse
import collections
import os
import re
import subprocess
import sys

# The order of the folders, from the bottom to the top, in storeys: a file uses its own storey and those below it, as far
# as USES allows.
ORDER = """
wire wire/pumice
include/pumice system
daemon/core/base daemon/core/cm daemon/core/memory daemon/core/path daemon/core/tm daemon/core/qp daemon/core/selective daemon/core/requester
daemon/core/responder daemon/core/control daemon/core
pcap pcap/lint/base pcap/lint pcap/trace pcap/picture
daemon/base daemon/threads daemon/sandbox daemon/fault daemon/netem daemon/net daemon/replay daemon/client_mem daemon/profile daemon/device daemon/session daemon/objects daemon/objects/srq daemon/objects/qp
daemon/monitor daemon/status daemon/loop daemon/control daemon/cm/host daemon/cm/command daemon/cm
daemon/server daemon
src/verbs/base src/verbs/session src/verbs/cm src/verbs/shim src/verbs/memory src/verbs/device src/verbs/objects src/verbs/unkind src/verbs/datapath
src/verbs/control src/verbs/abi
src/dv
src/check/base src/check/objects src/check/connect src/check/requests src/check/verbs src/check
src/cmd/common src/cmd/lab src/cmd/inspect src/cmd/rdma src/cmd/net src/cmd/capture src/cmd/check src/cmd/recording src/cmd/run src/cmd/replay src/cmd
""".split()

# Which parts of the product a part may use, itself apart. The part of a folder is the longest name that it begins with.
USES = {
    "wire": [],
    "include/pumice": [],
    "system": [],
    "daemon/core": ["wire"],
    "pcap": ["wire"],
    "daemon": ["wire", "daemon/core", "pcap", "include/pumice", "system"],
    "src/verbs": ["include/pumice", "system"],
    "src/dv": ["include/pumice"],
    "src/check": [],
    "src/cmd": ["wire", "include/pumice", "pcap"],
}

# The exceptions, (file, header). `pumice layout` explains a mapping by the engine's own code, and libpumice.so has the
# texts of its errors from there. This header includes nothing but standard ones, and knows no engine.
EXCEPTIONS = {
    ("src/cmd/inspect/layout_file.h", "daemon/core/memory/layout.h"),
    ("src/dv/dv_layout.c", "daemon/core/memory/layout.h"),
    # The names of the checker's rules, which `pumice run` writes and reads.
    ("src/cmd/check/check_run.c", "src/check/base/rule.h"),
    ("src/cmd/check/check_report.c", "src/check/base/rule.h"),
    ("src/cmd/check/pairs.c", "src/check/base/rule.h"),
}

# The system headers that bring no I/O, clock or allocation, for the pure parts. (errno.h is there for the names of errors; a use of
# errno itself would show as a symbol.)
SYSTEM = {
    "daemon/core": "assert.h errno.h limits.h stdalign.h stdbool.h stddef.h stdint.h string.h".split(),
    "wire": "assert.h limits.h stdbool.h stddef.h stdint.h string.h isa-l.h isa-l/crc.h".split(),
}

# The functions of the C library that the engine's object code may use. __stack_chk_fail and the _chk functions are the compiler's own.
SYMBOLS = set("""memcmp memcpy memmove memset memchr __assert_fail __stack_chk_fail __memcpy_chk __memmove_chk __memset_chk
    _GLOBAL_OFFSET_TABLE_""".split())

MAX_LINES = 600
MAX_FILES = 26 # of one folder, sub-folders apart

# Headers for programs. A source of src/verbs or src/dv that includes one of them first defines what it declares.
PUBLIC = re.compile(r'^\s*#\s*include\s*("pumice/|<infiniband/verbs\.h>)')

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def part_of(folder):
    found = [p for p in USES if folder == p or folder.startswith(p + "/")]
    return max(found, key=len) if found else None


class Check:
    def __init__(self, root, only):
        self.root = root
        self.only = only
        self.bad = 0
        self.edges = collections.defaultdict(set) # file -> files of the product that it includes

    def complain(self, file, text):
        if self.only and not any(file == o or file.startswith(o.rstrip("/") + "/") for o in self.only):
            return
        print(f"{file}: {text}")
        self.bad += 1

    def files(self):
        for part in USES:
            for folder, _, names in os.walk(os.path.join(self.root, part)):
                for name in sorted(names):
                    path = os.path.relpath(os.path.join(folder, name), self.root)
                    if name.endswith((".c", ".h")) and part_of(os.path.dirname(path)) == part:
                        yield path

    def find(self, name):
        """The file of #include "name": names begin at the root or at include/."""
        for base in ("", "include"):
            if os.path.isfile(os.path.join(self.root, base, name)):
                return os.path.normpath(os.path.join(base, name))
        return None

    def check_include(self, path, quote, name):
        if name.startswith("gen/"): # made by make, in the build folder
            return
        folder = os.path.dirname(path)
        part = part_of(folder)
        header = self.find(name) if quote == '"' or name.startswith("pumice/") else None
        if header is None:
            if quote == '"':
                self.complain(path, f'there is no "{name}" (names begin at the project\'s root)')
            elif part in SYSTEM and name not in SYSTEM[part]:
                self.complain(path, f"includes <{name}>; {part} may use only {' '.join(SYSTEM[part])}")
            return
        self.edges[path].add(header)
        target = os.path.dirname(header)
        if target == folder or (path, header) in EXCEPTIONS:
            return
        if part_of(target) != part and part_of(target) not in USES[part]:
            self.complain(path, f"includes {header}, but {part} may use only: {' '.join(USES[part]) or 'itself'}")
        elif target not in ORDER:
            self.complain(path, f"includes {header}, whose folder has no place in the order")
        elif folder in ORDER and ORDER.index(target) > ORDER.index(folder):
            self.complain(path, f"includes {header}, and {target} is above {folder}")

    def check_files(self):
        folders = collections.defaultdict(list)
        for path in self.files():
            folders[os.path.dirname(path)].append(path)
            with open(os.path.join(self.root, path), encoding="utf-8") as f:
                lines = f.read().split("\n")
            if len(lines) - 1 > MAX_LINES:
                self.complain(path, f"has {len(lines) - 1} lines, more than {MAX_LINES}")
            for line in lines:
                m = INCLUDE.match(line)
                if m:
                    self.check_include(path, m.group(1), m.group(2))
        for folder, paths in folders.items():
            if folder not in ORDER:
                self.complain(paths[0], f"{folder} has no place in the order")
            if len(paths) > MAX_FILES:
                self.complain(folder + "/", f"has {len(paths)} files, more than {MAX_FILES}")
            self.check_headers(folder, paths)

    def check_headers(self, folder, paths):
        """Each source has a header of its name, or a header of its folder names it as one of its parts. In a library the
        header may also be a public one, which the source includes first. Then it defines nothing for other sources."""
        texts = ""
        for path in paths:
            if path.endswith(".h"):
                with open(os.path.join(self.root, path), encoding="utf-8") as f:
                    texts += f.read()
        for path in paths:
            name = os.path.basename(path)
            if name.endswith(".c") and name != "main.c" and path[:-1] + "h" not in paths:
                if self.has_public_header(folder, path) or re.search(r"(?<![\w/])" + re.escape(name), texts):
                    continue
                self.complain(path, "has no header of its own, and no header of its folder names it")

    def has_public_header(self, folder, path):
        if part_of(folder) not in ("src/verbs", "src/dv"):
            return False
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            lines = f.read().split("\n")
        first = next((l for l in lines if INCLUDE.match(l)), "")
        for line in lines:
            m = re.match(r"(?!static\b|extern\b|typedef\b)[a-z][\w *]*\b(vb_\w+)\(", line)
            if m and PUBLIC.match(first):
                self.complain(path, f"defines {m.group(1)}, which its public header doesn't declare")
        return PUBLIC.match(first) is not None

    def check_circles(self):
        """Strongly connected files (Tarjan)."""
        index, low, stack, on = {}, {}, [], set()

        def visit(v):
            index[v] = low[v] = len(index)
            stack.append(v)
            on.add(v)
            for w in sorted(self.edges[v]):
                if w not in index:
                    visit(w)
                    low[v] = min(low[v], low[w])
                elif w in on:
                    low[v] = min(low[v], index[w])
            if low[v] == index[v]:
                circle = []
                while True:
                    w = stack.pop()
                    on.discard(w)
                    circle.append(w)
                    if w == v:
                        break
                if len(circle) > 1:
                    self.complain(min(circle), "a circle: " + ", ".join(sorted(circle)))

        # A module is its source and its header together: what either includes, the module uses.
        modules = collections.defaultdict(set)
        for a, targets in self.edges.items():
            for b in targets:
                if os.path.splitext(a)[0] != os.path.splitext(b)[0]:
                    modules[os.path.splitext(a)[0]].add(os.path.splitext(b)[0])
        self.edges = modules
        sys.setrecursionlimit(10000)
        for v in sorted(list(modules)):
            if v not in index:
                visit(v)

    def check_symbols(self, core, wire):
        def nm(args, *libs):
            return subprocess.run(["nm", *args, *libs], capture_output=True, text=True, check=True).stdout
        undefined = {l.split()[-1] for l in nm(["-u"], core).split("\n") if " U " in l}
        defined = {l.split()[-1] for l in nm(["-g", "--defined-only"], core, wire).split("\n") if len(l.split()) == 3}
        for symbol in sorted(undefined - defined - SYMBOLS):
            self.complain("daemon/core", f"its object code needs {symbol}")
        if not undefined:
            self.complain("daemon/core", "no symbols found in " + core)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    parser.add_argument("--core")
    parser.add_argument("--wire")
    parser.add_argument("--order", action="store_true")
    parser.add_argument("folder", nargs="*")
    args = parser.parse_args()
    if args.order:
        for folder in ORDER:
            print(f"{folder:24} uses: {' '.join(USES[part_of(folder)]) or '-'}, and of {part_of(folder)} what is above in this list")
        return 0
    check = Check(os.path.normpath(args.root), args.folder)
    check.check_files()
    check.check_circles()
    if args.core:
        check.check_symbols(args.core, args.wire)
    print("the dependency rule holds" if check.bad == 0 else f"{check.bad} breaches of the dependency rule")
    return 1 if check.bad else 0


sys.exit(main())
