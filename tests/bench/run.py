#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares Pumice with its alternatives on the same machine, in one run.

    tests/bench/run.py               five repetitions, all sizes (some 18 minutes on a quiet machine, at most 30)
    tests/bench/run.py --quick       three repetitions, fewer sizes (under 4 minutes)
    tests/bench/run.py -k send_lat   only some measures (and the ratios that need no others)

Every repetition runs each measure once, Pumice's and the alternatives' in turn. So a machine that becomes slower becomes slower for all
of them. Where processors are few, each daemon keeps to one, as with `pumice run --cpus spread`. The tables show medians. A ratio is the
median of the ratios within each repetition. The benchmark only reports; it never fails because of a figure. The results are also written to
build/bench.json.
"""

import argparse
import dataclasses
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for folder in ("e2e/lib", "mpi"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import lab as labs  # noqa: E402
import mpi_job  # noqa: E402
import processors  # noqa: E402
import progress  # noqa: E402
import verdict  # noqa: E402
from verdict import number  # noqa: E402

MIB = 1 << 20
SIZE_NAME = {2: "2 B", 8: "8 B", 64: "64 B", 4096: "4 KiB", 65536: "64 KiB", MIB: "1 MiB"}
# Long enough that starting up does not count: most of a second each. After a change of direction, the kernel's lists of free
# pages make the first 700 MB slower (docs/design-notes.md).
BW_ITERATIONS = {2: 500000, 64: 1000000, 4096: 500000, 65536: 60000, MIB: 4000}
LAT_ITERATIONS = {2: 20000, 8: 20000, 4096: 10000, 65536: 2000, MIB: 300}
WHERE = {"hosts": "hosts, UDP over loopback", "veth9000": "hosts, veth MTU 9000", "device": "one device", "loss": "hosts, 1 % loss",
         "lossoff": "hosts, 1 % loss, go-back-N", "loss5": "hosts, 5 % loss", "loss5off": "hosts, 5 % loss, go-back-N",
         "reorder5": "hosts, 5 % out of order", "reorder5off": "hosts, 5 % out of order, go-back-N"}
FAULTS = {"loss": ["--fault", "loss=1%"], "lossoff": ["--fault", "loss=1%", "--selective", "off"],
          "loss5": ["--fault", "loss=5%"], "loss5off": ["--fault", "loss=5%", "--selective", "off"],
          "reorder5": ["--fault", "reorder=5%"], "reorder5off": ["--fault", "reorder=5%", "--selective", "off"]}
RDMA_DEVICES = "/sys/class/infiniband"
SECONDS_MAX = 20  # of one measurement; what takes longer is reported as a failure of the measure, not waited for
JOB_SECONDS_MAX = 60  # of one job of MPI


@dataclasses.dataclass
class Measure:
    key: str
    label: str
    unit: str
    run: object  # returns a number
    section: str
    values: list = dataclasses.field(default_factory=list)  # by repetition; None: it failed
    why: str = ""  # last failure

    def median(self):
        good = [v for v in self.values if v is not None]
        return statistics.median(good) if good else None


class Target(verdict.Wanted):
    """A ratio of two measures (or a plain number, without below) that the project wants to reach."""

    def __init__(self, label, above, below, *wanted, **options):
        super().__init__(label, *wanted, **options)
        self.above, self.below = above, below


TARGETS = [
    Target("ib_write_bw 1 MiB between hosts ÷ iperf3 TCP", "hosts/ib_write_bw/1048576", "tcp/iperf3", 1.3, 2),
    Target("ib_write_bw 1 MiB between hosts ÷ raw UDP stream", "hosts/ib_write_bw/1048576", "raw/udp-stream", 0.65, 0.8),
    Target("ib_write_bw 1 MiB over veth 9000 ÷ iperf3 TCP there", "veth9000/ib_write_bw/1048576", "tcp-veth9000/iperf3", 1.8, 2.5),
    Target("ib_write_bw 1 MiB between hosts ÷ libfabric udp;ofi_rxd", "hosts/ib_write_bw/1048576", "libfabric/udp;ofi_rxd/1048576", 4, 6),
    Target("ib_read_bw 64 KiB between hosts ÷ ib_write_bw", "hosts/ib_read_bw/65536", "hosts/ib_write_bw/65536", 0.95, 1),
    Target("ib_read_bw 64 B between hosts, READs per second", "hosts/ib_read_bw/64", None, 1, 2, unit="M/s"),
    Target("ib_send_bw 64 B between hosts, messages per second", "hosts/ib_send_bw/64", None, 1, 2, unit="M/s"),
    Target("ib_send_bw 64 B within one device, messages per second", "device/ib_send_bw/64", None, 3, 4, unit="M/s"),
    Target("ib_send_lat 8 B between hosts ÷ busy UDP ping-pong", "hosts/ib_send_lat/8", "raw/udp-busy", 3, 2, True),
    Target("ib_read_lat 8 B between hosts ÷ ib_send_lat", "hosts/ib_read_lat/8", "hosts/ib_send_lat/8", 1.3, 1, True),
    Target("ib_atomic_lat between hosts ÷ ib_send_lat 8 B", "hosts/ib_atomic_lat/8", "hosts/ib_send_lat/8", 1.3, 1, True),
    Target("ib_send_lat 8 B within one device ÷ busy UDP ping-pong", "device/ib_send_lat/8", "raw/udp-busy", 1, 0.5, True),
    Target("ib_write_bw 1 MiB within one device ÷ iperf3 TCP", "device/ib_write_bw/1048576", "tcp/iperf3", 2.2, 4),
    Target("ib_write_bw 64 KiB at 1 % loss ÷ without", "loss/ib_write_bw/65536", "hosts/ib_write_bw/65536", 0.85, 0.95),
    Target("ib_write_bw 64 KiB at 5 % loss ÷ without", "loss5/ib_write_bw/65536", "hosts/ib_write_bw/65536", 0.5, 0.7),
    Target("ib_write_bw 64 KiB with 5 % out of order ÷ without", "reorder5/ib_write_bw/65536", "hosts/ib_write_bw/65536", 0.9, 0.95),
    Target("Open MPI, a job of 16 ranks ÷ over TCP", "job/16/rc", "job/16/tcp", 1.5, 1, True),
    Target("Open MPI, a job of 16 ranks, few receive buffers ÷ over TCP", "job/16/rc-512", "job/16/tcp", 1.5, 1, True),
    Target("Open MPI, a job of 64 ranks ÷ over TCP", "job/64/rc", "job/64/tcp", 1.5, 1, True),
    Target("CPU of a daemon when nothing is posted", "idle/cpu", None, 0.01, 0, True, "%"),
]


def perftest_argv(where, program, size, port):
    latency = program.endswith("_lat")
    count = (LAT_ITERATIONS if latency else BW_ITERATIONS)[size]
    if where in FAULTS:
        count //= 6 if where.endswith("off") else 2
    sizes = [] if "atomic" in program else ["-s", size]
    return [labs.which(program), "-F", *sizes, "-n", count, "-p", port] + ([] if latency else ["-N"])


def perftest_value(program, size, output):
    """The typical latency, millions of messages per second for 64 B, or MiB per second."""
    field = re.search(rf"^ *{size} +\d+ +(.*)$", output, re.M).group(1).split()
    return float(field[1]) if size != 64 and program.endswith("_bw") else float(field[2])


def soft_roce_device():
    """Only the devices of soft-RoCE and siw name the network interface that they belong to, and siw's are no RoCE devices."""
    for name in sorted(os.listdir(RDMA_DEVICES)) if os.path.isdir(RDMA_DEVICES) else ():
        with open(os.path.join(RDMA_DEVICES, name, "node_type"), encoding="ascii") as f:
            if os.path.exists(os.path.join(RDMA_DEVICES, name, "parent")) and f.read().startswith("1:"):
                return name
    raise labs.Unavailable("this machine has no soft-RoCE device (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev lo)")


class Bench:
    def __init__(self, args):
        self.args = args
        self.build = labs.Build(args.build)
        self.tools = os.path.join(self.build.dir, "tests", "bench")
        self.labs, self.lab_why = {}, {}
        self.processors = None  # once the tools are compiled
        self.measures = []

    # --- what is run -----------------------------------------------------------------------------------------------------

    def compile_tools(self):
        for name in ("udp_pingpong", "udp_stream", "vm_copy"):
            processors.compile_tool(self.tools, name)
        self.processors = processors.Processors(self.tools)

    def lab(self, name):
        """The hosts a measure needs; made at its first use and kept, idle daemons cost nothing."""
        if name in self.lab_why:
            raise labs.Unavailable(self.lab_why[name])
        if name not in self.labs:
            topology, options = ("hosts", [*FAULTS[name], "--seed", "1"]) if name in FAULTS else (name, [])
            try:
                if self.build.missing():
                    raise labs.Unavailable("not built: " + ", ".join(os.path.relpath(m) for m in self.build.missing()))
                self.labs[name] = labs.Lab(self.build, topology, options, self.args.block, spread=True)
            except (labs.Unavailable, labs.Trouble) as e:
                self.lab_why[name] = str(e).split("\n", maxsplit=1)[0]
                raise labs.Unavailable(self.lab_why[name]) from None
        return self.labs[name]

    def plain_pair(self, server, client, port, prefix_server=(), prefix_client=(), env=None):
        """A server and its client that have nothing to do with us; the client's output."""
        directory = self.tools
        s = labs.Process(server, env or {}, os.path.join(directory, "server.log"), prefix_server)
        c = None
        try:
            labs.wait_listening(s, port, 5)
            c = labs.Process(client, env or {}, os.path.join(directory, "client.log"), prefix_client)
            if c.wait(SECONDS_MAX) != 0:
                raise labs.Trouble(f"{c.line}: exit code {c.popen.returncode}: {c.output()[-300:]}")
            return c.output()
        finally:
            for p in (c, s):
                if p is not None:
                    p.stop()

    def perftest(self, where, program, size):
        lab = self.lab(where)
        if not lab.alive():
            raise labs.Trouble("the daemon has died")
        port = labs.tcp_port()
        argv = perftest_argv(where, program, size, port) + ["-x", 0]
        result = lab.pair(argv, argv + [lab.server_tcp()], port, SECONDS_MAX)
        for who, process, code in result:
            if code != 0:
                why = "took too long" if code is None else f"exit code {code}"
                raise labs.Trouble(f"{who}: {why}: {process.line}: {process.output().strip()[-200:]}")
        return perftest_value(program, size, result[1][1].output())

    def soft_roce(self, program, size):
        """Within the first soft-RoCE device of this machine, if it has one."""
        port = labs.tcp_port()
        argv = perftest_argv("rxe", program, size, port) + ["-d", soft_roce_device()]
        return perftest_value(program, size, self.plain_pair(argv, argv + ["127.0.0.1"], port))

    def iperf3(self, more, where=None):
        prefix = ([], [])
        address, port = "127.0.0.1", labs.tcp_port()
        if where:
            lab = self.lab(where)
            prefix, address = (lab.server.prefix, lab.client.prefix), lab.server.address
        tool = labs.which("iperf3")
        out = self.plain_pair([tool, "-s", "-1", "-p", port], [tool, "-c", address, "-p", port, "-t", "1", "-J"] + more, port,
                              *prefix)
        return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8 / MIB

    def libfabric(self, provider, size):
        tool, port = labs.which("fi_pingpong"), labs.tcp_port()
        rounds = {8: 2000, MIB: 200}[size]
        args = ["-p", provider, "-e", "rdm", "-I", rounds, "-S", size]
        out = self.plain_pair([tool, "-B", port] + args, [tool, "-P", port] + args + ["127.0.0.1"], port,
                              env={"FI_LOG_LEVEL": "error", "FI_UDP_IFACE": "lo", "FI_TCP_IFACE": "lo"})
        field = out.strip().splitlines()[-1].split()
        return float(field[6]) if size == 8 else float(field[5]) * 1e6 / MIB  # µs per transfer one way, or MB/s

    def ucx(self, test, size, rounds, column):
        tool, port = labs.which("ucx_perftest"), labs.tcp_port()
        env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "UCX_LOG_LEVEL": "error", "UCX_WARN_UNUSED_ENV_VARS": "n"}
        out = self.plain_pair([tool, "-p", port], [tool, "-p", port, "127.0.0.1", "-t", test, "-s", size, "-n", rounds, "-w", rounds // 20, "-f"], port, env=env)
        field = out.strip().splitlines()[-1].split()
        return float(field[column])

    def raw(self, name, *args):
        out = subprocess.run([os.path.join(self.tools, name)] + [str(a) for a in args], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        if out.returncode != 0:
            raise labs.Trouble(f"{name}: {out.stderr.strip()}")
        return float(out.stdout)

    def job(self, way, ranks):
        """The seconds of a job of Open MPI that does no more than MPI_Init, one allreduce and MPI_Finalize."""
        begin = time.monotonic()
        process = mpi_job.start(self.build, self.lab("hosts"), way, ranks, "allreduce", 8, 1)
        try:
            code = process.wait(JOB_SECONDS_MAX)
            if code != 0:
                raise labs.Trouble(("took too long" if code is None else f"exit code {code}") + f": {process.line}: {process.output()[-200:]}")
            return time.monotonic() - begin
        finally:
            if process.alive():
                process.kill()

    def idle_cpu(self):
        """Per cent of one CPU that a daemon uses in 3 seconds without work, on average."""
        daemons = [h.daemon for lab in self.labs.values() for h in lab.hosts]
        if not daemons:
            raise labs.Unavailable("no daemon runs")
        time.sleep(2)  # what the last measure has left behind is given back first
        before = sum(d.cpu_use()[0] for d in daemons)
        time.sleep(3)
        return (sum(d.cpu_use()[0] for d in daemons) - before) / len(daemons) / 3e9 * 100

    # --- the list --------------------------------------------------------------------------------------------------------

    def ours(self):
        quick = self.args.quick
        lat, bw = ((8, 4096), (64, 65536, MIB)) if quick else ((2, 8, 4096, 65536, MIB), (2, 64, 4096, 65536, MIB))
        for where in ("hosts", "veth9000", "device"):
            for kind, sizes in (("lat", lat), ("bw", bw)):
                for size in sizes:
                    for verb in ("send", "write", "read"):
                        program = f"ib_{verb}_{kind}"
                        unit = "µs" if kind == "lat" else "M msg/s" if size == 64 else "MiB/s"
                        yield Measure(f"{where}/{program}/{size}", f"{program} {SIZE_NAME[size]}", unit,
                                      lambda w=where, p=program, s=size: self.perftest(w, p, s), WHERE[where])
            yield Measure(f"{where}/ib_atomic_lat/8", "ib_atomic_lat 8 B", "µs", lambda w=where: self.perftest(w, "ib_atomic_lat", 8), WHERE[where])
        for where in FAULTS:
            for program in ("ib_write_bw",) if where.endswith("off") else ("ib_write_bw", "ib_read_bw"):
                yield Measure(f"{where}/{program}/65536", f"{program} 64 KiB", "MiB/s", lambda w=where, p=program: self.perftest(w, p, 65536), WHERE[where])
        for ranks in (16, 64):
            yield Measure(f"job/{ranks}/rc", f"Open MPI, {ranks} ranks, start to end", "s", lambda n=ranks: self.job("rc", n), "jobs")
        yield Measure("job/16/rc-512", "Open MPI, 16 ranks, few receive buffers", "s", lambda: self.job("rc-512", 16), "jobs")

    def others(self):
        tcp = "TCP"
        yield Measure("tcp/iperf3", "iperf3 over loopback", "MiB/s", lambda: self.iperf3([]), tcp)
        yield Measure("tcp/iperf3-1M", "iperf3 -l 1M over loopback", "MiB/s", lambda: self.iperf3(["-l", "1M"]), tcp)
        yield Measure("tcp-veth9000/iperf3", "iperf3 over veth MTU 9000", "MiB/s", lambda: self.iperf3([], "veth9000"), tcp)
        yield Measure("tcp-veth9000/iperf3-1M", "iperf3 -l 1M over veth MTU 9000", "MiB/s", lambda: self.iperf3(["-l", "1M"], "veth9000"), tcp)
        for provider in ("udp;ofi_rxd", "tcp;ofi_rxm"):
            for size, unit in ((8, "µs"), (MIB, "MiB/s")):
                yield Measure(f"libfabric/{provider}/{size}", f"fi_pingpong {provider} {SIZE_NAME[size]}", unit,
                              lambda p=provider, s=size: self.libfabric(p, s), "libfabric")
        ucx = "UCX over TCP"
        yield Measure("ucx/tag_lat/8", "ucx_perftest tag_lat 8 B", "µs", lambda: self.ucx("tag_lat", 8, 20000, 1), ucx)
        yield Measure("ucx/tag_bw/1048576", "ucx_perftest tag_bw 1 MiB", "MiB/s", lambda: self.ucx("tag_bw", MIB, 2000, 5), ucx)
        yield Measure("ucx/put_bw/1048576", "ucx_perftest ucp_put_bw 1 MiB", "MiB/s", lambda: self.ucx("ucp_put_bw", MIB, 2000, 5), ucx)
        yield Measure("ucx/tag_bw/64", "ucx_perftest tag_bw 64 B", "M msg/s", lambda: self.ucx("tag_bw", 64, 200000, 7) / 1e6, ucx)
        for ranks in (16, 64):
            yield Measure(f"job/{ranks}/tcp", f"Open MPI, {ranks} ranks, start to end", "s", lambda n=ranks: self.job("tcp", n), ucx)
        for program, size, unit in (("ib_send_lat", 8, "µs"), ("ib_send_bw", 64, "M msg/s"), ("ib_write_bw", MIB, "MiB/s")):
            yield Measure(f"rxe/{program}/{size}", f"{program} {SIZE_NAME[size]}", unit, lambda p=program, s=size: self.soft_roce(p, s), "soft-RoCE, one device")
        raw, a, b = "raw limits", self.args.block + ".251", self.args.block + ".252"
        yield Measure("raw/udp-busy", "UDP ping-pong 8 B, busy polling", "µs", lambda: self.raw("udp_pingpong", "busy", a, b, 8, 50000), raw)
        yield Measure("raw/udp-block", "UDP ping-pong 8 B, blocking", "µs", lambda: self.raw("udp_pingpong", "block", a, b, 8, 5000), raw)
        yield Measure("raw/udp-stream", "UDP stream, GSO and GRO, 4 KiB segments", "MiB/s", lambda: self.raw("udp_stream", a, b, 4096, 1), raw)
        yield Measure("raw/vm-copy", "process_vm_readv 64 KiB", "MiB/s", lambda: self.raw("vm_copy", 65536, 0.5), raw)

    def interleaved(self):
        """Ours and the others' in turn, in the order of their share."""
        mine, theirs = list(self.ours()), list(self.others())
        chosen = [m for m in mine + theirs if not self.args.filter or any(f in m.key for f in self.args.filter)]
        mine, theirs = [m for m in mine if m in chosen], [m for m in theirs if m in chosen]
        mixed, step = [], max(1, len(mine) // max(1, len(theirs)))
        while mine or theirs:
            mixed += mine[:step] + theirs[:1]
            mine, theirs = mine[step:], theirs[1:]
        return chosen, mixed

    # --- running ---------------------------------------------------------------------------------------------------------

    def run(self):
        self.compile_tools()
        self.measures, order = self.interleaved()
        begin = time.monotonic()
        done, slowest = 0, 0.0
        for repetition in range(self.args.repetitions):
            spent = time.monotonic() - begin
            if repetition and spent + slowest > self.args.budget:
                break
            started = time.monotonic()
            progress.repetition(repetition + 1, self.args.repetitions, len(order), spent)
            for number, measure in enumerate(order):
                progress.measure(f"repetition {repetition + 1} of {self.args.repetitions}, {number + 1} of {len(order)}: {measure.key}")
                self.once(measure)
            slowest = max(slowest, time.monotonic() - started)
            done += 1
        if not self.args.filter or any(f in "idle/cpu" for f in self.args.filter):
            idle = Measure("idle/cpu", "a daemon, 3 s", "% of a CPU", self.idle_cpu, "idle")
            self.once(idle)
            self.measures.append(idle)
        progress.measure("")
        return done, time.monotonic() - begin

    def once(self, measure):
        try:
            measure.values.append(self.processors.run(measure.run))
        except (labs.Unavailable, labs.Trouble, OSError, ValueError, KeyError, IndexError, AttributeError, subprocess.SubprocessError) as e:
            measure.values.append(None)
            measure.why = " ".join(str(e).split())[:300]

    def close(self):
        for lab in self.labs.values():
            lab.close()

    # --- telling ---------------------------------------------------------------------------------------------------------

    def ratio(self, target):
        by_key = {m.key: m for m in self.measures}
        above, below = by_key.get(target.above), by_key.get(target.below)
        if above is None or (target.below and below is None):
            return None
        if not target.below:
            return above.median()
        pairs = [(a, b) for a, b in zip(above.values, below.values) if a is not None and b]
        return statistics.median(a / b for a, b in pairs) if pairs else None

    def wanted(self):
        return [t.row(self.ratio(t)) for t in TARGETS]

    def print_tables(self, done, seconds):
        print(f"{done} repetitions in {seconds:.0f} s on {os.cpu_count()} CPUs, Linux {platform.release()}; medians (smallest … largest);\n"
              f"{self.processors.told()}\n")
        section = None
        for m in self.measures:
            if m.section != section:
                section = m.section
                print(f"{section}")
            good = [v for v in m.values if v is not None]
            if good:
                print(f"    {m.label:42} {number(m.median()):>10} {m.unit:10} ({number(min(good))} … {number(max(good))})")
            if m.why:
                print(f"    {m.label:42} {'' if good else '-':>10} {len(m.values) - len(good)} of {len(m.values)} failed: {m.why}")
        print()
        verdict.print_rows(self.wanted())

    def write_json(self, path, done, seconds):
        tree = {
            "cpus": os.cpu_count(), "kernel": platform.release(), "repetitions": done, "seconds": round(seconds, 1),
            "processors": self.processors.told(),
            "measures": {m.key: {"label": m.label, "where": m.section, "unit": m.unit, "median": m.median(), "values": m.values, "failure": m.why or None}
                         for m in self.measures},
            "wanted": self.wanted(),
        }
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tree, f, indent=1, ensure_ascii=False)
        print(f"\nwritten to {os.path.relpath(path)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three repetitions, fewer sizes")
    parser.add_argument("-r", "--repetitions", type=int, help="repetitions (5; with --quick 3)")
    parser.add_argument("--budget", type=float, help="begin no repetition that would end after so many seconds (1800; with --quick 225)")
    parser.add_argument("-k", "--filter", action="append", default=[], metavar="TEXT", help="only measures with TEXT in their key")
    parser.add_argument("--list", action="store_true", help="print the keys and exit")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR")
    parser.add_argument("--block", default="127.0.60", metavar="A.B.C", help="addresses A.B.C.* (127.0.60)")
    args = parser.parse_args()
    args.repetitions = args.repetitions or (3 if args.quick else 5)
    args.budget = args.budget or (225 if args.quick else 1800)
    bench = Bench(args)
    if args.list:
        print("\n".join(m.key for m in bench.interleaved()[0]))
        return 0
    labs.end_when_told()
    try:
        done, seconds = bench.run()
        bench.print_tables(done, seconds)
        bench.write_json(os.path.join(bench.build.dir, "bench.json"), done, seconds)
    finally:
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
