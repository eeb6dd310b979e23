#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Joins multicast groups on an interface, prints "joined", and stays in them until it is killed.
The socket of soft-RoCE does not join the groups of its queue pairs, so packets of other machines arrive only with this.
Usage: join_groups.py INTERFACE GROUP..."""

import signal
import socket
import struct
import sys

interface, groups = socket.if_nametoindex(sys.argv[1]), sys.argv[2:]
sockets = []
for group in groups:
    family = socket.AF_INET6 if ":" in group else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(family, group) + struct.pack("=I", interface))
    else:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + struct.pack("=4si", bytes(4), interface))
    sockets.append(s)
print("joined", flush=True)
signal.pause()
