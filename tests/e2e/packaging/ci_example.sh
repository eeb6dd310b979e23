#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests examples/ci without a container engine. host.sh makes two hosts that reach each other, and returns the command's exit code. The
# images have the packages whose libraries the programs need. The YAML files can be read.
set -u
cd "$(dirname "$0")/../../.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export PATH=$BUILD/bin:$PATH
block=127.39.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
port=$((20000 + $$ % 20000))
unset PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS
. tests/e2e/lib/checks.bash
command -v ibv_rc_pingpong >/dev/null || skip "no ibv_rc_pingpong"

export TMPDIR
TMPDIR=$(mktemp -d)
trap 'rm -rf "$TMPDIR"' EXIT
for memory in auto proc_mem; do
    PUMICED_OPTIONS="--address $block.1 --memory $memory" timeout 120 examples/ci/host.sh ibv_rc_pingpong -g 0 -n 50 -p "$port" >"$TMPDIR/server" 2>&1 &
    server=$!
    # shellcheck disable=SC2016
    PUMICED_OPTIONS="--address $block.2 --memory $memory" timeout 120 examples/ci/host.sh sh -c \
        'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.5; ibv_rc_pingpong -g 0 -n 50 -p "$0" 127.0.0.1 && exit 0; done; exit 1' "$port" >"$TMPDIR/client" 2>&1 ||
        fail "$memory: $(tail -3 "$TMPDIR/client")"
    wait $server || fail "$memory, server: $(tail -3 "$TMPDIR/server")"
    port=$((port + 1))
done
PUMICED_OPTIONS="--address $block.1" examples/ci/host.sh sh -c 'exit 7'
[ $? -eq 7 ] || fail "the exit code is not the command's"
rm -f "$TMPDIR/server" "$TMPDIR/client"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# The common base of the images has the libraries of the programs.
image=$(sed -n '/AS common/,/AS mpi/p' examples/ci/Containerfile | tr ' ' '\n')
if command -v dpkg-query >/dev/null && grep -q '^VERSION_ID="12"' /etc/os-release; then
    for file in $(readelf -d "$BUILD/bin/pumice" "$BUILD/bin/pumiced" "$BUILD"/lib/pumice/*.so.1 | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u); do
        package=$(dpkg-query -S "*/$file" 2>/dev/null | head -n 1 | cut -d: -f1)
        case $package in
        libc6 | libibverbs1) continue ;; # is there anyway; comes with ibverbs-utils
        "") fail "whose is $file?" ;;
        *) echo "$image" | grep -qx "$package" || fail "the image lacks $package, where $file is" ;;
        esac
    done
    # Its packages exist, and can be installed together (nothing is).
    packages=$(sed -n '/AS common/,$p' examples/ci/Containerfile | sed -n 's/.*--no-install-recommends \([^&\\]*\).*/\1/p')
    [ "$(wc -l <<<"$packages")" = 2 ] || fail "which packages do the images install? $packages"
    # shellcheck disable=SC2086
    apt-get -s -q install --no-install-recommends $packages >"$TMPDIR/apt" 2>&1 || grep -q 'Could not open lock' "$TMPDIR/apt" || fail "packages: $(tail -3 "$TMPDIR/apt")"
else
    skip_part "packages of the images: this system is not Debian 12"
fi
# The files that it copies exist.
for file in $(sed -n 's/^COPY \([^-. ][^ ]*\) .*/\1/p' examples/ci/Containerfile); do
    [ -e "$file" ] || fail "there is no $file to copy"
done
if python3 -c 'import yaml' 2>/dev/null; then
    python3 - <<'END' || fail "YAML"
import yaml
compose = yaml.safe_load(open("examples/ci/compose.yaml"))
workflow = yaml.safe_load(open("examples/ci/github.yml"))
assert set(compose["services"]) == {"server", "client"}
assert set(workflow["jobs"]) == {"rdma", "mpi"}
for name, job in workflow["jobs"].items():
    steps = job["steps"]
    commands = [step.get("run", "") for step in steps]
    # The needed packages are installed first, by our own list. The capture of a failed test is kept, and the linter judges it.
    install = next(c for c in commands if "make -C pumice" in c)
    assert ("deps-mpi" if name == "mpi" else "deps") in install.split(), name
    run = next(c for c in commands if "pumice run" in c).split()
    capture = run[run.index("--capture") + 1]
    assert any(c.startswith("pumice lint") and c.split()[-1] == capture for c in commands), name
    assert any(s.get("if") == "failure()" and s["with"]["path"] == capture for s in steps), name
# The settings of the job and of the image are the same, but for what the job needs as root.
env = workflow["jobs"]["mpi"]["env"]
image = open("examples/ci/Containerfile").read().replace("\\\n", " ").partition("ENV ")[2].splitlines()[0].split()
assert sorted(image) == sorted(f"{k}={v}" for k, v in env.items() if k != "MPI" and not k.startswith("OMPI_ALLOW")), image
END
else
    skip_part "the YAML files: no python3-yaml"
fi
exit $((failures > 0))
