# SPDX-License-Identifier: BSD-2-Clause
"""Load on a daemon beside messages: a thousand jobs in turn, and more polling ranks than there are cores."""

import os
import time

import jobs
import lab as labs
from traffic import Traffic
from ucx import need


def sizes(pid):
    """A process's resident KiB, open descriptors, and mappings."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        resident = next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return resident, len(os.listdir(f"/proc/{pid}/fd")), len(f.readlines())


def memory(lab):
    """The sizes of each daemon, the smallest within some time. A connection that has just ended may still be open, the one that asked for
    the status for example."""
    found = []
    for host in lab.hosts:
        looks = []
        for _ in range(10):
            looks.append(sizes(host.daemon.pid))
            time.sleep(0.03)
        found.append(tuple(min(column) for column in zip(*looks)))
    return found


# Limits for the growth of a daemon's resident memory, over all jobs after the first fifth: for its allocator, and for each rank (44 KiB
# in all over 400 ranks were measured). A few jobs are not enough for the allocator to settle.
GROWTH_KIB, GROWTH_KIB_RANK = 96, 0.25
FEW_JOBS, GROWTH_KIB_FEW = 20, 512


def check_storm(case, lab, build):
    """MPI_Init and MPI_Finalize, case.size times in all, in jobs of case.ranks: the daemons are no larger at the end than they were
    after the first fifth, when every size class of their allocator has been used."""
    rounds = case.size // case.ranks
    settled, grows = None, 0.0
    end = time.monotonic() + case.timeout
    for i in range(rounds):
        need(time.monotonic() < end, f"only {i} of {rounds} jobs within {case.timeout:.0f} s")
        jobs.check_job(case, lab, build)
        if i == rounds // 5:
            lab.wait_objects_gone(30)
            settled = memory(lab)
            grows = GROWTH_KIB_FEW if i < FEW_JOBS else GROWTH_KIB + GROWTH_KIB_RANK * case.ranks * (rounds - i)
    lab.wait_objects_gone(30)
    for host, before, now in zip(lab.hosts, settled, memory(lab)):
        told = f"{host.name}: resident KiB, descriptors, mappings: {before} after the first jobs, {now} at the end"
        need(now[0] - before[0] <= grows and now[1] <= before[1] and now[2] <= before[2] + 8, told)
        print(f"     {told}")


# The longest that a program may have to wait for its device to be opened, and for 200 round trips: some hundred times what it takes here.
OPEN_SECONDS, TRIPS_SECONDS = 5.0, 20.0


def check_starve(case, lab, build):
    """While all ranks but one poll for a message that does not come, others can open the device and have their traffic."""
    traffic = Traffic(lab)
    job = jobs.start_job(case, lab, build)
    job.wait_output("begun", case.timeout)
    slowest = 0.0
    for host in lab.hosts:
        asked = time.monotonic()
        process = lab.start(host, [labs.which("ibv_devinfo")], "devinfo")
        need(process.wait(60) == 0, f"ibv_devinfo between {case.ranks} pollers\n--- {process.line}\n{process.output()}")
        slowest = max(slowest, time.monotonic() - asked)
    port = labs.tcp_port()
    pingpong = [labs.which("ibv_rc_pingpong"), "-g", "0", "-c", "-n", "200", "-p", port]
    started = time.monotonic()
    for who, process, code in lab.pair(pingpong, pingpong + [lab.server_tcp()], port, 60):
        need(code == 0, f"between {case.ranks} pollers the {who} exited with {code}\n--- {process.line}\n{process.output()}")
    took = time.monotonic() - started
    need(job.alive(), f"the job had ended already: nothing was tested\n--- {job.line}\n{job.output()}")
    print(f"     {case.ranks} ranks poll: a device opened within {slowest * 1e3:.0f} ms, 200 round trips of another program in {took:.1f} s, start included")
    jobs.end_job(case, job, traffic)
    need(slowest < OPEN_SECONDS, f"opening a device took {slowest:.1f} s")
    need(took < TRIPS_SECONDS, f"200 round trips took {took:.1f} s")


CHECKS = {"storm": check_storm, "starve": check_starve}
