#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs mixed traffic with faults and sudden deaths for a long time.

    tests/soak/soak.py [--seconds N] [--seed N] [--pairs N] [--only KIND] [--hostile]

Several hosts run at once. Two lose, duplicate and reorder packets. One talks to itself under the same faults. Two are without faults,
for UC and UD, which retransmit nothing. Pairs of programs start and end on them at random: data-checked traffic over every transport,
unmodified tools, and programs that make random verbs calls. Some programs are killed in the middle. A pair must succeed if none of its
programs was killed. The partner of a killed program must end by itself, with an error.

The daemons get a large minimum timeout. On a machine with fewer processors than busy processes, a daemon may not run for half a second.
Most programs' connections fail after this time, and some of the tools never notice their failure. If a pair does not succeed, the report
shows what the daemons know about its queues, and where its processes are in the kernel.

With --hostile each daemon also has a hostile member of another uid (tests/soak/hostile), and all the same must hold. It needs root.

At the end of each round all is quiet. Then no daemon may have an object left, and its memory must be the same as after the first
round. A seed repeats the choice of programs, not their timing.
"""

import argparse
import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e/lib"))

import hostile  # noqa: E402
import lab as labs  # noqa: E402

PATIENT = ["--min-timeout-us", "1000000", "--log-level", "warn,qp=info"]
FAULTS = PATIENT + ["--fault", "loss=1%,dup=1%,reorder=2%"]
ROUND_SECONDS = 60
GIVE_BACK_SECONDS = 5  # in which a daemon gives memory back
KILL_SHARE = 0.2  # of all pairs
END_SECONDS = 60  # that a partner of a dead process may take
MEMORY_SLACK = 8 << 20  # bytes that a daemon may grow by


class Kind:
    """A sort of pair: its command as a function of a random generator, and what a killed partner means for the other."""

    def __init__(self, name, make, reliable=True, single=False):
        self.name, self.make, self.reliable, self.single = name, make, reliable, single


def endurance(transport, *more):
    def make(rng, build):
        size = rng.choice((64, 4096, 65536, 1 << 20))
        depth = 8 if size > 65536 else rng.choice((8, 32, 128))
        return [build.verbs_test("rdma_endurance"), "-c", transport, "-D", str(rng.randint(2, 12)), "-S", str(size), "-q", str(depth), "-m",
                rng.choice(("256", "1024", "4096")), "-r", str(rng.randrange(1 << 30)), "-u", str(rng.choice((1, 4, 4))), "-T", "40"] + \
            (["-e"] if rng.random() < 0.3 else []) + list(more)
    return make


def tool(*argv):
    def make(rng, build):
        # Line by line, so that a tool that is killed while it hangs has said how far it came.
        return [labs.which("stdbuf"), "-oL", labs.which(argv[0])] + [str(rng.choice(a)) if isinstance(a, tuple) else a for a in argv[1:]]
    return make


SIZES = ("1", "64", "1000", "4096", "65536", "1000003")
FAULTY = [
    Kind("rc", endurance("RC")), Kind("rc", endurance("RC")), Kind("srq", endurance("SRQ")), Kind("xrc", endurance("XRC")),
    Kind("rc_pingpong", tool("ibv_rc_pingpong", "-g", "0", "-c", "-s", SIZES, "-n", ("50", "500"))),
    Kind("srq_pingpong", tool("ibv_srq_pingpong", "-g", "0", "-c", "-q", ("1", "16"), "-n", "200")),
    Kind("xsrq_pingpong", tool("ibv_xsrq_pingpong", "-g", "0", "-m", "1024", "-n", "500")),
    Kind("write_bw", tool("ib_write_bw", "-F", "-x", "0", "-s", SIZES, "-n", "200", "-q", ("1", "4"))),
    Kind("read_bw", tool("ib_read_bw", "-F", "-x", "0", "-s", SIZES, "-n", "200")),
    Kind("send_lat xrc", tool("ib_send_lat", "-F", "-x", "0", "-c", "XRC", "-n", "500")),
    Kind("atomic_bw", tool("ib_atomic_bw", "-F", "-x", "0", "-n", "500", "-c", ("RC", "XRC"))),
    Kind("chaos", lambda rng, build: [build.soak("chaos"), "--seconds", str(rng.randint(2, 12)), "--seed", str(rng.randrange(1 << 30))], single=True),
]
CLEAN = [
    Kind("uc", endurance("UC"), reliable=False),
    Kind("uc_pingpong", tool("ibv_uc_pingpong", "-g", "0", "-c", "-s", SIZES, "-n", "200"), reliable=False),
    Kind("ud_pingpong", tool("ibv_ud_pingpong", "-g", "0", "-c", "-s", ("1", "24", "1024", "4000"), "-n", "1000"), reliable=False),
    Kind("write_bw uc", tool("ib_write_bw", "-F", "-x", "0", "-c", "UC", "-s", SIZES, "-n", "200"), reliable=False),
    Kind("send_lat ud", tool("ib_send_lat", "-F", "-x", "0", "-c", "UD", "-s", "512", "-n", "1000"), reliable=False),
    Kind("rc", endurance("RC")),
    Kind("chaos", lambda rng, build: [build.soak("chaos"), "--seconds", str(rng.randint(2, 12)), "--seed", str(rng.randrange(1 << 30))], single=True),
]


class SoakBuild(labs.Build):
    def soak(self, name):
        path = os.path.join(self.dir, "tests", "soak", name)
        if not os.path.exists(path):
            raise labs.Unavailable(f"{os.path.relpath(path)} is not built (make tests)")
        return path


# --- what is known of a pair that does not end ---------------------------------------------------------------------------------

def told(node):
    """Without what says nothing: null, zero, false, empty."""
    if isinstance(node, dict):
        return {k: v for k, v in ((k, told(v)) for k, v in node.items()) if v not in (None, 0, False, "", [], {})}
    return [told(v) for v in node] if isinstance(node, list) else node


def queues_of(device, pids):
    """The part of a device's status that is about the objects of these processes."""
    sessions = {s["session"] for s in device["sessions"] if s["pid"] in pids}
    part = {"name": device["name"], "counters": device["counters"]}
    for key in ("sessions", "qps", "srqs", "cqs"):
        part[key] = [o for o in device.get(key, []) if o.get("session") in sessions or sessions & set(o.get("openers") or [])]
    return part


def in_kernel(pid):
    """Where a process is, thread by thread, as far as we may see it; run_delay: how long it has waited for a processor in its life."""
    lines = []
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        seen = []
        for name in ("comm", "wchan", "syscall", "schedstat", "stack"):
            try:
                with open(f"/proc/{pid}/task/{task}/{name}", encoding="ascii", errors="replace") as f:
                    text = f.read().strip()
            except OSError as e:
                text = f"({e.strerror})"
            if name == "schedstat" and len(text.split()) == 3:
                name, text = "run_delay", f"{int(text.split()[1]) / 1e9:.3f} s"
            seen.append(f"{name} {'; '.join(text.splitlines())}")
        lines.append(f"{task}: " + ", ".join(seen))
    return "\n".join(lines)


def diagnosis(lab, processes):
    pids = {p.pid for p in processes}
    text = []
    for host in lab.hosts:
        text.append(f"--- {host.name} at {host.address}")
        try:
            text += [json.dumps(told(queues_of(d, pids)), indent=1) for d in host.status()["devices"]]
        except (OSError, KeyError, labs.Trouble) as e:
            text.append(f"no status: {type(e).__name__} {e}")
        text.append("its log's end:\n" + host.daemon.output()[-4000:])
    for who in [h.daemon for h in lab.hosts] + processes:
        if who.alive():
            text.append(f"--- {who.argv[-1] if who in processes else who.line}: process {who.pid}\n{in_kernel(who.pid)}")
    return "\n".join(text)


class Slot(threading.Thread):
    """Runs one pair after the other until the round is over."""

    def __init__(self, number, soak, lab, kinds, seed):
        super().__init__(daemon=True)
        self.number, self.soak, self.lab, self.kinds, self.rng = number, soak, lab, kinds, random.Random(seed)

    def run(self):
        while time.monotonic() < self.soak.round_end and not self.soak.trouble:
            kind = self.rng.choice(self.kinds)
            try:
                self.one(kind)
            except labs.Trouble as e:
                self.soak.trouble.append(f"slot {self.number}, {kind.name}: {e}")
            except OSError as e:
                self.soak.trouble.append(f"slot {self.number}, {kind.name}: {type(e).__name__} {e}")

    def one(self, kind):
        with self.soak.lock:
            port = labs.tcp_port()
        argv = kind.make(self.rng, self.soak.build)
        kill_after = self.rng.uniform(0.05, 3) if self.rng.random() < KILL_SHARE else None
        victim = self.rng.randrange(2)
        if kind.single:
            processes = [self.lab.server.run(argv, "single")]
        else:
            processes = [self.lab.server.run(argv + ["-p", str(port)], "server")]
            labs.wait_listening(processes[0], port, 60)
            processes.append(self.lab.client.run(argv + ["-p", str(port), "127.0.0.1"], "client"))
        self.soak.count(kind.name, kill_after is not None)
        if kill_after is not None:
            self.after_kill(kind, processes, processes[victim % len(processes)], kill_after)
        else:
            self.must_end_well(self.lab, processes)
        for p in processes:
            os.unlink(p.log)

    @staticmethod
    def must_end_well(lab, processes):
        text = lambda: "".join(f"\n--- {p.line}\n{p.output()[-3000:]}" for p in processes)  # noqa: E731
        for p in reversed(processes):
            code = p.wait(END_SECONDS * 3)
            if code != 0:
                why = text() + "\n" + diagnosis(lab, processes)
                for q in processes:
                    q.kill()
                raise labs.Trouble(f"{'no end' if code is None else f'exit code {code}'}: {p.line}{why}")

    def after_kill(self, kind, processes, victim, seconds):
        victim.wait(seconds)
        victim.kill()
        for p in processes:
            if p is victim:
                continue
            looks = kind.reliable and "rdma_endurance" in p.line  # the tools wait for ever for a message that nobody sends
            if p.wait(END_SECONDS if looks else 3) is None and looks:
                why = p.output()[-3000:] + "\n" + diagnosis(self.lab, [p])
                p.kill()
                raise labs.Trouble(f"did not notice that its partner was killed: {p.line}\n{why}")
            p.kill()


class Soak:
    def __init__(self, args):
        self.args, self.build = args, SoakBuild(args.build)
        self.lock, self.trouble, self.counts, self.kills = threading.Lock(), [], {}, 0
        self.round_end = 0
        self.memory = {}
        self.member = self.build.soak("hostile/hostile") if args.hostile else None
        if self.member:
            hostile.check_users(self.member)

    def count(self, name, killed):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1
            self.kills += killed

    @staticmethod
    def resident(host):
        with open(f"/proc/{host.daemon.pid}/status", encoding="ascii", errors="replace") as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["RssAnon"].split()[0]) << 10, int(fields["RssShmem"].split()[0]) << 10

    def quiet(self, laboratories, first):
        for lab in laboratories:
            if not lab.alive():
                raise labs.Trouble("a daemon has died:\n" + "".join(h.daemon.output()[-4000:] for h in lab.hosts))
            lab.wait_objects_gone(20)
            for host in lab.hosts:
                most = self.memory.get(host, 0) + MEMORY_SLACK
                anon, shared = self.resident(host)
                end = time.monotonic() + GIVE_BACK_SECONDS
                while anon > most and time.monotonic() < end:
                    time.sleep(0.1)
                    anon, shared = self.resident(host)
                if first:
                    self.memory[host] = anon
                grown = anon - self.memory[host]
                print(f"    {host.name} at {host.address}: {anon >> 10} KiB, {shared >> 10} KiB shared, {grown >> 10:+d} KiB since the first round", flush=True)
                if grown > MEMORY_SLACK:
                    raise labs.Trouble(f"the daemon at {host.address} has grown by {grown >> 10} KiB")

    def one_round(self, number, laboratories, seconds):
        self.round_end = time.monotonic() + seconds
        rng = random.Random(self.args.seed * 1000 + number)
        slots = [Slot(i, self, *laboratories[i % len(laboratories)], rng.randrange(1 << 30)) for i in range(self.args.pairs)]
        hosts = {h: None for lab, _ in laboratories for h in lab.hosts} if self.member else {}
        members = [hostile.Member(h, self.member, "random", seconds + 600, rng.randrange(1 << 31)) for h in hosts]
        try:
            for s in slots:
                s.start()
            for s in slots:
                s.join()
        finally:
            for m in members:
                m.end()

    def run(self):
        start = time.monotonic()
        members = ["--group", hostile.GROUP] if self.member else []
        faults = FAULTS + members + ["--seed", str(self.args.seed)]
        with labs.Lab(self.build, "hosts", faults, self.args.block) as faulty, labs.Lab(self.build, "device", faults, self.args.block) as one, \
                labs.Lab(self.build, "hosts", PATIENT + members, self.args.block) as clean:
            for lab in (faulty, one, clean):
                if self.member:
                    os.chmod(lab.dir, 0o755)
            where = [(faulty, FAULTY), (one, FAULTY), (faulty, FAULTY), (clean, CLEAN)]
            if self.args.only:
                where = [(lab, [k for k in kinds if self.args.only == k.name]) for lab, kinds in where]
                where = [(lab, kinds) for lab, kinds in where if kinds]
            number = 0
            while True:
                left = self.args.seconds - (time.monotonic() - start)
                if number and left <= 5:
                    break
                self.one_round(number, where, min(ROUND_SECONDS, max(left, 5)))
                print(f"round {number}, {time.monotonic() - start:.0f} s: {sum(self.counts.values())} pairs, {self.kills} killed in the middle", flush=True)
                if self.trouble:
                    raise labs.Trouble("\n".join(self.trouble))
                self.quiet((faulty, one, clean), number == 0)
                number += 1
        print("ran " + ", ".join(f"{n} {name}" for name, n in sorted(self.counts.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800, help="(1800)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20), help="of the choice of programs (random)")
    parser.add_argument("--pairs", type=int, default=8, help="pairs at a time (8)")
    parser.add_argument("--only", choices=sorted({k.name for k in FAULTY + CLEAN}), metavar="KIND", help="nothing but pairs of this kind: %(choices)s")
    parser.add_argument("--hostile", action="store_true", help="with a hostile member beside the pairs")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.60", metavar="A.B.C", help="addresses for the hosts (127.0.60)")
    args = parser.parse_args()
    print(f"soak: seed {args.seed}", flush=True)
    return labs.exit_code_of(lambda: Soak(args).run(), args.seed)


if __name__ == "__main__":
    sys.exit(main())
