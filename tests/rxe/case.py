# SPDX-License-Identifier: BSD-2-Clause
"""A case of tests/rxe/run.py, and the check of perftest's output."""

import dataclasses
import re

from lab import Trouble


@dataclasses.dataclass
class Case:
    name: str
    argv: list  # program and arguments of both ends; device, GID index, port and address are added
    check: object = None  # function of (output of the server, output of the client)
    six: bool = False  # IPv6
    fault: str = ""  # faults of what Pumice sends
    netem: str = ""  # faults of what the guest sends
    timeout: float = 60

    # Of programs that connect by rdma_cm; cm_cases.py says what arguments may name.
    server: list = None  # the server's command
    listens: str = "{port}"  # the port of rdma_cm on which the client waits for the server; "": both start at once
    stays: bool = False  # the server does not end by itself; it is killed when the client has ended
    group: str = ""  # a multicast address
    play: object = None  # a function of a cm_cases.Play, in place of a pair of programs


def perftest_done(_server, client):
    rows = []
    for line in client.splitlines():
        field = line.partition("Correlation")[0].split()
        if len(field) >= 4 and all(re.fullmatch(r"\d+(\.\d+)?|-?nan|inf", f) for f in field):
            rows.append([float(f) for f in field])
    if not rows:
        raise Trouble("the client printed no result")
    if any(row[1] <= 0 for row in rows):
        raise Trouble(f"no iterations: {rows}")
