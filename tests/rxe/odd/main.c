// SPDX-License-Identifier: BSD-2-Clause
/* The two ends meet over TCP and go through the cases. */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/rxe/odd/odd.h"

enum { LAST_CASE = -1 };

static struct {
    const char *host, *device, *only;
    int port, gid_index;
} opt = {.port = 18700};

static int tcp;

void die(const char *what)
{
    fprintf(stderr, "odd: %s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

/* --- TCP ---------------------------------------------------------------------------------------- */

static void meet(void)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = opt.host ? 0 : AI_PASSIVE, .ai_family = AF_INET};
    struct addrinfo *ai;
    char service[16];
    int fd, one = 1;
    snprintf(service, sizeof service, "%d", opt.port);
    if (getaddrinfo(opt.host, service, &hints, &ai) || (fd = socket(ai->ai_family, SOCK_STREAM, 0)) < 0)
        die("address");
    if (opt.host) {
        if (connect(fd, ai->ai_addr, ai->ai_addrlen))
            die("connect");
        tcp = fd;
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1) || (tcp = accept(fd, NULL, NULL)) < 0)
            die("listen");
        close(fd);
    }
    freeaddrinfo(ai);
}

static void tell(const void *data, size_t size)
{
    if (send(tcp, data, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("the other end has gone");
}

static void hear(void *data, size_t size)
{
    errno = 0;
    if (recv(tcp, data, size, MSG_WAITALL) != (ssize_t)size)
        die("the other end has gone");
}

/* Both ends come to this point. */
static void meet_again(void)
{
    char c = 0;
    tell(&c, 1);
    hear(&c, 1);
}

/* --- a case ------------------------------------------------------------------------------------- */

/* The server's view of a case: its completions, the state of its QP, its memory, and its events. */
struct report {
    char receives[MAX_TEXT], state[16], data[64], events[64];
};

static void connect_ends(struct end *e, const struct odd_case *c)
{
    struct info own = {.qpn = e->qp->qp_num,
                       .psn = c->psn ? c->psn : (uint32_t)random() & 0xffffff,
                       .rkey = e->target->rkey,
                       .other_rkey = e->other->rkey,
                       .target = (uintptr_t)e->block + TARGET,
                       .gid = e->gid};
    tell(&own, sizeof own);
    hear(&e->peer, sizeof e->peer);
    end_connect(e, c, &own);
    model_run(e, c);
}

static void serve(struct end *e, const struct odd_case *c)
{
    struct report report = {0};
    uint32_t window_rkey;
    char done;
    connect_ends(e, c);
    if (!c->late_ms)
        receives_post(e, c);
    if (e->mw)
        window_bind(e, c);
    window_rkey = e->mw ? e->mw->rkey : 0;
    tell(&window_rkey, sizeof window_rkey);
    if (c->late_ms) {
        usleep(c->late_ms * 1000);
        receives_post(e, c);
    }
    hear(&done, 1);
    receives_run(e, c, report.receives, sizeof report.receives);
    snprintf(report.state, sizeof report.state, "%s", state_name(e));
    events_describe(e, report.events, sizeof report.events);
    model_compare(e, report.data, sizeof report.data);
    tell(&report, sizeof report);
}

static void print_result(const struct odd_case *c, const char *client, const char *state, const char *data,
                         const struct report *r)
{
    char wanted[4 * MAX_TEXT], seen[4 * MAX_TEXT], both[160];
    bool right = strcmp(data, "right") == 0, server_right = strcmp(r->data, "right") == 0;
    snprintf(both, sizeof both, "%s%s%s%s%s", right && server_right ? "right" : "", right ? "" : data,
             right ? "" : " (client)", server_right ? "" : r->data, server_right ? "" : " (server)");
    snprintf(wanted, sizeof wanted, "client: %s; server: %s; states: %s; data: right%s%s", c->client,
             c->server ? c->server : "-", c->states ? c->states : "RTS RTS", c->event ? "; event: " : "",
             c->event ? c->event : "");
    snprintf(seen, sizeof seen, "client: %s; server: %s; states: %s %s; data: %s%s%s", client, r->receives, state,
             r->state, both, c->event ? "; event: " : "", c->event ? r->events : "");
    printf("%s\t%s\t%s\t%s\n", c->name, strcmp(wanted, seen) == 0 ? "same" : "differs", seen, wanted);
    fflush(stdout);
}

static void request(struct end *e, const struct odd_case *c)
{
    char client[MAX_TEXT], data[64];
    struct report report;
    connect_ends(e, c);
    hear(&e->peer.window_rkey, sizeof e->peer.window_rkey);
    requests_run(e, c, client, sizeof client);
    tell("d", 1);
    hear(&report, sizeof report);
    model_compare(e, data, sizeof data);
    print_result(c, client, state_name(e), data, &report);
}

static void run_case(struct end *e, const struct odd_case *c)
{
    end_make(e, c);
    if (e->server)
        serve(e, c);
    else
        request(e, c);
    end_free(e, c);
    meet_again();
}

/* --- the command line --------------------------------------------------------------------------- */

static const char usage[] = "usage: odd [-p PORT] [-d DEVICE] [-g GID-INDEX] [-k CASE[,CASE...]] [-l] [HOST]\n"
                            "  -k   only these cases; for the client\n"
                            "  -l   print the names of all cases\n"
                            "HOST is the server's IPv4 address.\n";

static void parse(int argc, char **argv)
{
    int o;
    while ((o = getopt(argc, argv, "p:d:g:k:lh")) != -1) {
        switch (o) {
        case 'p':
            opt.port = atoi(optarg);
            break;
        case 'd':
            opt.device = optarg;
            break;
        case 'g':
            opt.gid_index = atoi(optarg);
            break;
        case 'k':
            opt.only = optarg;
            break;
        case 'l':
            for (size_t i = 0; i < odd_cases_num; i++)
                printf("%s\n", odd_cases[i].name);
            exit(0);
        default:
            fputs(usage, o == 'h' ? stdout : stderr);
            exit(o == 'h' ? 0 : 2);
        }
    }
    opt.host = optind < argc ? argv[optind] : NULL;
}

/* Is it in the list of -k? */
static bool chosen(const char *name)
{
    size_t len = strlen(name);
    for (const char *at = opt.only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && strncmp(at, name, len) == 0)
            return true;
    return !opt.only;
}

/* The client names each case to the server by its number. */
static void run_client(struct end *e)
{
    int32_t last = LAST_CASE;
    bool found = false;
    for (size_t i = 0; i < odd_cases_num; i++) {
        int32_t number = (int32_t)i;
        if (!chosen(odd_cases[i].name))
            continue;
        found = true;
        tell(&number, sizeof number);
        run_case(e, &odd_cases[i]);
    }
    tell(&last, sizeof last);
    if (!found) {
        fprintf(stderr, "odd: no case has the name \"%s\"; option -l prints all names\n", opt.only);
        exit(2);
    }
}

static void run_server(struct end *e)
{
    int32_t number;
    for (hear(&number, sizeof number); number >= 0 && (size_t)number < odd_cases_num; hear(&number, sizeof number))
        run_case(e, &odd_cases[number]);
}

int main(int argc, char **argv)
{
    struct end e = {0};
    parse(argc, argv);
    srandom((unsigned)time(NULL));
    e.server = !opt.host;
    end_open(&e, opt.device, opt.gid_index);
    meet();
    if (e.server)
        run_server(&e);
    else
        run_client(&e);
    return 0;
}
