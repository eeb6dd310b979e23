// SPDX-License-Identifier: BSD-2-Clause
/* src/cmd: recordings as text (recording/decision_text.h, recording.h). What is written is read again, and what is wrong
 * is refused with a sentence. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/recording/recording.h"
#include "wire/cm_msg.h"
#include "wire/opcode.h"

Test(recording, lines_are_read_as_they_were_written)
{
    static const struct host_decision decisions[] = {
        {3,
         {{.program = 7,
           .qp = 2,
           .life = 1,
           .stream = PM_STREAM_REQUEST,
           .number = INT64_MAX,
           .attempt = UINT32_MAX,
           .opcode = OP_SEND_ONLY},
          .strike = PM_STRIKE_LOST}},
        {0,
         {{.program = UINT32_MAX,
           .qp = UINT32_MAX,
           .stream = PM_STREAM_RESPONSE,
           .attempt = 1,
           .device = 15,
           .opcode = OP_READ_RESP_LAST},
          .strike = PM_STRIKE_DAMAGED,
          .random = INT64_MAX,
          .delay_ns = 30000000000,
          .marked = 1}},
        {253,
         {{.stream = PM_STREAM_CM,
           .number = 5,
           .attempt = 1,
           .message = CM_SIDR_REP,
           .opcode = OP_SERVICE_UD | OP_SEND_ONLY},
          .strike = PM_STRIKE_TWICE}},
        {1,
         {{.stream = PM_STREAM_PROBE, .number = 5, .attempt = 1, .opcode = OP_SERVICE_UD | OP_SEND_ONLY},
          .delay_ns = 1}},
        {1,
         {{.program = 1, .qp = 1, .stream = PM_STREAM_CNP, .number = 1, .attempt = 9, .opcode = OP_CNP}, .marked = 1}},
        {1,
         {{.program = 1, .qp = 1, .stream = PM_STREAM_REQUEST, .number = 1, .attempt = 9, .opcode = 0xff},
          .marked = 1}},
    };

    for (unsigned i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
        char line[DECISION_LINE_MAX], sentence[DECISION_LINE_MAX], why[DECISION_WHY_MAX];
        struct host_decision got;

        decision_to_line(&decisions[i], line);
        decision_to_sentence(&decisions[i], sentence);
        cr_expect(strlen(sentence) > 20);
        cr_assert(decision_from_line(line, strlen(line), &got, why), "%s: %s", line, why);
        cr_expect_eq(memcmp(&got, &decisions[i], sizeof(got)), 0, "%s", line);
    }
}

Test(recording, each_opcode_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < 256; i++) {
        struct host_decision d = {0,
                                  {{.program = 1, .qp = 1, .attempt = 1, .number = 1, .opcode = (uint8_t)i},
                                   .strike = 1}},
                             got;
        char line[DECISION_LINE_MAX], why[DECISION_WHY_MAX];

        if (i == OP_CNP_ALT)
            continue;
        decision_to_line(&d, line);
        cr_expect(decision_from_line(line, strlen(line), &got, why) && got.decision.packet.opcode == i, "%s: %s", line,
                  why);
    }
}

#define START "{\"host\": 0, \"device\": 0, \"program\": 1, \"qp\": 1, \"life\": 0, "
#define PACKET "\"packet\": 1, \"attempt\": 1, \"opcode\": \"RC SEND Only\""

Test(recording, wrong_lines_are_refused)
{
    static const struct {
        const char *line, *why;
    } lines[] = {
        {"", "no JSON object"},
        {"[1]", "no JSON object"},
        {"{\"host\": 0", "no JSON object"},
        {"{}", "\"host\""},
        {"{\"host\": 254}", "from 0 to 253"},
        {"{\"host\": -1}", "from 0 to 253"},
        {"{\"host\": 1.5}", "whole number"},
        {"{\"host\": 0, \"host\": 1}", "duplicate"},
        {"{\"host\": 99999999999999999999}", "big integer"},
        {START PACKET ", \"fault\": \"lost\"}", "\"stream\""},
        {START "\"stream\": \"requests\", " PACKET ", \"fault\": \"lost\"}", "\"stream\""},
        {START "\"stream\": \"request\", " PACKET "}", "has none of"},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"eaten\"}", "\"fault\""},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"damaged\"}", "\"random\""},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"lost\", \"random\": 1}", "does not belong"},
        {START "\"stream\": \"request\", " PACKET ", \"delay_ns\": 30000000001}", "\"delay_ns\""},
        {START "\"stream\": \"request\", " PACKET ", \"marked\": 1}", "\"marked\""},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"lost\", \"colour\": 1}", "does not belong"},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"lost\"} {}", "end of file"},
        {START "\"stream\": \"arrival\", " PACKET ", \"fault\": \"lost\"}", "belongs to"},
        {START "\"stream\": \"request\", " PACKET ", \"fault\": \"refused\"}", "belongs to"},
        {START "\"stream\": \"cm\", " PACKET ", \"message\": \"REQUEST\", \"fault\": \"lost\"}", "\"message\""},
        {"{\"host\": 0, \"device\": 16, \"stream\": \"probe\", " PACKET ", \"fault\": \"lost\"}", "\"device\""},
        {START
         "\"stream\": \"request\", \"packet\": 1, \"attempt\": 0, \"opcode\": \"RC SEND Only\", \"fault\": \"lost\"}",
         "\"attempt\""},
        {START
         "\"stream\": \"request\", \"packet\": 1, \"attempt\": 1, \"opcode\": \"RC JUMP Only\", \"fault\": \"lost\"}",
         "\"opcode\""},
    };

    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct host_decision d;
        char why[DECISION_WHY_MAX];

        cr_expect_not(decision_from_line(lines[i].line, strlen(lines[i].line), &d, why), "%s", lines[i].line);
        cr_expect_not_null(strstr(why, lines[i].why), "%s: %s", lines[i].line, why);
    }
}

Test(recording, files_of_decisions)
{
    static const char one[] = START "\"stream\": \"request\", " PACKET ", \"fault\": \"lost\"}";
    char text[4096], why[DECISION_WHY_MAX];
    struct recording r = {0};

    snprintf(text, sizeof(text),
             "# a comment\n\n%s\n{\"host\": 0, \"device\": 0, \"stream\": \"probe\", " PACKET ", \"fault\": \"lost\"}",
             one);
    cr_assert(recording_parse_decisions(text, strlen(text), &r, why), "%s", why);
    cr_assert_eq(r.n, 2);
    cr_expect_eq(r.decision[0].decision.packet.stream, PM_STREAM_PROBE, "sorted");
    recording_free(&r);
    cr_expect(recording_parse_decisions("", 0, &r, why));
    cr_expect_eq(r.n, 0);
    recording_free(&r);

    snprintf(text, sizeof(text), "%s\nnonsense\n", one);
    cr_expect_not(recording_parse_decisions(text, strlen(text), &r, why));
    cr_expect_not_null(strstr(why, "line 2: it is no JSON object"), "%s", why);
    recording_free(&r);
    snprintf(text, sizeof(text), "%s\n%s\n", one, one);
    cr_expect_not(recording_parse_decisions(text, strlen(text), &r, why));
    cr_expect_not_null(strstr(why, "second decision about a packet"), "%s", why);
    recording_free(&r);
}

#define RUN(members)                                                                                                   \
    "{\"pumice\": \"0.1.0\", \"system\": \"Linux\", \"directory\": \"/\", \"abi\": 9, \"hosts\": 1, \"exit_code\": "   \
    "1, "                                                                                                              \
    "\"decisions\": 0, \"unrecorded\": 0, \"program\": {\"path\": \"\", \"hash\": \"\"}, " members "}"
#define FORMAT "\"format\": \"pumice recording\", \"version\": 1, "

Test(recording, wrong_runs_are_refused)
{
    static const struct {
        const char *text, *why; /* why NULL: it is right */
    } runs[] = {
        {RUN(FORMAT "\"options\": [\"--hosts=2\"], \"command\": [\"ls\"]"), NULL},
        {RUN("\"options\": [], \"command\": [\"ls\"]"), "\"format\""},
        {RUN("\"format\": \"pumice recording\", \"options\": [], \"command\": [\"ls\"]"), "\"version\" is not"},
        {RUN("\"format\": \"pumice recording\", \"version\": 2, \"options\": [], \"command\": [\"ls\"]"),
         "another version"},
        {RUN(FORMAT "\"options\": [1], \"command\": [\"ls\"]"), "\"options\""},
        {RUN(FORMAT "\"options\": [], \"command\": []"), "\"command\""},
        {RUN(FORMAT "\"options\": [], \"command\": \"ls\""), "\"command\""},
        {RUN(FORMAT "\"options\": [], \"command\": [\"l\\u0000s\"]"), "line 1"},
        {"{" FORMAT "\"options\": [], \"command\": [\"ls\"]}", "is not a text"},
        {"{\n\"format\": }", "line 2"},
        {"[]", "\"format\""},
        {"", "line 1"},
    };

    for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        char why[DECISION_WHY_MAX] = "";
        json_t *run = recording_parse_run(runs[i].text, strlen(runs[i].text), why);

        cr_expect_eq(run != NULL, runs[i].why == NULL, "%s: %s", runs[i].text, why);
        cr_expect(!runs[i].why || strstr(why, runs[i].why), "%s: %s", runs[i].text, why);
        json_decref(run);
    }
}
