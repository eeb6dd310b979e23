// SPDX-License-Identifier: BSD-2-Clause
/* The settings of a daemon: plain values, which the command line and the configuration file fill in (daemon/options.h).
 *
 * The main thread writes them before the devices start. Afterwards it changes only the members that SIGHUP may change
 * (daemon/reload.h). The threads of the devices do not read those members. */
#ifndef PUMICE_DAEMON_DEVICE_SETTINGS_H
#define PUMICE_DAEMON_DEVICE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error_text.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/client_mem/client_mem.h"
#include "daemon/net/address.h"
#include "daemon/net/gso.h"
#include "daemon/net/peer_list.h"
#include "daemon/profile/profile.h"
#include "pumice/abi.h"

/* The daemon's reaction if probes do not reach an address. */
enum path_check_mode {
    PATH_CHECK_OFF, /* the daemon sends no probes */
    PATH_CHECK_WARN, /* the daemon logs it */
    PATH_CHECK_ENFORCE, /* the daemon logs it, and connects no QP to the address */
};

#define DEVICE_ADDRS_MAX 8

/* The name and the configured addresses of one device. The other addresses of its interface are not among them. */
struct device_address {
    char name[PM_NAME_MAX];
    union addr addr[DEVICE_ADDRS_MAX]; /* port 0; in the order of the GID table */
    unsigned num_addrs;
};

struct settings {
    char socket[108]; /* path of the control socket; empty: the default */
    char group[64]; /* members may use the socket; empty: only the user of the daemon */
    struct quota_limits quota; /* what each user may have */
    uint32_t control_share; /* per cent of a thread's time for the control requests of each user */
    uint32_t idle_exit_s; /* the daemon ends if no program has used it for so long; 0: never */
    uint32_t handshake_s; /* time that a connection may be silent before it opens a device */
    struct device_address device[PM_DEVICES_MAX];
    unsigned devices; /* 0 until settings_finish: pumice0 on the default address */
    bool devices_replaceable; /* the next option that adds a device replaces all of them */
    bool loopback_wire; /* packets to the device's own address pass through the socket, too */
    enum profile_id profile; /* of all devices */
    enum tm_choice tm_profile;
    /* DSCP of congestion notification packets (CNPs); -1: the DSCP of the QP. */
    int cnp_dscp;
    /* Packets are sent as ECN-capable, and senders slow down after a CNP. */
    bool ecn;
    bool selective; /* packets are kept and sent again alone, between devices that both do so */
    bool e2e_credits; /* senders wait until their peers have receive requests */
    enum gso_mode gso;
    enum memory_mode memory;
    /* How long one system call may copy client memory before the session ends. */
    uint32_t memory_timeout_ms;
    char net[256]; /* file with the plan of an emulated network; empty: none */
    char fault[1024]; /* fault specification, checked */
    uint64_t seed; /* of the faults and of the first QP number */
    bool has_seed;
    uint32_t unkind; /* enum unkind_kind; 0: the devices are kind */
    uint8_t mtu; /* enum ibv_mtu; 0: the largest that fits the interface */
    uint32_t window_pkts; /* 0: the engine's default */
    uint32_t max_resends; /* packets that a QP sends again in one turn; 0: no own limit */
    int64_t ack_delay_us; /* -1: the engine's default */
    /* A QP with a shorter timeout uses this one. 0: the engine's default. */
    uint32_t min_timeout_us;
    enum path_check_mode path_check;
    /* Probes of each size, 250 ms apart, before the daemon gives up. */
    uint32_t path_check_tries;
    /* File to which the results of path checks are appended; empty: none. */
    char path_check_map[256];
    /* Processors of the devices' threads: device i runs on cpu[i % cpus]. */
    uint16_t cpu[PM_DEVICES_MAX];
    unsigned cpus; /* 0: any processor */
    uint32_t idle_us; /* time without work before the loop sleeps */
    uint32_t rcvbuf; /* bytes to ask for with SO_RCVBUF and SO_SNDBUF */
    int decisions_fd; /* memory with the decisions about packets (loop/decision_memory.h); -1: none */
    int ready_fd; /* receives the line "ready" when the daemon is ready; -1: none */
    struct peer_list peers; /* addresses that packets may come from */
    struct log_levels log_levels; /* of the lines on standard error */
    bool log_json; /* the log is JSON */
    uint8_t sandbox_off; /* 1: the daemon keeps all rights of its user */
    char config_file[256]; /* that SIGHUP reads again; empty: none */
    /* Loopback address that serves the counters for Prometheus; port 0: none. */
    union addr metrics;
};

/* Sets the defaults. */
void settings_init(struct settings *s);

/* Adds a device. name NULL: pumice0, pumice1, … address: one address, or several with + between them. 0, or -EINVAL with
 * why. */
int settings_add_device(struct settings *s, const char *name, const char *address, char why[ERROR_TEXT_MAX]);

/* To be called when all settings were read: adds the default device if there is none. */
void settings_finish(struct settings *s);

#endif
