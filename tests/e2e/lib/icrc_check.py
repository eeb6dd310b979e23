#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""icrc_check.py CAPTURE [MINIMUM]: recomputes the ICRC of every RoCEv2 packet of a capture (pcap or pcapng, Ethernet) with zlib, and
compares it with the ICRC in the packet. It shares no code with wire/. Exit code 1: an ICRC is wrong, or there are fewer than MINIMUM (1)
packets. Exit code 77: tshark is missing."""

import shutil
import struct
import subprocess
import sys
import zlib

ROCE_PORT = 4791


def frames(path):
    """Yields the frames; tshark makes a classic pcap of whatever the file is."""
    data = subprocess.run(["tshark", "-r", path, "-F", "pcap", "-w", "-"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    if struct.unpack(order + "I", data[20:24])[0] != 1:
        sys.exit("not an Ethernet capture")
    at = 24
    while at < len(data):
        captured, length = struct.unpack(order + "8xII", data[at:at + 16])
        yield data[at + 16:at + 16 + captured], captured == length
        at += 16 + captured


def icrc(frame):
    """(right, there) ICRC of a frame, or None if it isn't RoCEv2."""
    ethertype = struct.unpack(">H", frame[12:14])[0]
    packet = bytearray(frame[14:])
    if ethertype == 0x0800 and packet[9] == 17:
        header = (packet[0] & 15) * 4
        del packet[struct.unpack(">H", packet[2:4])[0]:]
        for i in (1, 8, 10, 11):  # TOS, TTL, checksum
            packet[i] = 0xff
    elif ethertype == 0x86dd and packet[6] == 17:
        header = 40
        del packet[40 + struct.unpack(">H", packet[4:6])[0]:]
        packet[0] |= 0x0f  # traffic class and flow label, hop limit
        packet[1:4] = b"\xff\xff\xff"
        packet[7] = 0xff
    else:
        return None
    if struct.unpack(">H", packet[header + 2:header + 4])[0] != ROCE_PORT:
        return None
    packet[header + 6:header + 8] = b"\xff\xff"  # UDP checksum
    packet[header + 12] = 0xff  # FECN, BECN, reserved
    return zlib.crc32(b"\xff" * 8 + packet[:-4]), struct.unpack("<I", packet[-4:])[0]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not shutil.which("tshark"):
        print("skip: no tshark")
        return 77
    good = bad = 0
    for number, (frame, whole) in enumerate(frames(sys.argv[1]), 1):
        pair = icrc(frame) if whole else None
        if pair is None:
            continue
        if pair[0] == pair[1]:
            good += 1
        else:
            bad += 1
            print(f"frame {number}: ICRC {pair[1]:08x}, should be {pair[0]:08x}")
    print(f"{good} ICRCs right, {bad} wrong")
    return 1 if bad or good < int(sys.argv[2] if len(sys.argv) == 3 else 1) else 0


if __name__ == "__main__":
    sys.exit(main())
