# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of an MPI: how they are started on a lab, and what must hold at their end."""

import os
import shutil

import cases as table
import lab as labs


def packets(lab):
    """Packets that all hosts have sent so far; with one device, what its engine has kept inside counts, too."""
    return sum(d["counters"]["sent_pkts"] for h in lab.hosts for d in h.status()["devices"])


def begun(lab):
    """The file by which a job that won't end well tells that it has begun: what it prints may be lost with it."""
    return os.path.join(lab.dir, "begun")


def environment(case, lab):
    """What a process needs to be on the lab's host of its local rank, and UCX to use this transport."""
    env = dict(lab.client_env, LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)), UCX_TLS=case.tls)
    if case.patient:
        env["UCX_UD_TIMEOUT"] = f"{case.timeout:.0f}s"
    if case.death:
        env["MT_BEGUN"] = begun(lab)
    if case.user:
        env["HOME"] = lab.dir
    if case.mpi:
        env.update(table.LAUNCH[case.mpi][1])
    return env


def program_path(case, lab, build):
    """The program; for another user a copy where that user can read it."""
    path = os.path.join(build.dir, "tests", "mpi", case.mpi, case.program)
    if not os.path.exists(path):
        raise labs.Unavailable(f"{os.path.relpath(path)} is not built")
    if case.user:
        path = shutil.copy(path, os.path.join(lab.dir, f"{case.mpi}-{case.program}"))
        os.chmod(path, 0o755)
    return path


def start_job(case, lab, build):
    """mpirun, started."""
    if os.path.exists(begun(lab)):
        os.remove(begun(lab))
    launcher = table.LAUNCH[case.mpi][0]
    argv = [labs.which(launcher[0])] + launcher[1:] + ["-n", str(case.ranks), program_path(case, lab, build)] + list(case.args)
    process = labs.Process(argv, environment(case, lab), lab.log("mpirun"), lab.server.prefix)
    lab.processes.append(process)
    return process


def end_job(case, process, before, lab):
    """Waits for its end, and says what is wrong with it. before: packets() when it was started."""
    code = process.wait(case.timeout)
    if code is None:
        process.kill()
    out = process.output()
    told = f"--- {process.line}\n{out}"
    if code is None:
        raise labs.Trouble(f"the job did not end within {case.timeout:.0f} s\n{told}")
    if case.death:
        if code == 0 or not os.path.exists(begun(lab)) or "passed" in out:
            raise labs.Trouble(f"the job should have failed after it has begun; exit code {code}\n{told}")
    elif code != 0:
        raise labs.Trouble(f"exit code {code}\n{told}")
    elif "skip: " in out:
        raise labs.Unavailable(out.partition("skip: ")[2].splitlines()[0])
    elif out.splitlines().count("passed") != 1:
        raise labs.Trouble(f"the job did not say that it passed\n{told}")
    # Wire-up alone takes some twenty packets for each rank. (With shared memory there may be no message for the device at all.)
    if case.transport in table.TRANSPORTS and packets(lab) - before < (10 if case.death or case.check else 100) * case.ranks:
        raise labs.Trouble(f"the job did not use the device\n{told}")


def check_job(case, lab, build):
    before = packets(lab)
    end_job(case, start_job(case, lab, build), before, lab)
