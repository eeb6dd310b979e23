#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""messages.py CAPTURE inside|between: prints the messages of a capture of pumice capture, assembled from packets. It prints the messages
within devices, or the messages between devices.

Each line has the transport, the operation, the number of bytes, a hash of the payload, and the other header fields, except addresses and
keys, which differ from run to run. Repeated packets count once. ACKs don't count, because one ACK may stand for many. READs of adjoining
memory with adjoining PSNs count as one READ, because the number of requests depends on the congestion of the path. A READ that was not
answered as a whole is printed without its length. The messages from one QP to another are in their order. These groups are sorted, so that two lists can be compared. The script shares no code with pcap/ and
wire/."""

import copy
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
    """The header fields of a packet that are the same in each run."""
    name = OPERATIONS[opcode & 0x1F][0]
    if name in ("COMPARE AND SWAP", "FETCH AND ADD"):
        return headers[12:28].hex()
    if name == "ATOMIC ACK":
        return headers[4:12].hex()
    if name == "WRITE" and len(headers) >= 16:
        return (str(struct.unpack(">I", headers[12:16])[0]) + " " + headers[16:].hex()).rstrip()
    if opcode & 0x1F in INVALIDATE:
        return "invalidate"
    return "" if name in ("DATA", "ATOMIC WRITE") else headers.hex()


def without_addresses(payload):
    """A rendezvous request or its FIN offers memory at an address, with a key."""
    if len(payload) >= 32 and payload[0] in (1, 2):
        return payload[:16] + bytes(12) + payload[28:]
    return payload


class Read:
    """The range that consecutive READ requests ask for."""

    def __init__(self, data, at, mtu):
        self.kind = SERVICES[data[0] & 0xE0] + " READ"
        self.psn = int.from_bytes(data[9:12], "big")
        self.va, self.rkey, self.len = struct.unpack(">QII", data[at:at + 16])
        self.end = self.psn + max(1, -(-self.len // mtu))
        self.mtu = mtu

    def goes_on_with(self, other):
        return (self.end == other.psn and self.rkey == other.rkey and self.va + self.len == other.va and
                self.len % self.mtu == 0 and self.len and other.len)

    def extend(self, other):
        self.len += other.len
        self.end = other.end

    def text(self, answers):
        """An error may end the QP before it asked for the whole range. Where it stopped, depends on the congestion of the path."""
        whole = all(psn in answers for psn in range(self.psn, self.end))
        return f"{self.kind} {self.len}" if whole else f"{self.kind} without an answer"


class Flow:
    """The packets that one queue pair sends to another."""

    def __init__(self):
        self.requests = {}  # by PSN, what the packet is: (transport and operation, place, text, payload)
        self.answers = {}  # likewise
        self.asked = []  # READs in the order of their PSNs, as they were sent

    def packet(self, data, mtu):
        opcode, psn = data[0], int.from_bytes(data[9:12], "big")
        operation, place, length = OPERATIONS[opcode & 0x1F]
        answer = operation in ("DATA", "ATOMIC ACK")
        packets = self.answers if answer else self.requests
        at = 12 + {"XRC": 4, "UD": 8}.get(SERVICES[opcode & 0xE0], 0) * (not answer)
        if operation == "READ":
            if not any(r.psn <= psn < r.end for r in self.asked):
                self.asked.append(Read(data, at, mtu))
        elif psn not in packets:
            payload = data[at + length:]
            payload = payload[:len(payload) - (data[1] >> 4 & 3)]
            packets[psn] = (SERVICES[opcode & 0xE0] + " " + operation, place, text_of(opcode, data[at:at + length]), payload)

    def reads(self):
        out = []
        for read in sorted(self.asked, key=lambda r: r.psn):
            if out and out[-1].goes_on_with(read):
                out[-1].extend(read)
            else:
                out.append(copy.copy(read))
        return out

    def lines(self, back):
        """The messages in the order of PSNs. back: what the other queue pair sends to this one."""
        found = [(read.psn, read.text(back.answers)) for read in self.reads()] + messages(self.requests)
        answers = dict(self.answers)
        data = []
        for read in back.reads():
            parts = [answers.pop(psn, None) for psn in range(read.psn, read.end)]
            if None not in parts:
                data.append((read.psn, line(parts[0][0], b"".join(p[3] for p in parts), [])))
        data += messages(answers)
        return [text for _, text in sorted(found) + sorted(data)]


def line(kind, whole, texts):
    whole = without_addresses(whole)
    return f"{kind} {len(whole)} {hashlib.sha256(whole).hexdigest()[:16]} {' '.join(t for t in texts if t)}".rstrip()


def messages(packets):
    """The messages of these packets, by PSN. A message that an error has cut off is marked."""
    out, parts = [], None
    for psn in sorted(packets):
        kind, place, text, payload = packets[psn]
        if "F" in place:
            parts = [[], []]
        if parts is None:
            out.append((psn, kind + " without beginning"))
            continue
        parts[0].append(payload)
        parts[1].append(text)
        if "L" in place:
            out.append((psn, line(kind, b"".join(parts[0]), parts[1])))
            parts = None
    return out


def main():
    if not shutil.which("tshark"):
        print("skip: no tshark")
        sys.exit(77)
    flows = {}
    found = [p for p in packets(sys.argv[1], sys.argv[2] == "inside") if p[2][0] & 0x1F != ACK and p[2][0] & 0xE0 in SERVICES]
    # A packet that is not the last one of its message has as many bytes as the path MTU.
    mtu = max((1 << (len(data) - 12).bit_length() - 1 for _, _, data in found if "L" not in OPERATIONS[data[0] & 0x1F][1]), default=4096)
    for src, dst, data in found:
        flows.setdefault((src, dst), Flow()).packet(data, mtu)
    for lines in sorted(flow.lines(flows.get(way[::-1], Flow())) for way, flow in flows.items()):
        print("from one queue pair to another:")
        for line in lines:
            print("  " + line)


main()
