#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the service of a user is as strict as the service of the system.

Each setting of the section [Service] that takes something away from the daemon must be in both units, with the same
values. The unit of the user names the exceptions in its comments, each with a reason:

    #   not here: SETTING...: REASON        only the system's unit has these settings
    #   differs: SETTING...: REASON         both have them, with different values

An exception that is none is an error, too. A setting that is only in the user's unit is an error: what a service manager
of a user can do, the one of the system can do.

Usage: check_units.py [SYSTEM_UNIT USER_UNIT]
"""
import os
import re
import sys

UNITS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packaging", "systemd")
NAME = "pumiced.service.in"
# Settings that say how the service runs. All others restrict it.
OTHERS = {"Type", "EnvironmentFile", "ExecStart", "ExecReload", "Restart", "RestartSec", "RestartPreventExitStatus", "User",
          "Group", "RuntimeDirectory", "RuntimeDirectoryPreserve", "StateDirectory", "LimitNOFILE"}
EXCEPTION = re.compile(r"^#   (not here|differs): ([A-Za-z ]+):(.*)$")
bad = 0


def complain(text):
    global bad
    print(text)
    bad += 1


def settings(path):
    """The settings of [Service] that restrict it: name -> values in their order. And the exceptions of the comments:
    name -> kind."""
    found, exceptions, section = {}, {}, ""
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n"):
            if line.startswith("["):
                section = line.strip()
            exception = EXCEPTION.match(line)
            if exception:
                reason = exception.group(3).strip()
                for name in exception.group(2).split():
                    exceptions[name] = exception.group(1)
                if len(reason.split()) < 2:
                    complain(f"{path}: no reason for: {exception.group(2)}")
            elif section == "[Service]" and "=" in line and not line.startswith("#"):
                name, value = line.split("=", 1)
                if name not in OTHERS:
                    found.setdefault(name, []).append(value)
    return found, exceptions


def compare(system_path, user_path):
    system, _ = settings(system_path)
    user, exceptions = settings(user_path)
    if len(system) < 10:
        complain(f"{system_path}: only {len(system)} settings that restrict the service")
    for name, values in system.items():
        kind = None
        if name not in user:
            kind = "not here"
        elif user[name] != values:
            kind = "differs"
        if kind and exceptions.get(name) != kind:
            complain(f"{user_path}: {name} is {' and '.join(values)} in the system's unit, and "
                     f"{'missing' if kind == 'not here' else ' and '.join(user[name])} here; "
                     f"if that must be, add a comment '#   {kind}: {name}: REASON'")
        if not kind and name in exceptions:
            complain(f"{user_path}: {name} is named as an exception, but it is the same in both units")
    for name in exceptions:
        if name not in system:
            complain(f"{user_path}: {name} is named as an exception, but the system's unit does not have it")
    for name in user:
        if name not in system:
            complain(f"{system_path}: {name} is in the user's unit only")
    return len(system)


def main():
    paths = sys.argv[1:] or [os.path.join(UNITS, kind, NAME) for kind in ("system", "user")]
    count = compare(*paths)
    if bad:
        sys.exit(1)
    print(f"{count} settings restrict the service of the system; the user's has them too, or says why not")


main()
