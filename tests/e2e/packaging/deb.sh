#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests the Debian packages: they build, contain the right files, and lintian finds nothing wrong. The files in them work.
set -u
cd "$(dirname "$0")/../../.." || exit 1
BUILD=$(realpath --relative-to=. "${BUILD:-build}")
. tests/e2e/lib/checks.bash
for tool in dpkg-buildpackage dh dpkg-deb; do
    command -v $tool >/dev/null || skip "no $tool (.ci/deps deb)"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^#define PUMICE_VERSION "\(.*\)"/\1/p' include/pumice/version.h)
[ "$(sed -n '1s/^pumice (\(.*\)) .*/\1/p' packaging/debian/changelog)" = "$version" ] || fail "the changelog is not of version $version"

# The packages build on a machine that has only their build dependencies.
wanted=$(sed -n '/^ *build)/,/;;/p' .ci/deps | grep -oE '[a-z0-9.+-]+-dev')
[ "$(echo "$wanted" | wc -l)" -ge 5 ] || fail "what does .ci/deps install to build? $wanted"
for p in $wanted; do
    sed -n '/^Build-Depends/,/^[A-Z]/p' packaging/debian/control | tr ', ' '\n' | grep -qx "$p" || [ "$p" = libc6-dev ] || fail "Build-Depends lacks $p"
done

DEB_BUILD_OPTIONS="noautodbgsym parallel=2" nice make --no-print-directory -s BUILD="$BUILD" deb-here >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
main=$(echo "$BUILD"/deb/pumice_"$version"_*.deb)
dev=$(echo "$BUILD"/deb/libpumice-dev_"$version"_*.deb)
[ -f "$main" ] && [ -f "$dev" ] || { ls "$BUILD/deb"; exit 1; }

dpkg-deb -c "$main" | awk '{ print $6 }' >"$work/main"
dpkg-deb -c "$dev" | awk '{ print $6 }' >"$work/dev"
for f in ./usr/bin/pumice ./usr/bin/pumiced ./usr/lib/pumice/libibverbs.so.1 ./usr/lib/pumice/libpumice.so.1 ./usr/lib/sysusers.d/pumice.conf \
    ./usr/lib/systemd/user/pumiced.socket ./usr/share/man/man1/pumice-run.1.gz ./usr/share/bash-completion/completions/pumice \
    ./usr/share/zsh/vendor-completions/_pumice ./usr/share/fish/vendor_completions.d/pumice.fish; do
    grep -qx "$f" "$work/main" || fail "pumice lacks $f"
done
grep -qx '\./\(usr/\)\?lib/systemd/system/pumiced.socket' "$work/main" || fail "pumice lacks the system's units"
grep -qx '\./usr/lib/.*/wireshark/extcap/pumice-extcap' "$work/main" || fail "pumice lacks the extcap program"
grep -qx './usr/include/pumice/layout.h' "$work/dev" && grep -qx './usr/lib/.*/pkgconfig/libpumice.pc' "$work/dev" &&
    grep -qx './usr/share/man/man3/pumice_bind_mw.3.gz' "$work/dev" || fail "libpumice-dev lacks files"
grep -q '/man3/' "$work/main" && fail "pumice has the pages of libpumice-dev"
grep -qE '\./usr/lib/[^/]*(/[^/]*)?/libibverbs' <(grep -v '/usr/lib/pumice/' "$work/main") && fail "a libibverbs where programs find it"
dpkg-deb -I "$main" | grep -q 'Depends:.*libev4' || fail "dependencies: $(dpkg-deb -I "$main" | grep Depends)"
dpkg-deb --ctrl-tarfile "$main" | tar -xO ./postinst | grep -q 'systemd-sysusers' || fail "nobody makes the user pumice"

if have "lintian" lintian; then
    # Whoever builds a package for others sets the maintainer's name.
    lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,initial-upload-closes-no-bugs,no-manual-page \
        "$main" "$dev" >"$work/lintian" 2>&1 || fail "lintian: $(cat "$work/lintian")"
    grep -v '^N:' "$work/lintian"
fi

dpkg-deb --extract "$main" "$work/root" && dpkg-deb --extract "$dev" "$work/root" || fail "can't be unpacked"
INSTALLED=$work/root/usr tests/e2e/packaging/installed.sh || fail "what was taken out of the packages does not work"
exit $((failures > 0))
