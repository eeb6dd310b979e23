# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
# What a script of tests finds wrong; it ends with exit $((failures > 0)).
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

hasnt() # WHAT TEXT PART
{
    [[ $2 != *$3* ]] || fail "$1: '$3' in: $2"
}
