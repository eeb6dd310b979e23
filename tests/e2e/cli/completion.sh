#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion in fish and zsh offers everything that --help names, and nothing else. Tests each of these shells that is installed.
# (packaging/installed.sh tests completion in bash.)
. "$(dirname "$0")/../lib/common.bash"
scripts=$(realpath "$root/packaging/completion")
work=$dir
export HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
cd "$work" || exit 1
shells=0

lines() # WORD...: each on a line, sorted
{
    # shellcheck disable=SC2048,SC2086
    printf '%s\n' $* | sort -u
}
same() # WHAT GOT WANTED
{
    [ "$2" = "$3" ] || fail "$1: $(diff <(echo "$2") <(echo "$3") | tr '\n' ' ')"
}
commands=$(pumice --help | awk '/^  [a-z]+ +[a-z]/ { print $1; seen = 1; next } seen { exit }')
[ "$(echo "$commands" | wc -l)" -ge 9 ] || fail "subcommands: $commands"
options() # COMMAND...: the long options of --help
{
    "$@" --help | awk '/^ +-/' | grep -oE -- '^ +(-[A-Za-z?], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u
}
: >trace.pcapng
touch trace.txt

if have "completion in fish" fish; then
    shells=$((shells + 1))
    fish() { command fish --no-config -c "source $scripts/pumice.fish; complete -C '$1'" 2>&1 | sed 's/\t.*//' | sort -u; }
    offers() { same "fish: $2" "$(fish "$2")" "$(lines "$1")"; }
    offers "$commands help --help --version" 'pumice '
    for c in $commands; do
        same "fish: options of pumice $c" "$(fish "pumice $c --" | tr -d = | sort)" "$(options pumice "$c")"
    done
    same "fish: options of pumiced" "$(fish 'pumiced --' | tr -d = | sort)" "$(options pumiced)"
    [[ $(fish 'pumice run --g') == *--gso=* ]] || fail "fish: no = after an option that wants a value"
    offers "--gso=auto --gso=on --gso=off" 'pumice run --gso='
    offers "auto on off" 'pumice run --gso '
    offers "both" 'pumice capture --direction b'
    offers "list trace why replay" 'pumice tm '
    offers "trace.pcapng trace.txt" 'pumice doctor tra'
    offers "trace.pcapng trace.txt" 'pumice lint tra'
    offers "ibv_devinfo" 'pumice run --hosts 2 -- ibv_devin'
    offers "ibv_devinfo" 'pumice run -n 2 ibv_devin'
    offers "ibv_devinfo" 'pumice on 1 ibv_devin'
    offers "ping" 'pumice help pi'
fi

if have "completion in zsh" zsh python3; then
    shells=$((shells + 1))
    # The line editor needs a terminal. So this records the offers on their way to it.
    cat >"$work/.zshrc" <<END
fpath=($scripts \$fpath)
autoload -U compinit && compinit -u -D
compadd()
{
    local -a hits
    if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
        builtin compadd -A hits "\$@"
        [[ \$#hits -gt 0 ]] && print -rl -- \$hits >>$work/offered
    fi
    builtin compadd "\$@"
}
finish() { print END >>$work/offered; zle kill-buffer }
zle -N finish
bindkey '^I' complete-word
bindkey '^T' finish
setopt extendedglob
PROMPT='ready>'
END
    cat >"$work/type.py" <<'END'
import os, pty, select, sys, time
work = os.environ["HOME"]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(ZDOTDIR=work, TERM="vt100")
    os.execvp("zsh", ["zsh", "-d", "-i"])
def until(done):
    seen, end = b"", time.time() + 120
    while not done(seen):
        if time.time() > end:
            sys.exit("zsh does not answer: %r" % seen)
        if select.select([fd], [], [], 0.02)[0]:
            seen += os.read(fd, 4096)
until(lambda seen: b"ready>" in seen)
for line in sys.stdin.read().splitlines():
    open(work + "/offered", "w").close()
    os.write(fd, line.encode() + b"\t\x14")
    until(lambda seen: open(work + "/offered").read().endswith("END\n"))
    print(line + ":", *sorted(set(open(work + "/offered").read().split()[:-1])))
END
    zsh_cases()
    {
        echo "pumice ~$commands help"
        echo "pumice run --~$(options pumice run)"
        echo "pumice tm --~$(options pumice tm)"
        echo "pumiced --~$(options pumiced)"
        echo "pumice run --gso=~auto on off"
        echo "pumice run --gso ~auto on off"
        echo "pumice capture --direction b~both"
        echo "pumice tm ~list trace why replay"
        echo "pumice lint tra~trace.pcapng trace.txt"
        echo "pumice run --hosts 2 -- ibv_devin~ibv_devinfo"
        echo "pumice run -n 2 ibv_devin~ibv_devinfo"
        echo "pumice on 1 ibv_devin~ibv_devinfo"
        echo "pumice help pi~ping"
    }
    mapfile -t cases < <(zsh_cases | awk '/~/ { if (c) print c; c = $0; next } { c = c " " $0 } END { print c }')
    printf '%s\n' "${cases[@]%%~*}" | python3 "$work/type.py" >"$work/typed" || fail "$(tail -n 3 "$work/typed")"
    for c in "${cases[@]}"; do
        line=${c%%~*}
        same "zsh: $line" "$(lines "$(grep -F -- "$line: " "$work/typed" | head -n 1 | sed 's/^.*[a-z= -]: //')")" "$(lines "${c#*~}")"
    done
fi

[ $shells -gt 0 ] || skip "neither fish nor zsh"
[ $failures -eq 0 ] && echo "ok, $shells shells"
exit $((failures > 0))
