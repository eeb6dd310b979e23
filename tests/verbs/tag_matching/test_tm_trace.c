// SPDX-License-Identifier: BSD-2-Clause
/* What `pumice tm` and `pumice status` report about a matching list. */
#include "tests/verbs/tag_matching/tags.h"

static char said[65536];

/* The output of the command with these arguments. */
static const char *pumice(const char *arguments)
{
    char command[512];
    const char *build = getenv("VT_BUILD");
    need(build && snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice %s", build, arguments) > 0);
    FILE *f = popen(command, "r");
    need(f);
    said[fread(said, 1, sizeof(said) - 1, f)] = 0;
    ok(pclose(f) == 0, arguments);
    return said;
}

/* Is there a line with all of these words, in this order? */
static bool line(const char *text, const char *first, const char *second, const char *third)
{
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        const char *end = strchr(at, '\n') ? strchr(at, '\n') : at + strlen(at);
        const char *p = strstr(at, first);
        if (p && p < end && (p = strstr(p, second)) && p < end && (p = strstr(p, third)) && p < end)
            return true;
    }
    printf("# %s", text);
    return false;
}

int main(void)
{
    VT_OWN("reports of the command about matching lists");
    struct ibv_context *ctx = vt_open();
    struct tm_pair p;
    const char *out = pumice("tm list");
    ok(line(out, "no program", "matching list", ""), "there is no list");
    tm_open(&p, ctx, ctx);
    struct tm_side *r = &p.r, *s = &p.s;
    struct tm_add never = {.id = 9, .tag = 0x1ff, .mask = 0xff, .len = 10};
    for (unsigned i = 0; i < 4; i++)
        tm_buffer(r, 50 + i, 65536 + i * 4096, 4096);
    need(tm_eager(s, 0, 0x10, 1) && tm_got(r, IBV_WC_TM_RECV, 50, 0) && tm_sync(r, 1));
    tm_add(r, 1, 0x11, 0, 100);
    need(tm_try_add(r, &never, NULL) == 0);
    need(tm_eager(s, 0, 0x11, 20) && tm_matched(r, 1, 0x11, 20));
    need(tm_eager(s, 0, 0x0ff, 20) && tm_got(r, IBV_WC_TM_RECV, 51, 0));
    tm_add(r, 2, 0x12, 0, 100);
    need(tm_eager(s, 1, 0x12, 20) && tm_got(r, IBV_WC_TM_RECV, 52, 0));
    tm_header(s, IBV_TMH_NO_TAG, 0, 0);
    tm_post(s, 1, 20, NULL);
    need(tm_sent(s) == 0 && tm_got(r, IBV_WC_TM_NO_TAG, 53, 0));

    out = pumice("tm why");
    ok(line(out, "tag 0x10: unexpected", "the matching list was empty", ""), "the list was empty");
    ok(line(out, "tag 0x11: matched entry 0x", "after", "comparisons"), "a match");
    ok(line(out, "tag 0xff: unexpected", "outside of the entry's own mask", "[entry 0x"), "a mask that never matches");
    ok(line(out, "tag 0x12: unexpected", "has not reported all", "hw_cnt 2, sw_cnt 1"), "out of sync");
    ok(line(out, "no-tag", "unexpected", "without a tag"), "no tag");
    out = pumice("tm why --tag 0x12");
    ok(line(out, "tag 0x12", "", "") && !strstr(out, "0x11:"), "one tag alone");
    out = pumice("tm list");
    ok(line(out, "pumice0: SRQ", tm_strict(ctx) ? "profile mlx5" : "profile generous", "") &&
           line(out, "out of sync", "hw_cnt 3", "sw_cnt 1"),
       "counts");
    ok(line(out, "pending", "tag 0x12", "100 bytes") && line(out, "active", "tag 0x1ff", "mask 0xff"), "entries");
    ok(line(out, "list_add 3", "rx_exp 1", "rx_unexp_eager 3"), "counters");
    out = pumice("tm trace");
    ok(line(out, "add", "tag 0x12", "pending") && line(out, "sync", "hw_cnt 1", "sw_cnt 1"), "operations");
    ok(line(out, "unexpected", "tag 0x12", "why pending") && line(out, "deliver", "tag 0x12", "hw_cnt 3"), "messages");
    out = pumice("tm trace --json");
    ok(strstr(out, "\"why_text\"") && strstr(out, "\"hw_cnt\""), "as JSON");
    out = pumice("status --json");
    ok(strstr(out, "\"type\": \"TM\"") && strstr(out, "\"rx_unexp_eager\": 3"), "status has a summary");
    out = pumice("tm replay");
    ok(line(out, "add tag 0x12", "| hw 2 sw 1 |", "") && line(out, "unexpected eager", "tag 0x12", "| hw 2 sw 1+ |"),
       "the list after each step");
    ok(line(out, "events", "0 contradictions", ""), "and all follows from the rules");
    need(tm_sync(r, 3) && tm_eager(s, 1, 0x12, 20) && tm_matched(r, 2, 0x12, 20));
    for (unsigned i = 0; i < 3000; i++) /* more events than are remembered */
        need(tm_op(r, 1, IBV_WR_TAG_DEL, 0, tm_add(r, 3, 0x13, 0, 100), 0) == 0 && (i % 32 || tm_sync(r, 3)));
    need(tm_sync(r, 3));
    out = pumice("tm replay --check");
    ok(line(out, "events", "older ones are forgotten", ""), "what can't be judged is not");
    tm_close(&p);
    ok(ibv_close_device(ctx) == 0, "the device is closed");
    return vt_failed;
}
