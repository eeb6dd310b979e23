// SPDX-License-Identifier: BSD-2-Clause
/* Connection management over a faulty network. Programs on several hosts listen, connect, accept, reject, disconnect and
 * destroy their IDs at random times. Messages are lost, duplicated and late; a host may die and come back. One exchange
 * is drawn from one seed.
 *
 *     cms.c           hosts, network, time
 *     cms_program.c   what the programs do
 *     cms_check.c     what they may learn, and what must hold at the end
 *
 *     each ID         Its events come in an order that the phases of cms_check.c allow. A connect ends in one of
 *                     CONNECT_RESPONSE, REJECTED, UNREACHABLE and, for datagrams, ESTABLISHED, unless its program
 *                     destroys it first.
 *     both ends       If a host has not died, no peer is unreachable. Two established ends name each other, and agree on
 *                     QPs and PSNs. When all is quiet, an established end has an established peer.
 *     quiet           When no timer runs, no message waits for an answer.
 *     the end         When all programs have destroyed their IDs, nothing is left: IDs, communication IDs, timers, events,
 *                     ports. */
#ifndef PUMICE_TESTS_SIM_CONNECTIONS_CMS_H
#define PUMICE_TESTS_SIM_CONNECTIONS_CMS_H

#include <setjmp.h>
#include <stdio.h>

#include "daemon/core/cm/cm_id.h"
#include "tests/sim/network/net.h"

#define CMS_HOSTS 4
#define CMS_CONNECTS 24
#define CMS_ENDS (4 * CMS_CONNECTS)
#define CMS_LISTENERS 3 /* of each host: one for each port space */
#define CMS_PORT 7000
#define CMS_NO_PORT 7001 /* nobody listens on it */

/* The knowledge of an end's program. */
enum cms_phase {
    CMS_NONE,
    CMS_RESOLVING,
    CMS_CONNECTING,
    CMS_RESPONDED, /* active: CONNECT_RESPONSE came */
    CMS_REQUESTED, /* passive: CONNECT_REQUEST came */
    CMS_ACCEPTED, /* passive */
    CMS_ESTABLISHED,
    CMS_DISCONNECTED,
    CMS_EXITED, /* TIMEWAIT_EXIT came */
    CMS_ENDED, /* rejected or unreachable */
    CMS_REFUSED, /* the program has rejected */
    CMS_GONE, /* the program has destroyed it, or its host died */
};
struct cms_end {
    struct cm_id *id;
    int host;
    uint8_t phase; /* enum cms_phase */
    bool passive, ud;
    uint32_t qpn;
    uint16_t port_space;
    uint8_t qp_type;
    uint16_t port; /* active: where to */
    int to;
    /* Of an end that was destroyed or has rejected after its REP. If its REJ is lost, the peer may never learn of it. */
    uint32_t left;
    uint32_t of; /* passive: the communication ID of the peer */
};
struct cms_host {
    struct cm *cm;
    void *mem;
    struct cm_addr addr;
    struct cm_route route;
    struct cm_id *listener[CMS_LISTENERS];
    unsigned lives; /* how often it has started */
};
struct cms {
    uint64_t seed, now, trace;
    bool verbose, closing;
    struct prng rng;
    struct evq events;
    struct cms_host host[CMS_HOSTS];
    int hosts;
    struct cms_end end[CMS_ENDS];
    int ends;
    uint32_t loss, dup, late; /* per mille */
    uint64_t delay, late_by;
    unsigned deaths;
    uint32_t in_flight, next_qpn, steps;
    unsigned established, rejected, unreachable; /* connections, for people */
    jmp_buf fail_to;
    char failure[512];
};

/* Runs one exchange. Returns 0, or -1 with s->failure. */
int cms_run(struct cms *s, uint64_t seed, bool verbose);

_Noreturn void cms_fail(struct cms *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define cms_require(s, held, ...)                                                                                      \
    do {                                                                                                               \
        if (!(held))                                                                                                   \
            cms_fail(s, __VA_ARGS__);                                                                                  \
    } while (0)
void cms_say(struct cms *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- hosts -------------------------------------------------------------------------------------- */

/* A fresh instance, as after the start of a host. */
void cms_boot(struct cms *s, int host);
/* Lets the program of an end act after a while. v: enum cms_step. */
void cms_later(struct cms *s, int end, int v, uint64_t after);

/* --- programs ----------------------------------------------------------------------------------- */

enum cms_step {
    CMS_STEP_CONNECT,
    CMS_STEP_ANSWER, /* a CONNECT_REQUEST or CONNECT_RESPONSE */
    CMS_STEP_NOTIFY,
    CMS_STEP_DISCONNECT,
    CMS_STEP_DESTROY,
    CMS_STEP_DIE, /* of a host */
    CMS_STEP_DEAF, /* the host closes its listeners */
};
/* Draws the programs. */
void cms_programs(struct cms *s);
void cms_step(struct cms *s, int n, enum cms_step step);
void cms_event(struct cms *s, int host, const struct cm_event *ev);
void cms_destroy(struct cms *s, struct cms_end *e);
void cms_close(struct cms *s, int host);

/* --- checks --------------------------------------------------------------------------------------- */

/* May the end get this event? Moves it to its next phase. */
void cms_check_event(struct cms *s, struct cms_end *e, const struct cm_event *ev);
/* Nothing happens any more. */
void cms_check_quiet(struct cms *s);
void cms_check_end(struct cms *s);

#endif
