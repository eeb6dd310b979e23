// SPDX-License-Identifier: BSD-2-Clause
/* When the device of a peer is asked what it can do, and which answers count. */
#include <criterion/criterion.h>

#include "daemon/core/path/peer_features.h"

#define MS 1000000ull
#define S_NS 1000000000ull

static const struct probe yes = {.kind = PROBE_ANSWER, .purpose = PROBE_FEATURES, .token = 7, .sacks = true};
static const struct probe no = {.kind = PROBE_ANSWER, .purpose = PROBE_FEATURES, .token = 7};

static struct peer_features asked(uint64_t now)
{
    struct peer_features f = {0};
    cr_assert(peer_features_should_ask(&f, now));
    peer_features_asked(&f, 7, now);
    return f;
}

Test(peer_features, one_question_at_a_time)
{
    struct peer_features f = asked(S_NS);
    cr_expect_not(f.sacks);
    cr_expect_not(peer_features_should_ask(&f, S_NS + MS / 10), "the answer may still come");
    cr_expect(peer_features_should_ask(&f, S_NS + MS / 5));
    peer_features_answered(&f, &yes, S_NS + 2 * MS);
    cr_expect(f.sacks);
    cr_expect_not(peer_features_should_ask(&f, S_NS + 5 * S_NS));
    cr_expect(peer_features_should_ask(&f, S_NS + 12 * S_NS), "another device may have the address now");
    cr_expect(f.sacks, "until its answer comes");
    peer_features_asked(&f, 7, S_NS + 12 * S_NS);
    peer_features_answered(&f, &no, S_NS + 12 * S_NS);
    cr_expect_not(f.sacks);
}

Test(peer_features, only_the_answer_to_the_last_question_counts)
{
    struct peer_features f = {0};
    struct probe forged = yes;
    peer_features_answered(&f, &yes, S_NS);
    cr_expect_not(f.sacks, "nobody asked");
    f = asked(S_NS);
    forged.token = 8;
    peer_features_answered(&f, &forged, S_NS);
    cr_expect_not(f.sacks);
    peer_features_answered(&f, &yes, S_NS);
    cr_expect(f.sacks);
    peer_features_answered(&f, &no, S_NS);
    cr_expect(f.sacks, "a second answer");
}

Test(peer_features, a_device_that_does_not_answer_is_left_in_peace)
{
    struct peer_features f = {0};
    unsigned questions = 0;
    uint64_t now = S_NS;
    for (; now < 30 * S_NS; now += MS) {
        if (peer_features_should_ask(&f, now)) {
            peer_features_asked(&f, 7, now);
            questions++;
        }
    }
    cr_expect_eq(questions, 8, "%u", questions);
    cr_expect_not(f.sacks);
    cr_expect(peer_features_should_ask(&f, 70 * S_NS), "it may be another device a minute later");
}
