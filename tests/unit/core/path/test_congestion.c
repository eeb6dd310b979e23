// SPDX-License-Identifier: BSD-2-Clause
/* How the congestion window of a destination judges losses by the round trips before them. */
#include <criterion/criterion.h>

#include "daemon/core/path/congestion.h"

#define US 1000u
#define PACKET 4352u
#define WINDOW (32 * PACKET)
#define MOST CWND_CAPACITY_MOST

static const struct engine_config cfg = {.peer_window_bytes = 3u << 20, .first_window_bytes = 16 * PACKET};
static struct congestion c;
static uint64_t now;

static void setup(void)
{
    congestion_init(&c, &cfg);
    c.cwnd = WINDOW;
    now = 1000 * US;
}
TestSuite(congestion, .init = setup);

/* n windows are acknowledged, one in each round trip of so many microseconds. */
static void rounds(unsigned n, uint64_t us)
{
    for (unsigned i = 0; i < n; i++) {
        now += us * US;
        congestion_sample(&c, us * US, now);
        congestion_progress(&c, &cfg, MOST, c.cwnd, 0, PACKET,
                            now); /* nothing is in flight, so the window does not grow */
    }
}

static void lose(void)
{
    congestion_loss(&c, &cfg, MOST, c.cwnd, PACKET, now);
}

Test(congestion, round_trips_that_grow_show_a_queue)
{
    rounds(50, 20);
    rounds(8, 60);
    lose();
    cr_assert(c.queue);
    cr_assert_lt(c.cwnd, WINDOW, "the window is still %lu bytes", (unsigned long)c.cwnd);
}

Test(congestion, losses_without_a_queue_keep_the_window)
{
    for (unsigned i = 0; i < 2 * CONGESTION_RANDOM; i++) {
        rounds(10, 20);
        lose();
    }
    cr_assert_not(c.queue);
    cr_assert(congestion_is_random(&c));
    cr_assert_eq(c.cwnd, WINDOW);
}

/* The window after losses that look random, if the receiver reports what is missing. It was larger before. Between two
 * losses are some round trips, each with so many bytes. */
static uint64_t window_after_random_losses(unsigned round_trips, uint64_t us, uint64_t bytes)
{
    c.cwnd = 2u << 20;
    for (unsigned i = 0; i < 8 * CONGESTION_RANDOM; i++) {
        for (unsigned k = 0; k < round_trips; k++) {
            now += us * US;
            congestion_sample(&c, us * US, now);
            congestion_progress(&c, &cfg, CWND_CAPACITY_SELECTIVE, bytes, c.cwnd, PACKET, now);
        }
        congestion_loss(&c, &cfg, CWND_CAPACITY_SELECTIVE, c.cwnd, PACKET, now);
    }
    cr_assert_not(c.queue);
    return c.cwnd;
}

Test(congestion, frequent_random_losses_leave_a_window_that_fits_in_a_cache)
{
    cr_assert_eq(window_after_random_losses(2, 100, 400000), CWND_RANDOM, "%lu bytes", (unsigned long)c.cwnd);
}

Test(congestion, seldom_random_losses_leave_a_large_window)
{
    cr_assert_eq(window_after_random_losses(20, 100, 400000), CWND_CAPACITY_SELECTIVE, "%lu bytes",
                 (unsigned long)c.cwnd);
}

Test(congestion, random_losses_leave_what_a_long_path_carries)
{
    cr_assert_eq(window_after_random_losses(2, 1000, 900000), 900000, "%lu bytes", (unsigned long)c.cwnd);
}

/* A host answers sometimes in 15, sometimes in 90 microseconds, because its daemon sleeps between packets. Then it does so for a while
 * with hardly a difference. */
Test(congestion, a_host_that_sleeps_is_no_queue)
{
    for (unsigned i = 0; i < 40; i++)
        rounds(1, i % 2 ? 90 : 15);
    for (unsigned i = 0; i < 2 * CONGESTION_RANDOM; i++) {
        rounds(10, 85);
        lose();
    }
    cr_assert_not(c.queue);
    cr_assert_eq(c.cwnd, WINDOW, "the window became %lu bytes", (unsigned long)c.cwnd);
}

/* In the end, round trips that stay long are a queue again. */
Test(congestion, the_difference_between_round_trips_is_forgotten)
{
    for (unsigned i = 0; i < 40; i++)
        rounds(1, i % 2 ? 90 : 15);
    rounds(50, 15);
    rounds(1000, 15);
    rounds(8, 85);
    lose();
    cr_assert(c.queue);
}

Test(congestion, silence_leaves_two_packets)
{
    rounds(50, 20);
    congestion_timeout(&c, &cfg, MOST, PACKET, now);
    cr_assert_eq(c.cwnd, CWND_LEAST_PKTS * PACKET);
}

Test(congestion, further_timeouts_of_an_outage_leave_the_end_of_slow_start)
{
    rounds(50, 20);
    congestion_timeout(&c, &cfg, MOST, PACKET, now += 1000 * US);
    uint64_t first = c.ssthresh;
    congestion_timeout(&c, &cfg, MOST, PACKET, now += 2000 * US);
    cr_assert_eq(c.ssthresh, first, "%lu bytes", (unsigned long)c.ssthresh);
    cr_assert_gt(first, CWND_LEAST_PKTS * PACKET);
}

Test(congestion, a_late_answer_restores_the_window)
{
    rounds(50, 20);
    congestion_suspect(&c);
    congestion_timeout(&c, &cfg, MOST, PACKET, now);
    congestion_undo(&c);
    cr_assert_eq(c.cwnd, WINDOW);
}

/* After round trips that show a queue, a loss makes the window small. `packets` are sent again. */
static void lose_what_may_be_late(unsigned packets, unsigned round_trips)
{
    rounds(round_trips, 60);
    congestion_suspect_late(&c, now);
    lose();
    congestion_resent(&c, packets);
}
static void came_twice(uint32_t packets)
{
    congestion_unneeded(&c, packets, true, now);
}

Test(congestion, packets_that_were_all_late_restore_the_window)
{
    rounds(50, 20);
    lose_what_may_be_late(0, 8);
    came_twice(1);
    cr_assert_lt(c.cwnd, WINDOW, "it was sent again before");
    congestion_resent(&c, 3);
    lose_what_may_be_late(1, 2); /* soon after */
    came_twice(3);
    cr_assert_lt(c.cwnd, WINDOW, "one may still be lost");
    came_twice(1);
    cr_assert_eq(c.cwnd, WINDOW);
    c.cwnd = WINDOW / 2;
    came_twice(1);
    cr_assert_eq(c.cwnd, WINDOW / 2, "once");
}

Test(congestion, a_packet_that_is_still_to_be_sent_again_may_be_lost)
{
    rounds(50, 20);
    lose_what_may_be_late(1, 8);
    congestion_unneeded(&c, 1, false, now);
    cr_assert_lt(c.cwnd, WINDOW);
}

/* In eight round trips nothing shows that the second packet of the first loss was late. Then it may be the one that comes twice. */
Test(congestion, a_packet_that_is_not_late_is_lost)
{
    rounds(50, 20);
    lose_what_may_be_late(2, 8);
    came_twice(1);
    rounds(8, 60);
    uint64_t reduced = c.cwnd;
    lose_what_may_be_late(1, 2);
    came_twice(1);
    cr_assert_lt(c.cwnd, reduced, "%lu bytes", (unsigned long)c.cwnd);
    rounds(3, 60);
    came_twice(1);
    cr_assert_eq(c.cwnd, reduced, "%lu bytes", (unsigned long)c.cwnd);
    cr_assert_lt(reduced, WINDOW);
}

Test(congestion, a_late_answer_to_a_probe_does_not_restore_what_may_be_late)
{
    rounds(50, 20);
    lose_what_may_be_late(2, 8);
    uint64_t reduced = c.cwnd;
    congestion_suspect(&c);
    congestion_timeout(&c, &cfg, MOST, PACKET, now);
    congestion_undo(&c);
    cr_assert_eq(c.cwnd, reduced, "%lu bytes", (unsigned long)c.cwnd);
}

Test(congestion, a_loss_after_a_probe_is_not_undone_by_its_answer)
{
    rounds(50, 20);
    congestion_suspect(&c);
    lose_what_may_be_late(1, 8);
    congestion_undo(&c);
    cr_assert_lt(c.cwnd, WINDOW, "%lu bytes", (unsigned long)c.cwnd);
}

/* The growth of the window in a round trip of so many microseconds, after a loss that reduced it. */
static uint64_t growth(uint64_t us)
{
    setup();
    c.cwnd = 64 * PACKET;
    rounds(50, us);
    rounds(8, 3 * us);
    lose();
    uint64_t before = c.cwnd;
    for (unsigned i = 0; i < 10; i++) {
        now += us * US;
        congestion_sample(&c, us * US, now);
        congestion_progress(&c, &cfg, MOST, c.cwnd, c.cwnd, 1280, now);
    }
    return (c.cwnd - before) / 10;
}

/* A path shared with TCP: it grows by a packet in each round trip. */
Test(congestion, the_window_grows_more_in_long_round_trips)
{
    uint64_t fast = growth(50), slow = growth(5000);

    cr_expect(fast > 384 && fast < 600, "%lu bytes", (unsigned long)fast);
    cr_expect(slow > 1100 && slow < 1900, "%lu bytes", (unsigned long)slow);
}
