#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests Pumice beside soft-RoCE (rdma_rxe) of a Linux kernel, which runs in a virtual machine (tests/rxe/guest).

    tests/rxe/run.py                         all cases, in both directions
    tests/rxe/run.py -k ipv6 -k ib_read      cases whose name contains one of these, or matches one as an fnmatch pattern
    tests/rxe/run.py --as client             only with Pumice as the client
    tests/rxe/run.py --write docs/interop.md writes the result there, if all cases were run
    tests/rxe/run.py --save FILE             saves the results; --load FILE... takes results from there and runs nothing

Each case is "ok", "deviates (rxe)" if soft-RoCE itself differs from the specification (deviations.py says why), or
"failed". Exit code: 1 if a case failed, 77 if this machine can't run the guest.
"""

import argparse
import datetime
import fnmatch
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "../e2e/lib"), os.path.join(HERE, "../rdmacm")]

import lab as labs  # noqa: E402
import cm_cases  # noqa: E402
import deviations  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402

ROLES = ("client", "server")
GID_OPTION = {"ibv": "-g", "ib": "-x", "rdma": "-g", "odd": "-g"}
FAMILIES = (("ipv4", False), ("ipv6", True))
CM_TRIES, SEGV = 30, (-11, 139)


def matches(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatchcase(name, p) for p in patterns)


class Runner:
    def __init__(self, args, build):
        self.args, self.build = args, build
        self.machine, self.about = None, None
        self.results = []  # report.Result
        self.stopped = False  # the guest ended before the last case
        self.program = {"rdma_endurance": build.verbs_test("rdma_endurance"), "odd": os.path.join(build.dir, "tests", "rxe", "odd")}

    # --- one pair of programs ---

    def argv(self, side, argv, six, port, server):
        """A program with device, GID index, port and address."""
        device, index = self.machine.gid(side, six)
        program = self.program.get(argv[0]) or labs.which(argv[0])
        where = ["-d", device, GID_OPTION[re.split("[_]", argv[0])[0]], str(index), "-p", str(port)]
        return [program, *argv[1:], *where] + ([server] if server else [])

    def pair(self, role, argv, six, seconds, server_argv=None):
        """Runs a pair of programs; returns their outputs (server, client) and a text for a failure, or None."""
        port = labs.tcp_port()
        sides = ("pumice", "rxe") if role == "server" else ("rxe", "pumice")
        address = machine.HOST_IP if role == "server" else machine.GUEST_IP
        argvs = (self.argv(sides[0], server_argv or argv, six, port, None), self.argv(sides[1], argv, six, port, address))
        processes, codes = self.machine.pair_of(sides, argvs, port, seconds)
        outputs = [p.output() if p else "" for p in processes]
        trouble = None
        for who, code in (("client", codes[1]), ("server", codes[0])):
            if code != 0 and trouble is None:
                trouble = f"the {who} did not end within {seconds:.0f} s" if code is None else f"the {who} exited with {code}"
        logs = "".join(f"\n--- {who} ({side}): {p.line}\n{p.output()[-3000:]}" for who, side, p in zip(("server", "client"), sides, processes) if p)
        return outputs, trouble, logs

    def cm_values(self, role, case):
        """What the arguments of programs that connect by rdma_cm may name, and the two sides."""
        addresses = {"pumice": machine.HOST_IP6 if case.six else machine.HOST_IP, "rxe": machine.GUEST_IP6 if case.six else machine.GUEST_IP}
        sides = ("pumice", "rxe") if role == "server" else ("rxe", "pumice")
        values = {"address": addresses[sides[0]], "server": addresses[sides[0]], "client": addresses[sides[1]], "port": labs.tcp_port(), "group": case.group}
        return sides, values

    def cm_pair(self, role, case):
        """The same for programs that connect by rdma_cm: they get an address and no device."""
        sides, values = self.cm_values(role, case)
        argvs = [[a.format(own=values[who], **values) for a in argv] for who, argv in (("server", case.server), ("client", case.argv))]
        for argv in argvs:
            argv[0] = labs.which(argv[0])
        listens = int(case.listens.format(**values)) if case.listens else None
        for _ in range(CM_TRIES):
            processes, codes = self.machine.pair_of(sides, argvs, listens, case.timeout, True, case.stays)
            outputs = [p.output() if p else "" for p in processes]
            # perftest listens twice: for its parameters, and then for its queue pairs. A client that comes before the second time is
            # rejected, and ends by a signal. An emulated guest's server is late in every second try or so.
            if "-R" not in case.argv or codes[1] not in SEGV or "RDMA_CM_EVENT_REJECTED" not in outputs[1]:
                break
        trouble = next((f"the {who} ended with {code}" for who, code in (("client", codes[1]), ("server", codes[0])) if code != 0), None)
        logs = "".join(f"\n--- {who} ({side}): {p.line}\n{p.output()[-3000:]}" for who, side, p in zip(("server", "client"), sides, processes) if p)
        return outputs, trouble, logs

    def cm_play(self, role, case):
        """A case that is more than a pair of programs."""
        sides, values = self.cm_values(role, case)
        play = cm_cases.Play(self.machine, sides, values)
        try:
            case.play(play)
        finally:
            for process in play.processes:
                process.kill()
            self.machine.processes = [p for p in self.machine.processes if p.alive()]

    # --- cases of programs ---

    def run_program(self, case, role):
        start, logs, trouble = time.monotonic(), "", None
        before = self.machine.sent()
        try:
            if case.fault:
                self.machine.fault(case.fault)
            if case.netem:
                self.machine.netem(case.netem)
            if case.play:
                self.cm_play(role, case)
            else:
                outputs, trouble, logs = self.cm_pair(role, case) if case.server else self.pair(role, case.argv, case.six, case.timeout)
                if trouble is None:
                    case.check(*outputs)
        except labs.Trouble as e:
            trouble = str(e)
        finally:
            if case.fault:
                self.machine.fault("off")
            if case.netem:
                self.machine.netem("")
        packets, again = (b - a for a, b in zip(before, self.machine.sent()))
        self.judge(case.name, role, trouble is None, (trouble or "") + logs, time.monotonic() - start, f", {packets} packets, {again} sent again")

    # --- odd cases ---

    def run_odd(self, group, six, names, role):
        """If the program ends early, another one goes on behind the case at which it did."""
        start = time.monotonic()
        todo = [n for n in self.odd_names() if f"{group}/odd/{n}" in names]
        alone = [n for n in todo if fnmatch.fnmatchcase(n, table.ODD_ALONE)]
        todo = [n for n in todo if n not in alone] + alone
        while todo:
            self.need_guest()
            some = [n for n in todo if n not in alone] or todo[:1]
            try:
                outputs, trouble, logs = self.pair(role, ["odd", "-k", ",".join(some)], six, 10 + 2 * len(some), ["odd"])
            except labs.Trouble as e:
                outputs, trouble, logs = ("", ""), str(e), ""
            left = len(todo)
            for line in outputs[1].splitlines():
                field = line.split("\t")
                if len(field) == 4 and todo and field[0] == todo[0]:
                    now = time.monotonic()
                    self.judge(f"{group}/odd/{todo.pop(0)}", role, field[1] == "same", f"seen:     {field[2]}\nexpected: {field[3]}", now - start)
                    start = now
            if trouble and todo and left - len(todo) < len(some):
                self.judge(f"{group}/odd/{todo.pop(0)}", role, False, trouble + logs, time.monotonic() - start)
                start = time.monotonic()

    def odd_names(self):
        return subprocess.run([self.program["odd"], "-l"], capture_output=True, text=True, check=True).stdout.split()

    # --- results ---

    def need_guest(self):
        """Without the guest, the remaining cases would say nothing about Pumice."""
        if not self.machine.guest.alive():
            raise labs.Trouble("the guest has ended:\n" + self.machine.guest.log())

    def judge(self, name, role, held, text, seconds, traffic=""):
        known = deviations.find(name, role)
        reason = next((d.reason for d in known if not held and d.explains(text)), "")
        verdict = "ok" if held else "deviates" if reason else "failed"
        result = report.Result(name, role, verdict, reason, held and any(d.always for d in known))
        self.results.append(result)
        line = f"{result.text():9} {name}, Pumice is the {role} ({seconds:.1f} s{traffic})"
        print(line + (f": {reason}" if reason else ""), flush=True)
        if result.conforms:
            print("    soft-RoCE conforms in this case: take it out of tests/rxe/deviations.py", flush=True)
        if verdict == "failed":
            print("    " + text.rstrip().replace("\n", "\n    "))
            print(f"    run it alone: make test-rxe RXE_ARGS=\"--as {role} -k '{name}'\"\n", flush=True)

    def names(self):
        """The names that the command line asks for, in the order of the table."""
        every = [c.name for c in table.all_cases() if not c.six] + [f"ipv4/odd/{n}" for n in self.odd_names()]
        every += [c.name for c in table.all_cases() if c.six] + [f"ipv6/odd/{n}" for n in self.odd_names() if any(fnmatch.fnmatchcase(n, p) for p in table.ODD_IPV6)]
        return every, [n for n in every if matches(n, self.args.filter) and not (self.args.exclude and matches(n, self.args.exclude))]

    def run(self):
        _, names = self.names()
        chosen = set(names)
        roles = [self.args.role] if self.args.role else ROLES
        self.machine = machine.Machine(self.build, "rxe")
        try:
            kernel = self.machine.guest.run("uname -r").strip()
            print(f"Linux {kernel} in the guest\n", flush=True)
            self.about = report.About(kernel, self.machine.guest.run("dpkg-query -W -f '${Version}' rdma-core").strip(), datetime.date.today().isoformat())
            for group, six in FAMILIES:
                for role in roles:
                    for case in table.all_cases():
                        if case.name in chosen and case.six == six:
                            self.need_guest()
                            self.run_program(case, role)
                    self.run_odd(group, six, chosen, role)
        except labs.Trouble as e:
            print(f"the remaining cases are not run: {e}", flush=True)
            self.stopped = True
        finally:
            self.machine.close()
            if self.args.save and self.results:
                report.save(self.args.save, self.results, self.about)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only cases with TEXT in their name")
    parser.add_argument("-x", "--exclude", action="append", default=[], metavar="TEXT", help="not these")
    parser.add_argument("--as", dest="role", choices=ROLES, help="what Pumice is; both if not given")
    parser.add_argument("--list", action="store_true", help="print the names and exit")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR", help="what to test (build)")
    parser.add_argument("--save", metavar="FILE", help="save the results as JSON")
    parser.add_argument("--load", metavar="FILE", nargs="+", help="run nothing, take the results from there")
    parser.add_argument("--write", metavar="FILE", help="write the result into this page, between its marks")
    return parser.parse_args()


def main():
    args = parse()
    build = labs.Build(args.build)
    odd = os.path.join(build.dir, "tests", "rxe", "odd")
    missing = [p for p in (*build.missing(), odd) if not os.path.exists(p)]
    if missing:
        print(f"not built: {' '.join(missing)}; run `make test-rxe`")
        return 2
    runner = Runner(args, build)
    every, names = runner.names()
    if args.list:
        print("\n".join(names))
        return 0
    if not names:
        print("no case has such a name; --list prints all names")
        return 2
    labs.end_when_told()
    start = time.monotonic()
    if args.load:
        results, runner.about = report.load(args.load)
    else:
        try:
            runner.run()
        except labs.Unavailable as e:
            print(f"skip: {e}")
            return 77
        results = runner.results
    report.print_summary(results, time.monotonic() - start)
    wanted = {(name, role) for name in every for role in ROLES}
    missing = wanted - {(r.name, r.role) for r in results}
    if args.write and missing:
        print(f"{args.write} is not written: {len(missing)} of {len(wanted)} results are missing, for example {sorted(missing)[0]}")
        return 2
    if args.write:
        report.write(args.write, results, runner.about)
    return 1 if runner.stopped or any(r.verdict == "failed" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
