// SPDX-License-Identifier: BSD-2-Clause
/* The directory tree beside the control socket, where other users may have prepared links. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon/monitor/sysfs.h"
#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static char dir[] = "/tmp/pumice-sysfs-XXXXXX", socket_path[64], tree[80], other[80];

static void setup(void)
{
    cr_assert(fixture_start(&f));
    cr_assert_not_null(mkdtemp(dir));
    snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
    snprintf(tree, sizeof(tree), "%s" PM_SYSFS_SUFFIX, socket_path);
    snprintf(other, sizeof(other), "%s/other", dir);
}

static void teardown(void)
{
    char command[128];

    fixture_end(&f);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}
TestSuite(sysfs, .init = setup, .fini = teardown);

static bool exists(const char *root, const char *name)
{
    char path[256];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return lstat(path, &st) == 0;
}

/* Is it a directory without files? */
static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    cr_assert_not_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n == 2;
}

Test(sysfs, a_tree_is_made_and_removed)
{
    sysfs_create(socket_path, &f.device, 1);
    cr_expect(exists(tree, "infiniband/test0/node_type"));
    cr_expect(exists(tree, "infiniband/test0/ports/1/gid_attrs/types/0"));
    sysfs_create(socket_path, &f.device, 1);
    cr_expect(exists(tree, "infiniband_verbs/uverbs_test0/ibdev"), "made again in place of the old one");
    sysfs_remove(socket_path);
    cr_expect(is_empty(dir));
}

Test(sysfs, a_link_in_place_of_the_tree_is_replaced)
{
    cr_assert_eq(mkdir(other, 0755), 0);
    cr_assert_eq(symlink(other, tree), 0);
    sysfs_create(socket_path, &f.device, 1);
    cr_expect(is_empty(other));
    cr_expect(exists(tree, "infiniband/test0/node_type"));
}

/* A link in the tree of a daemon that no longer runs. */
Test(sysfs, no_link_is_followed_when_a_tree_is_removed)
{
    char link[256], file[256];

    cr_assert_eq(mkdir(other, 0755), 0);
    snprintf(file, sizeof(file), "%s/file", other);
    fclose(fopen(file, "w"));
    sysfs_create(socket_path, &f.device, 1);
    snprintf(link, sizeof(link), "%s/infiniband/link", tree);
    cr_assert_eq(symlink(other, link), 0);
    sysfs_remove(socket_path);
    cr_expect(exists(other, "file"));
    cr_expect_not(exists(dir, "s" PM_SYSFS_SUFFIX));
}

/* The directory of the socket belongs to another user, who swaps the tree while the daemon runs. */
Test(sysfs, an_update_does_not_follow_a_link)
{
    char moved[128], gid[256];

    sysfs_create(socket_path, &f.device, 1);
    snprintf(moved, sizeof(moved), "%s/moved", dir);
    cr_assert_eq(rename(tree, moved), 0);
    cr_assert_eq(symlink(moved, tree), 0);
    snprintf(gid, sizeof(gid), "%s/infiniband/test0/ports/1/gids/0", moved);
    cr_assert_eq(unlink(gid), 0);
    sysfs_update_gids(f.device);
    cr_expect_not(exists(moved, "infiniband/test0/ports/1/gids/0"));
    cr_assert_eq(unlink(tree), 0);
    cr_assert_eq(rename(moved, tree), 0);
    sysfs_update_gids(f.device);
    cr_expect(exists(tree, "infiniband/test0/ports/1/gids/0"), "the true tree");
}

Test(sysfs, a_tree_that_others_may_write_to_is_not_used)
{
    char gid[256];

    sysfs_create(socket_path, &f.device, 1);
    snprintf(gid, sizeof(gid), "%s/infiniband/test0/ports/1/gids/0", tree);
    cr_assert_eq(unlink(gid), 0);
    cr_assert_eq(chmod(tree, 0777), 0);
    sysfs_update_gids(f.device);
    cr_expect_not(exists(tree, "infiniband/test0/ports/1/gids/0"));
    if (geteuid() != 0)
        return;
    cr_assert_eq(chmod(tree, 0755), 0);
    cr_assert_eq(chown(tree, 65534, 65534), 0);
    sysfs_update_gids(f.device);
    cr_expect_not(exists(tree, "infiniband/test0/ports/1/gids/0"), "a tree of another user");
}
