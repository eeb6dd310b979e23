-- SPDX-License-Identifier: BSD-2-Clause
-- Shows selective acknowledgements between Pumice devices (wire/pumice/sack.h): UD SENDs to QP 2 that say which packets
-- of a reliable connection are missing. pumice.lua loads this file. Wireshark also loads it, if it is in a plugin folder,
-- because Wireshark loads every file there. That has no effect.
local M = {}

local QPN, QKEY, HEAD, GAP = 2, 0x80504d43, 28, 6
local D, X = base.DEC, base.HEX

local F = {
    requester = ProtoField.uint32("pumice.sack.requester", "Requester's QP", X),
    responder = ProtoField.uint32("pumice.sack.responder", "Responder's QP", X),
    expected = ProtoField.uint32("pumice.sack.expected", "Expected PSN", D),
    last = ProtoField.uint32("pumice.sack.end", "First PSN that is not described", D),
    newest = ProtoField.uint32("pumice.sack.newest", "Newest PSN that came", D),
    twice = ProtoField.uint32("pumice.sack.twice", "Packets that came twice so far", D),
    missing = ProtoField.string("pumice.sack.missing", "Missing"),
}
M.fields = F

-- The first and the last PSN of a gap as a string.
local function gap_text(expected, distance, count)
    local first, last = (expected + distance) % 0x1000000, (expected + distance + count - 1) % 0x1000000
    return first == last and tostring(first) or string.format("%d ... %d", first, last)
end

-- Adds the SACK in packet p, if it is one, and its gaps to the Info column.
function M.show(tvb, pinfo, tree, proto, p)
    if p.qpn ~= QPN or p.op.name ~= "UD SEND Only" or p.payload_len < HEAD or not p.whole then
        return
    end
    local at = p.payload
    local gaps = tvb(at + 5, 1):uint()
    if tvb(p.at.deth, 4):uint() ~= QKEY or tvb(at, 4):uint() ~= 0x504d4353 or tvb(at + 4, 1):uint() ~= 2 or
        p.payload_len ~= HEAD + GAP * gaps then
        return
    end
    local sub = tree:add(proto, tvb(at, p.payload_len), "Selective acknowledgement")
    sub:add(F.requester, tvb(at + 8, 4))
    sub:add(F.responder, tvb(at + 12, 4))
    sub:add(F.expected, tvb(at + 16, 4))
    sub:add(F.last, tvb(at + 20, 4))
    sub:add(F.twice, tvb(at + 24, 4))
    local beyond = tvb(at + 6, 2):uint()
    local newest = (tvb(at + 20, 4):uint() + beyond - 1) % 0x1000000
    local far = beyond == 0xffff and " or later" or ""
    sub:add(F.newest, tvb(at + 6, 2), newest):append_text(far)
    local expected, list = tvb(at + 16, 4):uint(), {}
    for i = 0, gaps - 1 do
        local g = tvb(at + HEAD + GAP * i, GAP)
        list[#list + 1] = gap_text(expected, g(0, 3):uint(), g(3, 3):uint())
        sub:add(F.missing, g, list[#list])
    end
    pinfo.cols.info:append(" SACK missing=" .. table.concat(list, ",") .. " newest=" .. newest .. far)
end

return M
