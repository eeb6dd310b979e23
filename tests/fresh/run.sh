#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the steps of examples/ci/github.yml, as they stand there, in fresh root file systems: the job "rdma" as a user who has sudo and make,
# as on a machine of the service, and the job "mpi" as root with nothing, as in its container. debootstrap makes the root file systems.
# ./run_tests.sh and ./run_mpi_tests.sh are a user's programs that know nothing of Pumice. Needs root, debootstrap and the network.
# Usage: run.sh [RELEASE...]      bookworm and trixie, unless told. From the environment: BUILD; MIRROR; JOBS (rdma mpi)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib/checks.bash
BUILD=$(realpath "${BUILD:-build}")
[ $# -gt 0 ] || set -- bookworm trixie
[ "$(id -u)" = 0 ] || skip "not root"
for tool in debootstrap unshare chroot tar; do
    command -v $tool >/dev/null || skip "no $tool"
done
python3 -c 'import yaml' 2>/dev/null || skip "no python3-yaml"
place=$BUILD/fresh
mkdir -p "$place"

# Prints the steps of a job as shell functions step_1, step_2, ... with the first and the last values of its matrix, and a line for each.
steps() # JOB
{
    python3 - "$1" <<'END'
import itertools, shlex, sys, yaml
with open("examples/ci/github.yml", encoding="utf-8") as f:
    job = yaml.safe_load(f)["jobs"][sys.argv[1]]
matrix = job["strategy"]["matrix"]
runs = list(itertools.product(*matrix.values()))
installed = False
for values in (runs[0], runs[-1]):
    def fill(text):
        for name, value in zip(matrix, values):
            text = str(text).replace("${{ matrix.%s }}" % name, str(value))
        return text
    print("# " + ", ".join(values))
    for name, value in job.get("env", {}).items():
        print(f"export {name}={shlex.quote(fill(value))}")
    for step in job["steps"]:
        if "run" not in step or (installed and step["name"].startswith("Install")):
            continue
        print(f"echo {shlex.quote('--- ' + step['name'] + ', ' + ', '.join(values))}")
        print(f"bash -e <<'STEP' || exit 1\n{fill(step['run']).rstrip()}\nSTEP")
    installed = True
END
}

# base RELEASE PACKAGES: unpacks a fresh root file system at $place/root. The first time, debootstrap makes it.
base()
{
    local tar=$place/$1${2:+-sudo}.tar
    if [ ! -s "$tar" ]; then
        rm -rf "$place/new"
        debootstrap --variant=minbase ${2:+--include="$2"} "$1" "$place/new" ${MIRROR:+"$MIRROR"} >"$place/log" 2>&1 || { tail -n 1 "$place/log"; return 1; }
        tar -C "$place/new" -cf "$tar" . && rm -rf "$place/new"
    fi
    rm -rf "$place/root"
    mkdir "$place/root" && tar -C "$place/root" -xf "$tar" && cp /etc/resolv.conf "$place/root/etc/"
}

# within USER COMMAND...: in that root file system, in the folder work
within()
{
    local user=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -c 'root=$1 user=$2; shift 2
        mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" && mount -t proc proc "$root/proc" && mount -t tmpfs tmp "$root/tmp" &&
        exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
            HOME=/work su "$user" -s /bin/bash -c "cd /work && $1"' sh "$place/root" "$user" "$@"
}

# job RELEASE JOB
job()
{
    local user=root packages=
    [ "$2" = mpi ] || { user=runner packages=sudo,make,ca-certificates; }
    base "$1" "$packages" || { skip_part "$1: no root file system"; return; }
    mkdir -p "$place/root/work/pumice"
    tar -c --exclude=./.git --exclude='./build*' . | tar -x -C "$place/root/work/pumice"
    steps "$2" >"$place/root/work/steps.sh" || { fail "$2: its steps can't be read"; return; }
    # The programs of the user. A server listens a moment later than it starts.
    cat >"$place/root/work/run_tests.sh" <<'END'
#!/bin/sh -e
pumice on 0 -- ibv_rc_pingpong -g 0 -n 200 -p 21999 &
for i in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.5
    pumice on 1 -- ibv_rc_pingpong -g 0 -n 200 -p 21999 127.0.0.1 && wait $! && exit 0
done
exit 1
END
    cat >"$place/root/work/run_mpi_tests.sh" <<'END'
#!/bin/sh -e
"mpicc.$MPI" -O2 -o "hello.$MPI" pumice/examples/mpi/hello.c
"mpirun.$MPI" -n 4 "./hello.$MPI" | tee said
grep -q '4 ranks greeted each other 100 times, 0 greetings were wrong' said
END
    chmod +x "$place/root/work"/*.sh
    if [ "$user" != root ]; then
        chroot "$place/root" useradd -d /work "$user"
        echo "$user ALL=(ALL) NOPASSWD: ALL" >"$place/root/etc/sudoers.d/runner"
        chroot "$place/root" chown -R "$user" /work
    fi
    within "$user" "bash steps.sh" >"$place/$1-$2.log" 2>&1 || fail "$1, job $2: $(tail -n 30 "$place/$1-$2.log")"
    is "$1, job $2: captures without violations" "$(grep -c ' 0 violations' "$place/$1-$2.log")" 2
    echo "$1, job $2: $(grep -c '^---' "$place/$1-$2.log") steps; log: $place/$1-$2.log"
    rm -rf "$place/root"
}

for release; do
    [ -e "/usr/share/debootstrap/scripts/$release" ] || { skip_part "$release: debootstrap does not know it"; continue; }
    for name in ${JOBS:-rdma mpi}; do
        # MPI over verbs needs the MPICH of Debian 12 (see the comment in the workflow).
        [ "$name" = rdma ] || [ "$release" = bookworm ] || continue
        job "$release" "$name"
    done
done
exit $((failures > 0))
