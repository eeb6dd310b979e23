# SPDX-License-Identifier: BSD-2-Clause
"""What the programs must have said. Each check is a function of the output of the server and that of the client."""

import re

from lab import Trouble


def need(condition, text):
    if not condition:
        raise Trouble(text)


def rping(count):
    def check(server, client):
        pings = re.findall(r"ping data: rdma-ping-(\d+): ", client)
        need([int(p) for p in pings] == list(range(count)), f"the client printed {len(pings)} pings of {count}")
        need("failed" not in server + client, "an rping reports a failure")
    return check


def complete(server, client):
    for who, out in (("server", server), ("client", client)):
        need("return status 0" in out, f"the {who} did not report success")


def end_0(server, client):
    for who, out in (("server", server), ("client", client)):
        need(": end 0" in out, f"the {who} did not report success")


def cmtime(connections):
    """Each step has a time, and no connection failed."""
    def check(_server, client):
        for step in ("create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy"):
            found = re.search(rf"^{step} *: +([\d.]+) +([\d.]+) +([\d.]+)", client, re.M)
            need(found, f"no time for the step '{step}'")
            need(float(found.group(3)) < 900000000, f"no connection of {connections} finished the step '{step}'")
        need("failure" not in client and "event:" not in client, "a connection failed")
    return check


def stream(_server, client):
    """A line for each size, and no data was wrong."""
    rows = [line for line in client.splitlines() if re.search(r"\d[.\d]* +[\d.]+$", line)]
    need(rows, "the client printed no result")
    for word in ("data corruption", "failed", "rsend", "rrecv", "error"):
        need(word not in client.lower(), f"the client says '{word}'")


def perftest(_server, client):
    rows = []
    for line in client.splitlines():
        field = line.partition("Correlation")[0].split()
        if len(field) >= 4 and all(re.fullmatch(r"\d+(\.\d+)?|-?nan|inf", f) for f in field):
            rows.append([float(f) for f in field])
    need(rows, "the client printed no result")
    need(all(row[1] > 0 for row in rows), f"no iterations: {rows}")


def qperf(test):
    def check(_server, client):
        need(f"{test}:" in client, "no result")
        need("not used" not in client, "qperf does not use rdma_cm for this test")
        need("failed" not in client and "error" not in client.lower(), "qperf reports an error")
        if not test.startswith("ver_"):
            need(re.search(r"= +[\d.]+ ", client), "no figure")
    return check


def fi_pingpong(count):
    def check(server, client):
        need("[error]" not in server + client, "an error is reported")
        need(f"={count} " in client, "not all messages were acknowledged")
    return check


def fio(server, client):
    for who, out in (("server", server), ("client", client)):
        need("verify: " not in out and "fio: pid" not in out, f"the {who} reports an error")


def iperf3(_server, client):
    need(re.search(r"receiver$", client, re.M), "no result")
    need(re.search(r"4\.00 MBytes .*sender$", client, re.M) or re.search(r"MBytes .*receiver$", client, re.M), "not all was sent")


def tcp_echo(_server, client):
    need(re.search(r"^ok \d+ bytes", client, re.M), "the data that came back were not checked")
