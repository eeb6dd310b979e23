#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stops one thread of a process by ptrace, as if a system call did not return. Prints "frozen". The thread goes on when
standard input ends. It is not stopped in a copy from or to another process, because the daemon replaces a thread that is
stuck there.

    freeze.py PID NAME      NAME: of the thread, as in /proc/PID/task/TID/comm

Exit status 77: this user may not trace the process."""
import ctypes
import errno
import os
import platform
import select
import sys
import time

PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 17, 0x4206, 0x4207
# pread64, pwrite64, process_vm_readv, process_vm_writev
COPIES = {"x86_64": ("17", "18", "310", "311")}.get(platform.machine(), ())
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) != 0:
        e = ctypes.get_errno()
        if e in (errno.EPERM, errno.EACCES):
            sys.exit(77)
        raise OSError(e, os.strerror(e))


def thread_of(pid, name):
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm") as f:
                if f.read().strip() == name:
                    return int(tid)
        except (FileNotFoundError, ProcessLookupError):
            pass  # a thread that has ended meanwhile
    sys.exit(f"process {pid} has no thread {name}")


def copies(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/syscall") as f:
        return f.read().split()[0] in COPIES


def main():
    tid = thread_of(int(sys.argv[1]), sys.argv[2])
    ptrace(PTRACE_SEIZE, tid)
    ptrace(PTRACE_INTERRUPT, tid)
    os.waitpid(tid, WALL)
    while copies(sys.argv[1], tid):
        ptrace(PTRACE_CONT, tid)
        time.sleep(0.001)
        ptrace(PTRACE_INTERRUPT, tid)
        os.waitpid(tid, WALL)
    print("frozen", flush=True)
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        # The process cannot end before its tracer has taken note of the end of the thread.
        done, status = os.waitpid(tid, WALL | os.WNOHANG)
        if done and not os.WIFSTOPPED(status):
            return
    ptrace(PTRACE_DETACH, tid)


main()
