#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# An installed Pumice works as a whole, without the source tree: commands by PATH, a service with a passed socket, programs by
# `pumice env` and `pumice run`, a program built by pkg-config, man pages, completion, units, Wireshark.
# INSTALLED=PREFIX: test what is installed there, the contents of a package for example. Else `make install` to a temporary directory.
set -u
cd "$(dirname "$0")/../../.." || exit 1
source=$PWD
BUILD=$(realpath "${BUILD:-build}")
block=127.37.$(($$ % 250)) # of loopback addresses, so that two runs at once don't meet
port=$((20000 + $$ % 20000))
work=$(mktemp -d)
pids=()
finish()
{
    [ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
unset PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS LD_PRELOAD XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME
. tests/e2e/lib/checks.bash

prefix=${INSTALLED:-}
if [ -z "$prefix" ]; then
    prefix=$work/opt
    make --no-print-directory -s BUILD="$(realpath --relative-to=. "$BUILD")" SAN="${SAN:-}" PREFIX="$prefix" install >"$work/make" 2>&1 ||
        { cat "$work/make"; exit 1; }
fi
export HOME=$work/home TMPDIR=$work
export PATH=$prefix/bin:/usr/bin:/bin:/usr/sbin:/sbin
mkdir "$HOME"
cd "$work" || exit 1

# --- the commands and their man pages -----------------------------------------------------------------------------------
[ "$(command -v pumice)" = "$prefix/bin/pumice" ] || fail "pumice is $(command -v pumice)"
version=$(pumice --version)
commands=$(pumice --help | awk '/^  [a-z]+ +[a-z]/ { print $1; seen = 1; next } seen { exit }')
[ "$(echo "$commands" | wc -l)" -ge 9 ] || fail "subcommands: $commands"
if have "man pages" man; then
    # shellcheck disable=SC2086
    for page in pumice pumiced $(printf 'pumice-%s ' $commands); do
        found=$(man -M "$prefix/share/man" -w "$page" 2>/dev/null)
        [[ $found == "$prefix"/share/man/man[18]/$page.[18]* ]] || fail "no man page of $page"
    done
fi

# --- programs by pumice run and by pumice env; a service --------------------------------------------------------------
cat >"$work/ping" <<'END'
$1 ibv_rc_pingpong -p $3 -g 0 -n 50 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.3
    $2 ibv_rc_pingpong -p $3 -g 0 -n 50 127.0.0.1 && wait && exit 0
done
exit 1
END
if have "traffic" ibv_rc_pingpong; then
    timeout 120 pumice run --addresses "$block.1,$block.2" --capture "$work/run.pcapng" -- \
        sh "$work/ping" "pumice on 0 --" "pumice on 1 --" "$port" >"$work/out" 2>&1 || fail "pumice run: $(tail -3 "$work/out")"
    pumice lint "$work/run.pcapng" >"$work/out" || fail "lint: $(tail -3 "$work/out")"
fi

export PUMICE_SOCKET=$work/s/pumiced.sock
mkdir "$work/s"
if have "a service with a socket that is passed to it" systemd-socket-activate ibv_rc_pingpong; then
    systemd-socket-activate --seqpacket --listen="$PUMICE_SOCKET" -E PATH "$prefix/bin/pumiced" --address "$block.3" 2>"$work/service" &
    pids+=($!)
    for _ in $(seq 100); do
        [ -S "$PUMICE_SOCKET" ] && break
        sleep 0.05
    done
    [ "$(tr '\0' ' ' <"/proc/${pids[0]}/cmdline")" != "${prefix}/bin/pumiced --address $block.3 " ] || fail "it did not wait for a client"
    env=$(pumice env) || fail "pumice env: no environment"
    (
        eval "$env"
        timeout 60 sh "$work/ping" "" "" "$port" >"$work/out" 2>&1
    ) || fail "with pumice env: $(tail -3 "$work/out" "$work/service")"
    grep -q 'pumiced' "/proc/${pids[0]}/comm" || fail "the socket's first client did not start the daemon"
    kill "${pids[0]}"
    wait "${pids[0]}"
    [ -S "$PUMICE_SOCKET" ] || fail "the daemon removed the service manager's socket"
    pids=()
    rm -f "$PUMICE_SOCKET"
fi
if have "a service that tells when it is ready" python3; then
    python3 - "$prefix/bin/pumiced" "$block.3" "$work" <<'END' || fail "notification"
import os, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[3] + "/notify")
s.settimeout(30)
d = subprocess.Popen([sys.argv[1], "--address", sys.argv[2]], env=dict(os.environ, NOTIFY_SOCKET=sys.argv[3] + "/notify",
                     PUMICE_SOCKET="", XDG_RUNTIME_DIR=sys.argv[3]))
try:
    ready = s.recv(200)
    d.terminate()
    stopping = s.recv(200)
    sys.exit(not (ready.startswith(b"READY=1\n") and stopping == b"STOPPING=1" and d.wait(30) == 0))
finally:
    d.kill()
END
fi
if have "systemd units" systemd-analyze; then
    for kind in system user; do
        units=$(find "$prefix/lib/systemd/$kind" "$prefix/../lib/systemd/$kind" -name 'pumiced.*' 2>/dev/null)
        [ "$(echo "$units" | wc -l)" -eq 2 ] || fail "units: $units"
        # shellcheck disable=SC2086
        SYSTEMD_UNIT_PATH="$(dirname "${units%%$'\n'*}"):" systemd-analyze "--$kind" verify --man=no --recursive-errors=no $units >"$work/out" 2>&1
        elsewhere='no such line'
        [ -n "${INSTALLED:-}" ] && elsewhere='is not executable'
        # A package's commands will be elsewhere than in the folder where it was taken apart.
        bad=$(grep pumice "$work/out" | grep -v "$elsewhere")
        [ -z "$bad" ] || fail "units: $bad"
    done
    # "Exposure" in tenths: 100 is a service that may do anything.
    systemd-analyze security --offline=true --threshold=20 "$(find "$prefix" "$prefix/../lib" -path "*/system/pumiced.service" 2>/dev/null | head -n 1)" >"$work/out" 2>&1 ||
        fail "the service may do too much: $(tail -1 "$work/out")"
fi

# --- a program of the user's own ----------------------------------------------------------------------------------------
if have "a program built by pkg-config" pkg-config cc; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix/lib" -name libpumice.pc)")
    export PKG_CONFIG_PATH
    [ "pumice $(pkg-config --modversion libpumice)" = "$version" ] || fail "libpumice.pc: $(pkg-config --modversion libpumice 2>&1)"
    # shellcheck disable=SC2046
    cc -D_GNU_SOURCE -o "$work/transpose" "$source/examples/transpose.c" $(pkg-config --define-variable=prefix="$prefix" --cflags --libs libpumice) 2>"$work/out" ||
        fail "pkg-config: $(tail -3 "$work/out")"
    timeout 60 pumice run --addresses "$block.1" -- "$work/transpose" >"$work/out" 2>&1 || fail "transpose: $(tail -3 "$work/out")"
fi

# --- completion: everything that --help names, and nothing else ---------------------------------------------------------
completed() # WORD...: what completes the last
{
    bash --norc --noprofile -c '
        . "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$(complete -p "$1" | sed "s/.*-F \([^ ]*\).*/\1/")"
        printf "%s\n" "${COMPREPLY[@]}"' "$prefix/share/bash-completion/completions/pumice" "$@" | sort -u
}
offers() # EXPECTED WORD...
{
    local expected
    # shellcheck disable=SC2086
    expected=$(printf '%s\n' $1 | sort -u)
    shift
    [ "$(completed "$@")" = "$expected" ] || fail "completion of '$*': $(diff <(completed "$@") <(echo "$expected") | tr '\n' ' ')"
}
options() # COMMAND...: from the paragraphs of options of --help
{
    "$@" --help | awk '/^ +-/' | grep -oE -- '^ +(-[A-Za-z?], )?--[a-z0-9-]+=?' | grep -oE -- '--[a-z0-9-]+=?'
}
offers "$commands help --help --version" pumice ""
for command in $commands; do
    [ -n "$(options pumice "$command")" ] || fail "no options of pumice $command"
    offers "$(options pumice "$command")" pumice "$command" --
done
offers "$(options pumiced)" pumiced --
offers "auto on off" pumice run --gso = ""
offers "both" pumice capture --direction b
offers "$(pumice tm --help | sed -n '1s/.*\] //p' | tr '|' ' ')" pumice tm ""
[[ $(completed pumice tm "") == *trace* ]] || fail "completion of pumice tm: $(completed pumice tm "")"
: >"$work/trace.pcapng"
offers "$work/trace.pcapng" pumice capture "$work/trace"
offers "ibv_devinfo" pumice run --hosts 2 -- ibv_devin
offers "ibv_devinfo" pumice on 1 ibv_devin
offers "$commands" pumice help ""
[ -e "$prefix/share/bash-completion/completions/pumiced" ] || fail "no completion file for pumiced"

# --- Wireshark: as it would see the folders, if it were installed there itself ------------------------------------------
shark=$(dirname "$(dirname "$(find "$prefix/lib" -name pumice-extcap)")")
if [ -n "$shark" ] && have "Wireshark" tshark; then
    mkdir -p "$HOME/.config/wireshark/extcap" "$HOME/.local/lib/wireshark/plugins"
    ln -s "$shark/extcap/pumice-extcap" "$HOME/.config/wireshark/extcap"
    ln -s "$shark/plugins/pumice" "$HOME/.local/lib/wireshark/plugins"
    tshark -D 2>/dev/null | grep -q 'pumice (Pumice: all devices)' || fail "Wireshark does not list Pumice"
    tshark -r "$work/run.pcapng" -Y 'pumice.icrc.status == 1' >"$work/out" 2>"$work/err"
    [ "$(wc -l <"$work/out")" -ge 400 ] || fail "the dissector is no plugin: $(cat "$work/err")"
    tshark -X "lua_script:$source/pcap/wireshark/pumice.lua" -r "$work/run.pcapng" -c 1 >"$work/out" 2>&1
    grep -qi lua "$work/out" && fail "plugin and script together: $(cat "$work/out")"
fi

[ $failures -eq 0 ] && echo "works as installed"
exit $((failures > 0))
