// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: the files of a recording, which may come from anywhere. The first byte chooses the file. Accepted
 * decisions are written and read again, and then must be the same. The daemon's lookup of planned decisions gets the input, too, as the
 * memory that it shares with the command. */
#include <stdlib.h>
#include <string.h>

#include "daemon/replay/decisions.h"
#include "src/cmd/recording/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_run(const char *text, size_t len)
{
    char why[DECISION_WHY_MAX];

    json_decref(recording_parse_run(text, len, why));
}

static void check_decisions(const char *text, size_t len)
{
    char why[DECISION_WHY_MAX], line[DECISION_LINE_MAX], sentence[DECISION_LINE_MAX];
    struct recording r = {0};

    if (recording_parse_decisions(text, len, &r, why)) {
        for (size_t i = 0; i < r.n; i++) {
            struct host_decision again;

            decision_to_line(&r.decision[i], line);
            decision_to_sentence(&r.decision[i], sentence);
            must(decision_from_line(line, strlen(line), &again, why));
            must(memcmp(&again, &r.decision[i], sizeof(again)) == 0);
        }
    }
    recording_free(&r);
}

/* The memory has the right size, and begins with the right words as often as not. */
static void check_memory(const uint8_t *data, size_t len)
{
    size_t size = PM_DECISIONS_AT + len / sizeof(struct pm_decision) * sizeof(struct pm_decision);
    struct pm_decisions_page *page = aligned_alloc(64, (size + 63) & ~(size_t)63);
    struct decisions d;
    const char *why;

    must(page != NULL);
    memset(page, 0, size);
    memcpy((uint8_t *)page + PM_DECISIONS_AT, data, size - PM_DECISIONS_AT);
    page->magic = PM_DECISIONS_MAGIC;
    page->abi_version = len % 2 ? 0 : 9;
    page->flags = (uint32_t)len % 4;
    page->planned = (uint32_t)((size - PM_DECISIONS_AT) / sizeof(struct pm_decision));
    if (decisions_init(&d, page, size, 0, &why) == 0) {
        for (size_t i = 0; i < d.num_planned; i++) {
            struct pm_packet p = d.planned[i].decision.packet;
            struct fault_verdict v;

            decisions_find(&d, &p, p.number ? p.number - 1 : 0, &v);
            decisions_refuse(&d, &p);
            decisions_number_cm(&d, &p);
        }
        decisions_fini(&d);
    }
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    if (data[0] == 'r')
        check_run((const char *)data + 1, len - 1);
    else if (data[0] == 'm')
        check_memory(data + 1, len - 1);
    else
        check_decisions((const char *)data + 1, len - 1);
    return 0;
}
