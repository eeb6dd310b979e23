#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The dependency rule of docs/architecture.md: by the #include lines of every folder, and, for the protocol engine, by what its
# object code wants from outside.
# Usage: check_pure.sh [libcore.a libwire.a]
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
core=${1:-$BUILD/lib/libcore.a}
wire=${2:-$BUILD/lib/libwire.a}
bad=0

complain()
{
    echo "$*"
    bad=1
}

# Which folders the files of a folder may include from, itself apart.
allowed()
{
    case $1 in
    wire) echo "" ;;
    daemon/core) echo "wire" ;;
    pcap) echo "wire" ;;
    daemon) echo "daemon/core wire pcap include/pumice" ;;
    src/verbs | src/dv) echo "include/pumice" ;;
    src/cmd) echo "include/pumice pcap" ;; # pcap: for the linter
    include/pumice) echo "" ;;
    esac
}

# The one exception, FILE:HEADER. `pumice layout` explains a mapping, and it would be worth little if it were not the engine's own
# code that does it; and the texts of its errors are there. This header includes nothing but standard ones, and knows no engine.
exceptions="src/cmd/inspect/layout_file.h:daemon/core/memory/layout.h src/dv/dv_layout.c:daemon/core/memory/layout.h"

# Which system headers: those that bring no I/O, clock or allocation, for the pure folders; any for the others. (errno.h is there for the
# names of errors; errno itself would be found by its symbol.)
system_headers()
{
    case $1 in
    daemon/core) echo "assert.h errno.h limits.h stdalign.h stdbool.h stddef.h stdint.h string.h" ;;
    wire) echo "assert.h limits.h stdbool.h stddef.h stdint.h string.h isa-l.h isa-l/crc.h" ;;
    *) echo "" ;;
    esac
}

# The folder in which #include "$2" of a file in folder $1 finds its file.
folder_of()
{
    local base
    for base in "$1" . include; do
        if [ -f "$base/$2" ]; then
            realpath --relative-to=. "$(dirname "$base/$2")"
            return
        fi
    done
}

contains()
{
    local word
    for word in $2; do
        [ "$word" = "$1" ] && return 0
    done
    return 1
}

check_folder()
{
    local folder=$1 may system file line name from
    may="$folder $(allowed "$folder")"
    system=$(system_headers "$folder")
    for file in "$folder"/*.[ch]; do
        [ -f "$file" ] || continue
        while read -r line; do
            name=${line#*[<\"]}
            name=${name%%[>\"]*}
            if [[ $line == *\"* ]]; then
                from=$(folder_of "$folder" "$name")
                [ -n "$from" ] || complain "$file: there is no \"$name\""
                contains "$file:$name" "$exceptions" && continue
                contains "$from" "$may" || complain "$file: includes $name, but $folder may use only: $may"
            elif [[ $name == pumice/* ]]; then
                contains include/pumice "$may" || complain "$file: includes $name, but $folder may use only: $may"
            elif [ -n "$system" ]; then
                contains "$name" "$system" || complain "$file: includes <$name>; $folder may use only: $system"
            fi
        done < <(grep -hE '^[[:space:]]*#[[:space:]]*include' "$file")
    done
}

for folder in wire daemon/core pcap daemon src/verbs src/dv src/cmd include/pumice; do
    check_folder "$folder"
done

# What the engine's object code may ask of the C library. __stack_chk_fail and the _chk functions are the compiler's own.
functions="memcmp memcpy memmove memset memchr __assert_fail __stack_chk_fail __memcpy_chk __memmove_chk __memset_chk
    _GLOBAL_OFFSET_TABLE_"
if [ -f "$core" ] && [ -f "$wire" ]; then
    undefined=$(nm -u "$core" | awk '/ U / { print $2 }' | sort -u)
    defined=$(nm -g --defined-only "$core" "$wire" | awk 'NF == 3 { print $3 }' | sort -u)
    for symbol in $(comm -23 <(echo "$undefined") <(echo "$defined")); do
        contains "$symbol" "$functions" || complain "$core needs $symbol: $(nm -uA "$core" | grep -w "$symbol" | head -n 1)"
    done
    [ -n "$undefined" ] || complain "$core: no symbols found"
else
    complain "$core and $wire are not built"
fi
[ $bad -eq 0 ] && echo "the dependency rule holds"
exit $bad
