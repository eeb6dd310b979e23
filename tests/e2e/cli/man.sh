#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Man pages and --help describe the same options. Each option of a command, with its letter, is in the command's page, and no other is.
. "$(dirname "$0")/../lib/common.bash"
cd "$root" || exit 1

helped() # COMMAND...: "-x --long" or "--long" for each option of --help
{
    "$@" --help | awk '/^ +-/' | sed -nE 's/^ +((-[A-Za-z]), )?(--[a-z0-9-]+).*/\2 \3/p' | sed 's/^ //' | grep -vE -- '--(help|usage|version)$' | sort -u
}
# The same of the headings in the page: .BR \-j ", " \-\-json
paged()
{
    sed -n '/^\.TP/{n;/^\.[BI]/p}' "$1" | sed 's/\\-/-/g; s/\\f.//g; s/"//g' |
        sed -nE 's/^\.[BIR]+ ((-[A-Za-z]) ?, +)?(--[a-z0-9-]+).*/\2 \3/p' | sed 's/^ //' | grep -vE -- '--(help|usage|version)$' | sort -u
}
compare() # PAGE COMMAND...
{
    local page=docs/man/$1 difference
    shift
    [ -f "$page" ] || { fail "there is no $page"; return; }
    [ -n "$(helped "$@")" ] || fail "$*: no options in --help"
    difference=$(diff <(helped "$@") <(paged "$page"))
    [ -z "$difference" ] || fail "$page (<: only in --help, >: only in the page):" "$difference"
}

commands=$(pumice --help | awk '/^  [a-z]+ +[a-z]/ { print $1; seen = 1; next } seen { exit }')
[ "$(echo "$commands" | wc -l)" -ge 9 ] || fail "subcommands: $commands"
for c in $commands; do
    [ "$c" = extcap ] || [ -z "$(helped pumice "$c")" ] || compare "pumice-$c.1" pumice "$c"
    grep -q "pumice\\\\-$c" docs/man/pumice.1 || fail "docs/man/pumice.1 does not mention pumice-$c"
done
compare pumiced.8 pumiced
# Each code of a reason that pumice why can give.
for code in $(grep -oE 'add\(&?r, "[a-z_]+"' src/cmd/inspect/diagnose.c | sed 's/.*"\(.*\)"/\1/' | sort -u); do
    grep -qE "\b$code\b" docs/man/pumice-why.1 || fail "docs/man/pumice-why.1 lacks the reason $code"
done
for fault in $(grep -oE '^    \{"[a-z-]+", [A-Z]+, set_' daemon/fault/fault_spec.c | sed 's/[^"]*"\(.*\)".*/\1/'); do
    sed 's/\\-/-/g' docs/man/pumice-fault.1 | grep -q -- "^\.BR $fault " || fail "docs/man/pumice-fault.1 lacks $fault"
done

for rule in $(grep -oE '^    \[RULE_[A-Z_]+\] = "[a-z-]+",' src/check/base/rule.c | sed 's/.*"\(.*\)".*/\1/'); do
    sed 's/\\-/-/g' docs/man/pumice-run.1 | grep -qx -- "\.B $rule" || fail "docs/man/pumice-run.1 lacks the rule $rule"
done

[ $failures -eq 0 ] && echo "the man pages of $(echo "$commands" | wc -l) commands and the daemon have every option"
exit $((failures > 0))
