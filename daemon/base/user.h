// SPDX-License-Identifier: BSD-2-Clause
/* The user for whom the daemon does something: which objects the user may see, and whether the user may change what
 * concerns everybody. The daemon's own user and root administer it: they see and may do everything. Any other user sees
 * the objects of its own processes only. docs/security.md has the promise. */
#ifndef PUMICE_DAEMON_BASE_USER_H
#define PUMICE_DAEMON_BASE_USER_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

struct user {
    uid_t uid; /* not valid for USER_UNKNOWN */
    bool known; /* false: nobody knows who it is, so no object is its own */
    bool administers;
};

#define USER_UNKNOWN ((struct user){.known = false})

/* uid: from the kernel, as SO_PEERCRED. */
static inline struct user user_of(uid_t uid)
{
    return (struct user){.uid = uid, .known = true, .administers = uid == geteuid() || uid == 0};
}

/* May the user see the objects of a process of this uid? */
static inline bool user_sees(const struct user *u, uid_t owner)
{
    return u->administers || (u->known && u->uid == owner);
}

#endif
