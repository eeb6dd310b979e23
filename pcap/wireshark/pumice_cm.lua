-- SPDX-License-Identifier: BSD-2-Clause
-- Shows the messages of connection management that Wireshark 4.0 has no fields for: MRA, SIDR_REQ, SIDR_REP, LAP and APR
-- (IBA 12.6, 12.8, 12.11). Wireshark itself shows REQ, REP, REJ, RTU, DREQ and DREP. pumice.lua loads this file. Wireshark
-- also loads it, if it is in a plugin folder, because Wireshark loads every file there. That has no effect.

local M = {}
local H, D = base.HEX, base.DEC

local GSI_QPN, MAD_LEN, CLASS_CM, HEADER_LEN, IP_HEADER_LEN = 1, 256, 7, 24, 36

local names = {
    [0x10] = "REQ", [0x11] = "MRA", [0x12] = "REJ", [0x13] = "REP", [0x14] = "RTU", [0x15] = "DREQ", [0x16] = "DREP",
    [0x17] = "SIDR_REQ", [0x18] = "SIDR_REP", [0x19] = "LAP", [0x1a] = "APR",
}

local F = {
    message = ProtoField.uint16("pumice.cm.message", "Message", H, names),
    local_id = ProtoField.uint32("pumice.cm.local_comm_id", "Local communication ID", H),
    remote_id = ProtoField.uint32("pumice.cm.remote_comm_id", "Remote communication ID", H),
    request_id = ProtoField.uint32("pumice.cm.request_id", "Request ID", H),
    answers = ProtoField.uint8("pumice.cm.answers", "Message acknowledged", D, {[0] = "REQ", "REP", "LAP"}, 0xc0),
    service_timeout = ProtoField.uint8("pumice.cm.service_timeout", "Service timeout (4.096 us * 2^n)", D, nil, 0xf8),
    response_timeout = ProtoField.uint8("pumice.cm.response_timeout", "Remote CM response timeout (4.096 us * 2^n)", D, nil, 0xf8),
    pkey = ProtoField.uint16("pumice.cm.pkey", "Partition key", H),
    service_id = ProtoField.uint64("pumice.cm.service_id", "Service ID", H),
    sidr_status = ProtoField.uint8("pumice.cm.sidr_status", "Status", D, {
        [0] = "valid queue pair", "service ID not supported", "rejected by the program", "no queue pair available",
        "redirected", "version not supported"}),
    ap_status = ProtoField.uint8("pumice.cm.ap_status", "Status of the alternate path", D),
    qpn = ProtoField.uint24("pumice.cm.qpn", "Queue pair", H),
    remote_qpn = ProtoField.uint24("pumice.cm.remote_qpn", "Queue pair of the receiver", H),
    qkey = ProtoField.uint32("pumice.cm.qkey", "Q_Key", H),
    info_len = ProtoField.uint8("pumice.cm.info_len", "Length of the additional information", D),
    info = ProtoField.bytes("pumice.cm.info", "Additional information"),
    alt_local_lid = ProtoField.uint16("pumice.cm.alt.local_lid", "Alternate local LID", H),
    alt_remote_lid = ProtoField.uint16("pumice.cm.alt.remote_lid", "Alternate remote LID", H),
    alt_local_gid = ProtoField.ipv6("pumice.cm.alt.local_gid", "Alternate local GID"),
    alt_remote_gid = ProtoField.ipv6("pumice.cm.alt.remote_gid", "Alternate remote GID"),
    alt_flow_label = ProtoField.uint24("pumice.cm.alt.flow_label", "Alternate flow label", H, nil, 0xfffff0),
    alt_traffic_class = ProtoField.uint8("pumice.cm.alt.traffic_class", "Alternate traffic class", H),
    alt_hop_limit = ProtoField.uint8("pumice.cm.alt.hop_limit", "Alternate hop limit", D),
    alt_packet_rate = ProtoField.uint8("pumice.cm.alt.packet_rate", "Alternate packet rate", D, nil, 0x3f),
    alt_sl = ProtoField.uint8("pumice.cm.alt.sl", "Alternate service level", D, nil, 0xf0),
    alt_subnet_local = ProtoField.uint8("pumice.cm.alt.subnet_local", "Alternate path is in the subnet", D, nil, 0x08),
    alt_ack_timeout = ProtoField.uint8("pumice.cm.alt.ack_timeout", "Alternate local ACK timeout", D, nil, 0xf8),
    ip_version = ProtoField.uint8("pumice.cm.ip.version", "IP version", D, nil, 0xf0),
    ip_port = ProtoField.uint16("pumice.cm.ip.source_port", "Source port", D),
    ip_src4 = ProtoField.ipv4("pumice.cm.ip.source", "Source address"),
    ip_dst4 = ProtoField.ipv4("pumice.cm.ip.destination", "Destination address"),
    ip_src6 = ProtoField.ipv6("pumice.cm.ip.source6", "Source address"),
    ip_dst6 = ProtoField.ipv6("pumice.cm.ip.destination6", "Destination address"),
    private = ProtoField.bytes("pumice.cm.private_data", "Private data"),
}
M.fields = F

-- The fields of a message: field, byte of the message, length.
local layouts = {
    [0x11] = {{F.local_id, 0, 4}, {F.remote_id, 4, 4}, {F.answers, 8, 1}, {F.service_timeout, 9, 1}, {F.private, 10, 222}},
    [0x17] = {{F.request_id, 0, 4}, {F.pkey, 4, 2}, {F.service_id, 8, 8}},
    [0x18] = {{F.request_id, 0, 4}, {F.sidr_status, 4, 1}, {F.info_len, 5, 1}, {F.qpn, 8, 3}, {F.service_id, 12, 8},
              {F.qkey, 20, 4}, {F.info, 24, 72}, {F.private, 96, 136}},
    [0x19] = {{F.local_id, 0, 4}, {F.remote_id, 4, 4}, {F.remote_qpn, 12, 3}, {F.response_timeout, 15, 1},
              {F.alt_local_lid, 20, 2}, {F.alt_remote_lid, 22, 2}, {F.alt_local_gid, 24, 16}, {F.alt_remote_gid, 40, 16},
              {F.alt_flow_label, 56, 3}, {F.alt_traffic_class, 59, 1}, {F.alt_hop_limit, 60, 1}, {F.alt_packet_rate, 61, 1},
              {F.alt_sl, 62, 1}, {F.alt_subnet_local, 62, 1}, {F.alt_ack_timeout, 63, 1}, {F.private, 64, 168}},
    [0x1a] = {{F.local_id, 0, 4}, {F.remote_id, 4, 4}, {F.info_len, 8, 1}, {F.ap_status, 9, 1}, {F.info, 12, 72},
              {F.private, 84, 148}},
}
local SIDR_REQ, SIDR_REQ_PRIVATE, SIDR_REQ_PRIVATE_LEN = 0x17, 16, 216

-- Port spaces of the service IDs of IP ports (IBA A11), without IB, whose service IDs may be native ones.
local ip_spaces = {["000000000002"] = true, ["000000000106"] = true, ["000000000111"] = true}

-- The private data of a SIDR_REQ begin with an IP header if the service ID is that of an IP port.
local function show_sidr_private(tvb, at, tree)
    local first, len = at + SIDR_REQ_PRIVATE, SIDR_REQ_PRIVATE_LEN
    local version = tvb(first + 1, 1):bitfield(0, 4)
    if ip_spaces[tvb(at + 8, 6):bytes():tohex(true)] and tvb(first, 1):uint() == 0 and (version == 4 or version == 6) then
        tree:add(F.ip_version, tvb(first + 1, 1))
        tree:add(F.ip_port, tvb(first + 2, 2))
        if version == 4 then
            tree:add(F.ip_src4, tvb(first + 16, 4))
            tree:add(F.ip_dst4, tvb(first + 32, 4))
        else
            tree:add(F.ip_src6, tvb(first + 4, 16))
            tree:add(F.ip_dst6, tvb(first + 20, 16))
        end
        first, len = first + IP_HEADER_LEN, len - IP_HEADER_LEN
    end
    tree:add(F.private, tvb(first, len))
end

-- Shows the message of a packet that pumice_wire.lua has parsed: its kind, and its fields if Wireshark has none for it.
function M.show(tvb, tree, proto, p)
    if p.qpn ~= GSI_QPN or p.op.name ~= "UD SEND Only" or p.payload_len ~= MAD_LEN or not p.whole then
        return
    end
    local code = tvb(p.payload + 16, 2):uint()
    if tvb(p.payload + 1, 1):uint() ~= CLASS_CM or not names[code] then
        return
    end
    local sub = tree:add(proto, tvb(p.payload, MAD_LEN), "Connection management: " .. names[code])
    sub:add(F.message, tvb(p.payload + 16, 2))
    local at = p.payload + HEADER_LEN
    for _, field in ipairs(layouts[code] or {}) do
        sub:add(field[1], tvb(at + field[2], field[3]))
    end
    if code == SIDR_REQ then
        show_sidr_private(tvb, at, sub)
    end
end

return M
