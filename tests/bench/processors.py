# SPDX-License-Identifier: BSD-2-Clause
"""Compiles tools of the benchmarks, and repeats runs during which the processors of a virtual machine were moved."""

import os
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FAR = 2  # times the nearest: the processors share a cache no more
TRIES = 8  # of one run
REPEATS_MAX = 60  # of all runs together: a machine may be so for long
PAUSE = 1.0  # seconds before another try


def compile_tool(directory, name):
    """The program of that name in this folder; compiled if it is not yet."""
    os.makedirs(directory, exist_ok=True)
    source, target = os.path.join(HERE, name + ".c"), os.path.join(directory, name)
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", target, source],
                       check=True)
    return target


class Processors:
    """A virtual machine's processors may be near each other in one second and far apart in the next, which makes more of a difference
    than most of what is compared. So what was run while they were far apart is run again."""

    def __init__(self, directory):
        self.program = compile_tool(directory, "apart")
        self.seen, self.repeated, self.far = [], 0, 0
        for _ in range(20):
            self.apart()
            time.sleep(0.05)

    def apart(self):
        """Nanoseconds, now; None: there is but one."""
        result = subprocess.run([self.program], stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            return None
        self.seen.append(float(result.stdout))
        return self.seen[-1]

    def near(self):
        ns = self.apart()
        return ns is None or ns <= FAR * min(self.seen)

    def run(self, function):
        """Runs function until the processors were near each other before and after it, at most TRIES times. Returns its last result."""
        for left in reversed(range(TRIES)):
            before = self.near()
            value = function()
            if before and self.near():
                return value
            if not left or self.repeated == REPEATS_MAX:
                break
            self.repeated += 1
            time.sleep(PAUSE)
        self.far += 1
        return value

    def told(self):
        if not self.seen:
            return "one processor"
        text = f"a cache line goes from one processor to another and back in {min(self.seen):.0f} ns"
        if max(self.seen) > FAR * min(self.seen):
            text += f", at times {max(self.seen):.0f}; {self.repeated} runs were repeated for that, {self.far} count all the same"
        return text
