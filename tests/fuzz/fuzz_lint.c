// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: captures. The input is the bytes of a file, or the UDP payloads of a file that is built here,
 * because few bytes make a valid file. The sanitizers detect reads out of bounds. The target checks that findings are
 * in order and counted. */
#include <errno.h>
#include <stdlib.h>

#include "pcap/lint/lint.h"
#include "tests/fuzz/fuzz_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void lint(const uint8_t *data, size_t size, const struct lint_options *options)
{
    struct lint_result r;
    size_t errors = 0;
    FILE *f;
    int err;

    if (size == 0)
        return;
    f = fmemopen((void *)data, size, "rb");
    must(f != NULL);
    err = lint_run(&r, f, options);
    must(err == 0 || err == -EINVAL);
    must((err == 0) == (r.error[0] == 0));
    for (size_t i = 0; i < r.n; i++) {
        must(r.findings[i].rule < LINT_RULES && r.findings[i].frame >= 1 && r.findings[i].frame <= r.frames);
        must(i == 0 || r.findings[i - 1].frame <= r.findings[i].frame);
        errors += r.findings[i].severity == LINT_ERROR;
    }
    must(errors == r.errors && r.errors + r.notes == r.n);
    lint_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[FUZZ_CAPTURE_MAX];
    struct lint_options options = {.tm = LINT_TM_AUTO};
    size_t at;

    lint(data, size, &options);
    at = fuzz_capture(file, data, size);
    options.tm = size % 2 ? LINT_TM_LISTED : LINT_TM_AUTO;
    options.num_tm_qps = 2;
    options.tm_qps[1] = 1;
    lint(file, at, &options);
    return 0;
}
