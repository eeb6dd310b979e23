// SPDX-License-Identifier: BSD-2-Clause
/* pumice extcap, and the command under the name pumice-extcap: what Wireshark calls to list what it can capture at, to
 * ask for options, and to capture (extcap(4)). */
#include "src/cmd/capture/capture.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pumice/version.h"
#include "src/cmd/capture/capture_filter.h"
#include "src/cmd/capture/capture_run.h"
#include "src/cmd/capture/discover.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/targets.h"

enum act {
    ACT_NONE,
    ACT_INTERFACES,
    ACT_DLTS,
    ACT_CONFIG,
    ACT_FILTER, /* is a capture filter right */
    ACT_CAPTURE,
};

struct extcap {
    enum act act;
    const char *interface, *fifo, *filter, *socket;
    struct capture c;
};

enum key {
    KEY_INTERFACES = 512,
    KEY_VERSION,
    KEY_DLTS,
    KEY_INTERFACE,
    KEY_CONFIG,
    KEY_RELOAD,
    KEY_FILTER,
    KEY_CAPTURE,
    KEY_FIFO,
};

static const struct argp_option options[] = {
    {"extcap-interfaces", KEY_INTERFACES, NULL, 0, "List the interfaces", 1},
    {"extcap-version", KEY_VERSION, "VERSION", OPTION_ARG_OPTIONAL, "Wireshark's version; makes no difference", 1},
    {"extcap-interface", KEY_INTERFACE, "NAME", 0, "The interface that the others are about", 1},
    {"extcap-dlts", KEY_DLTS, NULL, 0, "List the link types of the interface", 1},
    {"extcap-config", KEY_CONFIG, NULL, 0, "List the options of the interface", 1},
    {"extcap-reload-option", KEY_RELOAD, "OPTION", 0, "List the values of one option; there are none to list", 1},
    {"extcap-capture-filter", KEY_FILTER, "FILTER", 0,
     "Packets are chosen by the options below: there must be no other filter", 1},
    {"capture", KEY_CAPTURE, NULL, 0, "Capture at the interface", 1},
    {"fifo", KEY_FIFO, "PATH", 0, "Write packets there", 1},
    {"socket", 'S', "PATH", 0, "Control socket of the daemon; else that of the environment", 3},
    {0},
};

static const char doc[] =
    "What Wireshark calls, as pumice-extcap in its extcap folder, so that Pumice's devices stand in its list of "
    "interfaces.\v"
    "Interfaces are: pumice (all devices), each device of the daemon, or of each host of the lab that it is called in, "
    "and each lab of this user (pumice run) that it is not called in.\n\n"
    "make install puts it where Wireshark looks. By hand:\n"
    "  ln -s $(which pumice) ~/.config/wireshark/extcap/pumice-extcap\n"
    "  tshark -D; tshark -i pumice0";

/* The dialogue that Wireshark shows: option, label, kind, whatever else there is, help; and the values of a selector.
 * */
#define ARG(number, option, label, kind, more, tip)                                                                    \
    "arg {number=" #number "}{call=--" option "}{display=" label "}{type=" kind "}" more "{tooltip=" tip "}\n"
#define FILTER(number, option, label, kind, more, tip) ARG(number, option, label, kind, more "{group=Filter}", tip)
#define CAPTURE(number, option, label, kind, more, tip) ARG(number, option, label, kind, more "{group=Capture}", tip)
#define VALUE(number, value, label, is_default)                                                                        \
    "value {arg=" #number "}{value=" value "}{display=" label "}{default=" is_default "}\n"
#define DEFAULT(number, value, label) VALUE(number, value, label, "true")
#define OTHER(number, value, label) VALUE(number, value, label, "false")

/* In the order of the options of capfilter.c; tests/e2e/capture/extcap.sh compares the two. */
/* clang-format off */
static const char config[] =
    FILTER(0, "qp", "Queue pair", "string", "{validation=^(0[xX][0-9a-fA-F]+|[0-9]+)$}",
        "Only packets of or to this queue pair number")
    FILTER(1, "peer", "Peer", "string", "{placeholder=IPv4 or IPv6 address}",
        "Only packets from or to this address")
    FILTER(2, "opcode", "Opcodes", "string", "{placeholder=send, ack, read response ...}",
        "Only packets whose opcode has one of these in its name, separated by commas")
    FILTER(3, "direction", "Direction", "selector", "",
        "What devices receive or send; for several hosts what they send is enough, or each packet is there twice")
    DEFAULT(3, "", "both, but sent packets of several hosts")
    OTHER(3, "in", "received")
    OTHER(3, "out", "sent")
    OTHER(3, "both", "both")
    CAPTURE(4, "before-faults", "Before faults", "boolflag", "",
        "Sent packets as they were before injected faults struck them")
    CAPTURE(5, "snaplen", "Bytes of each packet", "unsigned", "{range=16,65535}",
        "From the transport header on; all unless given")
    CAPTURE(6, "buffer", "Buffer of each device (MiB)", "selector", "",
        "When Wireshark is slower than the traffic for longer than this lasts, packets are dropped from the capture")
    OTHER(6, "4", "4")
    DEFAULT(6, "16", "16")
    OTHER(6, "64", "64")
    OTHER(6, "256", "256")
    CAPTURE(7, "socket", "Control socket", "string", "",
        "Of the daemon, if it is neither at a usual place nor in the environment");
/* clang-format on */

static bool print_interface(const struct place *p, void *arg)
{
    (void)arg;
    printf("interface {value=%s}{display=%s}\n", p->name, p->about);
    return false;
}

static void print_interfaces(void)
{
    puts("extcap {version=" PUMICE_VERSION "}{display=Pumice, RDMA verbs in user space}");
    discover(print_interface, NULL);
}

struct choice {
    const char *name;
    struct place found;
};

static bool is_chosen(const struct place *p, void *arg)
{
    struct choice *look = arg;

    if (strcmp(p->name, look->name) != 0)
        return false;
    look->found = *p;
    if (p->targets.lab == p->dir)
        look->found.targets.lab = look->found.dir;
    return true;
}

static int capture(struct extcap *e)
{
    static struct choice look;
    struct targets t;

    if (!e->fifo) {
        say("--capture needs --fifo");
        return 1;
    }
    if (e->filter && e->filter[0]) {
        say("capture filters are not for Pumice's devices: their options choose by queue pair, peer and opcode");
        return 1;
    }
    e->c.out.path = e->fifo;
    e->c.quiet = true;
    look.name = e->interface;
    if (e->socket) { /* the interface is one of that daemon's, which Wireshark could not list */
        if (strcmp(look.name, DISCOVER_ALL) != 0)
            e->c.device = look.name;
        return targets_find(&t, e->socket, -1) == 0 ? capture_run(&e->c, &t) : 1;
    }
    if (!discover(is_chosen, &look)) {
        say("there is no interface '%s' any more", look.name);
        return 1;
    }
    if (look.found.device[0])
        e->c.device = look.found.device;
    return capture_run(&e->c, &look.found.targets);
}

/* Wireshark asks for one thing at a time; which, if --capture stands beside others, is clear, too. */
static void want(struct extcap *e, enum act act)
{
    if (act > e->act)
        e->act = act;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct extcap *e = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &e->c.request;
        break;
    case KEY_INTERFACES:
        want(e, ACT_INTERFACES);
        break;
    case KEY_DLTS:
        want(e, ACT_DLTS);
        break;
    case KEY_CONFIG:
        want(e, ACT_CONFIG);
        break;
    case KEY_FILTER:
        e->filter = arg;
        want(e, ACT_FILTER);
        break;
    case KEY_CAPTURE:
        want(e, ACT_CAPTURE);
        break;
    case KEY_VERSION:
    case KEY_RELOAD:
        break;
    case KEY_INTERFACE:
        e->interface = arg;
        break;
    case KEY_FIFO:
        e->fifo = arg;
        break;
    case 'S':
        e->socket = arg[0] ? arg : NULL;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too much: there are options only", arg);
        break;
    case ARGP_KEY_END:
        if (e->act == ACT_NONE)
            argp_error(state, "this is for Wireshark to call; see --help");
        if (e->act != ACT_INTERFACES && !e->interface)
            argp_error(state, "which interface? --extcap-interface=NAME");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int cmd_extcap(int argc, char **argv)
{
    static const struct argp_child children[] = {{&capture_filter_argp, 0, NULL, 2}, {0}};
    static const struct argp argp = {options, parse, NULL, doc, children, NULL, NULL};
    struct extcap e = {0};

    capture_init(&e.c, NULL);
    argp_parse(&argp, argc, argv, 0, NULL, &e);
    switch (e.act) {
    case ACT_INTERFACES:
        print_interfaces();
        break;
    case ACT_DLTS:
        puts("dlt {number=1}{name=EN10MB}{display=Ethernet}");
        break;
    case ACT_CONFIG:
        fputs(config, stdout);
        break;
    case ACT_FILTER: /* what is printed is what is wrong with it */
        if (e.filter[0])
            puts("use the options of the interface");
        break;
    case ACT_CAPTURE:
        return capture(&e);
    case ACT_NONE:
        break;
    }
    return 0;
}
