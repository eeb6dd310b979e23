#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/checks.md has each rule of the checker, with an example and what the checker prints. It is what the checker prints today. Numbers
# may differ, and so may calls further out, which depend on the compiler.
. "$(dirname "$0")/../lib/common.bash"
need timeout python3
[ -z "${SANITIZED:-}" ] || skip "a build with a sanitizer: its run-time library must be the first one"
unset PUMICE_SOCKET
python3 - "$pumice" "$BUILD/tests/verbs/checker" "$(dirname "$0")/../../../docs/checks.md" <<'EOF'
import re, subprocess, sys
pumice, programs, page = sys.argv[1:]
# The program of a rule and the name of the mistake, where they are not `memory RULE` or `queues RULE`, and the rules to choose.
CASES = {"gid-index": ("assumes", "index"), "mismatch": ("ends", "mtu"), "late-receive": ("ends", "late")}
RULES = {"touch": "all,touch"}
failures = 0


def fail(text):
    global failures
    print("not ok: " + text)
    failures += 1


def form(lines):
    """The sentence and its places, without numbers, folders, and the calls further out."""
    kept = []
    for line in lines:
        line = re.sub(r" \(\d+ times.*\)$|\S*/(?=[a-z_]+\.[ch]:)", "", line.strip())
        if not line.startswith("from "):
            kept.append(re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", line))
    return kept


def printed(rule):
    """The first finding of the rule in its wrong program."""
    cases = [CASES[rule]] if rule in CASES else [("memory", rule), ("queues", rule)]
    for program, name in cases:
        done = subprocess.run([pumice, "run", "--check=" + RULES.get(rule, "all"), f"{programs}/{program}", name, "wrong"], capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode != 2:  # the program has no mistake of this name
            break
    lines = []
    for line in done.stderr.splitlines():
        if re.match(r"  [a-z-]+: ", line):
            if lines:
                break
            if line.startswith(f"  {rule}: "):
                lines.append(line)
        elif lines:
            lines.append(line)
    return lines


with open(page, encoding="utf-8") as f:
    sections = {re.match(r"[a-z-]+", s).group(): s for s in re.split(r"(?m)^### ", f.read())[1:]}
known = subprocess.run([pumice, "run", "--check=none", "true"], capture_output=True, text=True, check=False).stderr
rules = known.partition("the rules are all, ")[2].strip().split(", ")
if sorted(rules) != sorted(sections):
    fail(f"rules: {sorted(rules)}, sections: {sorted(sections)}")
for rule in rules:
    text = sections.get(rule, "")
    shown = re.search(rf"(?ms)^```\n({rule}: .*?)^```$", text)
    if not re.search(r"(?m)^```c$", text) or "wrong" not in text or not shown:
        fail(f"{rule}: an example and what is printed are missing")
        continue
    wanted, got = form(shown.group(1).splitlines()), form(printed(rule))
    if wanted != got:
        fail(f"{rule}: the page has {wanted}, the checker prints {got}")
sys.exit(failures > 0)
EOF
exit $?
