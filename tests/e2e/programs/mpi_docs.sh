#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs all blocks of docs/mpi.md that are marked "sh", in one shell, as a new user types them. They work and use the devices. It also runs
# what the MPI image of examples/ci runs, the job of its workflow, and examples/mpi/run.sh.
# MPI_PAGE: another page, in place of docs/mpi.md.
. "$(dirname "$0")/../lib/common.bash"
[ -z "${SANITIZED:-}" ] || skip "sanitizers intercept memory calls, as UCX does"
need mpicc.openmpi mpicc.mpich mpirun.openmpi mpirun.mpich ucx_perftest fi_pingpong python3
page=${MPI_PAGE:-$root/docs/mpi.md}
unset UCX_TLS UCX_NET_DEVICES MPIR_CVAR_NOLOCAL "${!OMPI_MCA_@}" PUMICE
# The settings that the page gives for root.
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A clone for what the commands leave behind. Its pumice keeps the counters of each lab, as they are at the end of the command.
mkdir -p "$dir/clone/build/bin" "$dir/seen"
ln -s "$root"/{docs,examples,tests} "$dir/clone/"
cat >"$dir/clone/build/bin/pumice" <<'END'
#!/bin/bash
# pumice run OPTION... -- COMMAND..., with a look at the counters; anything else as it is
[ "$1" = run ] || exec "$BUILD/bin/pumice" "$@"
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
done
shift
seen=$(mktemp "$seen_dir/XXXXXX")
exec "$BUILD/bin/pumice" "${options[@]}" -- sh -c '"$@"; code=$?; pumice status --json >"$0"; exit $code' "$seen" "$@"
END
chmod +x "$dir/clone/build/bin/pumice"
export seen_dir=$dir/seen

# Packets that each host of each lab has sent, a line for each lab; and that is the end of them.
packets()
{
    python3 - "$seen_dir"/* <<'END'
import json
import os
import sys
for name in sys.argv[1:]:
    if os.path.exists(name):
        with open(name, encoding="utf-8") as f:
            hosts = json.load(f)["hosts"]
        print(*(sum(d["counters"]["sent_pkts"] for d in h["status"]["devices"]) for h in hosts))
        os.remove(name)
END
}

# sent WHAT LABS MIN: so many labs, of which each host has sent as many packets
sent()
{
    local lab n labs=0
    while read -r lab; do
        labs=$((labs + 1))
        for n in $lab; do
            [ "$n" -ge "$3" ] || fail "$1: a host has sent $n packets only: $lab"
        done
        [ "$(wc -w <<<"$lab")" -eq 2 ] || fail "$1: not two hosts: $lab"
    done < <(packets)
    is "$1: labs" $labs "$2"
}

# quiet WHAT TEXT: nothing that a beginner would wonder about. (That other labs have the first addresses is none of this.)
quiet()
{
    [[ $2 != *"exiting improperly"* ]] || starved=yes
    hasnt "$1" "$2" "no packet went"
    ! grep -v 'UDP port 4791 is in use on' <<<"$2" | grep -E 'pumice: |WARN|ERROR|[Ww]arning|[Ee]rror' || fail "$1: not quiet"
}

# A rank waits two seconds at its end for mpirun of Open MPI to answer, and then leaves; that mpirun calls improper. So it does, without any
# RDMA, where it is stopped for as long, or finds no processor: such a failure gets a second try.
starved=
finish()
{
    if [ $failures -gt 0 ] && [ -n "$starved" ] && [ -z "${MPI_AGAIN:-}" ]; then
        echo "mpirun did not get a processor for seconds; once more"
        cd "$here" && cleanup
        exec env -u TMPDIR MPI_AGAIN=yes "$here/mpi_docs.sh"
    fi
    exit $((failures > 0))
}

# --- the page ---
# Each block becomes a file. One shell runs them in turn and prints the result of each.
mkdir "$dir/blocks"
awk -v dir="$dir/blocks" '/^```sh$/ { file = sprintf("%s/%02d", dir, ++n); next } /^```/ { file = "" } file { print >file }' "$page"
blocks=("$dir"/blocks/*)
labs=$(cat "${blocks[@]}" | grep -cE 'pumice run|^examples/mpi/run.sh')
[ ${#blocks[@]} -ge 8 ] && [ "$labs" -ge 9 ] || fail "only ${#blocks[@]} blocks and $labs jobs in $page"
# shellcheck disable=SC2016
(cd "$dir/clone" && exec setsid bash -c 'for block; do
        printf "=== %s\n%s\n---\n" "$block" "$(cat "$block")"
        set -eE -o pipefail; . "$block"; set +e
    done
    echo "=== all"' bash "${blocks[@]}") >"$dir/out" 2>&1 </dev/null &
shell=$!
wait $shell || fail "a command of the page failed: $(sed -n '/^===/h; //!H; ${g;p}' "$dir/out")"
kill -- -$shell 2>/dev/null # what a pair of programs has left of which one failed
out=$(cat "$dir/out")
has "the page" "$out" "=== all"
sent "the page" "$labs" 150
quiet "the page" "$(sed '/^===/,/^---/d' "$dir/out")"
greeted=$(grep -c '^4 ranks greeted each other 100 times, 0 greetings were wrong$' "$dir/out")
[ "$greeted" -ge 5 ] || fail "$greeted greetings: $out"
[ "$(grep -c '^4 ranks, 200 steps in .* heat 1000.000000 of 1000' "$dir/out")" -eq 2 ] || fail "run.sh: $out"
has "the linter" "$out" "0 violations"
has "ucx_perftest" "$out" "Final:"
has "fi_pingpong" "$out" "=100"
[ $failures -eq 0 ] || finish

# --- what it warns of ---
cd "$dir/clone" || exit 1
PATH=$dir/clone/build/bin:$PATH
out=$(pumice run --hosts 2 -- mpirun.mpich -n 4 ./hello.mpich 2>&1); is "without UCX_TLS" $? 0
has "without UCX_TLS" "$out" "no packet went over the connections"
packets >"$dir/none"

# --- the script, as the page does not run it, and with a job that fails ---
for job in "openmpi 2 4 --fault loss=1%,reorder=1%" "mpich"; do
    # shellcheck disable=SC2086
    out=$(examples/mpi/run.sh $job 2>&1) || fail "run.sh $job: exit code $?: $out"
    has "run.sh $job" "$out" "heat 1000.000000 of 1000"
    has "run.sh $job" "$out" writes
    quiet "run.sh $job" "$out"
done
sent "run.sh" 2 200
mkdir "$dir/fails"
printf '#!/bin/sh\nexit 42\n' >"$dir/fails/mpirun.mpich"
chmod +x "$dir/fails/mpirun.mpich"
PATH=$dir/fails:$PATH examples/mpi/run.sh mpich >/dev/null 2>&1; is "exit code of run.sh" $? 42
packets >"$dir/none"

# --- the image: what it does when it is started, with its settings ---
python3 - >"$dir/image" <<'END' || fail "the image"
import json
import re
import shlex
with open("examples/ci/Containerfile", encoding="utf-8") as f:
    stage = re.search(r"^FROM \S+ AS mpi$(.*?)^FROM", f.read().replace("\\\n", " "), re.M | re.S).group(1)
for line in stage.splitlines():
    if line.startswith("ENV "):
        print("export", line[4:])
    if line.startswith("CMD "):
        print(shlex.join(json.loads(line[4:])))
END
# shellcheck disable=SC2016
out=$(PATH=$PWD:$PATH env -u UCX_TLS bash -ec '. "$0"' "$dir/image" 2>&1 </dev/null); is "the image" $? 0
is "greetings in the image" "$(grep -c '4 ranks greeted each other 100 times, 0 greetings were wrong' <<<"$out")" 2
quiet "the image" "$out"
sent "the image" 1 450

# --- the workflow: its step for the tests, with a test suite of ours that knows nothing of Pumice ---
if ! python3 -c 'import yaml' 2>/dev/null; then
    skip_part "the workflow: no python3-yaml"
    finish
fi
printf '#!/bin/sh\n"mpirun.$MPI" -n 4 "./hello.$MPI"\n' >run_mpi_tests.sh
chmod +x run_mpi_tests.sh
python3 - >"$dir/steps" <<'END' || fail "the job mpi of the workflow"
import itertools
import shlex
import yaml
with open("examples/ci/github.yml", encoding="utf-8") as f:
    job = yaml.safe_load(f)["jobs"]["mpi"]
matrix = job["strategy"]["matrix"]
for values in list(itertools.product(*matrix.values()))[::3]:  # the first and the last: each MPI, without faults and with
    def fill(text):
        for name, value in zip(matrix, values):
            text = str(text).replace("${{ matrix.%s }}" % name, value)
        return text
    env = " ".join(f"{k}={shlex.quote(fill(v))}" for k, v in job["env"].items())
    for step in job["steps"]:
        if "pumice run" in step.get("run", "") or "pumice lint" in step.get("run", ""):
            print(f"export {env}; {fill(step['run']).strip()}")
END
while read -r line; do
    out=$(bash -ec "$line" 2>&1 </dev/null) || fail "$line: $out"
    quiet "$line" "$out"
    [[ $line != *"pumice lint"* ]] || has "$line" "$out" " 0 violations"
done <"$dir/steps"
sent "the workflow" 2 150
finish
