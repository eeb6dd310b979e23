# SPDX-License-Identifier: BSD-2-Clause
"""Captures all hosts of a lab while a case runs, and has the linter judge the capture."""

import os
import signal
import subprocess
import time

import lab as labs

TRUNCATED = "the capture itself has lost"  # so says the linter if the machine was too busy for the capture
BUFFER_MIB = 256


class Capture:
    """Packets as they leave their hosts, the lost ones included. With the topology "device", also those that stay within it."""

    def __init__(self, lab, pumice, file):
        self.pumice, self.file = pumice, file
        env = dict(PUMICE_LAB=lab.dir, PUMICE_HOSTS=str(len(lab.hosts)))
        self.process = labs.Process([pumice, "capture", "--lost", "-B", BUFFER_MIB, file], env, lab.log("capture"))
        self.wait_for_begin()

    def wait_for_begin(self):
        end = time.monotonic() + 20
        while "capturing at" not in self.process.output():
            if not self.process.alive() or time.monotonic() > end:
                self.process.kill()
                raise labs.Trouble(f"no capture: {self.process.output()}")
            time.sleep(0.01)

    def end(self):
        self.process.signal(signal.SIGINT)
        code = self.process.wait(60)
        self.process.kill()
        if code != 0:
            raise labs.Trouble(f"the capture ended with {code}: {self.process.output()}")

    def lint(self, *options):
        return subprocess.run([self.pumice, "lint", *options, self.file], capture_output=True, text=True, check=False)

    def judge(self):
        """Raises Trouble if the linter finds a violation. Otherwise the file is removed."""
        done = self.lint()
        if done.returncode != 0 and TRUNCATED in done.stdout:
            done = self.lint("--incomplete")
        if done.returncode != 0:
            raise labs.Trouble(f"the linter judges {self.file}:\n{done.stdout[:3000]}\n{done.stdout[-500:]}{done.stderr}")
        os.unlink(self.file)
