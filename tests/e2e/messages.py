#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""messages.py CAPTURE inside|between: the messages of a capture of pumice capture, put together from their packets: of those
that stay inside of a device, or of those between two. One line each: transport, operation, bytes, hash of the payload, and what the
headers say besides, but for addresses and keys, which differ from run to run. Repeated packets count once, and ACKs not at all, since
one may stand for many. The messages from a queue pair to another are in their order; these groups are sorted, so that two
lists can be compared. Shares no code with pcap/ and wire/."""

import hashlib
import re
import shutil
import struct
import subprocess
import sys

SERVICES = {0x00: "RC", 0x20: "UC", 0x60: "UD", 0xA0: "XRC"}
# Operation, place in the message, bytes of headers behind BTH (and XRCETH or DETH).
OPERATIONS = {
    0x00: ("SEND", "F", 0), 0x01: ("SEND", "M", 0), 0x02: ("SEND", "L", 0), 0x03: ("SEND", "L", 4), 0x04: ("SEND", "FL", 0),
    0x05: ("SEND", "FL", 4), 0x06: ("WRITE", "F", 16), 0x07: ("WRITE", "M", 0), 0x08: ("WRITE", "L", 0), 0x09: ("WRITE", "L", 4),
    0x0A: ("WRITE", "FL", 16), 0x0B: ("WRITE", "FL", 20), 0x0C: ("READ", "FL", 16), 0x0D: ("DATA", "F", 4), 0x0E: ("DATA", "M", 0),
    0x0F: ("DATA", "L", 4), 0x10: ("DATA", "FL", 4), 0x12: ("ATOMIC ACK", "FL", 12), 0x13: ("COMPARE AND SWAP", "FL", 28),
    0x14: ("FETCH AND ADD", "FL", 28), 0x16: ("SEND", "L", 4), 0x17: ("SEND", "FL", 4), 0x1C: ("FLUSH", "FL", 20),
    0x1D: ("ATOMIC WRITE", "FL", 16)}
ACK = 0x11
INVALIDATE = (0x16, 0x17)


def packets(path, want_inside):
    """Yields (from, to, BTH and what follows it, without the ICRC)."""
    out = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "frame.comment", "-e", "ip.src", "-e", "ip.dst", "-e",
                          "udp.payload"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    for line in out.splitlines():
        comment, src, dst, payload = line.split("\t")
        qp = re.match(r"QP 0x([0-9a-f]{6})\b", comment)
        inside = src == dst
        data = bytes.fromhex(payload)
        # QP 2 is what daemons try a way with, before programs use it.
        if not qp or inside != want_inside or int.from_bytes(data[5:8], "big") == 2:
            continue
        yield (src, int(qp.group(1), 16)), (dst, int.from_bytes(data[5:8], "big")), data[:-4]


def text_of(opcode, headers):
    """What the headers of a packet say that is the same in each run."""
    name = OPERATIONS[opcode & 0x1F][0]
    if name in ("COMPARE AND SWAP", "FETCH AND ADD"):
        return headers[12:28].hex()
    if name == "ATOMIC ACK":
        return headers[4:12].hex()
    if name in ("WRITE", "READ") and len(headers) >= 16:
        return (str(struct.unpack(">I", headers[12:16])[0]) + " " + headers[16:].hex()).rstrip()
    if opcode & 0x1F in INVALIDATE:
        return "invalidate"
    return "" if name in ("DATA", "ATOMIC WRITE") else headers.hex()


def without_addresses(payload):
    """A rendezvous request or its FIN offers memory at an address, with a key."""
    if len(payload) >= 32 and payload[0] in (1, 2):
        return payload[:16] + bytes(12) + payload[28:]
    return payload


class Flow:
    """What one queue pair sends to another."""

    def __init__(self):
        self.seen = {}  # (whether it is an answer, PSN): what the packet is
        self.reads = []  # PSNs that READs take: first and behind the last

    def packet(self, data, mtu):
        opcode, psn = data[0], int.from_bytes(data[9:12], "big")
        operation, place, length = OPERATIONS[opcode & 0x1F]
        answer = operation in ("DATA", "ATOMIC ACK")
        if (answer, psn) in self.seen or operation == "READ" and any(first <= psn < end for first, end in self.reads):
            return
        at = 12 + {"XRC": 4, "UD": 8}.get(SERVICES[opcode & 0xE0], 0) * (not answer)
        payload = data[at + length:]
        payload = payload[:len(payload) - (data[1] >> 4 & 3)]
        if operation == "READ":
            self.reads.append((psn, psn + max(1, -(-int.from_bytes(data[at + 12:at + 16], "big") // mtu))))
        self.seen[answer, psn] = (SERVICES[opcode & 0xE0] + " " + operation, place, text_of(opcode, data[at:at + length]), payload)

    def lines(self):
        """Packets in the order of PSNs are messages; those that were cut off by an error are told as such."""
        out, parts = [], None
        for key in sorted(self.seen):
            kind, place, text, payload = self.seen[key]
            if "F" in place:
                parts = [[], []]
            if parts is None:
                out.append(kind + " without beginning")
                continue
            parts[0].append(payload)
            parts[1].append(text)
            if "L" in place:
                whole = without_addresses(b"".join(parts[0]))
                out.append(f"{kind} {len(whole)} {hashlib.sha256(whole).hexdigest()[:16]} {' '.join(t for t in parts[1] if t)}".rstrip())
                parts = None
        return out


def main():
    if not shutil.which("tshark"):
        print("skip: no tshark")
        sys.exit(77)
    flows = {}
    found = [p for p in packets(sys.argv[1], sys.argv[2] == "inside") if p[2][0] & 0x1F != ACK and p[2][0] & 0xE0 in SERVICES]
    # What is not the end of a message has as many bytes as the path MTU.
    mtu = max((1 << (len(data) - 12).bit_length() - 1 for _, _, data in found if "L" not in OPERATIONS[data[0] & 0x1F][1]), default=4096)
    for src, dst, data in found:
        flows.setdefault((src, dst), Flow()).packet(data, mtu)
    for lines in sorted(flow.lines() for flow in flows.values()):
        print("from one queue pair to another:")
        for line in lines:
            print("  " + line)


main()
