#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The files of `make install` work at their place, and `make uninstall` removes all of them.
set -eu
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=${BUILD:-build}

# The names of built files depend only on BUILD. make must not rebuild here.
make --no-print-directory -s BUILD="$(realpath --relative-to=. "$build")" SAN="${SAN:-}" DESTDIR="$work" PREFIX=/opt/pumice install >/dev/null 2>&1
for f in bin/pumice bin/pumiced lib/pumice/libibverbs.so.1 lib/pumice/libpumice.so lib/pumice/libpumice_check.so include/pumice/layout.h share/man/man1/pumice-run.1 share/man/man8/pumiced.8 share/man/man3/pumice_bind_mw.3 \
    share/doc/pumice/README.md share/pumice/wireshark/pumice.lua share/pumice/wireshark/pumice_track.lua \
    share/bash-completion/completions/pumice share/zsh/site-functions/_pumice share/fish/vendor_completions.d/pumiced.fish; do
    [ -f "$work/opt/pumice/$f" ] || { echo "not installed: $f"; exit 1; }
done
# Elsewhere than where it was built, in a directory with a space in its name.
mv "$work/opt/pumice" "$work/opt/some where"
# In one of the system's prefixes, the links for Wireshark are where that looks, and lead to what is installed.
make --no-print-directory -s BUILD="$(realpath --relative-to=. "$build")" SAN="${SAN:-}" DESTDIR="$work/sys" PREFIX=/usr install >/dev/null 2>&1
dir=$work/sys$(packaging/wireshark_dir.sh)
if command -v tshark >/dev/null; then
    [ -x "$dir/extcap/pumice-extcap" ] && [ -f "$dir/plugins/pumice/pumice.lua" ] || { echo "nothing for Wireshark in $dir"; exit 1; }
else
    echo "# skipped: links for Wireshark: no tshark"
fi
make --no-print-directory -s BUILD="$(realpath --relative-to=. "$build")" DESTDIR="$work/sys" PREFIX=/usr uninstall >/dev/null 2>&1
out=$("$work/opt/some where/bin/pumice" run --hosts 2 -- sh -c 'pumice on 1 -- ibv_devices')
[[ $out == *pumice0* ]] || { echo "no device from an installed Pumice: $out"; exit 1; }
mv "$work/opt/some where" "$work/opt/pumice"
make --no-print-directory -s BUILD="$(realpath --relative-to=. "$build")" DESTDIR="$work" PREFIX=/opt/pumice uninstall >/dev/null 2>&1
left=$(find "$work" -mindepth 3 \( -type f -o -type l -o -name pumice \))
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "installs, works, uninstalls"
