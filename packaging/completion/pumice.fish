# SPDX-License-Identifier: BSD-2-Clause
# Completion of pumice and pumiced in fish. It reads the commands' own --help, so it matches the installed version.

# __pumice_options COMMAND...: prints a line for each option of --help: short, long, value and text, separated by ;
function __pumice_options
    $argv --help 2>/dev/null </dev/null | awk '/^ +-/ {
        sub(/^ +/, ""); short = value = ""
        if (match($0, /^-[A-Za-z?], /)) { short = substr($0, 1, 2); $0 = substr($0, 5) }
        if (!match($0, /^--[a-z0-9-]+/)) next
        long = substr($0, 1, RLENGTH); rest = substr($0, RLENGTH + 1)
        if (match(rest, /^=[^ ]*/)) { value = substr(rest, 2, RLENGTH - 1); rest = substr(rest, RLENGTH + 1) }
        sub(/^ +/, "", rest); print short ";" long ";" value ";" rest }'
end

function __pumice_commands
    $argv --help 2>/dev/null </dev/null | awk '/^  [a-z]+ +[a-z]/ { c = $1; sub(/^ *[a-z]+ +/, ""); print c "\t" $0; seen = 1; next } seen { exit }'
end

# __pumice_values KIND TOKEN PREFIX: prints the values of this kind, each with PREFIX before it
function __pumice_values
    switch $argv[1]
        case '*|*'
            printf '%s\n' $argv[3](string split '|' -- (string replace -r '\[.*' '' -- $argv[1]))
        case 'FILE*' PATH
            printf '%s\n' $argv[3](__fish_complete_path $argv[2])
        case GROUP
            printf '%s\n' $argv[3](__fish_complete_groups)
    end
end

# __pumice_value_of OPTION LINES: prints the kind of value that this option takes; fails if it takes none
function __pumice_value_of
    for line in $argv[2..]
        set -l part (string split -m 3 ';' -- $line)
        if contains -- $argv[1] $part[1] $part[2]; and test -n "$part[3]"
            echo $part[3]
            return 0
        end
    end
    return 1
end

# __pumice_options_here LINES: prints options, or the values after "=" or after an option; fails if neither is expected
# here
function __pumice_options_here
    set -l current (commandline -ct)
    set -l before (commandline -opc)
    set -l kind
    if string match -q -- '--*=*' $current
        set -l option (string split -m 1 = -- $current)
        set kind (__pumice_value_of $option[1] $argv); and __pumice_values $kind $option[2] $option[1]=
        return 0
    end
    if set kind (__pumice_value_of $before[-1] $argv)
        __pumice_values $kind "$current" ''
        return 0
    end
    string match -q -- '-*' $current; or return 1
    for line in $argv
        set -l part (string split -m 3 ';' -- $line)
        test -n "$part[3]"; and set part[2] $part[2]=
        printf '%s\t%s\n' $part[2] $part[4]
        test -n "$part[1]"; and printf '%s\t%s\n' $part[1] $part[4]
    end
    return 0
end

# __pumice_inner HOST LINES: prints the index of the word where the command of pumice run or on begins: after its
# options and, if HOST is 1, after the host's number. Fails if it is not reached yet.
function __pumice_inner
    set -l words (commandline -opc)
    set -l host $argv[1]
    set -l i 3
    while test $i -le (count $words)
        switch $words[$i]
            case --
                echo (math $i + 1)
                return 0
            case '--*=*'
            case '-*'
                __pumice_value_of $words[$i] $argv[2..] >/dev/null; and set i (math $i + 1)
            case '*'
                test $host -eq 0; and echo $i; and return 0
                set host 0
        end
        set i (math $i + 1)
    end
    test $host -eq 0 -a $i -eq (math (count $words) + 1); or return 1
    string match -q -- '-*' (commandline -ct); and return 1
    echo $i
end

function __pumice_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    if test (count $words) -eq 1
        __pumice_commands $words[1]
        printf '%s\n' help --help --version
        return
    end
    if test $words[2] = help
        test (count $words) -eq 2; and __pumice_commands $words[1]
        return
    end
    set -l options (__pumice_options $words[1] $words[2])
    set -l inner
    switch $words[2]
        case run
            set inner (__pumice_inner 0 $options)
        case on
            set inner (__pumice_inner 1 $options)
    end
    if test -n "$inner"
        complete -C "$words[$inner..] $current"
        return
    end
    __pumice_options_here $options; and return
    contains -- $words[2] run on; and return
    for kind in ($words[1] $words[2] --help 2>/dev/null </dev/null | sed -nE '1s/^[^]]*\] //p' | tr -s ' |[]' '\n')
        switch $kind
            case FILE
                __fish_complete_path "$current"
            case '*'
                string match -qr -- '^[a-z]+$' $kind; and echo $kind
        end
    end
end

function __pumiced_complete
    __pumice_options_here (__pumice_options (commandline -opc)[1])
end

complete -c pumice -f -a '(__pumice_complete)'
complete -c pumiced -f -a '(__pumiced_complete)'
