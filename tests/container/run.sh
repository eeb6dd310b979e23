#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the images of examples/ci with podman or docker, and runs them: the two hosts of compose.yaml on their bridge, what an image does
# without a command, the exit code of a command, and the MPI image. No container is privileged.
# If the registry of the base image can't be reached, the base is made by debootstrap, which needs root.
# Usage: run.sh      From the environment: ENGINE (podman or docker), MIRROR (where debootstrap gets the packages), BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib/checks.bash
BUILD=$(realpath "${BUILD:-build}")
base=docker.io/library/debian
work=$(mktemp -d) || exit 1
project=pumice-test-$$
finish()
{
    [ -z "${ENGINE:-}" ] || $ENGINE rm -f $(docker_names) >/dev/null 2>&1
    rm -rf "$work"
}
docker_names() # the containers of this run
{
    $ENGINE ps -a --format '{{.Names}}' 2>/dev/null | grep "^$project"
}
trap finish EXIT

# --- an engine that works ---
reasons=
for engine in ${ENGINE:-podman docker}; do
    command -v "$engine" >/dev/null || { reasons+="no $engine; "; continue; }
    if timeout 60 "$engine" info >"$work/info" 2>&1; then
        ENGINE=$engine
        break
    fi
    reasons+="$engine: $(tail -n 1 "$work/info"); "
    ENGINE=
done
[ -n "${ENGINE:-}" ] && [ -s "$work/info" ] || skip "no container engine works here: ${reasons%; }"
$ENGINE image inspect "$base:12" >/dev/null 2>&1 || timeout 300 $ENGINE pull -q "$base:12" >"$work/pull" 2>&1 || {
    [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || skip "no base image: $(tail -n 1 "$work/pull")"
    echo "no registry; debootstrap makes the base image"
    debootstrap --variant=minbase bookworm "$work/root" ${MIRROR:+"$MIRROR"} >"$work/log" 2>&1 || skip "no base image: debootstrap: $(tail -n 1 "$work/log")"
    tar -C "$work/root" -c . | $ENGINE import - "$base:12" >/dev/null && $ENGINE tag "$base:12" "$base:12-slim" || skip "no base image: the engine does not import one"
    rm -rf "$work/root"
}
runs() # Does the engine run a container?
{
    timeout 60 $ENGINE run --rm --network none "$base:12" true >"$work/log" 2>&1
}
modest() # podman wants higher limits than a user may have where this runs, and crun refuses hybrid control groups: lower limits, runc
{
    [ "$ENGINE" = podman ] && command -v runc >/dev/null || return
    printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n' >"$work/containers.conf"
    export CONTAINERS_CONF=$work/containers.conf
}
runs || { modest && runs; } || skip "$ENGINE runs no container here: $(tail -n 1 "$work/log")"

# --- the images ---
build() # IMAGE OPTION...
{
    local image=$1
    shift
    timeout 1800 $ENGINE build --network host -f examples/ci/Containerfile -t "$image" "$@" . >"$work/log" 2>&1 || { fail "$image: $(tail -n 20 "$work/log")"; exit 1; }
    echo "$image is built"
}
build pumice-host
build pumice-mpi --target mpi

# --- one host ---
has "an image without a command" "$($ENGINE run --rm --name "$project-info" pumice-host 2>&1)" "hca_id:"
$ENGINE run --rm --name "$project-code" pumice-host sh -c 'exit 7' >/dev/null 2>&1
is "the exit code of a command" $? 7
is "its user" "$($ENGINE run --rm --name "$project-user" pumice-host id -un 2>/dev/null | tail -n 1)" pumice
out=$($ENGINE run --rm --name "$project-mpi" pumice-mpi 2>&1) || fail "the MPI image: $out"
is "greetings in the MPI image" "$(grep -c '4 ranks greeted each other 100 times, 0 greetings were wrong' <<<"$out")" 2

# --- the two hosts of compose.yaml ---
compose=
if [ "$ENGINE" = docker ] && docker compose version >/dev/null 2>&1; then
    compose="docker compose"
elif command -v podman-compose >/dev/null && [ "$ENGINE" = podman ]; then
    compose=podman-compose
fi
if [ -n "$compose" ]; then
    timeout 300 $compose -p "$project" -f examples/ci/compose.yaml up --exit-code-from client >"$work/log" 2>&1 || fail "compose: exit code $?: $(tail -n 20 "$work/log")"
    [ "$(grep -c '1000 iters in' "$work/log")" -ge 2 ] || fail "compose: no traffic between the hosts: $(tail -n 20 "$work/log")"
    timeout 60 $compose -p "$project" -f examples/ci/compose.yaml down >/dev/null 2>&1
else
    skip_part "compose.yaml: no podman-compose and no docker compose"
fi
[ $failures -eq 0 ] && echo "works with $($ENGINE --version)"
exit $((failures > 0))
