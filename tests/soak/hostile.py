#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A hostile member beside a bystander. Both are users of one daemon, each with a uid of its own.

    tests/soak/hostile.py [--seconds N] [--seed N] [--only ATTACK,...] [--places PLACE,...] [--processes N] [--short]

The hostile member makes every effort to disturb the daemon, in one way after the other: objects up to its quotas, floods of status
requests, half-open connections, descriptors of all kinds, garbage in its rings, doorbells without work, hundreds of queue pairs at full
speed, matching lists, memory that goes away, processes that die. In the end it does all of it at random. tests/soak/hostile has the
programs.

The bystander WRITEs 64 KiB at a time, from one device of the daemon to another ("shared": the devices that the member uses), or within a
device of its own ("own"). It checks each completion and all data. Meanwhile it asks the daemon for its status and measures how long that
takes. Alone and beside the member take turns. The table has the median of each.

The member's processes also need processor time, and the kernel shares that between processes: the daemon has no influence on it. So the
table also has what the bystander transfers for each second of processor time that the threads of its devices use. This is the share that
the daemon decides about. The attack "burn" shows what busy processes cost that do not use the daemon.

It fails if the bystander sees an error or wrong data, if the daemon ends, or if any object is left afterwards. It fails for no figure.
With --short it runs some seconds and measures little. It needs root, for the two users.
"""

import argparse
import grp
import os
import random
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e/lib"))

import lab as labs  # noqa: E402

BYSTANDER, MEMBER, GROUP = 65531, 65532, "nogroup"
DEVICES = ("pm_a", "pm_b", "pm_own")
BLOCK = 65536  # of the bystander
PLACES = {"shared": ("pm_a", "pm_b"), "own": ("pm_own", "pm_own")}


def as_user(uid):
    return [labs.which("setpriv"), f"--reuid={uid}", f"--regid={grp.getgrnam(GROUP).gr_gid}", "--clear-groups", "--inh-caps=-all"]


def check_users(program):
    """Can two other users run the programs of this build?"""
    if os.geteuid() != 0:
        raise labs.Unavailable("two users: this is not root")
    try:
        found = subprocess.run(as_user(MEMBER) + [program, "list"], capture_output=True, text=True, check=False)
    except KeyError as e:
        raise labs.Unavailable(f"no group {GROUP}") from e
    if found.returncode != 0:
        raise labs.Unavailable("other users can't run the build")
    return found.stdout.split()


class Member:
    """A process of the hostile member, with those that it starts."""

    def __init__(self, host, program, attack, seconds, seed):
        self.process = labs.Process([program, "attack", attack, seconds, seed], host.env(), host.lab.log("member"), as_user(MEMBER))
        host.lab.processes.append(self.process)
        self.host = host

    def end(self):
        self.process.kill()
        self.host.lab.processes.remove(self.process)
        os.unlink(self.process.log)


class Figures:
    """Of one measurement: GB/s, GB for each second of processor time, 99 % and maximum of the latency of a STATUS in ms."""

    def __init__(self, rate, for_processor, most, maximum):
        self.rate, self.for_processor, self.most, self.maximum = rate, for_processor, most, maximum


class Bystander:
    """Its process measures for as long as it is asked to."""

    def __init__(self, lab, program, place):
        self.daemon, self.devices = lab.server.daemon.pid, PLACES[place]
        argv = as_user(BYSTANDER) + [program, "bystander", *PLACES[place]]
        self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **lab.server.env()))
        self.hear("ready")

    def hear(self, what=None):
        line = self.popen.stdout.readline().strip()
        if not line or line.startswith(("error", "not ok")) or (what and line != what):
            raise labs.Trouble(f"the bystander: {line or 'it ended'} {self.popen.stdout.read() if self.popen.poll() is not None else ''}")
        return line

    def processor_seconds(self):
        """That the threads of its devices have used."""
        used = 0
        for task in os.listdir(f"/proc/{self.daemon}/task"):
            try:
                with open(f"/proc/{self.daemon}/task/{task}/comm", encoding="ascii") as comm, \
                        open(f"/proc/{self.daemon}/task/{task}/schedstat", encoding="ascii") as stat:
                    if comm.read().strip() in self.devices:
                        used += int(stat.read().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass  # a thread that closes files of clients has ended meanwhile
        return used / 1e9

    def measure(self, seconds):
        before = self.processor_seconds()
        self.popen.stdin.write(f"{seconds}\n")
        self.popen.stdin.flush()
        rate, blocks, _requests, most, maximum = self.hear().split()
        used = self.processor_seconds() - before
        return Figures(float(rate), int(blocks) * BLOCK / 1e9 / max(used, 1e-3), float(most), float(maximum))

    def end(self):
        self.popen.stdin.close()
        if self.popen.wait(20) != 0:
            raise labs.Trouble("the bystander failed")

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()


class Run:
    def __init__(self, args):
        self.args = args
        self.program = os.path.join(args.build, "tests", "soak", "hostile", "hostile")
        if not os.path.exists(self.program):
            raise labs.Unavailable("tests/soak/hostile is not built (make tests)")
        self.attacks = check_users(self.program) + ["random"]
        unknown = [a for a in args.only if a not in self.attacks]
        if unknown:
            raise labs.Trouble(f"no attack {unknown[0]}; there are: {', '.join(self.attacks)}")
        self.rng = random.Random(args.seed)

    def open_lab(self):
        others = labs.free_addresses(self.args.block, len(DEVICES))
        options = ["--group", GROUP, "--log-level", "error"]
        for name, address in zip(DEVICES[1:], others[1:]):
            options += ["--device", f"{name}={address}"]
        lab = labs.Lab(labs.Build(self.args.build), "device", options, self.args.block, device=DEVICES[0])
        os.chmod(lab.dir, 0o755)
        return lab

    def beside(self, lab, bystander, attack, seconds):
        host = lab.server
        members = [Member(host, self.program, attack, seconds + 30, self.rng.randrange(1 << 31)) for _ in range(self.args.processes)]
        try:
            bystander.measure(0.5)  # the attack makes its objects
            return bystander.measure(seconds)
        finally:
            for m in members:
                m.end()

    def row(self, lab, bystander, place, attack):
        alone, beside = [], []
        for _ in range(self.args.turns):
            alone.append(bystander.measure(self.args.seconds / self.args.turns / 2))
            beside.append(self.beside(lab, bystander, attack, self.args.seconds / self.args.turns))
        if not lab.alive():
            raise labs.Trouble(f"the daemon ended during {attack}:\n{lab.server.daemon.output()[-4000:]}")
        print(f"{place:8s}{attack:13s}" + self.shares(alone, beside, "rate") + self.shares(alone, beside, "for_processor") +
              "".join(f"{max(getattr(m, name) for m in side):8.1f}" for side in (alone, beside) for name in ("most", "maximum")), flush=True)

    @staticmethod
    def shares(alone, beside, name):
        a, b = (statistics.median(getattr(m, name) for m in side) for side in (alone, beside))
        return f"{a:8.2f}{b:8.2f}{100 * b / max(a, 1e-4):6.0f} %"

    @staticmethod
    def must_be_empty(lab):
        """All objects are gone, and nobody is charged for anything."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            status = lab.server.status()
            left = labs.object_counts(status) or [row for row in status["quotas"] if row["uid"] != 0]
            if not left:
                return
            time.sleep(0.2)
        raise labs.Trouble(f"left in the daemon: {left} {status['quotas']}")

    def run(self):
        print(f"hostile: seed {self.args.seed}, {self.args.processes} processes of the member, {os.cpu_count()} processors")
        print("                     GB/s                    GB per processor s      STATUS alone    beside, ms\n"
              "device  attack          alone  beside   share   alone  beside   share   99 %     max    99 %     max", flush=True)
        with self.open_lab() as lab:
            for place in self.args.places:
                bystander = Bystander(lab, self.program, place)
                try:
                    for attack in self.args.only or self.attacks:
                        self.row(lab, bystander, place, attack)
                    bystander.end()
                finally:
                    bystander.kill()
            self.must_be_empty(lab)
        print("no error, no wrong data, all counts are zero")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="beside each attack (60)")
    parser.add_argument("--turns", type=int, default=3, help="alone and beside, for each attack (3)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the attacks (random)")
    parser.add_argument("--only", type=lambda s: s.split(","), default=[], metavar="ATTACK,...", help="only these attacks")
    parser.add_argument("--places", type=lambda s: s.split(","), default=list(PLACES), metavar="PLACE,...", help="where the bystander is (shared,own)")
    parser.add_argument("--processes", type=int, default=1, help="of the member (1)")
    parser.add_argument("--short", action="store_true", help="a few seconds for all")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.61", metavar="A.B.C", help="addresses for the devices (127.0.61)")
    args = parser.parse_args()
    if args.short:
        args.seconds, args.turns, args.places = 0.4, 1, ["shared"]
    return labs.exit_code_of(lambda: Run(args).run(), args.seed)


if __name__ == "__main__":
    sys.exit(main())
