# SPDX-License-Identifier: BSD-2-Clause
"""UCX's own tools: ucx_info, and ucx_perftest on both of its levels. UCP is the level that MPIs use; it chooses transports itself. UCT is
one transport of one device, which the command line names."""

import re

import lab as labs
from cases import WITH_SM
from traffic import Traffic

# The capabilities that a device must have: parts of the lines that ucx_info -d prints for each transport.
CAPABILITIES = {
    "rc_verbs": ("am_short: <= 127", "am_bcopy: <= 8255", "am_zcopy: <= 8255", "put_short: <= 128", "put_bcopy: <= 8256", "put_zcopy: <= 2G",
                 "get_bcopy: <= 8256", "get_zcopy: 65..2G", "atomic_add: 64 bit", "atomic_fadd: 64 bit", "atomic_cswap: 64 bit",
                 "connection: to ep", "error handling: peer failure, ep_check"),
    "ud_verbs": ("am_short: <= 160", "am_bcopy: <= 4088", "am_zcopy: <= 4088", "connection: to ep, to iface"),
}


def need(holds, message):
    if not holds:
        raise labs.Trouble(message)


def check_info(case, lab, _build):
    """ucx_info -d lists the device's transports with what they can do, and no complaint."""
    process = lab.start(lab.server, [labs.which("ucx_info"), "-d"], "ucx_info")
    code, out = process.wait(case.timeout), process.output()
    told = f"\n--- {process.line}\n{out}"
    need(code == 0, f"exit code {code}{told}")
    need(" ERROR " not in out and " WARN " not in out and "pumice:" not in out, f"it complains{told}")
    found = {}
    for part in out.split("#      Transport: ")[1:]:
        name = part.split()[0]
        if f"Device: {lab.server.device}:1\n" in part:
            found[name] = re.sub(r" +", " ", part)
    for name, wanted in CAPABILITIES.items():
        need(name in found, f"no {name} on {lab.server.device}{told}")
        for line in wanted:
            need(line in found[name], f"{name}: no '{line}'{told}")
    need(re.search(r"register: unlimited", out), f"memory can't be registered without limit{told}")


def one_sided(case):
    """The engine's counter of what the test is made of, if RC's device does it: UD has no such operations, and UCP has the target's processor
    do all atomics unless the device has every one of them (there is no swap)."""
    if case.transport != "rc":
        return None
    if case.check == "uct" and case.program in ("add_lat", "add_mr", "fadd", "cswap"):
        return "atomics"
    return "writes" if "put_" in case.program else "reads" if case.program in ("get", "ucp_get") else None


def check_perftest(case, lab, _build):
    """Server on the first host, client on the last. The iterations are few for what is large, or waits for each reply."""
    tool = labs.which("ucx_perftest")
    port = labs.tcp_port()
    slow = case.faults and case.transport == "ud"  # UCX repeats what was lost after 40 ms: see cases.habits
    many = case.size <= (8192 if slow and case.threads > 1 else 65536)
    count = (200 if many else 5 if slow else 20) * case.threads
    traffic = Traffic(lab)

    def argv(host):
        # `env` is what sets the environment, so that the line that is printed repeats it.
        line = ["env", "UCX_TLS=" + case.tls, tool, "-p", port]
        return line + (["-d", f"{host.device}:1", "-x", f"{case.transport}_verbs"] if case.check == "uct" else [])

    options = ["-t", case.program, "-n", count, "-w", 2 if slow else 10, "-s", case.size] + list(case.args)
    if case.threads > 1:
        options += ["-T", case.threads]
    result = lab.pair(argv(lab.server) + options, argv(lab.client) + [lab.server_tcp()] + options, port, case.timeout)
    told = "".join(f"--- {who}: {p.line}\n{p.output()}" for who, p, _ in result)
    for who, process, code in reversed(result):
        need(code == 0, f"the {who} " + ("did not end" if code is None else f"exited with {code}") + f"\n{told}")
        need(" ERROR " not in process.output(), f"the {who} reports an error\n{told}")
    need("Final:" in result[1][1].output(), f"no result\n{told}")
    if case.transport in WITH_SM:
        missing = traffic.missing(case)
        need(not missing, f"{missing}\n{told}")
        return
    need(traffic.packets() >= count, f"the test did not use the device\n{told}")
    operation = one_sided(case)
    did = traffic.each(operation)[-1] if operation else count
    need(did >= count, f"of {count} the client's device did only {did} {operation}\n{told}")


CHECKS = {"info": check_info, "ucp": check_perftest, "uct": check_perftest}
