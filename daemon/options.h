// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon was told to do: defaults, then the configuration file, then the command line; each replaces what came
 * before.
 *
 * Every setting has one name, the same in the file and, with two dashes, on the command line, and one parser,
 * options_set, so that both take the same values and complain with the same words. */
#ifndef PUMICE_DAEMON_OPTIONS_H
#define PUMICE_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log.h"
#include "daemon/core/tm/tag_list.h"
#include "daemon/net/address.h"
#include "pumice/abi.h"

/* Exit codes of pumiced. */
enum exit_code {
    EXIT_DONE = 0, /* orderly end, by signal or by PM_OP_SHUTDOWN */
    EXIT_TROUBLE = 1, /* out of memory, threads or files */
    EXIT_BAD_CONFIG = 2, /* command line or configuration file */
    EXIT_ADDRESS = 3, /* a device's address is not ours, or its port 4791 is taken */
    EXIT_SOCKET = 4, /* the control socket can't be made, or a living daemon has it */
};

enum gso_mode {
    GSO_AUTO, /* on, but off while somebody captures */
    GSO_ON,
    GSO_OFF,
};
enum memory_mode { /* which ways to client memory may be used */
                   MEMORY_AUTO,
                   MEMORY_PROCESS_VM,
                   MEMORY_PROC_MEM,
};

enum path_check_mode { /* what is done about addresses that packets don't get to (row D12) */
                       PATH_CHECK_OFF, /* nobody looks */
                       PATH_CHECK_WARN, /* the log tells */
                       PATH_CHECK_ENFORCE, /* … and no queue pair is connected to them */
};

#define OPTIONS_WHY_MAX 512

struct device_options {
    char name[PM_NAME_MAX];
    union addr addr; /* port 0 */
};

struct options {
    char socket[108]; /* path of the control socket; empty: the default */
    char group[64]; /* members may use the socket; empty: the user alone */
    struct device_options device[PM_DEVICES_MAX];
    unsigned devices; /* 0: pumice0 on the default address */
    bool devices_from_file; /* the command line's devices replace them */
    bool loopback_wire; /* packets to the own address take the socket, too */
    enum tm_profile_id tm_profile; /* how strict tag matching is (row G11) */
    int cnp_dscp; /* of the packets that answer marks; -1: as their QP sends */
    bool ecn; /* packets say that routers may mark them, and marks are heeded (row E28) */
    enum gso_mode gso;
    enum memory_mode memory;
    char fault[1024]; /* fault specification, checked */
    uint64_t seed; /* of the faults, and of the first QP number */
    bool has_seed;
    uint8_t mtu; /* enum ibv_mtu; 0: as the interface has it */
    uint32_t window_pkts; /* 0: the engine's default */
    int64_t ack_delay_us; /* -1: the engine's default */
    uint32_t min_timeout_us; /* queue pairs with a shorter timeout get this one (row D6); 0: the engine's default */
    enum path_check_mode path_check;
    uint32_t path_check_tries; /* probes of each size, a quarter of a second apart, before it is given up */
    char path_check_map[256]; /* file that says who pairs with whom; empty: none */
    uint16_t
        cpu[PM_DEVICES_MAX]; /* processors that the devices' threads keep to: device i to the (i % cpus)-th of them */
    unsigned cpus; /* 0: any */
    uint32_t idle_us; /* time without work before the loop sleeps */
    uint32_t rcvbuf; /* bytes asked for with SO_RCVBUF and SO_SNDBUF */
    int ready_fd; /* gets the line "ready" when everything listens; -1: none */
    struct log_levels log_levels; /* what goes to standard error */
    bool log_json; /* … as JSON */
    union addr metrics; /* where counters are served for Prometheus, a loopback address; port 0: nowhere */
};

void options_defaults(struct options *o);

/* Sets one by name. 0, or -EINVAL: then why says what was wrong and what would be right. */
int options_set(struct options *o, const char *name, const char *value, char why[OPTIONS_WHY_MAX]);

/* Adds a device. name NULL: pumice0, pumice1, … */
int options_add_device(struct options *o, const char *name, const char *address, char why[OPTIONS_WHY_MAX]);

/* After everything was read: fills in the default device. */
void options_finish(struct options *o);

/* Reads a configuration file. 0, or -EINVAL with why = "FILE:LINE: …", or -errno if it can't be read. */
int config_load(struct options *o, const char *path, char why[OPTIONS_WHY_MAX]);
/* The same for text in memory, for tests; the file is called "config" in errors. */
int config_load_text(struct options *o, const char *text, char why[OPTIONS_WHY_MAX]);

#endif
