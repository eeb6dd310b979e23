#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Is all C code as clang-format makes it? Other versions than 14 format some lines otherwise.
cd "$(dirname "$0")/.." || exit 1
case $(clang-format --version 2>/dev/null) in
*"version 14."*) exec make -s check-format ;;
esac
echo "needs clang-format 14"
exit 77
