# SPDX-License-Identifier: BSD-2-Clause
"""libfabric: its reliable datagrams (ofi_rxd) over the device's UD queue pairs, and what it offers over connections by rdma_cm. Traffic over
such connections is in tests/rdmacm."""

import os

import lab as labs
from traffic import Traffic
from ucx import need

RXD = "verbs;ofi_rxd"
HINT = "pumice: rdma_cm"
PORT = "FI_VERBS_DGRAM_NAME_SERVER_PORT"


def run(lab, host, argv, seconds):
    process = lab.start(host, argv, argv[0].rpartition("/")[2])
    code = process.wait(seconds)
    if code is None:
        process.kill()
    return code, process.output(), f"\n--- {process.line}\n{process.output()}"


def check_info(case, lab, _build):
    code, out, told = run(lab, lab.server, [labs.which("fi_info"), "-p", RXD], case.timeout)
    need(code == 0 and f"domain: {lab.server.device}-dgram" in out and "protocol: FI_PROTO_RXD" in out, f"exit code {code}{told}")
    code, out, told = run(lab, lab.server, [labs.which("fi_info"), "-p", "verbs", "-t", "FI_EP_DGRAM"], case.timeout)
    need(code == 0 and "protocol: FI_PROTO_IB_UD" in out, f"exit code {code}{told}")


def check_rdma_cm(case, lab, _build):
    """Endpoints that are connected by rdma_cm are offered, alone and below ofi_rxm. No program gets a hint that rdma_cm is missing."""
    for argv, wanted in ((["fi_info", "-p", "verbs", "-t", "FI_EP_MSG"], "protocol: FI_PROTO_RDMA_CM_IB_RC"), (["fi_info", "-p", "verbs;ofi_rxm"], "protocol: FI_PROTO_RXM"),
                         (["ucx_info", "-d"], ""), (["ibv_devinfo"], ""), (["fi_info", "-p", RXD], ""), (["env", "PMI_RANK=0", "fi_info", "-p", "verbs"], "")):
        code, out, told = run(lab, lab.server, [labs.which(argv[0])] + argv[1:], 20)
        need(code == 0 and wanted in out, f"exit code {code}, or no '{wanted}'{told}")
        need(HINT not in out, f"a needless hint{told}")


def check_pingpong(case, lab, _build):
    """With the data checked (-c), in both directions."""
    tool, port = labs.which("fi_pingpong"), labs.tcp_port()
    options = ["-p", RXD, "-e", "rdm", "-I", case.args[0], "-S", case.size, "-c"]
    traffic = Traffic(lab)
    result = lab.pair([tool, "-B", port] + options, [tool, "-P", port] + options + [lab.server_tcp()], port, case.timeout)
    told = "".join(f"\n--- {who}: {p.line}\n{p.output()}" for who, p, _ in result)
    for who, process, code in reversed(result):
        need(code == 0, f"the {who} " + ("did not end" if code is None else f"exited with {code}") + told)
        need("[error]" not in process.output(), f"the {who} reports an error{told}")
    need(f"={case.args[0]} " in result[1][1].output(), f"not all were acknowledged{told}")
    need(traffic.packets() >= 2 * int(case.args[0]), f"the test did not use the device{told}")


def check_name_server(case, lab, build):
    """Two labs at once, in which programs with the same service number find each other by a name server. Each finds that of its own lab."""
    program = os.path.join(build.dir, "tests", "mpi", "fabric", "datagram")
    if not os.path.exists(program):
        raise labs.Unavailable("tests/mpi/fabric/datagram is not built: it needs libfabric-dev")
    script = 'timeout 60 pumice on 0 -- "$0" server 7471 & timeout 60 pumice on 1 -- "$0" client 127.0.0.1 7471 "$1" && wait $!'
    texts = ("one", "two")
    jobs = [labs.Process(["env", "-u", PORT, build.pumice, "run", "--hosts", "2", "--", "sh", "-c", script, program, text], {}, lab.log("datagram")) for text in texts]
    lab.processes.extend(jobs)
    codes = [job.wait(case.timeout) for job in jobs]
    told = "".join(f"\n--- {job.line}\n{job.output()}" for job in jobs)
    for job, code, text in zip(jobs, codes, texts):
        need(code == 0, f"exit code {code}{told}")
        need(HINT not in job.output(), f"a needless hint{told}")
        need(f"received {text}\n" in job.output(), f"the server in lab {text} got another text{told}")


CHECKS = {"fi_info": check_info, "name_server": check_name_server, "rdma_cm": check_rdma_cm, "fi_pingpong": check_pingpong}
