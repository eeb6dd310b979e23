#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""forge.py [--port PORT] [--id ID] [--told ID] FROM TO QPN PSN [COUNT [OPCODE]]: sends COUNT (1) RoCEv2 packets from a free UDP port of the
address FROM to port 4791 of TO, as any local process can: an RC request RDMA WRITE Only without data (OPCODE: another one, 17 is an ACK,
129 a CNP) for the queue pair QPN, with PSNs from PSN on. The ICRC is right for the IP ID 0 (--id: another one). The reserved bits of
the BTH, in which a Pumice daemon writes this ID, are 0 (--told: this number). IPv4 only."""

import argparse
import socket
import struct
import sys
import zlib

ROCE_PORT = 4791
WRITE_ONLY, ACK, CNP = 0x0a, 0x11, 0x81


def packet(flow, ip_id, told, opcode, qpn, psn):
    body = {ACK: struct.pack(">I", 0x1f000000), CNP: bytes(16)}.get(opcode, bytes(16))
    flags = 0x40  # MigReq
    bth = struct.pack(">BBHII", opcode, flags, 0xffff, told << 24 | qpn, 0x80000000 | psn & 0xffffff)
    src, port, dst = flow
    length = 8 + len(bth) + len(body) + 4
    # The fields that routers may change count as ones: TOS, TTL, both checksums, and the reserved byte of the BTH with FECN and BECN.
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, 20 + length, ip_id, 0x4000, 0xff, 17, 0xffff, socket.inet_aton(src), socket.inet_aton(dst))
    udp = struct.pack(">HHHH", port, ROCE_PORT, length, 0xffff)
    masked = bth[:4] + b"\xff" + bth[5:]
    return bth + body + struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + masked + body))


def number(text):
    return int(text, 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--id", type=int, default=0)
    parser.add_argument("--told", type=int, default=0)
    parser.add_argument("src")
    parser.add_argument("dst")
    parser.add_argument("qpn", type=number)
    parser.add_argument("psn", type=number)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("opcode", type=number, nargs="?", default=WRITE_ONLY)
    o = parser.parse_args()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER, IP_PMTUDISC_PROBE: the IP ID is 0
        s.bind((o.src, o.port))
        flow = o.src, s.getsockname()[1], o.dst
        for i in range(o.count):
            s.sendto(packet(flow, o.id, o.told, o.opcode, o.qpn, o.psn + i), (o.dst, ROCE_PORT))


if __name__ == "__main__":
    main()
