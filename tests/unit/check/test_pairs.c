// SPDX-License-Identifier: BSD-2-Clause
/* The two ends of a connection, from the files of two processes: which ends belong together, and what does not fit. */
#include "src/cmd/check/pairs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/check/base/rule.h"

#define GID_A "0000000000000000000000000a000001"
#define GID_B "0000000000000000000000000a000002"

static char dir[] = "/tmp/test_pairs.XXXXXX";
static struct reports all;

static void setup(void)
{
    const char *bad;

    cr_assert_not_null(mkdtemp(dir));
    cr_assert(rule_choose("all", &bad));
}
static void teardown(void)
{
    char command[64];

    reports_free(&all);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}
TestSuite(check_pairs, .init = setup, .fini = teardown);

static void write_line(unsigned pid, const char *line)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%u", dir, pid);
    FILE *f = fopen(path, "a");
    cr_assert(f && fprintf(f, "%s\n", line) > 0 && fclose(f) == 0);
}

/* A connection of process 1 (GID A) or 2 (GID B). */
static void connection(unsigned pid, unsigned qpn, unsigned peer, unsigned mtu, unsigned rq_psn, unsigned sq_psn,
                       uint64_t since)
{
    char line[300];

    snprintf(line, sizeof(line), "Q\t5\t%u\t2\t%u\t%u\t%u\t4\t7\t%u\t4\t%lu\t0\t1\t0\t%s\t%s", qpn, peer, mtu, rq_psn,
             sq_psn, (unsigned long)since, pid == 1 ? GID_A : GID_B, pid == 1 ? GID_B : GID_A);
    write_line(pid, line);
}

/* All findings of both processes. */
static size_t compare(void)
{
    size_t n = 0;

    cr_assert_eq(reports_read(&all, dir), 0);
    cr_assert_eq(pairs_compare(&all), 0);
    for (size_t i = 0; i < all.n; i++)
        n += all.list[i].n_findings;
    return n;
}

Test(check_pairs, ends_that_fit)
{
    connection(1, 17, 18, 3, 100, 200, 1000);
    connection(2, 18, 17, 3, 200, 100, 1010);
    connection(2, 19, 44, 1, 0, 0, 1010); /* its peer is not in the run */
    cr_assert_eq(compare(), 0);
}

Test(check_pairs, all_differences_of_a_pair_are_one_finding)
{
    connection(1, 17, 18, 3, 100, 200, 1000);
    connection(2, 18, 17, 4, 201, 101, 1010);
    cr_assert_eq(compare(), 1);
    const char *text = all.list[0].findings[0].text;
    cr_expect(strstr(text, "path_mtu is 1024 and 2048"), "%s", text);
    cr_expect(strstr(text, "0x11 begins with PSN 200 (sq_psn), 0x12 expects 201 (rq_psn)"), "%s", text);
    cr_expect(strstr(text, "0x12 begins with PSN 101 (sq_psn), 0x11 expects 100 (rq_psn)"), "%s", text);
}

Test(check_pairs, numbers_that_are_used_again)
{
    /* Two connections one after the other, with the same numbers and other attributes. */
    connection(1, 17, 18, 3, 100, 200, 1000);
    connection(2, 18, 17, 3, 200, 100, 1010);
    connection(1, 17, 18, 4, 7, 8, 5000);
    connection(2, 18, 17, 4, 8, 7, 4990);
    /* A later line of a connection replaces the first. */
    connection(1, 30, 31, 3, 1, 0, 6000);
    connection(1, 30, 31, 3, 1, 2, 6000);
    connection(2, 31, 30, 3, 2, 1, 6001);
    cr_assert_eq(compare(), 0);
}

Test(check_pairs, a_peer_that_is_connected_to_another_one)
{
    connection(1, 17, 18, 3, 100, 200, 1000);
    connection(2, 18, 77, 3, 200, 100, 1010);
    cr_assert_eq(compare(), 1);
    cr_expect(strstr(all.list[0].findings[0].text, "QP 0x11 is connected to 0x12, but that one is connected to 0x4d"));
}

Test(check_pairs, why_a_request_was_refused)
{
    connection(1, 17, 18, 3, 100, 200, 1000);
    connection(2, 18, 17, 3, 200, 100, 1010);
    write_line(2, "R\t500\t5\t70\t4096\t100\t3\t0"); /* no right to read */
    write_line(2, "R\t500\t5\t71\t4096\t100\t7\t0");
    write_line(2, "R\t500\t6\t72\t4096\t100\t7\t0"); /* of another device */
    write_line(2, "U\t2000\t5\t71\t0");
    write_line(1, "T\t1\tx\t1");
    write_line(1, "T\t2\tx\t2");
    write_line(1, "T\t3\tx\t3");
    write_line(1, "T\t4\tx\t4");
    write_line(1, "E\t1500\t5\t17\t10\t4\t1\t70\t4096\t10\t1");
    write_line(1, "E\t1500\t5\t17\t10\t4\t2\t71\t4190\t10\t2");
    write_line(1, "E\t2500\t5\t17\t10\t4\t3\t71\t4096\t10\t3");
    write_line(1, "E\t1500\t5\t17\t10\t4\t4\t72\t4096\t10\t4"); /* not known */
    write_line(1, "E\t1500\t5\t99\t10\t4\t4\t70\t4096\t10\t4"); /* of an unknown queue pair */
    write_line(1, "E\t1500\t5\t17\t12\t4\t4\t70\t4096\t10\t4"); /* another error */
    cr_assert_eq(compare(), 3);
    cr_expect(strstr(all.list[0].findings[0].text, "rkey 0x46 was registered without IBV_ACCESS_REMOTE_READ"));
    cr_expect(strstr(all.list[0].findings[1].text, "it needs 10 bytes at 0x105e"));
    cr_expect_str_eq(all.list[0].findings[2].rule, "dead-key");
}
