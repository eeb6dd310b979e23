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


# More mappings that a daemon may have after the same jobs.
MORE_MAPPINGS = 8


def run_jobs(case, lab, build, rounds, end):
    """So many jobs, then the daemons' sizes."""
    for i in range(rounds):
        need(time.monotonic() < end, f"only {i} of {rounds} jobs within {case.timeout:.0f} s")
        jobs.check_job(case, lab, build)
    lab.wait_objects_gone(30)
    return memory(lab)


def compare(lab, before, now, grows):
    """Fails if the resident memory of a daemon grew by more, or if it has more descriptors. Returns the daemons with more mappings than
    they may have."""
    larger = []
    for host, old, new in zip(lab.hosts, before, now):
        told = f"{host.name}: resident KiB, descriptors, mappings: {old} before the last jobs, {new} after them"
        need(new[0] - old[0] <= grows and new[1] <= old[1], told)
        print(f"     {told}")
        if new[2] > old[2] + MORE_MAPPINGS:
            larger.append(told)
    return larger


def check_storm(case, lab, build):
    """MPI_Init and MPI_Finalize, case.size times in all, in jobs of case.ranks: the daemons are no larger at the end than they were
    after the first fifth, when every size class of their allocator has been used.

    How many threads work for clients at the same moment depends on chance, those that close their descriptors for example. glibc keeps the
    stack and the memory arena of a thread, four mappings. So a daemon may have more mappings once. If it forgets to unmap some, it has
    more again after as many jobs."""
    rounds = case.size // case.ranks
    first = rounds // 5 + 1
    end = time.monotonic() + case.timeout
    settled = run_jobs(case, lab, build, first, end)
    grows = GROWTH_KIB_FEW if first <= FEW_JOBS else GROWTH_KIB + GROWTH_KIB_RANK * case.ranks * (rounds - first + 1)
    now = run_jobs(case, lab, build, rounds - first, end)
    if compare(lab, settled, now, grows):
        larger = compare(lab, now, run_jobs(case, lab, build, rounds - first, end + case.timeout), grows)
        need(not larger, "\n".join(larger))


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
