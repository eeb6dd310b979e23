-- SPDX-License-Identifier: BSD-2-Clause
-- A dissector for the parts of RoCEv2 that Wireshark 4.0 does not show: tag matching (TMH, RVH, a rendezvous linked
-- from request to FIN), XRC, FLUSH, ATOMIC WRITE and CNP, the check of the ICRC, reassembled messages and READs of several
-- packets, lost and repeated packets, messages of connection management.
--
--     tshark -X lua_script:pumice.lua -2 -R frame -r FILE -V
--
-- (-2: with links to later packets; -R frame: comments are visible in both passes, see sender_of.) To install: put the
-- files pumice*.lua into Wireshark's folder of personal Lua plugins (Help, About, Folders), or run `make
-- install`. Wireshark's own dissection of RoCEv2 does not change; this script adds a subtree "Pumice". Its fields are
-- pumice.*.

-- The script may be loaded twice: as a plugin, and by -X lua_script. (Each script has its own globals.)
if package.loaded.pumice then
    return
end
package.loaded.pumice = true

local here = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local wire = dofile(here .. "pumice_wire.lua")
local track = dofile(here .. "pumice_track.lua")
local cm = dofile(here .. "pumice_cm.lua")
local sack = dofile(here .. "pumice_sack.lua")

local pumice = Proto("pumice", "Pumice RoCEv2")

-- --- fields --------------------------------------------------------------------------------------------------------------

local tmh_names = {[0] = "NO_TAG", "RNDV", "FIN", "EAGER"}
local status_names = {[0] = "Bad", "Good", "Unverified"}
local H, D = base.HEX, base.DEC
local F = {
    op = ProtoField.string("pumice.bth.name", "Operation"),
    peer = ProtoField.uint32("pumice.flow.peer_qp", "QP of the other direction", H),
    -- extended headers, with the names that Wireshark's infiniband.* fields have
    srqn = ProtoField.uint24("pumice.xrceth.srqn", "XRC SRQ number", H),
    feth_plt = ProtoField.uint32("pumice.feth.plt", "Placement type", H, {
        [0] = "none", "global visibility", "persistence", "global visibility and persistence"}, 0x0000000f),
    feth_sel = ProtoField.uint32("pumice.feth.sel", "Selectivity level", H, {
        [0] = "memory range", "whole memory region"}, 0x00000030),
    reth_va = ProtoField.uint64("pumice.reth.va", "Virtual address", H),
    reth_rkey = ProtoField.uint32("pumice.reth.r_key", "Remote key", H),
    reth_len = ProtoField.uint32("pumice.reth.dmalen", "DMA length", D),
    at_va = ProtoField.uint64("pumice.atomiceth.va", "Virtual address", H),
    at_rkey = ProtoField.uint32("pumice.atomiceth.r_key", "Remote key", H),
    at_swap = ProtoField.uint64("pumice.atomiceth.swapdt", "Swap or add data", D),
    at_cmp = ProtoField.uint64("pumice.atomiceth.cmpdt", "Compare data", D),
    syndrome = ProtoField.uint8("pumice.aeth.syndrome", "Syndrome", H),
    msn = ProtoField.uint24("pumice.aeth.msn", "Message sequence number", D),
    orig = ProtoField.uint64("pumice.atomicacketh.origremdt", "Original remote data", D),
    immdt = ProtoField.bytes("pumice.immdt", "Immediate data"),
    ieth = ProtoField.uint32("pumice.ieth", "Key to invalidate", H),
    payload = ProtoField.bytes("pumice.payload", "Payload"),
    cnp = ProtoField.bytes("pumice.cnp", "Congestion notification (reserved bytes)"),
    icrc = ProtoField.uint32("pumice.icrc", "Invariant CRC", H),
    icrc_status = ProtoField.uint8("pumice.icrc.status", "ICRC status", D, status_names),
    icrc_right = ProtoField.uint32("pumice.icrc.calculated", "ICRC should be", H),
    -- order of packets
    repeats = ProtoField.framenum("pumice.analysis.repeats", "Retransmission of", base.NONE, frametype.DUP_ACK),
    gap = ProtoField.uint32("pumice.analysis.gap", "PSNs missing before this one", D),
    acks = ProtoField.framenum("pumice.analysis.acks", "Answer to", base.NONE, frametype.ACK),
    acked_in = ProtoField.framenum("pumice.analysis.acked_in", "Answered in", base.NONE, frametype.RESPONSE),
    read_request = ProtoField.framenum("pumice.read.request_in", "READ request in", base.NONE, frametype.REQUEST),
    read_first = ProtoField.framenum("pumice.read.first_in", "First response in", base.NONE, frametype.RESPONSE),
    read_done = ProtoField.framenum("pumice.read.done_in", "Last response in", base.NONE, frametype.RESPONSE),
    read_time = ProtoField.double("pumice.read.time_us", "Time from request to last response (us)"),
    -- messages
    msg_part = ProtoField.framenum("pumice.msg.fragment", "Packet", base.NONE),
    msg_count = ProtoField.uint32("pumice.msg.packets", "Packets of the message", D),
    msg_done = ProtoField.framenum("pumice.msg.reassembled_in", "Message complete in", base.NONE),
    msg_len = ProtoField.uint32("pumice.msg.length", "Length of the message", D),
    msg_data = ProtoField.bytes("pumice.msg.data", "Message"),
    -- tag matching
    tm_op = ProtoField.uint8("pumice.tmh.opcode", "Operation", D, tmh_names),
    tm_reserved = ProtoField.bytes("pumice.tmh.reserved", "Reserved"),
    tm_ctx = ProtoField.uint32("pumice.tmh.app_ctx", "Application context", H),
    tm_tag = ProtoField.uint64("pumice.tmh.tag", "Tag", H),
    rv_va = ProtoField.uint64("pumice.rvh.va", "Virtual address", H),
    rv_rkey = ProtoField.uint32("pumice.rvh.rkey", "Remote key", H),
    rv_len = ProtoField.uint32("pumice.rvh.len", "Length", D),
    tm_data = ProtoField.bytes("pumice.tm.data", "Data after the headers"),
    tm_request = ProtoField.framenum("pumice.tm.request_in", "Rendezvous request in", base.NONE, frametype.REQUEST),
    tm_read = ProtoField.framenum("pumice.tm.read_in", "READ in", base.NONE, frametype.RESPONSE),
    tm_done = ProtoField.framenum("pumice.tm.data_in", "Last READ response in", base.NONE, frametype.RESPONSE),
    tm_fin = ProtoField.framenum("pumice.tm.fin_in", "FIN in", base.NONE, frametype.RESPONSE),
    tm_to_read = ProtoField.double("pumice.tm.time_to_read_us", "Time from request to READ (us)"),
    tm_to_data = ProtoField.double("pumice.tm.time_to_data_us", "Time from READ to data (us)"),
    tm_to_fin = ProtoField.double("pumice.tm.time_to_fin_us", "Time from request to FIN (us)"),
}
for name, field in pairs(cm.fields) do
    F["cm_" .. name] = field
end
for name, field in pairs(sack.fields) do
    F["sack_" .. name] = field
end
pumice.fields = F

local G, S = expert.group, expert.severity
local X = {
    icrc = ProtoExpert.new("pumice.expert.icrc", "Wrong ICRC", G.CHECKSUM, S.ERROR),
    gap = ProtoExpert.new("pumice.expert.gap", "PSNs are missing", G.SEQUENCE, S.WARN),
    repeats = ProtoExpert.new("pumice.expert.retransmission", "Retransmission", G.SEQUENCE, S.NOTE),
    late = ProtoExpert.new("pumice.expert.late", "Late packet or retransmission", G.SEQUENCE, S.NOTE),
    restart = ProtoExpert.new("pumice.expert.restart", "New connection with a QP number seen before", G.SEQUENCE, S.CHAT),
    nak = ProtoExpert.new("pumice.expert.nak", "NAK", G.RESPONSE_CODE, S.WARN),
    rnr = ProtoExpert.new("pumice.expert.rnr", "Receiver not ready", G.RESPONSE_CODE, S.NOTE),
    no_fin = ProtoExpert.new("pumice.expert.no_fin", "Rendezvous without FIN in this capture", G.SEQUENCE, S.WARN),
    fin = ProtoExpert.new("pumice.expert.fin", "FIN does not copy a rendezvous request", G.PROTOCOL, S.WARN),
    guess = ProtoExpert.new("pumice.expert.guess", "Linked with another connection's packets, because its comment was not visible in the " ..
        "first pass (use tshark -2 -R frame)", G.ASSUMPTION, S.WARN),
    merged = ProtoExpert.new("pumice.expert.merged", "Several packets in one datagram (GSO or GRO)", G.ASSUMPTION, S.NOTE),
}
pumice.experts = X

-- --- preferences ---------------------------------------------------------------------------------------------------------

local AUTO, OFF, LISTED = 1, 2, 3
local P = pumice.prefs
P.tm = Pref.enum("Tag matching headers", AUTO, "Nothing on the wire says that a SEND begins with a tag matching header. " ..
    "Automatic: where rendezvous requests are followed by their READ or FIN.", {
    {1, "Automatic", AUTO}, {2, "Never", OFF}, {3, "Only of listed QPs", LISTED}}, false)
P.tm_qps = Pref.string("QPs with tag matching", "",
    "Numbers of QPs whose received SENDs always begin with a tag matching header: 17, 0x2a, 64-95")
P.icrc = Pref.bool("Check ICRCs", true, "Takes some time for each packet")
P.reassemble = Pref.bool("Put messages together", true, "Keeps the payload of all messages of several packets in memory")
P.subdissectors = Pref.bool("Let Wireshark guess what is in SENDs", false,
    "Its heuristics know RPC over RDMA, NVMe over RDMA, SMB Direct and others, but Wireshark 4.0 calls short SENDs malformed")
P.statistics = Pref.bool("Print tag matching statistics", false, "tshark: when the capture ends")

local listed, listed_text = {}, ""
local function is_listed(qpn)
    if listed_text ~= P.tm_qps then
        listed, listed_text = {}, P.tm_qps
        for word in P.tm_qps:gmatch("[^,%s]+") do
            local from, to = word:match("^(%w+)-(%w+)$")
            from, to = tonumber(from or word), tonumber(to or word)
            if from and to then
                listed[#listed + 1] = {from, to}
            end
        end
    end
    for _, range in ipairs(listed) do
        if qpn >= range[1] and qpn <= range[2] then
            return true
        end
    end
    return false
end

-- --- Wireshark's own dissection ---------------------------------------------------------------------------------------------

local udp_ports = DissectorTable.get("udp.port")
local infiniband = udp_ports:get_dissector(4791)

-- Wireshark guesses the protocol in the payload of a SEND. Version 4.0 guesses badly: its dissector of RPC over RDMA
-- calls SENDs of a few bytes malformed, and fails when the middle of a message is lost. So this script claims all
-- payloads first, unless the user allows the guess.
local claim = Proto("pumice.payload", "RoCEv2 payload")
claim:register_heuristic("infiniband.payload", function(tvb, _, tree)
    if P.subdissectors then
        return false
    end
    if tvb:len() > 0 then
        tree:add(tvb:range(), "Payload (" .. tvb:len() .. " bytes)")
    end
    return true
end)

-- These fields exist only in a pass that has a tree. In its first pass, tshark -2 has a tree only with -R, -Y or
-- --color.
local f_ip4, f_ip6 = Field.new("ip"), Field.new("ipv6")
local f_comment, f_direction = Field.new("frame.comment"), Field.new("frame.packet_flags_direction")
local OUTBOUND = 2

-- The innermost IP header of the frame, as a string; nil if it is not known.
local function ip_header()
    local best
    for _, list in ipairs({{f_ip4()}, {f_ip6()}}) do
        for _, fi in ipairs(list) do
            if not best or fi.offset > best.offset then
                best = fi
            end
        end
    end
    return best and best.range:raw()
end

-- The number of the QP that sent the packet, if a comment of Pumice (pcap/note.h) names it; else nil. In a received
-- packet, the comments name the receiving QP, which the packet itself names too.
local function sender_of()
    local direction = f_direction()
    if not direction or direction.value ~= OUTBOUND then
        return nil
    end
    for _, comment in ipairs({f_comment()}) do
        local digits = tostring(comment.value):match("^QP 0x(%x%x%x%x%x%x)%f[%X]")
        if digits then
            return tonumber(digits, 16)
        end
    end
    return nil
end

local function be16(n)
    return string.char(math.floor(n / 256), n % 256)
end

local function udp_header(ports, len)
    return be16(ports[1]) .. be16(ports[2]) .. be16(len + 8) .. "\255\255"
end

-- --- parts of the tree -------------------------------------------------------------------------------------------------------

local header_names = {
    xrceth = "XRC Extended Transport Header", deth = "Datagram Extended Transport Header", feth = "FLUSH Extended Transport Header",
    reth = "RDMA Extended Transport Header", atomiceth = "Atomic Extended Transport Header",
    aeth = "ACK Extended Transport Header", atomicacketh = "Atomic ACK Extended Transport Header",
    immdt = "Immediate Data", ieth = "Invalidate Extended Transport Header",
}
-- Each entry: field, offset in the header, length.
local header_fields = {
    xrceth = {{F.srqn, 1, 3}},
    deth = {},
    feth = {{F.feth_plt, 0, 4}, {F.feth_sel, 0, 4}},
    reth = {{F.reth_va, 0, 8}, {F.reth_rkey, 8, 4}, {F.reth_len, 12, 4}},
    atomiceth = {{F.at_va, 0, 8}, {F.at_rkey, 8, 4}, {F.at_swap, 12, 8}, {F.at_cmp, 20, 8}},
    aeth = {{F.syndrome, 0, 1}, {F.msn, 1, 3}},
    atomicacketh = {{F.orig, 0, 8}},
    immdt = {{F.immdt, 0, 4}},
    ieth = {{F.ieth, 0, 4}},
}

-- Shows the headers that Wireshark does not know.
local function show_headers(tvb, tree, p)
    for _, h in ipairs(p.op.headers) do
        local at = p.at[h]
        local sub = tree:add(tvb(at, wire.HEADER_LEN[h]), header_names[h])
        for _, f in ipairs(header_fields[h]) do
            sub:add(f[1], tvb(at + f[2], f[3]))
        end
    end
    if p.payload_len > 0 and p.whole then
        tree:add(p.op.kind == "cnp" and F.cnp or F.payload, tvb(p.payload, p.payload_len))
    end
end

local function show_icrc(tvb, ports, tree, p, len)
    local at = len - 4
    if not p.whole then
        return
    end
    local item = tree:add(F.icrc, tvb(at, 4))
    local ip = P.icrc and ip_header()
    if not ip then
        tree:add(F.icrc_status, 2):set_generated()
        return
    end
    local right = wire.icrc(ip, udp_header(ports, len), tvb:raw(0, len - 4))
    local good = right == tvb(at, 4):uint()
    tree:add(F.icrc_status, good and 1 or 0):set_generated()
    item:append_text(good and " (right)" or " (wrong)")
    if not good then
        tree:add(F.icrc_right, right):set_generated()
        item:add_proto_expert_info(X.icrc, string.format("Wrong ICRC, should be 0x%08x", right))
    end
end

local function link(tree, field, value)
    if value then
        tree:add(field, value):set_generated()
    end
end

local function elapsed(tree, field, from, to)
    if from and to then
        tree:add(field, math.floor((to - from) * 1e9 + 0.5) / 1e3):set_generated()
    end
end

local function show_order(tree, rec)
    local sender, guess = rec.half.sender or sender_of(), rec.half.peer and rec.half.peer.qpn
    link(tree, F.peer, sender or guess)
    if sender and guess and sender ~= guess then
        tree:add_proto_expert_info(X.guess)
    end
    if rec.repeats then
        local item = tree:add(F.repeats, rec.repeats):set_generated()
        item:add_proto_expert_info(X.repeats, "Retransmission of frame " .. rec.repeats)
    end
    if rec.gap then
        local item = tree:add(F.gap, rec.gap):set_generated()
        item:add_proto_expert_info(X.gap, rec.gap .. " PSNs before this one are missing")
    end
    if rec.late then
        tree:add_proto_expert_info(X.late)
    end
    if rec.restart then
        tree:add_proto_expert_info(X.restart)
    end
    link(tree, F.acks, rec.acks)
    link(tree, F.acked_in, rec.acked_in)
end

local function show_read(tree, rec)
    local r = rec.read or rec.answers
    if not r then
        return
    end
    local sub = tree:add(pumice, "RDMA READ of " .. r.len .. " bytes")
    sub:set_generated()
    link(sub, F.read_request, rec.answers and r.frame)
    link(sub, F.read_first, rec.read and r.first)
    link(sub, F.read_done, r.done)
    elapsed(sub, F.read_time, r.time, r.done_time)
end

local function show_message(tvb, pinfo, tree, rec)
    local msg = rec.msg
    if not msg then
        return
    end
    local sub = tree:add(pumice, string.format("Message of %d packets, %d bytes", #msg.frames, msg.len))
    sub:set_generated()
    link(sub, F.msg_count, #msg.frames)
    link(sub, F.msg_len, msg.len)
    if msg.done ~= pinfo.number then
        link(sub, F.msg_done, msg.done)
        return
    end
    for _, f in ipairs(msg.frames) do
        sub:add(F.msg_part, f.frame):append_text(string.format(", bytes %d to %d", f.at, f.at + f.len - 1)):set_generated()
    end
    if msg.data then
        local whole = ByteArray.new(msg.data, true):tvb("Message of several packets")
        sub:add(F.msg_data, whole:range())
    end
end

local function show_rendezvous(tree, pinfo, rec)
    local e = rec.rndv
    if not e then
        return
    end
    local sub = tree:add(pumice, string.format("Rendezvous of %d bytes, tag 0x%s", e.len, e.tag))
    sub:set_generated()
    link(sub, F.tm_request, e.frame ~= pinfo.number and e.frame)
    link(sub, F.tm_read, e.read_in ~= pinfo.number and e.read_in)
    link(sub, F.tm_done, e.data_in ~= pinfo.number and e.data_in)
    link(sub, F.tm_fin, e.fin_in ~= pinfo.number and e.fin_in)
    elapsed(sub, F.tm_to_read, e.time, e.read_time)
    elapsed(sub, F.tm_to_data, e.read_time, e.data_time)
    elapsed(sub, F.tm_to_fin, e.time, e.fin_time)
    if e.frame == pinfo.number and pinfo.visited and not e.fin_in and e.read_in then
        sub:add_proto_expert_info(X.no_fin)
    end
end

local function show_tmh(tvb, pinfo, tree, p, rec)
    if not rec.tm then
        return
    end
    local len = p.whole and p.payload_len or tvb:len() - p.payload
    if rec.notag or len < 16 then
        local sub = tree:add(tvb(p.payload, len), "Tag Matching Header: no tag")
        if len > 0 then
            sub:add(F.tm_op, tvb(p.payload, 1))
        end
        pinfo.cols.info:append(" TM no tag")
        return
    end
    local at, code = p.payload, tvb(p.payload, 1):uint()
    local name = tmh_names[code] or "unknown"
    local sub = tree:add(tvb(at, 16), "Tag Matching Header: " .. name)
    sub:add(F.tm_op, tvb(at, 1))
    sub:add(F.tm_reserved, tvb(at + 1, 3))
    sub:add(F.tm_ctx, tvb(at + 4, 4))
    sub:add(F.tm_tag, tvb(at + 8, 8))
    local info = string.format(" TM %s tag=0x%s", name, tvb(at + 8, 8):bytes():tohex(true))
    local used = 16
    if (code == 1 or code == 2) and len >= 32 then
        local rvh = tree:add(tvb(at + 16, 16), "Rendezvous Header")
        rvh:add(F.rv_va, tvb(at + 16, 8))
        rvh:add(F.rv_rkey, tvb(at + 24, 4))
        rvh:add(F.rv_len, tvb(at + 28, 4))
        info = info .. " len=" .. tvb(at + 28, 4):uint()
        used = 32
    end
    if len > used then
        tree:add(F.tm_data, tvb(at + used, len - used))
    end
    if rec.fin_strange or rec.fin_differs then
        sub:add_proto_expert_info(X.fin, rec.fin_strange and "FIN without a rendezvous request" or
            "FIN is no exact copy of the request")
    end
    pinfo.cols.info:append(info)
end

-- --- the packet ----------------------------------------------------------------------------------------------------------

-- The fields of a possible TMH at the beginning of a SEND, for track.packet and track.again; nil if the preferences
-- forbid it.
local function candidate(tvb, p)
    if P.tm == OFF or p.op.kind ~= "send" or (p.op.place ~= "first" and p.op.place ~= "only") then
        return nil
    end
    local forced = is_listed(p.qpn)
    if P.tm == LISTED and not forced then
        return nil
    end
    local at, have = p.payload, math.min(p.payload_len, tvb:len() - p.payload)
    local t = {opcode = have > 0 and tvb(at, 1):uint() or 0, whole = have >= 16, message_len = p.payload_len}
    if have >= 16 then
        t.reserved, t.app_ctx = tvb:raw(at + 1, 3), tvb(at + 4, 4):uint()
        t.tag = tvb(at + 8, 8):bytes():tohex(true)
    end
    if have >= 32 then
        t.va, t.rkey, t.len = tvb(at + 16, 8):uint64(), tvb(at + 24, 4):uint(), tvb(at + 28, 4):uint()
        t.rvh = tvb:raw(at + 16, 16)
        t.plausible = t.len > 0 and t.len <= 0x80000000 and t.rkey ~= 0
    end
    return t, forced
end

local function learn(tvb, pinfo, p)
    local keep
    if p.op.place ~= "only" and P.reassemble and p.whole then
        keep = tvb:raw(p.payload, p.payload_len)
    end
    if p.op.kind == "read" then
        p.va, p.rkey = tvb(p.at.reth, 8):uint64(), tvb(p.at.reth + 8, 4):uint()
        p.dmalen = tvb(p.at.reth + 12, 4):uint()
    end
    local info = {frame = pinfo.number, time = pinfo.rel_ts, src = tostring(pinfo.src), dst = tostring(pinfo.dst),
                  sender = sender_of()}
    return track.packet(info, p, keep, candidate(tvb, p))
end

local function show_answer(tvb, tree, p)
    local kind, text = wire.syndrome(tvb(p.at.aeth, 1):uint())
    if kind == "nak" or kind == "rnr" then
        tree:add_proto_expert_info(kind == "nak" and X.nak or X.rnr, text)
    end
    return kind ~= "ack" and " " .. text or ""
end

local function dissect(tvb, pinfo, tree, ports)
    local len = tvb:reported_len()
    if len < 16 then
        return
    end
    local root = tree:add(pumice, tvb:range())
    local p = wire.parse(tvb, 0, len, tvb:len())
    if not p then -- most likely damaged
        root:append_text(", no such packet")
        show_icrc(tvb, ports, root, {whole = tvb:len() >= len}, len)
        return
    end
    if p.payload_len > 4096 then
        root:append_text(", several packets in one datagram")
        root:add_proto_expert_info(X.merged)
        return
    end
    local rec = track.record(pinfo.number)
    if not pinfo.visited or not rec then
        rec = learn(tvb, pinfo, p)
    elseif rec.half.tm and not rec.tm then
        track.again(rec, p, (candidate(tvb, p)))
    end
    root:append_text(", " .. p.op.name)
    root:add(F.op, tvb(0, 1), p.op.name)
    if wire.is_unknown_to_wireshark(p.opcode) then
        pinfo.cols.info = string.format("%s QP=0x%06x ", p.op.name, p.qpn)
        show_headers(tvb, root, p)
    end
    if p.at.aeth then
        pinfo.cols.info:append(show_answer(tvb, root, p))
    end
    cm.show(tvb, root, pumice, p)
    sack.show(tvb, pinfo, root, pumice, p)
    show_tmh(tvb, pinfo, root, p, rec)
    show_rendezvous(root, pinfo, rec)
    show_read(root, rec)
    show_message(tvb, pinfo, root, rec)
    show_order(root, rec)
    show_icrc(tvb, ports, root, p, len)
end

function pumice.dissector(tvb, pinfo, tree)
    local ports = {pinfo.src_port, pinfo.dst_port} -- Wireshark's dissector overwrites them with QP numbers
    -- If the opcode is damaged, the packet can be too short for Wireshark's dissector. Wireshark then marks the packet
    -- and raises an error, which pcall ignores. The ICRC below shows the cause.
    pcall(infiniband.call, infiniband, tvb, pinfo, tree)
    dissect(tvb, pinfo, tree, ports)
    return tvb:len()
end

function pumice.init()
    track.reset()
end

udp_ports:set(4791, pumice)

-- --- statistics ------------------------------------------------------------------------------------------------------------

if gui_enabled() then
    register_menu("Pumice/Tag matching", function()
        local window = TextWindow.new("Tag matching")
        window:set(track.report())
    end, MENU_TOOLS_UNSORTED)
else
    -- tshark calls the draw() of a listener when the capture ends.
    local tap = Listener.new("frame", "pumice")
    function tap.draw()
        if P.statistics then
            print(track.report())
        end
    end
end
