-- SPDX-License-Identifier: BSD-2-Clause
-- Decodes the bytes of a RoCEv2 packet for pumice.lua: opcodes (IBA 9.2.1, table 38; annexes A14, A17, A19), headers,
-- ICRC. pumice.lua loads this file. Wireshark also loads it, if it is in a plugin folder, because Wireshark loads every
-- file there. That has no effect.

local M = {}
local bits = bit32 or bit

M.SERVICE = {[0x00] = "RC", [0x20] = "UC", [0x60] = "UD", [0x80] = "CNP", [0xa0] = "XRC"}

-- Describes an operation. kind: the kind of message. place: the packet's place in the message. The other arguments are
-- the headers after the BTH, except XRCETH and DETH.
local function op(name, kind, place, ...)
    return {name = name, kind = kind, place = place, headers = {...}}
end
local operations = {
    [0x00] = op("SEND First", "send", "first"),
    [0x01] = op("SEND Middle", "send", "middle"),
    [0x02] = op("SEND Last", "send", "last"),
    [0x03] = op("SEND Last with Immediate", "send", "last", "immdt"),
    [0x04] = op("SEND Only", "send", "only"),
    [0x05] = op("SEND Only with Immediate", "send", "only", "immdt"),
    [0x06] = op("RDMA WRITE First", "write", "first", "reth"),
    [0x07] = op("RDMA WRITE Middle", "write", "middle"),
    [0x08] = op("RDMA WRITE Last", "write", "last"),
    [0x09] = op("RDMA WRITE Last with Immediate", "write", "last", "immdt"),
    [0x0a] = op("RDMA WRITE Only", "write", "only", "reth"),
    [0x0b] = op("RDMA WRITE Only with Immediate", "write", "only", "reth", "immdt"),
    [0x0c] = op("RDMA READ Request", "read", "only", "reth"),
    [0x0d] = op("RDMA READ response First", "response", "first", "aeth"),
    [0x0e] = op("RDMA READ response Middle", "response", "middle"),
    [0x0f] = op("RDMA READ response Last", "response", "last", "aeth"),
    [0x10] = op("RDMA READ response Only", "response", "only", "aeth"),
    [0x11] = op("Acknowledge", "ack", "only", "aeth"),
    [0x12] = op("ATOMIC Acknowledge", "ack", "only", "aeth", "atomicacketh"),
    [0x13] = op("CmpSwap", "atomic", "only", "atomiceth"),
    [0x14] = op("FetchAdd", "atomic", "only", "atomiceth"),
    [0x16] = op("SEND Last with Invalidate", "send", "last", "ieth"),
    [0x17] = op("SEND Only with Invalidate", "send", "only", "ieth"),
    [0x1c] = op("FLUSH", "flush", "only", "feth", "reth"),
    [0x1d] = op("ATOMIC WRITE", "atomic_write", "only", "reth"),
}
local is_response = {response = true, ack = true}
M.HEADER_LEN = {
    xrceth = 4, deth = 8, feth = 4, reth = 16, atomiceth = 28, aeth = 4, atomicacketh = 8, immdt = 4, ieth = 4,
}

-- True if the service has the operation.
local function legal(service, operation)
    if service == 0x20 then
        return operation < 0x0c
    elseif service == 0x60 then
        return operation == 0x04 or operation == 0x05
    elseif service == 0x80 then
        return false
    end
    return true
end

M.ops = {}
for service, name in pairs(M.SERVICE) do
    for operation, o in pairs(operations) do
        if legal(service, operation) then
            local headers = {}
            if service == 0xa0 and not is_response[o.kind] then
                headers[1] = "xrceth"
            elseif service == 0x60 then
                headers[1] = "deth"
            end
            for _, h in ipairs(o.headers) do
                headers[#headers + 1] = h
            end
            M.ops[service + operation] = {
                name = name .. " " .. o.name, kind = o.kind, place = o.place, headers = headers,
                service = name, request = not is_response[o.kind],
            }
        end
    end
end
-- Annex A17 defines opcode 0x81 for CNPs. Wireshark 4.0 and some devices use 0x80.
for _, code in ipairs({0x80, 0x81}) do
    M.ops[code] = {name = "CNP", kind = "cnp", place = "only", headers = {}, service = "CNP", request = false}
end

-- True if Wireshark 4.0 does not dissect the opcode.
function M.is_unknown_to_wireshark(opcode)
    local service, operation = bits.band(opcode, 0xe0), bits.band(opcode, 0x1f)
    return service == 0xa0 or service == 0x80 or operation == 0x1c or operation == 0x1d
end

-- Parses the packet in tvb at off. The packet has len bytes, and the capture has `have` of them. Returns {opcode, op,
-- psn, qpn, pad, at = {header = offset}, payload = offset, payload_len}, or nil if it is too short for its headers or the
-- opcode is undefined.
function M.parse(tvb, off, len, have)
    if have < 12 then
        return nil
    end
    local opcode = tvb(off, 1):uint()
    local o = M.ops[opcode]
    if not o then
        return nil
    end
    local p = {
        opcode = opcode, op = o, qpn = tvb(off + 5, 3):uint(), psn = tvb(off + 9, 3):uint(),
        pad = bits.band(bits.rshift(tvb(off + 1, 1):uint(), 4), 3), ackreq = tvb(off + 8, 1):uint() >= 0x80,
        off = off, at = {},
    }
    local at = off + 12
    for _, h in ipairs(o.headers) do
        p.at[h] = at
        at = at + M.HEADER_LEN[h]
    end
    p.payload = at
    p.payload_len = off + len - 4 - p.pad - at
    p.whole = have >= len
    if p.payload_len < 0 or at > off + have then
        return nil
    end
    return p
end

-- --- ICRC (A17.3.3) ------------------------------------------------------------------------------------------------------

local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        if bits.band(c, 1) == 1 then
            c = bits.bxor(bits.rshift(c, 1), 0xedb88320)
        else
            c = bits.rshift(c, 1)
        end
    end
    crc_table[i] = c
end

local function crc(state, s, first, last)
    local bxor, band, rshift, byte = bits.bxor, bits.band, bits.rshift, string.byte
    for i = first, last do
        state = bxor(rshift(state, 8), crc_table[band(bxor(state, byte(s, i)), 0xff)])
    end
    return state
end

local ones = string.rep("\255", 8)

-- Returns s with all ones in the bytes at the given places (from 1).
local function masked(s, ...)
    local t = {s:byte(1, -1)}
    for _, i in ipairs({...}) do
        t[i] = 0xff
    end
    return string.char(table.unpack(t))
end

-- Computes the ICRC of a packet. ip: its IP header. udp: the eight bytes of the UDP header. packet: from the BTH up to
-- the ICRC, without it. A capture has all bytes that the ICRC covers, also the IPv4 identification, so the check is
-- complete.
function M.icrc(ip, udp, packet)
    if math.floor(ip:byte(1) / 16) == 4 then
        ip = masked(ip, 2, 9, 11, 12) -- TOS, TTL, checksum
    else
        ip = string.char(0x6f) .. masked(ip, 2, 3, 4, 8):sub(2) -- traffic class, flow label, hop limit
    end
    local head = ones .. ip .. masked(udp, 7, 8) .. masked(packet:sub(1, 12), 5)
    local state = crc(0xffffffff, head, 1, #head)
    state = bits.bnot(crc(state, packet, 13, #packet))
    -- on the wire the least significant byte comes first; Wireshark shows it in that order
    local function b(n)
        return bits.band(bits.rshift(state, n), 0xff)
    end
    return ((b(0) * 256 + b(8)) * 256 + b(16)) * 256 + b(24)
end

-- --- AETH ----------------------------------------------------------------------------------------------------------------

local naks = {
    [0] = "PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
}

-- RNR timer codes in microseconds (IBA table 46)
local rnr_us = {
    [0] = 655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360,
    20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
}

-- end-to-end credits by code (IBA 9.7.7.2)
local credits = {
    [0] = 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 12288, 16384, 24576, 32768,
}

-- Returns the kind ("ack", "rnr", "nak" or "reserved") and a description of the syndrome.
function M.syndrome(s)
    local kind, value = bits.band(s, 0xe0), bits.band(s, 0x1f)
    if kind == 0 then
        return "ack", value == 31 and "ACK, no credits" or string.format("ACK, %d credit%s", credits[value], value == 1 and "" or "s")
    elseif kind == 0x20 then
        return "rnr", string.format("RNR NAK, wait %g ms", rnr_us[value] / 1000)
    elseif kind == 0x60 and naks[value] then
        return "nak", "NAK, " .. naks[value]
    end
    return "reserved", "reserved"
end

return M
