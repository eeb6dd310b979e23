#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures Pumice on a path that is slower than the sender: two hosts with a router between them, which has token buckets (sch_tbf).

    tests/bench/slow_path.py               200 Mbit/s, a queue of 20 ms
    tests/bench/slow_path.py --rate 1gbit --latency 5ms --seconds 10

For each kind of traffic it prints how many packets were needed, how many Pumice sent, how many of them again, and how many the token buckets
dropped. Then Pumice and a TCP stream share the path, and it prints the rate of each. It only reports, and needs root.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e/lib"))

import lab as labs  # noqa: E402

MIB = 1 << 20
RETRANS = ("fast_retrans", "probe_retrans", "timeout_retrans")

# What, program and its arguments, iterations, messages of how many bytes in how many directions
TRAFFIC = [
    ("SEND, 10 x 1 MiB", ["ib_send_bw", "-s", str(MIB), "-n", "10"], 10 * MIB),
    ("SEND, both directions, 4 QPs", ["ib_send_bw", "-s", str(MIB), "-n", "10", "-b", "-q", "4"], 2 * 4 * 10 * MIB),
    ("WRITE, 20 x 1 MiB", ["ib_write_bw", "-s", str(MIB), "-n", "20"], 20 * MIB),
    ("READ, 20 x 1 MiB", ["ib_read_bw", "-s", str(MIB), "-n", "20"], 20 * MIB),
]


class Path(labs.Lab):
    """Two hosts with a router between them, all MTU 1500, and a token bucket at both ports of the router. (A bucket at a host itself would not
    lose packets of TCP: there, TCP waits until the bucket has room.)"""

    def __init__(self, build, rate, latency):
        self.bucket = ("tbf", "rate", rate, "burst", "32kb", "latency", latency)
        super().__init__(build, "veth1500")

    def _veth(self, mtu, prefix, options):
        enter = [self._namespace(suffix, []) for suffix in "rab"]
        router = self.namespaces[0]
        for number, name in ((1, self.namespaces[1]), (2, self.namespaces[2])):
            self._ip(router, f"link add pm{number} type veth peer name pm0 netns {name}")
            for where, device, host in ((router, f"pm{number}", 2), (name, "pm0", 1)):
                self._ip(where, f"addr add 10.50.{number}.{host}/24 dev {device}")
                self._ip(where, f"link set {device} mtu {mtu} up")
            self._ip(name, f"route add default via 10.50.{number}.2")
            self.tc("add", f"pm{number}", *self.bucket)
        subprocess.run([*enter[0], "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        self._wait_up(*self.namespaces[1:])
        self.hosts = [labs.Host(self, f"host{i}", f"10.50.{i + 1}.1", enter[i + 1] + prefix, options) for i in (0, 1)]

    def tc(self, verb, device, *more):
        done = subprocess.run([labs.which("tc"), "-n", self.namespaces[0], "qdisc", verb, "dev", device, "root", *more], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise labs.Unavailable("no token bucket: " + done.stderr.strip())

    def dropped(self):
        """By the token buckets, since they exist."""
        total = 0
        for device in ("pm1", "pm2"):
            shown = subprocess.run([labs.which("tc"), "-n", self.namespaces[0], "-s", "-j", "qdisc", "show", "dev", device], capture_output=True, text=True,
                                   check=True).stdout
            total += sum(q["drops"] for q in json.loads(shown))
        return total

    def counts(self):
        """Packets that Pumice has sent, how many of them again, and how many were dropped."""
        sent = again = 0
        for host in self.hosts:
            for device in host.status()["devices"]:
                sent += device["counters"]["sent_pkts"]
                again += sum(device["counters"][n] for n in RETRANS)
        return sent, again, self.dropped()


def traffic(path, what, argv, size):
    port = labs.tcp_port()
    common = [labs.which(argv[0]), *argv[1:], "-F", "-m", "1024", "-p", str(port)]
    before, start = path.counts(), time.monotonic()
    ended = path.pair(common, common + [path.server.address], port, 120)
    seconds = time.monotonic() - start
    sent, again, dropped = (b - a for a, b in zip(before, path.counts()))
    codes = [code for _, _, code in ended]
    verdict = "" if codes == [0, 0] else f"  FAILED {codes}: " + ended[1][1].output()[-300:].replace("\n", " | ")
    print(f"{what:30} {size // 1024:9} needed {sent:9} sent {again:7} again {dropped:7} dropped {size * 8 / seconds / 1e6:7.0f} Mbit/s{verdict}", flush=True)


def beside_tcp(path, seconds, pumice, qps, control):
    """A TCP stream and Pumice at the same time, in the same direction. The rate of Pumice is that of payload that arrived and was accepted."""
    port, tcp_port = labs.tcp_port(), labs.tcp_port()
    common = [labs.which(pumice), "-F", "-m", "1024", "-s", "65536", "-q", str(qps), "-D", str(seconds + 4), "-p", str(port)]
    iperf = [labs.which("iperf3"), "-p", str(tcp_port)]
    tcp_server = path.start(path.server, [*iperf, "-s", "-1"], "tcp-server")
    labs.wait_listening(tcp_server, tcp_port)
    server = path.start(path.server, common, "server")
    labs.wait_listening(server, port)
    client = path.start(path.client, common + [path.server.address], "client")
    time.sleep(2)
    bytes_of = lambda: path.server.status()["devices"][0]["counters"]["rcvd_bytes"]  # noqa: E731
    tcp_client = path.start(path.client, [*iperf, "-c", path.server.address, "-t", str(seconds), "-C", control, "-J"], "tcp-client")
    before, start = bytes_of(), time.monotonic()
    code = tcp_client.wait(seconds + 30)
    pumice_rate = (bytes_of() - before) * 8 / (time.monotonic() - start) / 1e6
    for p in (client, server, tcp_server):
        p.wait(30)
        p.kill()
    if code != 0:
        raise labs.Trouble(f"iperf3 ended with {code}: {tcp_client.output()[-500:]}")
    tcp_rate = float(json.loads(re.search(r"\{.*\}", tcp_client.output(), re.S).group(0))["end"]["sum_received"]["bits_per_second"]) / 1e6
    share = max(tcp_rate, pumice_rate) / max(min(tcp_rate, pumice_rate), 0.001)
    print(f"beside TCP ({control}): {pumice}, {qps} QP{'s' * (qps > 1):1}    Pumice {pumice_rate:5.0f} Mbit/s, TCP {tcp_rate:5.0f} Mbit/s, factor {share:.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--latency", default="20ms", help="how long a packet waits at most")
    parser.add_argument("--seconds", type=int, default=10, help="of each run beside TCP")
    parser.add_argument("--build", default=labs.default_build())
    args = parser.parse_args()
    labs.end_when_told()
    try:
        with Path(labs.Build(args.build), args.rate, args.latency) as path:
            print(f"a router, MTU 1500, token bucket of {args.rate}, queue of {args.latency}; path MTU 1024\n", flush=True)
            for row in TRAFFIC:
                traffic(path, *row)
            for control in ("reno", "cubic"):
                for qps in (1, 4):
                    beside_tcp(path, args.seconds, "ib_write_bw", qps, control)
    except labs.Unavailable as e:
        print(f"skip: {e}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
