# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# How a script of tests reports what it finds. It ends with exit $((failures > 0)).
failures=0

fail()
{
    echo "FAIL: $*"
    failures=$((failures + 1))
}

is() # WHAT GOT WANTED
{
    [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"
}

has() # WHAT TEXT PART
{
    [[ $2 == *$3* ]] || fail "$1: no '$3' in: $2"
}

# A script that can't do some of its checks here calls this for each such part. tests/run.sh counts and lists these lines.
skip_part() # WHY
{
    echo "# skipped: $*"
}

skip() # WHY: ends a script that can do none of its checks here
{
    echo "skip: $*"
    exit 77
}

# Whether the tools are there. If not, it says that a part is skipped.
have() # PART TOOL...
{
    local part=$1 tool
    shift
    for tool; do
        command -v "$tool" >/dev/null || { skip_part "$part: no $tool"; return 1; }
    done
}

hasnt() # WHAT TEXT PART
{
    [[ $2 != *$3* ]] || fail "$1: '$3' in: $2"
}
