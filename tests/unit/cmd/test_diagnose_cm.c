// SPDX-License-Identifier: BSD-2-Clause
/* pumice why --connections: each reason, from rows as the daemon writes them (daemon/cm/cm_status.h). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "src/cmd/inspect/diagnose_cm.h"

#define TO "'remote': '127.0.0.2:7471', 'space': 'TCP', 'retries': 3"
#define REJ(n) "'event': 'REJECTED', 'reject': " #n ", " TO
/* Two daemons. The second one has the address 127.0.0.2, and a listener at another port. */
#define HOSTS                                                                                                          \
    "[{'status': {'devices': [{'gids': [{'address': '127.0.0.1'}]}]}}, {'status': {'devices': [{'gids': [{'address': " \
    "'127.0.0.2'}]}], 'cm': {'listeners': [{'address': '0.0.0.0', 'port': 18515, 'space': 'TCP', 'comm': "             \
    "'ib_send_bw', "                                                                                                   \
    "'pid': 17}, {'address': '127.0.0.9', 'port': 5, 'space': 'TCP', 'pid': 18}]}}}]"

typedef const char *(*explain)(const json_t *row, const json_t *hosts, char text[CM_REASON_MAX]);

static const char *listener(const json_t *row, const json_t *hosts, char text[CM_REASON_MAX])
{
    (void)hosts;
    return diagnose_listener(row, text);
}

/* Apostrophes stand for quotation marks. hosts NULL: only this daemon was asked, which is none of the above. */
static const struct known {
    explain explain;
    const char *row, *hosts, *code, *says;
} all[] = {
    {diagnose_failure, REJ(8), NULL, "rejected",
     "127.0.0.2 sent a REJ, reason 8 (invalid service ID): nobody listens on port 7471 of 127.0.0.2 (port space TCP)."},
    {diagnose_failure, REJ(8), HOSTS, "rejected", "Listeners there: port 18515 (TCP, ib_send_bw, pid 17)."},
    {diagnose_failure, REJ(8) ", 'remote': '127.0.0.1:7471'", HOSTS, "rejected", "No program that you may see listens"},
    {diagnose_failure, REJ(28), NULL, "rejected", "the program at port 7471 called rdma_reject"},
    {diagnose_failure, REJ(10), NULL, "rejected", "time wait. Try again"},
    {diagnose_failure, REJ(4) ", 'sent_reject': true", NULL, "rejected", "This host sent a REJ, reason 4 ("},
    {diagnose_failure, REJ(77), NULL, "rejected", "reason 77 ("},
    {diagnose_failure, "'event': 'UNREACHABLE', 'status': -110, " TO, NULL, "unreachable",
     "The REQ was sent to 127.0.0.2:7471 4 times without an answer. Is there a daemon or a RoCE NIC at 127.0.0.2 "
     "(pumice "
     "ping 127.0.0.2)?"},
    {diagnose_failure, "'event': 'UNREACHABLE', " TO ", 'remote': '[fd00::1]:7471', 'retries': 0", NULL, "unreachable",
     "sent to [fd00::1]:7471 once without an answer. Is there a daemon or a RoCE NIC at fd00::1 (pumice ping "
     "fd00::1)?"},
    {diagnose_failure, "'event': 'UNREACHABLE', 'status': -110, " TO, HOSTS, "unreachable", "so packets get lost"},
    {diagnose_failure, "'event': 'UNREACHABLE', 'answered': true, " TO, NULL, "unreachable", "The REP was sent"},
    {diagnose_failure, "'event': 'UNREACHABLE', " TO ", 'space': 'UDP'", NULL, "unreachable", "(SIDR)"},
    {diagnose_failure, "'event': 'ADDR_ERROR', 'status': -101, " TO, NULL, "address",
     "No device of the daemon reaches 127.0.0.2"},
    {diagnose_failure, "'event': 'ADDR_ERROR', 'status': -19, 'local': '10.9.9.9:0', " TO, NULL, "address",
     "local address 10.9.9.9:0"},
    {diagnose_failure, "'event': 'ADDR_ERROR', 'status': -110, 'remote': null", NULL, "address", "was not resolved"},
    {diagnose_failure, "'event': 'CONNECT_ERROR', 'status': -22", NULL, "error", "CONNECT_ERROR: Invalid argument"},
    {diagnose_connection, "'state': 'REQ_SENT', " TO, NULL, "req", "4 times without an answer"},
    {diagnose_connection, "'state': 'REP_SENT', " TO, NULL, "rep", "the REP was sent to 127.0.0.2:7471 4 times"},
    {diagnose_connection, "'state': 'DREQ_SENT', " TO, NULL, "dreq", "the DREP did not come yet"},
    {diagnose_connection, "'state': 'ESTABLISHED', " TO, NULL, "connected", "connected to 127.0.0.2:7471"},
    {diagnose_connection, "'state': 'IDLE', 'remote': null", NULL, "program", "rdma_bind_addr or rdma_resolve_addr"},
    {diagnose_connection, "'state': 'REQ_RECEIVED', " TO, NULL, "program", "calls rdma_accept or rdma_reject"},
    {diagnose_connection, "'state': 'DISCONNECTED', " TO ", 'reject': 28", NULL, "rejected", "reason 28"},
    {diagnose_connection, "'state': 'TIME_WAIT', " TO, NULL, "over", "It is in TIME_WAIT"},
    {listener, "'backlog': 4, 'waiting': 4", NULL, "full", "Its backlog is full: 4 requests wait"},
    {listener, "'backlog': 4, 'waiting': 3", NULL, "program", "3 requests wait"},
    {listener, "'backlog': 4, 'waiting': 0", NULL, "ready", "It waits for requests"},
};

static json_t *document(const char *begin, const char *members, const char *end)
{
    char text[2048];
    json_error_t err;
    json_t *o;

    snprintf(text, sizeof(text), "%s%s%s", begin, members, end);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    o = json_loads(text, 0, &err);
    cr_assert_not_null(o, "%s: %s", text, err.text);
    return o;
}

Test(diagnose_cm, each_row_gets_its_reason)
{
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        json_t *row = document("{", all[i].row, "}"), *hosts = document("", all[i].hosts ? all[i].hosts : "[]", "");
        char text[CM_REASON_MAX];

        cr_expect_str_eq(all[i].explain(row, hosts, text), all[i].code, "%s", all[i].row);
        cr_expect_not_null(strstr(text, all[i].says), "%s: \"%s\" does not say \"%s\"", all[i].row, text, all[i].says);
        json_decref(row);
        json_decref(hosts);
    }
}

Test(diagnose_cm, rows_of_another_release_are_no_trouble)
{
    json_t *row = document("{", "'event': 7, 'state': [], 'remote': 'x', 'reject': 'y'", "}");
    char text[CM_REASON_MAX];

    diagnose_failure(row, NULL, text);
    diagnose_connection(row, NULL, text);
    diagnose_listener(row, text);
    json_decref(row);
}
