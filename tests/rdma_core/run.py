#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests Pumice's client library with several releases of rdma-core.

    tests/rdma_core/run.py                       the table of symbols, and provider libraries of Debian
    tests/rdma_core/run.py --rdma-core DIR       also a source tree of rdma-core: its libraries, examples and test suite
    tests/rdma_core/run.py --rdma-core DIR test_mr test_qp      only these modules of the suite

It builds the source tree in BUILD/rdma-core/VERSION and changes nothing in it. Each part is ok, FAIL or skip. Exit code 1: a part failed.

The suite may fail only in tests that tests/rdma_core/allowed.txt names, with a reason.
"""

import argparse
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../e2e/lib", "../e2e/programs"):
    sys.path.insert(0, os.path.join(HERE, folder))

import lab as labs  # noqa: E402
import pyverbs as suite  # noqa: E402

ABI = os.path.join(labs.ROOT, "src", "verbs", "abi")
PYTHON = "/usr/bin/python3"
# Loads a library as programs do that are linked with it, and resolves all its symbols at once.
LOAD = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"
EXAMPLES = ("rc", "uc", "ud", "srq", "xsrq")
TARGETS = re.compile(r"(lib/|bin/ibv_|python/)[^:]*$")


class Report:
    def __init__(self):
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}

    def add(self, verdict, name, text):
        self.count[verdict] += 1
        print(f"{verdict:4}  {name:26} {text}", flush=True)

    def part(self, name, function, *args):
        """Runs a part. It returns a text, or raises. Returns whether the part is ok."""
        try:
            self.add("ok", name, function(*args))
            return True
        except labs.Unavailable as e:
            self.add("skip", name, str(e))
        except labs.Trouble as e:
            self.add("FAIL", name, str(e))
        return False


def call(argv, **options):
    """Output of a command. It raises Trouble with the end of the output if the command fails."""
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        raise labs.Trouble(f"{' '.join(map(str, argv[:4]))} ...: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


# --- symbols ---------------------------------------------------------------------------------------------------------------

def symbols(library):
    """{(name, version)} of the symbols of libibverbs that a library defines."""
    found = set()
    for line in call(["objdump", "-T", library]).splitlines():
        m = re.match(r"(?!.*\*UND\*).* \(?(IBVERBS_\w[\w.]*)\)? +(\w+)$", line)
        if m and m.group(1) != m.group(2):
            found.add((m.group(2), m.group(1)))
    return found


def check_table(build):
    out = call([os.path.join(labs.ROOT, "tests", "verbs", "abi_symbols.sh"), build.library], cwd=labs.ROOT)
    releases = re.findall(r"^ok - rdma-core (\S+):", out, re.M)
    return f"all symbols of rdma-core {releases[0]} to {releases[-1]}"


def check_symbols(build, built, release):
    """Compares the library that rdma-core builds with ours, and with the rows of the table for this release."""
    def number(r):
        return float("inf") if r == "HEAD" else float(r)
    table = call(["awk", "-v", "out=rows", "-f", os.path.join(ABI, "symbols.awk"), os.path.join(ABI, "rdma-core-symbols.tsv")])
    rows = [line.split("\t") for line in table.splitlines()]
    newest = max(number(last) for _, _, _, last in rows if last != "HEAD")
    here = float(release) if float(release) <= newest else float("inf")
    listed = {(name, node) for node, name, first, last in rows if number(first) <= here <= number(last)}
    theirs = symbols(os.path.join(built, "lib", "libibverbs.so.1"))
    missing = theirs - symbols(build.library)
    if missing:
        raise labs.Trouble("the client library lacks " + ", ".join(sorted(f"{n}@{v}" for n, v in missing)))
    if theirs != listed:
        raise labs.Trouble("rdma-core-symbols.tsv differs from this release: " + ", ".join(sorted(f"{n}@{v}" for n, v in theirs ^ listed)))
    private = sorted({v for _, v in theirs if "PRIVATE" in v})
    return f"{len(theirs)}, private version {private[0]}"


# --- provider libraries ----------------------------------------------------------------------------------------------------

def imports(file):
    """{(name, version)} of the symbols that a file imports from libibverbs."""
    out = call(["objdump", "-T", file])
    return {(m.group(2), m.group(1)) for m in re.finditer(r"^.*\*UND\*.* \(?(IBVERBS_[\w.]+)\)? +(\w+)$", out, re.M)}


def load(build, libraries, path=None):
    """Compares what each library imports with our symbols, and loads it in a process of its own, with our library preloaded."""
    found = sorted({os.path.realpath(p) for p in libraries})
    if not found:
        raise labs.Unavailable("there are none")
    env = dict(os.environ, LD_PRELOAD=build.preload(), **({"LD_LIBRARY_PATH": path} if path else {}))
    ours, loaded = symbols(build.library), 0
    for library in found:
        missing = imports(library) - ours
        if missing:
            raise labs.Trouble(f"{library} imports " + ", ".join(sorted(f"{n}@{v}" for n, v in missing)))
        done = subprocess.run([PYTHON, "-c", LOAD, library], env=env, capture_output=True, text=True, check=False)
        if done.returncode and "GLIBC_" not in done.stderr:
            raise labs.Trouble(done.stderr[-2000:])
        loaded += not done.returncode
    if loaded < len(found):
        return f"all symbols of {len(found)} are there, {loaded} loaded (the others need a newer C library)"
    return f"{loaded} loaded"


def installed(build):
    return load(build, glob.glob("/usr/lib/*/libibverbs/*.so") + glob.glob("/usr/lib64/libibverbs/*.so"))


def debian(build, suite_name):
    """Downloads the provider libraries of another release of Debian, without a change of this system."""
    uris = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False).stdout.split()
    uri = next((u for u in uris if u.rstrip("/").endswith("/debian")), "http://deb.debian.org/debian/")
    with tempfile.TemporaryDirectory(prefix="pumice-rdma-core-") as directory:
        sources = os.path.join(directory, "sources.list")
        with open(sources, "w", encoding="utf-8") as f:
            f.write(f"deb {uri} {suite_name} main\n")
        for name in ("lists/partial", "cache/archives/partial", "tree"):
            os.makedirs(os.path.join(directory, name))
        apt = ["apt-get", "-q", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={directory}/lists",
               "-o", f"Dir::Cache={directory}/cache", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1"]
        done = [subprocess.run(apt + command, cwd=directory, capture_output=True, text=True, check=False)
                for command in (["update"], ["download", f"ibverbs-providers/{suite_name}"])]
        packages = glob.glob(os.path.join(directory, "*.deb"))
        if not packages:
            raise labs.Unavailable(f"not at {uri}: {' '.join((done[0].stderr + done[1].stderr).split())[:120]}")
        call(["dpkg", "-x", packages[0], os.path.join(directory, "tree")])
        libraries = glob.glob(os.path.join(directory, "tree/usr/lib/*/libibverbs/*.so"))
        version = os.path.basename(packages[0]).split("_")[1]
        return f"{version}: " + load(build, libraries, os.path.dirname(os.path.dirname(libraries[0])) if libraries else None)


def providers(report, build):
    report.part("installed providers", installed, build)
    try:
        with open("/etc/os-release", encoding="utf-8") as f:
            release = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    except OSError:
        release = {}
    if release.get("ID") != "debian" or not shutil.which("apt-get"):
        report.add("skip", "Debian's providers", "this is not Debian")
        return
    for name in (release["VERSION_CODENAME"] + "-backports", "stable", "testing", "unstable"):
        report.part(f"Debian {name}", debian, build, name)


# --- a source tree -----------------------------------------------------------------------------------------------------------

def release_of(source):
    try:
        with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as f:
            return re.search(r'set\(PACKAGE_VERSION "([\d.]+)"\)', f.read()).group(1)
    except (OSError, AttributeError):
        raise labs.Trouble(f"{source} is not a source tree of rdma-core") from None


def make(source, built):
    """Builds libraries, examples and Python modules."""
    for tool in ("cmake", "ninja"):
        labs.which(tool)
    if not os.path.exists(os.path.join(built, "build.ninja")):
        out = call(["cmake", "-S", source, "-B", built, "-GNinja", "-DIN_PLACE=1", "-DNO_MAN_PAGES=1", f"-DPython_EXECUTABLE={PYTHON}",
                    f"-DPYTHON_EXECUTABLE={PYTHON}"])
        if "disabling pyverbs" in out:
            shutil.rmtree(built)
            raise labs.Unavailable("cython3 or python3-dev is not installed")
    targets = call(["ninja", "-C", built, "-t", "targets", "all"]).splitlines()
    call(["ninja", "-C", built, "-j", os.environ.get("JOBS", "2")] + [t for t in (line.split(":")[0] for line in targets) if TARGETS.match(t)])
    return built


def headers(build, built):
    """Compiles the client library with the headers of the tree, as on a system that has this release. The objects are not kept."""
    sources = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(labs.ROOT, "src", "verbs")) for name in names
               if name.endswith(".c")]
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-D_GNU_SOURCE", "-I", os.path.join(built, "include"), "-I.", "-Iinclude",
               "-I", build.dir]
    call(["cc", "-fsyntax-only"] + options + sorted(sources), cwd=labs.ROOT)
    return f"{len(sources)} sources of the client library compile with them"


def examples(lab, built):
    """ibv_devices, ibv_devinfo and the pingpongs of the tree."""
    def program(name):
        return os.path.join(built, "bin", name)
    for argv, text in (([program("ibv_devices")], lab.server.device), ([program("ibv_devinfo"), "-v"], "RoCE v2")):
        process = lab.start(lab.server, argv, "example")
        if process.wait(20) != 0 or text not in process.output():
            raise labs.Trouble(f"{process.line}\n{process.output()}")
    for name in EXAMPLES:
        port = labs.tcp_port()
        argv = [program(f"ibv_{name}_pingpong"), "-g", "0", "-n", "100", "-p", port]
        pair(lab, argv, argv + [lab.server_tcp()], port)
    return f"ibv_devices, ibv_devinfo, {len(EXAMPLES)} pingpongs"


def perftest(lab):
    """Debian's perftest, which loads the tree's libmlx5 and others."""
    programs = ("ib_write_bw", "ib_send_lat", "ib_read_lat")
    for name in programs:
        port = labs.tcp_port()
        argv = [labs.which(name), "-p", port, "-n", "100"]
        pair(lab, argv, argv + [lab.server_tcp()], port)
    return ", ".join(programs)


def pair(lab, server, client, port):
    for who, process, code in lab.pair(server, client, port, 30):
        if code != 0:
            raise labs.Trouble(f"the {who}: exit code {code}: {process.line}\n{process.output()[-3000:]}")


def read_allowed():
    with open(os.path.join(HERE, "allowed.txt"), encoding="utf-8") as f:
        return [line.split(None, 1)[0] for line in f if line.strip() and not line.startswith("#")]


def rdma_command(lab):
    """The suite asks rdma(8) for the network interface of a device. On a kernel without RDMA, rdma(8) fails. Then this makes one that
    prints an empty list, as rdma(8) does where the kernel has no device."""
    tool = shutil.which("rdma")
    if tool and subprocess.run([tool, "link", "show", "-j"], capture_output=True, check=False).returncode == 0:
        return
    path = os.path.join(lab.dir, "bin", "rdma")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho '[]'\n")
    os.chmod(path, 0o755)
    lab.client_env["PATH"] = os.path.dirname(path) + ":" + os.environ["PATH"]


def run_suite(lab, source, modules, seconds):
    """The suite of the tree. The daemon gets 5 s to forget what a module made."""
    # A copy, because a program that starts in the source tree finds pyverbs there, before it was built.
    tests = shutil.copytree(os.path.join(source, "tests"), os.path.join(lab.dir, "suite", "tests"))
    rdma_command(lab)
    modules = modules or sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(tests, "test_*.py")))
    results = {}
    for module in modules:
        found, _ = suite.run_module(lab, tests, module, seconds)
        results.update(found)
        if not lab.alive():
            raise labs.Trouble(f"the daemon died in {module}:\n{lab.server.daemon.output()[-4000:]}")
        lab.wait_objects_gone()
    count = {}
    for outcome, _ in results.values():
        count[outcome] = count.get(outcome, 0) + 1
    allowed = read_allowed()
    bad = {name: why for name, why in results.items() if why[0] not in ("pass", "skip")}
    new = {name: why for name, why in bad.items() if not any(fnmatch.fnmatchcase(name, p) for p in allowed)}
    text = f"{count.get('pass', 0)} passed, {count.get('skip', 0)} skipped, {len(bad)} failed, {len(new)} of them not in allowed.txt"
    for name, (outcome, reason) in sorted(results.items()):
        if os.environ.get("VERBOSE") or name in bad:
            print(f"      {outcome} {name}" + ("" if outcome == "pass" else f": {reason.strip().splitlines()[-1] if reason.strip() else ''}"))
    if new:
        raise labs.Trouble(text + "".join(f"\n--- {name}\n{reason}" for name, (_, reason) in sorted(new.items())))
    return text


def source_tree(report, build, args):
    source = os.path.abspath(args.rdma_core)
    try:
        release = release_of(source)
    except labs.Trouble as e:
        report.add("FAIL", "source", str(e))
        return
    built = args.built or os.path.join(build.dir, "rdma-core", release)
    name = "rdma-core " + release
    if not report.part(f"{name} build", make, source, built):
        return
    libdir = os.path.join(built, "lib")
    report.part(f"{name} symbols", check_symbols, build, built, release)
    report.part(f"{name} headers", headers, build, built)
    report.part(f"{name} providers", load, build, glob.glob(os.path.join(libdir, "*-rdmav*.so")), libdir)
    for what, topology, function in (("examples", "hosts", lambda lab: examples(lab, built)), ("perftest", "hosts", perftest),
                                     ("suite", "device", lambda lab: run_suite(lab, source, args.modules, args.timeout))):
        with labs.Lab(build, topology, (), args.block) as lab:
            lab.client_env.update(LD_LIBRARY_PATH=libdir, PYTHONPATH=os.path.join(built, "python"), PYTHONDONTWRITEBYTECODE="1")
            report.part(f"{name} {what}", function, lab)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="modules of the suite, all by default")
    parser.add_argument("--rdma-core", metavar="DIR", default=os.environ.get("RDMA_CORE") or None, help="a source tree of rdma-core (RDMA_CORE)")
    parser.add_argument("--built", metavar="DIR", help="where it is or will be built (BUILD/rdma-core/VERSION)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a module of the suite (120)")
    parser.add_argument("--build", default=labs.default_build(), metavar="DIR", help="Pumice's build")
    parser.add_argument("--block", default="127.0.57", metavar="A.B.C", help="addresses A.B.C.* (127.0.57)")
    args = parser.parse_args()
    labs.end_when_told()
    build, report, begin = labs.Build(args.build), Report(), time.monotonic()
    if build.missing():
        print(f"not built: {' '.join(build.missing())} (run make)")
        return 2
    report.part("table", check_table, build)
    providers(report, build)
    if args.rdma_core:
        source_tree(report, build, args)
    else:
        report.add("skip", "source tree", "none given (RDMA_CORE=DIR)")
    print(f"{report.count['ok']} passed, {report.count['skip']} skipped, {report.count['FAIL']} failed, in {time.monotonic() - begin:.0f} s")
    return 1 if report.count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
