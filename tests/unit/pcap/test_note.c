// SPDX-License-Identifier: BSD-2-Clause
/* Comments of captured packets. The reader gets back what the writer wrote, and any other text does no harm. */
#include <criterion/criterion.h>
#include <string.h>

#include "pcap/note.h"
#include "wire/pumice/sack.h"

static struct note note(uint32_t qpn, const char *comm)
{
    struct note n = {.qpn = qpn, .pid = qpn * 3};

    memcpy(n.comm, comm, strnlen(comm, sizeof(n.comm)));
    return n;
}

Test(note, a_note_is_read_back)
{
    static const char *const names[] = {"a", "sixteen letters!", "(pid 7), retran", ", wr_id 0x5", ""};

    for (unsigned i = 0; i < 16 * sizeof(names) / sizeof(names[0]); i++) {
        struct note n = note(i % 3 ? 0xffffff : 1, names[i / 16]), got;
        char text[NOTE_MAX];

        n.has_wr = i & 1;
        n.wr_id = i & 1 ? UINT64_MAX - i : 0;
        n.retransmit = i & 2;
        n.inside = i & 4;
        n.before = i & 8;
        note_format(&n, text);
        cr_assert(note_parse(text, strlen(text), &got), "%s", text);
        memset(n.comm, 0, sizeof(n.comm)); /* is not read back */
        cr_assert_eq(memcmp(&n, &got, sizeof(n)), 0, "%s", text);
    }
}

Test(note, text)
{
    struct note n = {.inside = true};
    char text[NOTE_MAX];

    note_format(&n, text);
    cr_assert_str_eq(text, "inside of the device");
    n = note(0x1a, "sixteen letters!");
    n.has_wr = n.retransmit = n.inside = n.before = true;
    n.wr_id = UINT64_MAX;
    note_format(&n, text);
    cr_assert_str_eq(
        text, "QP 0x00001a of sixteen letters! (pid 78), wr_id 0xffffffffffffffff, retransmission, inside of the "
              "device, before faults");
    memset(&n, 0, sizeof(n));
    note_format(&n, text);
    cr_assert_str_empty(text);
}

Test(note, selective_acknowledgements)
{
    struct sack s = {.requester = 0x12, .expected = 0xffffff, .end = 9, .newest = 9, .gaps = 1, .gap = {{0xffffff, 0}}};
    struct note n = {.sack = &s};
    char text[NOTE_MAX];

    note_format(&n, text);
    cr_expect_str_eq(text, "SACK for QP 0x000012: PSN 16777215 missing before 9, newest 8");
    s.gaps = 2;
    s.gap[1] = (struct sack_gap){3, 6};
    note_format(&n, text);
    cr_expect_str_eq(text, "SACK for QP 0x000012: PSNs 16777215, 3 ... 5 missing before 9, newest 8");
    s.newest = 0x10;
    note_format(&n, text);
    cr_expect_str_eq(text, "SACK for QP 0x000012: PSNs 16777215, 3 ... 5 missing before 9, newest 15");
    s.newest = 9 + SACK_BEYOND_MOST;
    note_format(&n, text);
    cr_expect_not_null(strstr(text, "missing before 9, newest 65543 or later"), "%s", text);
    s.gaps = SACK_GAPS_MOST;
    for (uint32_t i = 0; i < s.gaps; i++)
        s.gap[i] = (struct sack_gap){0xfff000 + 9 * i, 0xfff002 + 9 * i};
    note_format(&n, text);
    cr_expect_not_null(strstr(text, "16773165 ... 16773166 and 26 more gaps missing before 9"), "%s", text);
}

Test(note, other_comments_are_no_notes)
{
    static const char *const texts[] = {
        "", "QP 0x", "QP 0x12", "QP 0x000000", "QP 0x1234567", "QP 17 of nobody", "a QP 0x000011", "packet 3 lost"};
    char many[2 * NOTE_MAX];
    struct note n;

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_assert_not(note_parse(texts[i], strlen(texts[i]), &n), "%s", texts[i]);
        cr_assert_eq(n.qpn, 0);
    }
    memset(many, 'x', sizeof(many));
    memcpy(many, "QP 0x000011", 11);
    cr_assert_not(note_parse(many, sizeof(many), &n), "too long to be ours");
    cr_assert(note_parse(many, 11, &n), "the length counts, not an end");
}

Test(note, faults_are_read_back)
{
    for (unsigned faults = 0; faults < 32; faults++) {
        struct note n = {.qpn = faults & 1 ? 17 : 0, .faults = (uint8_t)faults};
        char text[NOTE_MAX];

        note_format(&n, text);
        cr_assert_eq(note_faults(text, strlen(text)), faults, "%s", text);
    }
    /* The name of a program is no fault. */
    struct note named = note(0x1a, "struck by a faul");
    char text[NOTE_MAX];
    note_format(&named, text);
    cr_assert_eq(note_faults(text, strlen(text)), 0);
    named.faults = NOTE_DAMAGED | NOTE_LATE;
    note_format(&named, text);
    cr_assert_str_eq(text, "QP 0x00001a of struck by a faul (pid 78), struck by a fault: damaged, late");
}

Test(note, lost_packets_are_counted)
{
    static const char *const others[] = {"",
                                         " packets lost by faults",
                                         "-1 packets lost by faults",
                                         "12",
                                         "12 packets lost by faults,",
                                         "12 packets lost",
                                         "+3 packets lost by faults"};
    char text[NOTE_MAX];

    note_format_lost(UINT64_MAX, text);
    cr_assert_eq(note_lost(text, strlen(text)), UINT64_MAX);
    note_format_lost(12, text);
    cr_assert_str_eq(text, "12 packets lost by faults");
    cr_assert_eq(note_lost(text, strlen(text)), 12);
    cr_assert_eq(note_lost(text, strlen(text) - 1), 0, "cut");
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        cr_assert_eq(note_lost(others[i], strlen(others[i])), 0, "%s", others[i]);
}
