#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the Debian package under a real systemd. The first run makes a small Debian or Ubuntu of this machine's release in
# build/systemd/root, and boots it in a container. inside.sh installs the package there, and uses the units as an administrator and as users
# do. Its changes don't last, and this machine stays unchanged. Needs root, debootstrap, systemd-nspawn (package systemd-container), and for
# the first run the network.
# Usage: run.sh [-k]      -k: open a shell in the container at the end, whatever the result
# MIRROR: where debootstrap gets the packages.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
root=$BUILD/systemd/root
keep=
[ "${1:-}" = -k ] && keep=yes

skip()
{
    echo "skip: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "not root"
for tool in debootstrap systemd-nspawn nsenter dpkg-deb; do
    command -v $tool >/dev/null || skip "no $tool"
done
# shellcheck disable=SC1091
. /etc/os-release
[ -e "/usr/share/debootstrap/scripts/${VERSION_CODENAME:-none}" ] || skip "debootstrap does not know ${PRETTY_NAME:-this system}"
packages=("$BUILD"/deb/pumice_*.deb)
[ -f "${packages[0]}" ] || { echo "no package in $BUILD/deb: make deb"; exit 1; }

# The dependencies of the package are installed beforehand, so that its installation needs no network.
needed=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,ibverbs-utils,python3,procps
needed=$needed,$(dpkg-deb -f "${packages[0]}" Depends | tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep -v '^$' | paste -sd ,)
if [ "$(cat "$BUILD/systemd/made" 2>/dev/null)" != "$VERSION_CODENAME $needed" ]; then
    rm -rf "$BUILD/systemd"
    mkdir -p "$BUILD/systemd"
    components=main
    [ "$ID" = ubuntu ] && components=main,universe
    debootstrap --variant=minbase --components=$components --include="$needed" "$VERSION_CODENAME" "$root" ${MIRROR:+"$MIRROR"} >"$BUILD/systemd/log" 2>&1 ||
        skip "debootstrap: $(tail -n 1 "$BUILD/systemd/log")"
    echo "$VERSION_CODENAME $needed" >"$BUILD/systemd/made"
fi

# It has a network of its own, so that UDP port 4791 is free on its 127.0.0.1.
options=(--quiet --directory="$root" --machine="pumice-test-$$" --volatile=overlay --private-network --console=pipe --kill-signal=SIGRTMIN+3
    --bind-ro="$(realpath "$BUILD/deb")":/mnt --bind-ro="$(realpath tests/systemd/inside.sh)":/opt/inside.sh
    --bind-ro="$(realpath tests/e2e/lib/checks.bash)":/opt/checks.bash)
[ -d /run/systemd/system ] || options+=(--register=no --keep-unit) # nobody there to register with
systemd-nspawn "${options[@]}" --boot </dev/null >"$BUILD/systemd/boot" 2>&1 &
nspawn=$!
finish()
{
    [ -n "${leader:-}" ] && kill -s RTMIN+4 "$leader" 2>/dev/null # systemd: power off
    for _ in $(seq 100); do
        kill -0 $nspawn 2>/dev/null || break
        sleep 0.1
    done
    kill $nspawn 2>/dev/null
    wait $nspawn 2>/dev/null
}
trap finish EXIT
inside()
{
    nsenter -t "$leader" -m -u -i -n -p -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" "$@"
}
state=
for _ in $(seq 300); do
    kill -0 $nspawn 2>/dev/null || skip "systemd-nspawn: $(tail -n 1 "$BUILD/systemd/boot")"
    leader=$(pgrep -P $nspawn | head -n 1)
    [ -n "$leader" ] && state=$(inside systemctl is-system-running 2>/dev/null)
    [[ $state == @(running|degraded) ]] && break
    sleep 0.2
done
[[ $state == @(running|degraded) ]] || skip "systemd does not start in a container here ($state): $(tail -n 1 "$BUILD/systemd/boot")"

status=0
inside bash /opt/inside.sh || status=$?
[ -z "$keep" ] || inside bash
exit $status
