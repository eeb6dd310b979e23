# SPDX-License-Identifier: BSD-2-Clause
# Completion of pumice and pumiced in bash. It reads the commands' own --help, so it matches the installed version.

# _pumice_options COMMAND...: prints one line for each line of --help with options, each option with its possible "="
# value
_pumice_options()
{
    "$@" --help 2>/dev/null </dev/null | sed -nE '/^ +-/{ s/^ +//; s/^(-[A-Za-z?]), /\1 /; s/^(((-[A-Za-z?]|--[a-z0-9-]+(=[^ ]*)?) ?)+).*/\1/p; }'
}

# _pumice_commands PUMICE: prints its subcommands
_pumice_commands()
{
    "$1" --help 2>/dev/null </dev/null | awk '/^  [a-z]+ +[a-z]/ { print $1; seen = 1; next } seen { exit }'
}

# _pumice_arguments COMMAND...: prints its possible arguments, from the usage text: fixed words, and FILE
_pumice_arguments()
{
    "$@" --help 2>/dev/null </dev/null | sed -nE '1s/^[^]]*\] //p' | tr -s ' |[]' '\n' | grep -E '^([a-z]+|FILE)$'
}

# _pumice_values COMMAND... -- OPTION: prints the possible values of the option if it has several words; else "FILE" or
# another kind
_pumice_values()
{
    local option=${*: -1} word line
    while read -r line; do
        for word in $line; do
            [[ $word == --*=* && " $line" == *" $option"[\ =]* ]] && echo "${word#*=}" && return
        done
    done < <(_pumice_options "${@:1:$#-2}")
    return 1
}

# _pumice_reply KIND: fills COMPREPLY with the values of this kind
_pumice_reply()
{
    local current=$2
    case $1 in
    *\|*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$current") ;;
    FILE* | PATH) mapfile -t COMPREPLY < <(compgen -f -- "$current") && compopt -o filenames 2>/dev/null ;;
    GROUP) mapfile -t COMPREPLY < <(compgen -g -- "$current") ;;
    esac
}

# _pumice_option_words COMMAND...: prints the options, with "=" after those that take a value
_pumice_option_words()
{
    _pumice_options "$@" | tr ' ' '\n' | sed -E 's/=.*/=/' | grep -v '^$'
}

# Completes an option or its value. Fails if neither is expected here. "--option=value" arrives as three words or as
# one, depending on COMP_WORDBREAKS.
_pumice_complete_option()
{
    local current=$1 previous=$2 before=$3 kind
    shift 3
    if [[ $current == --*=* ]]; then
        kind=$(_pumice_values "$@" -- "${current%%=*}") && _pumice_reply "$kind" "${current#*=}"
        return 0
    fi
    [ "$current" = "=" ] && current="" before=$previous previous="="
    if [ "$previous" = "=" ]; then
        kind=$(_pumice_values "$@" -- "$before") && _pumice_reply "$kind" "$current"
        return 0
    fi
    if [[ $previous == -?* && $previous != -- ]] && kind=$(_pumice_values "$@" -- "$previous"); then
        _pumice_reply "$kind" "$current"
        return 0
    fi
    [[ $current == -* ]] || return 1
    mapfile -t COMPREPLY < <(compgen -W "$(_pumice_option_words "$@")" -- "$current")
    [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

# _pumice_command_at I COMMAND...: from word I on the words are another command line; completes it with that command's
# own completion
_pumice_command_at()
{
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1" # from the package bash-completion
    elif [ "$COMP_CWORD" -eq "$1" ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") && compopt -o filenames 2>/dev/null
    fi
}

# Prints the index where the command of pumice run or pumice on begins: after its options, and after the host's number
# if $1 is 1
_pumice_inner()
{
    local host=$1 i word
    shift
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --)
            echo $((i + 1))
            return
            ;;
        =) i=$((i + 1)) ;; # skip the value too
        -*) [ "${COMP_WORDS[i + 1]:-}" != = ] && [[ $word != *=* ]] && _pumice_values "$@" -- "$word" >/dev/null && i=$((i + 1)) ;;
        *)
            [ "$host" -eq 0 ] && echo "$i" && return
            host=0
            ;;
        esac
    done
    [ "$host" -eq 0 ] && echo "$COMP_CWORD"
}

_pumice()
{
    local pumice=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]:-} inner='' arguments
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_pumice_commands "$pumice") help --help --version" -- "$current")
        return
    fi
    case $command in
    help)
        [ "$COMP_CWORD" -eq 2 ] && mapfile -t COMPREPLY < <(compgen -W "$(_pumice_commands "$pumice")" -- "$current")
        return
        ;;
    run) inner=$(_pumice_inner 0 "$pumice" run) ;;
    on) inner=$(_pumice_inner 1 "$pumice" on) ;;
    esac
    if [ -n "$inner" ] && { [ "$inner" -lt "$COMP_CWORD" ] || [ "${COMP_WORDS[inner - 1]}" = -- ]; }; then
        _pumice_command_at "$inner"
        return
    fi
    _pumice_complete_option "$current" "${COMP_WORDS[COMP_CWORD - 1]}" "${COMP_WORDS[COMP_CWORD - 2]}" "$pumice" "$command" && return
    [ -n "$inner" ] && _pumice_command_at "$inner" && return
    [[ $command == run || $command == on ]] && return
    arguments=$(_pumice_arguments "$pumice" "$command")
    mapfile -t COMPREPLY < <(compgen -W "${arguments//FILE/}" -- "$current")
    if [ ${#COMPREPLY[@]} -eq 0 ] && [[ $arguments == *FILE* ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current") && compopt -o filenames 2>/dev/null
    fi
}

_pumiced()
{
    local at=$COMP_CWORD
    COMPREPLY=()
    _pumice_complete_option "${COMP_WORDS[at]}" "${COMP_WORDS[at - 1]}" "${COMP_WORDS[at > 1 ? at - 2 : 0]}" "${COMP_WORDS[0]}"
}

complete -F _pumice pumice
complete -F _pumiced pumiced
