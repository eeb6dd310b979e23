# SPDX-License-Identifier: BSD-2-Clause
"""libfabric: its reliable datagrams (ofi_rxd) over the device's UD queue pairs. Endpoints that need rdma_cm fail with a message that says so."""

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
    """A program that connects by rdma_cm fails at once, and prints one line with the reason. Other programs print no such line."""
    messages = ["fi_info", "-p", "verbs", "-t", "FI_EP_MSG"]
    for argv in (messages, ["ib_write_bw", "-R", "-F"], ["ib_send_lat", "-R", "-F", "127.0.0.1"],
                 ["env", "PMI_RANK=0", "FI_PROVIDER=verbs;ofi_rxm"] + messages, ["env", "SLURM_LOCALID=0"] + messages):
        code, out, told = run(lab, lab.server, [labs.which(argv[0])] + argv[1:], 20)
        need(code not in (0, None), f"exit code {code}{told}")
        need(out.count(HINT) == 1, f"one line was to say that rdma_cm is missing{told}")
    for argv in (["ucx_info", "-d"], ["ibv_devinfo"], ["fi_info", "-p", RXD], ["fi_info", "-p", "verbs", "-t", "FI_EP_DGRAM"],
                 ["env", "PMI_RANK=0", "fi_info", "-p", "verbs"]):
        code, out, told = run(lab, lab.server, [labs.which(argv[0])] + argv[1:], 20)
        need(code == 0 and HINT not in out, f"exit code {code}, or a needless hint{told}")


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
