// SPDX-License-Identifier: BSD-2-Clause
/* Memory of many QPs in few mappings (daemon/objects/qp/slab.h). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/objects/qp/slab.h"
#include "daemon/session/control_msg.h"

#define SLOTS 2000u
#define SHARED 5000u
#define OWN 100u

static const struct quota_owner nobody;
static struct slabs slabs;
static struct slab_slot slot[SLOTS];
static struct control_reply rp;

static void take(unsigned i, unsigned others, size_t shared)
{
    struct slab_need need = {.shared = shared, .own = OWN, .others = others};
    cr_assert_eq(slab_take(&slabs, &nobody, &need, &slot[i], &rp), 0);
}

static unsigned mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned n = 0;
    cr_assert_not_null(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, "pumice-qp") != NULL;
    fclose(f);
    return n;
}

Test(slab, many_qps_take_few_mappings)
{
    for (unsigned i = 0; i < SLOTS; i++)
        take(i, i, SHARED);
    cr_expect_lt(mappings(), 40, "%u QPs have %u mappings", SLOTS, mappings());
    for (unsigned i = 0; i < SLOTS; i++) {
        *(unsigned *)slab_shared(&slot[i]) = i;
        *(unsigned *)slab_own(&slot[i]) = ~i;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        cr_assert(*(unsigned *)slab_shared(&slot[i]) == i && *(unsigned *)slab_own(&slot[i]) == ~i);
    for (unsigned i = 0; i < SLOTS; i++)
        slab_release(&slot[i]);
    cr_expect_eq(mappings(), 0);
}

Test(slab, a_session_with_few_qps_has_no_free_slots)
{
    take(0, 0, SHARED);
    take(1, 1, SHARED);
    cr_expect_eq(mappings(), 2);
    cr_expect_eq(slab_offset(&slot[0]), 0);
    slab_release(&slot[0]);
    slab_release(&slot[0]);
    slab_release(&slot[1]);
    cr_expect_eq(mappings(), 0);
}

Test(slab, the_client_maps_the_same_memory)
{
    for (unsigned i = 0; i < 8; i++)
        take(i, 100, SHARED);
    cr_expect_eq(mappings(), 1);
    for (unsigned i = 0; i < 8; i++) {
        int fd = slab_descriptor(&slot[i]);
        cr_assert_geq(fd, 0);
        char *p = mmap(NULL, slab_shared_size(&slot[i]), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                       (off_t)slab_offset(&slot[i]));
        cr_assert_neq(p, MAP_FAILED);
        close(fd);
        p[0] = (char)(i + 1);
        cr_expect_eq(*(char *)slab_shared(&slot[i]), (char)(i + 1));
        munmap(p, slab_shared_size(&slot[i]));
    }
}

Test(slab, a_slot_that_is_taken_again_has_zeros)
{
    for (unsigned i = 0; i < 50; i++) {
        take(i, 100, SHARED);
        memset(slab_shared(&slot[i]), 0xff, SHARED);
        memset(slab_own(&slot[i]), 0xff, OWN);
    }
    for (unsigned i = 0; i < 50; i += 2)
        slab_release(&slot[i]);
    for (unsigned i = 0; i < 50; i += 2) {
        take(i, 100, SHARED);
        for (unsigned at = 0; at < SHARED; at++)
            cr_assert_eq(((char *)slab_shared(&slot[i]))[at], 0);
        for (unsigned at = 0; at < OWN; at++)
            cr_assert_eq(((char *)slab_own(&slot[i]))[at], 0);
    }
    for (unsigned i = 1; i < 50; i += 2)
        cr_expect_eq(*(unsigned char *)slab_shared(&slot[i]), 0xff, "the others keep theirs");
    cr_expect_eq(mappings(), 1);
}

Test(slab, sizes_do_not_mix)
{
    for (unsigned i = 0; i < 100; i++)
        take(i, 100, 4096 * (i + 1));
    for (unsigned i = 0; i < 100; i++) {
        cr_expect_eq(slab_shared_size(&slot[i]), 4096 * (i + 1));
        memset(slab_shared(&slot[i]), (int)i, 4096 * (i + 1));
    }
    for (unsigned i = 0; i < 100; i++) {
        for (size_t at = 0; at < slab_shared_size(&slot[i]); at += 4096)
            cr_assert_eq(((unsigned char *)slab_shared(&slot[i]))[at], i);
        slab_release(&slot[i]);
    }
    cr_expect_eq(mappings(), 0);
}

Test(slab, a_qp_without_a_session_is_alone)
{
    struct slab_need need = {.shared = SHARED, .own = OWN, .others = 1000};
    cr_assert_eq(slab_take(NULL, &nobody, &need, &slot[0], &rp), 0);
    cr_assert_eq(slab_take(NULL, &nobody, &need, &slot[1], &rp), 0);
    cr_expect_eq(mappings(), 2);
    slab_release(&slot[0]);
    slab_release(&slot[1]);
}

/* A user whose limit has no room for a whole slab still gets the QP. */
Test(slab, the_limit_of_the_user_holds)
{
    struct quota q;
    struct quota_limits limits;
    uint64_t capacity[QUOTA_KINDS];
    uid_t uid = geteuid() + 1;
    for (unsigned k = 0; k < QUOTA_KINDS; k++)
        capacity[k] = 1u << 30;
    cr_assert_eq(quota_limits_parse("bytes=40K", &limits), 0);
    quota_init(&q, &limits, capacity);
    struct quota_owner owner = {&q, uid, 0};
    struct slab_need need = {.shared = 4096, .own = 4096, .others = 1000};
    unsigned n = 0;
    while (slab_take(&slabs, &owner, &need, &slot[n], &rp) == 0)
        n++;
    cr_expect_eq(n, 5, "%u QPs of 8 KiB", n);
    cr_expect_eq(quota_total(&q, QUOTA_DESCRIPTORS), 0);
    while (n)
        slab_release(&slot[--n]);
    cr_expect_eq(quota_total(&q, QUOTA_BYTES), 0);
    for (unsigned i = 0; i < 3; i++) {
        quota_limits_parse("", &limits);
        quota_set_limits(&q, &limits);
        cr_assert_eq(slab_take(&slabs, &owner, &need, &slot[i], &rp), 0);
    }
    cr_expect_eq(quota_total(&q, QUOTA_DESCRIPTORS), 1, "the slab keeps its descriptor");
    for (unsigned i = 0; i < 3; i++)
        slab_release(&slot[i]);
    cr_expect(quota_total(&q, QUOTA_BYTES) == 0 && quota_total(&q, QUOTA_DESCRIPTORS) == 0);
    quota_fini(&q);
}
