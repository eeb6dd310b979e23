#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Calls of the daemon fail while a session lives: a selection of what `make test-failing` tries.
exec "$(dirname "$0")/../../failing/run.sh" --quick
