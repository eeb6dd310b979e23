# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of an MPI: how to start them on a lab, and the checks at their end."""

import os
import shutil
import signal
import time

import cases as table
import lab as labs
from traffic import Traffic

# Programs that may skip their test with an MPI that lacks the feature. Any other program that skips something has not passed.
MAY_SKIP = {("mpich", "spawn")}


def begun(lab):
    """The file by which a job that won't end well tells that it has begun: what it prints may be lost with it."""
    return os.path.join(lab.dir, "begun")


def environment(case, lab):
    """The environment that puts a process on the lab's host of its local rank, and makes UCX use this transport."""
    env = dict(lab.client_env, LD_PRELOAD=lab.preload, PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)), UCX_TLS=case.tls)
    if case.devices > 1:
        env["PUMICE_SPREAD"] = "1"
    if case.patient:
        env["UCX_UD_TIMEOUT"] = f"{case.timeout:.0f}s"
    if case.death:
        env["MT_BEGUN"] = begun(lab)
    if case.user:
        env["HOME"] = lab.dir
    env.update(case.environment)
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
    launcher = table.OVER_FABRIC + [case.fabric] if case.fabric else table.LAUNCH[case.mpi][0]
    argv = [labs.which(launcher[0])] + launcher[1:] + ["-n", str(case.ranks), program_path(case, lab, build)] + list(case.args)
    process = labs.Process(argv, environment(case, lab), lab.log("mpirun"), lab.server.prefix)
    lab.processes.append(process)
    return process


def left_over(lab):
    """Processes of a lab's jobs: those whose environment says so."""
    mark = f"PUMICE_LAB={lab.dir}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass  # it has just gone, or is another user's
    return found


DEATH_SECONDS = 30  # between a job's beginning and its end, if it dies; of many more ranks than cores, what the case allows


def check_death(case, lab, code, out, told):
    """A job that died did so after it had begun, in time, as the launcher has it, and nothing of it is left."""
    if not os.path.exists(begun(lab)) or "passed" in out:
        raise labs.Trouble(f"the job should have failed after it has begun; exit code {code}\n{told}")
    took = time.time() - os.path.getmtime(begun(lab))
    want, text = table.DEATHS[case.death][case.mpi]
    if code == 0 or want not in (code, None) or text not in out:
        raise labs.Trouble(f"exit code {code}; {want or 'an error'} is due, and '{text}' of the launcher\n{told}")
    if case.ranks <= 16 and took > DEATH_SECONDS:
        raise labs.Trouble(f"the job ended {took:.0f} s after it had begun\n{told}")
    end = time.monotonic() + 5
    while left_over(lab):
        if time.monotonic() > end:
            pids = left_over(lab)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            raise labs.Trouble(f"processes of the job were left: {pids}\n{told}")
        time.sleep(0.05)


def end_job(case, process, traffic):
    """Waits for its end, and says what is wrong with it. traffic: since before it was started."""
    code = process.wait(case.timeout)
    if code is None:
        process.kill()
    out = process.output()
    told = f"--- {process.line}\n{out}"
    if code is None:
        raise labs.Trouble(f"the job did not end within {case.timeout:.0f} s\n{told}")
    if case.death:
        check_death(case, traffic.lab, code, out, told)
    elif code != 0:
        raise labs.Trouble(f"exit code {code}\n{told}")
    elif "skip: " in out and (case.mpi, case.program) in MAY_SKIP:
        raise labs.Unavailable(out.partition("skip: ")[2].splitlines()[0])
    elif out.splitlines().count("passed") != 1:
        raise labs.Trouble(f"the job did not say that it passed\n{told}")
    missing = traffic.missing(case)
    if missing:
        raise labs.Trouble(f"{missing}\n{told}")


def check_job(case, lab, build):
    traffic = Traffic(lab)
    end_job(case, start_job(case, lab, build), traffic)
