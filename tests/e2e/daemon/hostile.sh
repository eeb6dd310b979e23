#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A hostile member beside a bystander, in short: no error, no wrong data, nothing left. `make soak-hostile` measures more.
exec "$(dirname "$0")/../../soak/hostile.py" --short
