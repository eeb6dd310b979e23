-- SPDX-License-Identifier: BSD-2-Clause
-- Keeps the state of a capture for pumice.lua: flows, the order of PSNs, messages of several packets, READs, and
-- rendezvous from request to FIN. pumice.lua passes each packet once, in order, to M.packet, which returns a record of
-- it. Later packets may add to the record. pumice.lua loads this file. Wireshark also loads it, if it is in a plugin
-- folder, because Wireshark loads every file there. That has no effect.

local M = {}

local PSNS = 0x1000000
local RESTART = 0x10000 -- a jump by more PSNs is a new connection with an old QP number

-- A *half* is the flow from one address to one QP at another address, because a packet names only its destination QP.
-- Two halves make a connection. If a response has the PSN of a request, their halves belong together. That is a guess,
-- because many connections begin with the same PSNs. The comments in Pumice's captures name the QP that sent a packet.
-- Then a half is the flow from that QP to the other one, and no guess is needed.
local halves, newest, by_pair, records, rendezvous, stats

function M.reset()
    halves, newest, by_pair, records, rendezvous = {}, {}, {}, {}, {}
    stats = {eager = 0, eager_bytes = 0, notag = 0, rndv = 0, rndv_bytes = 0, fin = 0, strange_fin = 0}
end
M.reset()

function M.record(number)
    return records[number]
end

local function ahead(a, b) -- a - b modulo 2^24: the number of PSNs from b to a
    return (a - b) % PSNS
end

local function key_of(src, dst, qpn, sender)
    return src .. " " .. dst .. " " .. qpn .. (sender and " " .. sender or "")
end

-- Returns the half of a packet, and true if a new connection uses an old QP number. sender: the QP that sent the
-- packet. If sender is nil (not known), the packet belongs to the newest half to this QP.
local function half_of(src, dst, qpn, sender)
    local anybody = key_of(src, dst, qpn)
    local key = key_of(src, dst, qpn, sender)
    local h = sender and halves[key] or not sender and newest[anybody]
    if h then
        return h, false
    end
    local pair = src .. " " .. dst
    local before = newest[anybody]
    h = {src = src, dst = dst, qpn = qpn, sender = sender, at = {}, frag = {}, reads = {}, rndv = {}, mtu = nil, tm = false,
         early = {eager = 0, eager_bytes = 0, notag = 0, strange_fin = 0}}
    halves[key], newest[anybody] = h, h
    by_pair[pair] = by_pair[pair] or {}
    table.insert(by_pair[pair], h)
    local peer = sender and halves[key_of(dst, src, sender, qpn)]
    if peer then
        h.peer, peer.peer = peer, h
    end
    return h, before and before.sender and sender
end

-- True if the known QP numbers allow these halves to be the two directions of a connection.
local function fit(a, b)
    return (not a.sender or a.sender == b.qpn) and (not b.sender or b.sender == a.qpn)
end

-- The peer of h. If the peer is not known: all halves in the opposite direction between the same addresses.
local function opposite(h)
    if h.peer then
        return {h.peer}
    end
    return by_pair[h.dst .. " " .. h.src] or {}
end

-- The halves that may have the rendezvous request for a READ or FIN in h, the most likely first. If a device answers,
-- the request is in the peer of h. Software answers on another connection, because the connection of the request
-- belongs to the device.
local function offerers(h)
    local list = {h.peer}
    for _, other in ipairs(by_pair[h.dst .. " " .. h.src] or {}) do
        if other ~= h.peer then
            list[#list + 1] = other
        end
    end
    return list
end

local function find_read(h, psn)
    for i = #h.reads, math.max(1, #h.reads - 255), -1 do
        local r = h.reads[i]
        if ahead(psn, r.psn) < (r.span or 1) or (not r.span and ahead(psn, r.psn) <= r.len / 256) then
            return r
        end
    end
    return nil
end

-- Sets the path MTU of x, which also gives the number of responses to each READ.
local function set_mtu(x, mtu)
    if x.mtu == mtu then
        return
    end
    x.mtu = mtu
    for _, r in ipairs(x.reads) do
        if not r.span then
            r.span = math.max(1, math.ceil(r.len / mtu))
            if x.next == nil then
                x.next = (r.psn + r.span) % PSNS
            end
        end
    end
end

local function learn_mtu(h, mtu)
    set_mtu(h, mtu)
    if h.peer then
        set_mtu(h.peer, mtu)
    end
end

-- The half with the requests that the responses in h answer.
local function asked(h, psn)
    if h.peer then
        return h.peer
    end
    local best
    for _, other in ipairs(opposite(h)) do
        if not other.peer and other ~= h and fit(h, other) and (other.at[psn] or find_read(other, psn)) then
            if not best or (other.newest or 0) > (best.newest or 0) then
                best = other
            end
        end
    end
    if best then
        h.peer, best.peer = best, h
        if best.mtu or h.mtu then
            learn_mtu(h, best.mtu or h.mtu)
        end
    end
    return best
end

-- --- PSNs of requests ----------------------------------------------------------------------------------------------------

local function order(h, rec, p)
    local span = 1
    if p.op.kind == "read" then
        span = h.mtu and math.max(1, math.ceil(p.dmalen / h.mtu)) or (p.dmalen <= 256 and 1 or nil)
    end
    local d = h.next and ahead(p.psn, h.next) or 0
    if h.next and math.min(d, PSNS - d) > RESTART then
        rec.restart, h.at, h.frag, h.reads, d = true, {}, {}, {}, 0
    end
    if d < PSNS / 2 then
        if d > 0 then
            rec.gap = d
        end
        h.next = span and (p.psn + span) % PSNS -- nil: not known before the responses come
    elseif h.at[p.psn] then
        rec.repeats = h.at[p.psn]
    elseif p.op.kind == "read" and find_read(h, p.psn) then
        rec.repeats = find_read(h, p.psn).frame
    else
        rec.late = true -- fills a gap, or the original was before the capture
    end
    h.at[p.psn] = h.at[p.psn] or rec.frame
    h.newest = rec.frame
    if p.op.kind == "read" and not rec.repeats then
        rec.read = {frame = rec.frame, time = rec.time, psn = p.psn, len = p.dmalen, span = span, half = h, va = p.va,
                    rkey = p.rkey, parts = {}, got = 0}
        table.insert(h.reads, rec.read)
    end
end

-- --- messages of several packets ----------------------------------------------------------------------------------------

-- Returns the fragments in order if the message with the fragment at psn is complete, else nil.
local function collect(h, psn)
    local first, last = psn, psn
    while h.frag[first] and h.frag[first].place ~= "first" do
        first = (first - 1) % PSNS
    end
    while h.frag[last] and h.frag[last].place ~= "last" do
        last = (last + 1) % PSNS
    end
    if not h.frag[first] or not h.frag[last] then
        return nil
    end
    local list, at = {}, first
    while true do
        list[#list + 1] = h.frag[at]
        if at == last then
            return list
        end
        at = (at + 1) % PSNS
    end
end

local function finish(list, rec)
    local msg = {frames = {}, len = 0, whole = true, done = rec.frame}
    local data = {}
    for i, f in ipairs(list) do
        msg.frames[i] = {frame = f.frame, at = msg.len, len = f.len}
        msg.len = msg.len + f.len
        data[i] = f.data
        msg.whole = msg.whole and f.data ~= nil
        records[f.frame].msg = msg
    end
    rec.msg = msg
    if msg.whole then
        msg.data = table.concat(data)
    end
    return msg
end

local function fragment(h, rec, p, keep)
    if p.op.place == "only" then
        return
    end
    local f = {frame = rec.frame, place = p.op.place, len = p.payload_len, data = keep}
    if not h.frag[p.psn] then
        h.frag[p.psn] = f
    end
    if p.op.place == "first" or p.op.place == "middle" then
        learn_mtu(h, p.payload_len)
    end
    if p.op.place == "last" or rec.late then
        local list = collect(h, p.psn)
        if list and not records[list[1].frame].msg then
            finish(list, rec)
        end
    end
end

local function response(h, rec, p, keep)
    local x = asked(h, p.psn)
    if p.op.place == "first" or p.op.place == "middle" then
        learn_mtu(h, p.payload_len)
    end
    local r = x and find_read(x, p.psn)
    if not r then
        return
    end
    rec.answers = r
    if r.parts[p.psn] then
        rec.repeats = r.parts[p.psn].frame
        return
    end
    r.parts[p.psn] = {frame = rec.frame, len = p.payload_len, data = keep}
    r.got = r.got + 1
    r.first = r.first or rec.frame
    if r.span and r.got == r.span then
        local list = {}
        for i = 0, r.span - 1 do
            list[i + 1] = r.parts[(r.psn + i) % PSNS]
        end
        r.done, r.done_time = rec.frame, rec.time
        if r.span > 1 then
            r.msg = finish(list, rec)
        end
        r.parts = r.span > 1 and {[p.psn] = r.parts[p.psn]} or r.parts
        if r.rndv then
            r.rndv.reads_done = r.rndv.reads_done + r.len
            if r.rndv.reads_done >= r.rndv.len then
                r.rndv.data_in, r.rndv.data_time = rec.frame, rec.time
            end
        end
    end
end

local function acknowledge(h, rec, p)
    local x = asked(h, p.psn)
    local request = x and x.at[p.psn]
    if request then
        rec.acks = request
        local r = records[request]
        r.acked_in = r.acked_in or rec.frame
    end
end

-- --- tag matching --------------------------------------------------------------------------------------------------------

-- The kind of a SEND that has a tag matching header and is not part of a known rendezvous. nil: a rendezvous request.
local function kind_of(t)
    if t.opcode == 3 and t.whole then
        return "eager"
    elseif t.opcode == 2 and t.whole then
        return "strange_fin"
    elseif t.opcode ~= 1 or not t.rvh then
        return "notag"
    end
    return nil
end

local function mark(rec, t)
    local kind = kind_of(t)
    rec.tm, rec.notag, rec.fin_strange = true, kind == "notag", kind == "strange_fin"
end

local function count(counts, t)
    local kind = kind_of(t)
    if kind then
        counts[kind] = counts[kind] + 1
    end
    if kind == "eager" then
        counts.eager_bytes = counts.eager_bytes + math.max(0, t.message_len - 16)
    end
end

local function copy(rec, original)
    rec.tm, rec.notag, rec.rndv, rec.fin_strange = original.tm, original.notag, original.rndv, original.fin_strange
end

-- Notes that SENDs in h have tag matching headers. Earlier SENDs in h had them too, but they were only counted in
-- h.early: most connections have no such headers, and may have millions of SENDs. M.again marks the earlier SENDs.
local function has_headers(h)
    if h.tm then
        return
    end
    h.tm = true
    for what, n in pairs(h.early) do
        stats[what] = stats[what] + n
    end
end

-- Links a READ with a rendezvous if it reads memory that a request in the other direction offers.
local function read_of_rndv(h, rec, p)
    for _, other in ipairs(offerers(h)) do
        for i = #other.rndv, 1, -1 do
            local e = other.rndv[i]
            if not e.fin_in and e.rkey == p.rkey and p.va >= e.va and p.va < e.va + e.len then
                rec.rndv, rec.read.rndv = e, e
                e.read_in, e.read_time = e.read_in or rec.frame, e.read_time or rec.time
                has_headers(other)
                has_headers(h)
                return
            end
        end
    end
end

local function fin(h, rec, t)
    local near
    for _, other in ipairs(offerers(h)) do
        local sure = not h.peer or other == h.peer
        for i, e in ipairs(other.rndv) do
            if not e.fin_in and e.app_ctx == t.app_ctx and e.tag == t.tag and (sure or e.rvh == t.rvh) then
                e.fin_in, e.fin_time, rec.rndv = rec.frame, rec.time, e
                rec.fin_differs = e.reserved ~= t.reserved or (t.rvh ~= nil and t.rvh ~= e.rvh)
                table.remove(other.rndv, i)
                rec.tm = true
                has_headers(other)
                has_headers(h)
                stats.fin = stats.fin + 1
                return true
            elseif sure and not e.fin_in and (e.app_ctx == t.app_ctx or e.tag == t.tag) then
                near = near or e
            end
        end
    end
    if h.tm or near and near.read_in then
        rec.rndv, rec.fin_differs, rec.fin_strange = near, near ~= nil, near == nil
        stats.strange_fin = stats.strange_fin + 1
        return true
    end
    return false
end

-- t: the fields of a possible TMH, from pumice.lua. forced: the user says that this QP has TMHs.
local function tag_match(h, rec, t, forced)
    if forced then
        has_headers(h)
    end
    if rec.repeats then
        copy(rec, records[rec.repeats])
        if h.tm and not rec.tm then
            mark(rec, t)
        end
    elseif t.opcode == 1 and t.rvh and (h.tm or t.plausible) then
        local e = {frame = rec.frame, time = rec.time, app_ctx = t.app_ctx, tag = t.tag, reserved = t.reserved, va = t.va,
                   rkey = t.rkey, len = t.len, rvh = t.rvh, reads_done = 0}
        table.insert(h.rndv, e)
        table.insert(rendezvous, e)
        rec.tm, rec.rndv = true, e
        stats.rndv, stats.rndv_bytes = stats.rndv + 1, stats.rndv_bytes + t.len
    elseif t.opcode == 2 and t.whole then
        rec.tm = fin(h, rec, t)
    elseif h.tm then
        mark(rec, t)
        count(stats, t)
    end
    if not h.tm and not rec.tm and not rec.repeats then
        count(h.early, t)
    end
end

local function may_have_header(p)
    return p.op.service ~= "UC" and p.op.service ~= "UD"
end

-- Processes again a packet that M.packet has seen, with the same p and t. Later packets may have shown that the packet
-- has a tag matching header.
function M.again(rec, p, t)
    if t and may_have_header(p) and rec.half.tm and not rec.tm then
        mark(rec, t)
    end
end

-- --- one packet ----------------------------------------------------------------------------------------------------------

-- info: frame, time (seconds), src, dst (text), sender (number of the QP that sent it, if known). keep: the payload as
-- a string; nil if messages are not reassembled. t: see tag_match; nil if the packet can't have a TMH.
function M.packet(info, p, keep, t, forced)
    local rec = {frame = info.frame, time = info.time}
    local kind = p.op.kind
    local h, again = half_of(info.src, info.dst, p.qpn, p.op.service ~= "UD" and info.sender or nil)
    records[info.frame] = rec
    rec.half, rec.restart = h, again
    if kind == "cnp" or p.op.service == "UD" then
        return rec
    elseif kind == "response" then
        response(h, rec, p, keep)
        if p.op.place ~= "middle" then
            acknowledge(h, rec, p)
        end
        return rec
    elseif kind == "ack" then
        acknowledge(h, rec, p)
        return rec
    end
    order(h, rec, p)
    if kind == "send" or kind == "write" then
        fragment(h, rec, p, keep)
    end
    if kind == "read" and rec.read then
        read_of_rndv(h, rec, p)
    end
    if t and may_have_header(p) then
        tag_match(h, rec, t, forced)
    end
    return rec
end

-- --- statistics ----------------------------------------------------------------------------------------------------------

local function times(name, from, to)
    local n, sum, least, most = 0, 0, math.huge, 0
    for _, e in ipairs(rendezvous) do
        if e[from] and e[to] then
            local t = (e[to] - e[from]) * 1e6
            n, sum, least, most = n + 1, sum + t, math.min(least, t), math.max(most, t)
        end
    end
    if n == 0 then
        return string.format("  %-24s %8d\n", name, 0)
    end
    return string.format("  %-24s %8d %12.1f %12.1f %12.1f\n", name, n, least, sum / n, most)
end

-- The statistics of tag matching as text.
function M.report()
    local missing, unread = 0, 0
    for _, e in ipairs(rendezvous) do
        missing = missing + (e.fin_in and 0 or 1)
        unread = unread + (e.read_in and 0 or 1)
    end
    return table.concat({
        "Tag matching\n",
        string.format("  %-24s %8d messages %12.0f bytes\n", "eager", stats.eager, stats.eager_bytes),
        string.format("  %-24s %8d messages %12.0f bytes\n", "rendezvous", stats.rndv, stats.rndv_bytes),
        string.format("  %-24s %8d messages\n", "without tag", stats.notag),
        string.format("  %-24s %8d\n", "FIN", stats.fin),
        string.format("  %-24s %8d\n", "FIN without request", stats.strange_fin),
        string.format("  %-24s %8d\n", "request without READ", unread),
        string.format("  %-24s %8d\n", "request without FIN", missing),
        string.format("  %-24s %8s %12s %12s %12s\n", "times in us", "count", "least", "mean", "most"),
        times("request to READ", "time", "read_time"),
        times("READ to data", "read_time", "data_time"),
        times("data to FIN", "data_time", "fin_time"),
        times("request to FIN", "time", "fin_time"),
    })
end

return M
