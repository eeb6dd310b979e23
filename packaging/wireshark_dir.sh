#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints the directory of the installed Wireshark's extcap programs and plugins, or "none" if there is no Wireshark.
for program in wireshark tshark; do
    extcap=$("$program" -G folders 2>/dev/null | sed -n 's/^[A-Za-z ]*[Ee]xtcap path:[[:space:]]*//p' | grep -v "^$HOME/" | tail -n 1)
    if [ -n "$extcap" ]; then
        dirname "$extcap"
        exit
    fi
done
echo none
