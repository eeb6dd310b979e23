#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows that check_pure.py can fail. It makes a copy of the product's sources, breaks one rule at a time in the copy, and demands that
# check_pure.py reports exactly this breach. A copy without a change must get the same report as the tree itself.
# From the environment: BUILD (libcore.a and libwire.a are there), CC.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
CC=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
copy=$dir/copy
failures=0

report() # ROOT [OPTION...]: the complaints, sorted, without the number of them at the end
{
    tests/check_pure.py --root "$@" | sed '$d' | LC_ALL=C sort
    return "${PIPESTATUS[0]}"
}

# breach WHAT COMPLAINT [OPTION...]: after a change of the copy there is one more complaint than before, which contains COMPLAINT. The
# copy is then as it was.
breach()
{
    local what=$1 complaint=$2 status more
    shift 2
    report "$copy" "$@" >"$dir/after"
    status=$?
    more=$(LC_ALL=C comm -13 "$dir/before" "$dir/after")
    if [ $status -ne 1 ] || [[ $more != *"$complaint"* ]] || [ "$(wc -l <<<"$more")" -ne 1 ]; then
        echo "FAIL: $what: expected exit code 1 and a complaint with '$complaint', got exit code $status and: ${more:-no complaint}"
        failures=$((failures + 1))
    else
        echo "$what: $more"
    fi
    fresh_copy
}

fresh_copy()
{
    rm -rf "$copy"
    mkdir "$copy"
    cp -r daemon include pcap src system wire "$copy"
}

first() # FOLDER: any header of it
{
    find "$1" -maxdepth 1 -name '*.h' | LC_ALL=C sort | head -n 1
}

source_with() # FILE LINE...: makes a file of these lines in the copy
{
    local file=$copy/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

report . >"$dir/before"
fresh_copy
report "$copy" >"$dir/after"
cmp -s "$dir/before" "$dir/after" || { echo "FAIL: the copy gets another report than the tree"; diff "$dir/before" "$dir/after"; exit 1; }

upper=$(first daemon/core)
source_with daemon/core/base/zz.h "#include \"$upper\""
breach "an include of a folder above" "daemon/core/base/zz.h: includes $upper, and daemon/core is above daemon/core/base"

source_with wire/zz.h "#include \"$upper\""
breach "an include of a part above" "wire/zz.h: includes $upper, but wire may use only"

source_with src/verbs/base/zz.h "#include \"$upper\""
breach "the library includes the engine" "src/verbs/base/zz.h: includes $upper, but src/verbs may use only"

source_with wire/zz.h '#include "wire/is_not_there.h"'
breach "an include of a header that does not exist" 'there is no "wire/is_not_there.h"'

source_with src/dv/zy.h '' && source_with src/dv/zz.h ''
source_with src/dv/zy.c '#include "src/dv/zy.h"' '#include "src/dv/zz.h"'
source_with src/dv/zz.c '#include "src/dv/zy.h"' '#include "src/dv/zz.h"'
breach "a circle of two modules" "a circle: src/dv/zy, src/dv/zz"

mapfile -t lines < <(seq 601)
source_with src/dv/zz.h "${lines[@]}"
breach "a long file" "src/dv/zz.h: has 601 lines"
source_with src/dv/zz.h "${lines[@]:1}"
report "$copy" | cmp -s - "$dir/before" || { echo "FAIL: a file of 600 lines is not accepted"; failures=$((failures + 1)); }
fresh_copy

source_with src/dv/zz.c ''
breach "a source without a header" "src/dv/zz.c: has no header of its own"

source_with daemon/base/zz.c '#include "pumice/abi.h"'
breach "a public header does not stand in for a source's own one in the daemon" "daemon/base/zz.c: has no header of its own"

source_with src/verbs/base/zz.c '#include <errno.h>' '#include <infiniband/verbs.h>'
breach "a public header that does not come first" "src/verbs/base/zz.c: has no header of its own"

source_with src/verbs/base/zz.c '#include <infiniband/verbs.h>' 'int vb_zz(void)' '{'
breach "a function that the public header lacks" "src/verbs/base/zz.c: defines vb_zz"

source_with daemon/core/base/zz.h '#include <stdio.h>'
breach "a system header in the engine" "daemon/core/base/zz.h: includes <stdio.h>"

source_with daemon/attic/zz.h ''
breach "a folder without a place in the order" "daemon/attic has no place in the order"

for n in {1..27}; do
    source_with "src/dv/zz$n.h" ''
done
breach "a folder of many files" "src/dv/: has "

if [ -f "$BUILD/lib/libcore.a" ] && ! nm "$BUILD/lib/libcore.a" 2>/dev/null | grep -q '__asan\|__ubsan\|__tsan'; then
    echo 'void *malloc(unsigned long); void *zz(void); void *zz(void) { return malloc(1); }' >"$dir/zz.c"
    cp "$BUILD/lib/libcore.a" "$dir/libcore.a"
    report . --core "$dir/libcore.a" --wire "$BUILD/lib/libwire.a" | cmp -s - "$dir/before" ||
        { echo "FAIL: the engine's objects need more than they may"; failures=$((failures + 1)); }
    $CC -w -O0 -fno-builtin -c -o "$dir/zz.o" "$dir/zz.c" && ar rs "$dir/libcore.a" "$dir/zz.o" 2>/dev/null || exit 1
    breach "an object that allocates memory" "its object code needs malloc" --core "$dir/libcore.a" --wire "$BUILD/lib/libwire.a"
else
    echo "# skipped: the check of the engine's object code: no libcore.a without sanitizers"
fi
exit $((failures > 0))
