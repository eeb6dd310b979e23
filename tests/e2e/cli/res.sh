#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pumice dev, link and res: the fields of iproute2's rdma tool in its order, values that agree with the status, and filters.
. "$(dirname "$0")/../lib/common.bash"
need ibv_srq_pingpong python3
block=127.53.$(($$ % 250))

cat >"$dir/check.py" <<'PY'
# In a lab with one host, where a server of ibv_srq_pingpong waits with three QPs.
import json, subprocess, sys, time

def run(*words, code=0):
    p = subprocess.run(["pumice", *words], capture_output=True, text=True)
    assert p.returncode == code, (words, p.returncode, p.stderr)
    return p.stdout if code == 0 else p.stderr

def rows(*words):
    return json.loads(run(*words, "-j"))

for _ in range(200):
    if rows("res")[0]["qp"] == 3 and "INIT" in run("res", "show", "qp"):
        break
    time.sleep(0.05)
pid = int(sys.argv[1])
device = json.loads(run("status", "--json"))["hosts"][0]["status"]["devices"][0]
name = device["name"]

# The fields, in the order of the rdma tool. ctxn is at the end where that tool has none.
FIELDS = {
    "qp": "ifindex ifname port lqpn pdn rqpn type state rq-psn sq-psn path-mig-state pid comm ctxn",
    "cq": "ifindex ifname cqe users pid comm cqn ctxn",
    "mr": "ifindex ifname rkey lkey iova mrlen pid comm mrn pdn ctxn",
    "pd": "ifindex ifname users pid comm ctxn pdn",
    "srq": "ifindex ifname srqn type lqpn pdn pid comm ctxn",
    "ctx": "ifindex ifname ctxn pid comm",
}
COUNTS = {"qp": 3, "cq": 1, "mr": 1, "pd": 1, "srq": 1, "cm_id": 0, "ctx": 1, "mw": 0, "xrcd": 0}
assert rows("res") == [dict(ifindex=0, ifname=name, **COUNTS)], rows("res")
assert list(rows("res")[0]) == ["ifindex", "ifname", *COUNTS]
assert run("res", "show", name).split() == run("res").split()
for kind, fields in FIELDS.items():
    found = rows("res", "show", kind)
    assert len(found) == COUNTS[kind], (kind, found)
    for row in found:
        assert " ".join(row) == fields, (kind, row)
        assert row["ifindex"] == 0 and row["ifname"] == name and row["pid"] == pid and row["comm"] == "ibv_srq_pingpon", row
    line = run("res", "show", kind).splitlines()[0].split()
    begin = ["link", name + "/1"] if kind == "qp" else ["dev", name]
    words = [f for f in fields.split() if f not in ("ifindex", "ifname", "port")]
    assert line[:2] == begin and line[2::2] == words, (kind, line)

pd = rows("res", "show", "pd")[0]
assert pd["users"] == 3 + 1 + 1, "three QPs, a region and an SRQ"
assert pd["pdn"] == device["pds"][0]["pd"] == device["qps"][0]["pd"]
assert rows("res", "show", "cq")[0]["users"] == 6, "two queues of three QPs"
mr = rows("res", "show", "mr")[0]
assert int(mr["rkey"], 16) == device["mrs"][0]["key"] and mr["iova"] == device["mrs"][0]["va"], mr
qps = {q["qpn"] for q in device["qps"]}
assert {q["lqpn"] for q in rows("res", "show", "qp")} == set(rows("res", "show", "srq")[0]["lqpn"]) == qps
assert rows("res", "show", "srq")[0]["type"] == "BASIC"

# Filters: numbers, ranges, texts; several must all hold. Where the objects belong to is a word, too.
one, two, three = sorted(qps)
def some(*filters):
    return sorted(q["lqpn"] for q in rows("res", "show", "qp", *filters))
assert some("lqpn", str(two)) == some("lqpn", hex(two)) == [two]
assert some("lqpn", f"{one}-{two}") == [one, two] and some("lqpn", f"{one},{three}") == [one, three]
assert some("state", "init") == [one, two, three] and some("state", "RTS,INIT", "lqpn", str(one), "pid", str(pid)) == [one]
assert some("link", name + "/1", "type", "UD") == some("link", name, "comm", "nobody") == []
assert len(rows("res", "list", "pd", "dev", name, "users", "4-5")) == 1 and rows("res", "list", "pd", "users", "6") == []

# Devices and ports.
dev, link = rows("dev")[0], rows("link", "show", name + "/1")[0]
assert list(dev) == "ifindex ifname node_type protocol fw node_guid sys_image_guid".split(), dev
assert dev["node_type"] == "ca" and int(dev["node_guid"].replace(":", ""), 16) == int(device["guid"], 16)
assert list(link) == "ifindex ifname port state physical_state netdev".split(), link
assert (link["state"], link["physical_state"], link["netdev"]) == ("ACTIVE", "LINK_UP", "lo")
assert run("dev").startswith(f"0: {name}: node_type ca ") and run("link").startswith(f"link {name}/1 state ACTIVE ")
assert "netdev_index" in rows("link", "-d")[0] and "adaptive-moderation" in rows("dev", "--details")[0]

# Errors say what is wrong.
for words, code, text in [(("res", "show", "qp", "color", "1"), 64, 'invalid filter "color"'), (("res", "show", "qp", "pid"), 64, "has no value"),
                          (("res", "show", "nothing", "1"), 64, "expected one kind of objects: qp, cq"), (("link", "show", name + "/2"), 64, "port 1 only"),
                          (("dev", "show", "none"), 1, 'no device "none"')]:
    assert text in run(*words, code=code), words
print("all right")
PY
# shellcheck disable=SC2016
out=$(timeout 60 "$pumice" run --addresses $block.1 -- sh -c 'ibv_srq_pingpong -g 0 -q 3 >"$dir/server" 2>&1 & python3 "$dir/check.py" $!; kill $!' 2>&1)
is "one host" "$out" "all right"

# Several hosts: each line stands below its host, and each object names it.
out=$("$pumice" run --addresses $block.2,$block.3 -- pumice res --json)
is "two hosts" "$(python3 -c 'import json, sys; print([(r["host"], r["ifname"], r["qp"]) for r in json.load(sys.stdin)])' <<<"$out")" "[(0, 'pumice0', 0), (1, 'pumice0', 0)]"
has "two hosts" "$("$pumice" run --addresses $block.2,$block.3 -- pumice link)" "=== host 1"
exit $((failures > 0))
