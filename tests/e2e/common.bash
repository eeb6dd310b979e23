# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# What the scripts of this folder have in common. They begin with
#   . "$(dirname "$0")/common.bash"
# and end with
#   exit $((failures > 0))
# It gives them
#   here, BUILD   this folder and the build, absolute; the build's commands are found first
#   pumice        the command
#   dir           a directory of their own, where labs and sockets are, too. It goes in the end; so do the processes in the array pids
# and the functions below. A script with more to clean up has a function also_clean.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=$(realpath "${BUILD:-$here/../../build}")
export BUILD PATH=$BUILD/bin:$PATH
pumice=$BUILD/bin/pumice
dir=$(mktemp -d) || exit 1
export dir TMPDIR=$dir
unset XDG_RUNTIME_DIR PUMICE_LAB PUMICE_SOCKET PUMICE_HOST PUMICE_HOSTS
pids=()
failures=0

cleanup()
{
    if [ ${#pids[@]} -gt 0 ]; then
        kill "${pids[@]}" 2>/dev/null
        wait "${pids[@]}" 2>/dev/null
    fi
    declare -F also_clean >/dev/null && also_clean
    rm -rf "$dir"
}
trap cleanup EXIT

fail()
{
    echo "FAIL: $*"
    failures=$((failures + 1))
}

need() # TOOL...: without one of them the script is skipped
{
    local tool
    for tool; do
        command -v "$tool" >/dev/null || { echo "skip: no $tool"; exit 77; }
    done
}

is() # WHAT GOT WANTED
{
    [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"
}

has() # WHAT TEXT PART
{
    [[ $2 == *$3* ]] || fail "$1: no '$3' in: $2"
}

hasnt() # WHAT TEXT PART
{
    [[ $2 != *$3* ]] || fail "$1: '$3' in: $2"
}
