// SPDX-License-Identifier: BSD-2-Clause
/* The engine's reports as lines of the log: a text for every kind and cause, one line for each report, and a limit on
 * their rate. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/monitor/error_log.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"

static struct fixture f;
static char path[] = "/tmp/pumice-reports-XXXXXX";
static int log_fd;

static void setup(void)
{
    struct log_levels all = {{LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG, LOG_LEVEL_DEBUG}};

    cr_assert(fixture_start(&f));
    log_fd = mkstemp(path);
    cr_assert_geq(log_fd, 0);
    unlink(path);
    cr_assert_geq(dup2(log_fd, STDERR_FILENO), 0);
    log_set_levels(&all);
    log_set_json(true);
}
static void teardown(void)
{
    close(log_fd);
    fixture_end(&f);
}
TestSuite(reports, .init = setup, .fini = teardown);

/* Returns all lines logged so far as an array, which the caller frees. */
static json_t *logged(void)
{
    static char text[1 << 20];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
    json_t *list = json_array();

    cr_assert_geq(n, 0);
    text[n] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_error_t err;
        json_t *o = json_loads(line, 0, &err);

        cr_assert_not_null(o, "no JSON: %s", line);
        json_array_append_new(list, o);
    }
    return list;
}

static struct report sample(enum report_kind kind, unsigned cause)
{
    return (struct report){.kind = (uint8_t)kind,
                           .cause = (uint8_t)cause,
                           .opcode = OP_WRITE_ONLY,
                           .has_packet = true,
                           .has_key = true,
                           .qpn = 0x1234,
                           .peer_qpn = 0x5678,
                           .psn = 4711,
                           .expected = 4712,
                           .key = 0x77700,
                           .va = 0x1234500,
                           .peer = {[10] = 0xff, 0xff, 10, 0, 0, 2}};
}

static void expect_words(const struct report *r, const char *words)
{
    char text[REPORT_TEXT_MAX];

    report_text(r, text);
    cr_expect(strstr(text, words), "no \"%s\" in: %s", words, text);
    if (r->kind == REPORT_ERROR && r->cause == ERROR_PROGRAM)
        return;
    cr_expect(strstr(text, "PSN 4711"), "no PSN in: %s", text);
    cr_expect(strstr(text, "key 0x77700, address 0x1234500"), "no key and address in: %s", text);
    cr_expect(strstr(text, "RDMA WRITE Only"), "no opcode in: %s", text);
    cr_expect_null(strstr(text, "?"), "%s", text);
}

static void expect_fields(const struct report *r, const char *event)
{
    json_t *o = report_json(r);

    cr_expect_str_eq(json_string_value(json_object_get(o, "event")), event);
    cr_expect_eq(json_integer_value(json_object_get(o, "psn")), 4711);
    cr_expect_str_eq(json_string_value(json_object_get(o, "key")), "0x77700");
    cr_expect_str_eq(json_string_value(json_object_get(o, "va")), "0x1234500");
    cr_expect_str_eq(json_string_value(json_object_get(o, "peer")), "::ffff:10.0.0.2");
    if (r->kind == REPORT_DROP || r->kind == REPORT_ERROR)
        cr_expect_not_null(json_object_get(o, "cause"), "%s has no cause", event);
    json_decref(o);
}

Test(reports, words_for_every_nak)
{
    static const struct {
        uint8_t syndrome;
        const char *words;
    } naks[] = {{NAK_PSN_SEQUENCE, "PSN sequence error"},
                {NAK_INVALID_REQUEST, "invalid request"},
                {NAK_REMOTE_ACCESS, "remote access error"},
                {NAK_REMOTE_OPERATION, "remote operational error"},
                {AETH_RNR | 3, "RNR (no receive request)"}};

    for (unsigned i = 0; i < sizeof(naks) / sizeof(naks[0]); i++) {
        struct report r = sample(REPORT_NAK_SENT, 0);
        r.syndrome = naks[i].syndrome;
        expect_words(&r, "sent NAK ");
        expect_words(&r, naks[i].words);
        expect_fields(&r, "nak_sent");
        r.kind = REPORT_NAK_RCVD;
        expect_words(&r, "got NAK ");
        expect_fields(&r, "nak_received");
    }
    struct report r = sample(REPORT_TIMEOUT, 0);
    r.retries_left = 5;
    expect_words(&r, "timeout: no answer; 5 retries left");
    expect_fields(&r, "timeout");
}

/* Each cause has its own text. */
Test(reports, words_for_every_cause)
{
    char seen[DROP_CAUSES + ERROR_CAUSES][REPORT_TEXT_MAX];
    unsigned n = 0;

    for (unsigned c = 0; c < DROP_CAUSES + ERROR_CAUSES; c++) {
        bool drop = c < DROP_CAUSES;
        struct report r = sample(drop ? REPORT_DROP : REPORT_ERROR, drop ? c : c - DROP_CAUSES);

        expect_words(&r, drop ? "packet dropped: " : "failed: ");
        expect_fields(&r, drop ? "drop" : "error");
        report_text(&r, seen[n]);
        for (unsigned i = 0; i < n; i++)
            cr_expect_str_neq(seen[i], seen[n]);
        n++;
    }
}

Test(reports, a_flood_is_a_few_lines_and_does_not_hide_others)
{
    struct pkt p = {.opcode = OP_WRITE_ONLY, .migreq = true, .pkey = PKEY_DEFAULT, .dest_qpn = 0x9999};
    struct rx_meta meta = {.src_gid = {[10] = 0xff, 0xff, 10, 0, 0, 9}};
    uint8_t bytes[16] = {OP_WRITE_ONLY, 0, 0xff, 0xff, 0, 0, 0x12, 0x34, 0, 0, 0, 42};
    unsigned unknown = 0, malformed = 0, left_out = 0;
    const json_t *o;
    json_t *list;
    size_t i;

    for (unsigned k = 0; k < 100; k++) {
        p.psn = k;
        engine_rx(f.device->engine, &p, &meta, 1);
    }
    error_log_take(f.device);
    error_log_undecoded(f.device, DROP_MALFORMED, meta.src_gid, bytes, sizeof(bytes));
    usleep(1100000);
    engine_rx(f.device->engine, &p, &meta, 1);
    error_log_take(f.device);
    list = logged();
    json_array_foreach (list, i, o) {
        const char *cause = json_string_value(json_object_get(o, "cause"));
        const char *text = json_string_value(json_object_get(o, "text"));

        cr_expect_str_eq(json_string_value(json_object_get(o, "area")), "packet");
        left_out += strstr(text, "more lines like the next were left out") != NULL;
        if (cause && strcmp(cause, "unknown_qp") == 0)
            unknown++;
        if (!cause || strcmp(cause, "malformed") != 0)
            continue;
        malformed++;
        cr_expect_eq(json_integer_value(json_object_get(o, "qpn")), 0x1234);
        cr_expect_eq(json_integer_value(json_object_get(o, "psn")), 42);
        cr_expect(strstr(text, "test0: from ::ffff:10.0.0.9 for QP 0x001234: packet dropped"), "%s", text);
    }
    cr_expect(unknown >= LOG_RATE_BURST + 1 && unknown <= 2 * LOG_RATE_BURST + 1, "%u lines", unknown);
    cr_expect_eq(left_out, 1);
    cr_expect_eq(malformed, 1);
    json_decref(list);
}

/* The log shows the fields of a packet with a wrong ICRC, key and address included. Another packet is too short for
 * that. */
Test(reports, dropped_packets)
{
    struct pkt p = {.opcode = OP_WRITE_ONLY,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = 0x77,
                    .psn = 4711,
                    .reth = {.va = 0x1234500, .rkey = 0x77700, .length = 4},
                    .payload = (const uint8_t *)"data",
                    .payload_len = 4};
    uint8_t from[16] = {[10] = 0xff, 0xff, 10, 0, 0, 9}, bytes[128];
    size_t len = pkt_encode(&p, bytes);
    json_t *list;

    memcpy(bytes + len, "data\xff\xff\xff\xff", 8);
    len += 8;
    error_log_undecoded(f.device, DROP_ICRC, from, bytes, len);
    error_log_undecoded(f.device, DROP_MALFORMED, from, bytes, 3);
    list = logged();
    cr_assert_eq(json_array_size(list), 2);
    const json_t *o = json_array_get(list, 0);
    cr_expect_str_eq(json_string_value(json_object_get(o, "cause")), "bad_icrc");
    cr_expect_eq(json_integer_value(json_object_get(o, "psn")), 4711);
    cr_expect_eq(json_integer_value(json_object_get(o, "qpn")), 0x77);
    cr_expect_str_eq(json_string_value(json_object_get(o, "key")), "0x77700");
    cr_expect_str_eq(json_string_value(json_object_get(o, "va")), "0x1234500");
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(list, 1), "cause")), "malformed");
    json_decref(list);
}
