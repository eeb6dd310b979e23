// SPDX-License-Identifier: BSD-2-Clause
/* Memory that the daemon shares with a client. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/session/segment.h"

Test(segment, a_client_can_not_shrink_a_segment)
{
    struct segment s;
    int fd;

    cr_assert_eq(segment_create(&s, NULL, "test", 100, NULL), 0);
    cr_assert_eq(s.size, 4096);
    fd = segment_take_fd(&s);
    cr_assert_eq(s.fd, -1);
    cr_assert_neq(ftruncate(fd, 0), 0);
    cr_assert_neq(ftruncate(fd, 8192), 0);
    cr_assert_neq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0, "nor add seals of its own");
    ((char *)s.p)[4095] = 1;
    close(fd);
    segment_destroy(&s);
}
