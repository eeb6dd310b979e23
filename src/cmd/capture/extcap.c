// SPDX-License-Identifier: BSD-2-Clause
/* pumice extcap: the program that Wireshark calls to list interfaces, to list their options, and to capture
 * (extcap(4)). Wireshark calls it under the name pumice-extcap. */
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

enum action {
    ACTION_NONE,
    ACTION_INTERFACES,
    ACTION_DLTS,
    ACTION_CONFIG,
    ACTION_FILTER, /* check a capture filter */
    ACTION_CAPTURE,
};

struct extcap {
    enum action action;
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
    {"extcap-version", KEY_VERSION, "VERSION", OPTION_ARG_OPTIONAL, "Wireshark's version; ignored", 1},
    {"extcap-interface", KEY_INTERFACE, "NAME", 0, "The interface for the other options", 1},
    {"extcap-dlts", KEY_DLTS, NULL, 0, "List the link types of the interface", 1},
    {"extcap-config", KEY_CONFIG, NULL, 0, "List the options of the interface", 1},
    {"extcap-reload-option", KEY_RELOAD, "OPTION", 0, "List the values of one option; there are none", 1},
    {"extcap-capture-filter", KEY_FILTER, "FILTER", 0, "Must be empty: the options below choose packets", 1},
    {"capture", KEY_CAPTURE, NULL, 0, "Capture at the interface", 1},
    {"fifo", KEY_FIFO, "PATH", 0, "Write packets to this pipe", 1},
    {"socket", 'S', "PATH", 0, "Control socket of the daemon; default: from the environment", 3},
    {0},
};

static const char doc[] =
    "Lists Pumice's devices as interfaces of Wireshark and captures at them. Wireshark calls this program as "
    "pumice-extcap in its extcap directory.\v"
    "The interfaces are: pumice (all devices); each device of the daemon, or of each host of the lab in the "
    "environment; and each other lab (pumice run) of this user.\n\n"
    "make install puts the program into Wireshark's extcap directory. To do so by hand:\n"
    "  ln -s $(which pumice) ~/.config/wireshark/extcap/pumice-extcap\n"
    "  tshark -D; tshark -i pumice0";

/* One line each of the options dialogue in Wireshark. ARG is an option: its name, label, kind, other attributes and
 * help. VALUE is a value of a selector. */
#define ARG(number, option, label, kind, more, tip)                                                                    \
    "arg {number=" #number "}{call=--" option "}{display=" label "}{type=" kind "}" more "{tooltip=" tip "}\n"
#define FILTER(number, option, label, kind, more, tip) ARG(number, option, label, kind, more "{group=Filter}", tip)
#define CAPTURE(number, option, label, kind, more, tip) ARG(number, option, label, kind, more "{group=Capture}", tip)
#define VALUE(number, value, label, is_default)                                                                        \
    "value {arg=" #number "}{value=" value "}{display=" label "}{default=" is_default "}\n"
#define DEFAULT(number, value, label) VALUE(number, value, label, "true")
#define OTHER(number, value, label) VALUE(number, value, label, "false")

/* The options of the interfaces, in the order of capture_filter.c. tests/e2e/capture/extcap.sh compares the two. */
/* clang-format off */
static const char config[] =
    FILTER(0, "qp", "Queue pair", "string", "{validation=^(0[xX][0-9a-fA-F]+|[0-9]+)$}",
        "Only packets from or to this queue pair number")
    FILTER(1, "peer", "Peer", "string", "{placeholder=IPv4 or IPv6 address}",
        "Only packets from or to this address")
    FILTER(2, "opcode", "Opcodes", "string", "{placeholder=send, ack, read response ...}",
        "Only packets whose opcode name contains one of these names, separated by commas")
    FILTER(3, "direction", "Direction", "selector", "",
        "Packets that devices receive or send; with both, packets between several hosts of a lab are captured twice")
    DEFAULT(3, "", "both; for several hosts: sent")
    OTHER(3, "in", "received")
    OTHER(3, "out", "sent")
    OTHER(3, "both", "both")
    CAPTURE(4, "before-faults", "Before faults", "boolflag", "",
        "Capture sent packets before injected faults change them")
    CAPTURE(5, "lost", "Lost packets", "boolflag", "",
        "Capture the packets that injected faults lose, too, at interfaces of their own")
    CAPTURE(6, "snaplen", "Bytes of each packet", "unsigned", "{range=16,65535}",
        "Counted from the transport header; default: all bytes")
    CAPTURE(7, "buffer", "Buffer of each device (MiB)", "selector", "",
        "If Wireshark is slower than the traffic and the buffer is full, packets are dropped from the capture")
    OTHER(7, "4", "4")
    DEFAULT(7, "16", "16")
    OTHER(7, "64", "64")
    OTHER(7, "256", "256")
    CAPTURE(8, "socket", "Control socket", "string", "",
        "Control socket of the daemon, if it has no usual path and is not in the environment");
/* clang-format on */

static bool print_interface(const struct capture_interface *p, void *arg)
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
    struct capture_interface found;
};

static bool is_chosen(const struct capture_interface *p, void *arg)
{
    struct choice *choice = arg;

    if (strcmp(p->name, choice->name) != 0)
        return false;
    choice->found = *p;
    if (p->targets.lab == p->dir)
        choice->found.targets.lab = choice->found.dir;
    return true;
}

static int capture(struct extcap *e)
{
    static struct choice choice;
    struct targets t;

    if (!e->fifo) {
        say("--capture needs --fifo");
        return 1;
    }
    if (e->filter && e->filter[0]) {
        say("Pumice's devices do not support capture filters: use their options (queue pair, peer, opcode)");
        return 1;
    }
    e->c.out.path = e->fifo;
    e->c.quiet = true;
    choice.name = e->interface;
    if (e->socket) { /* Wireshark's list does not have the interfaces of this daemon */
        if (strcmp(choice.name, DISCOVER_ALL) != 0)
            e->c.device = choice.name;
        return targets_find(&t, e->socket, -1) == 0 ? capture_run(&e->c, &t) : 1;
    }
    if (!discover(is_chosen, &choice)) {
        say("the interface '%s' does not exist any more", choice.name);
        return 1;
    }
    if (choice.found.device[0])
        e->c.device = choice.found.device;
    return capture_run(&e->c, &choice.found.targets);
}

/* Wireshark requests one action at a time. If several are given, the last one in enum action counts. */
static void request(struct extcap *e, enum action action)
{
    if (action > e->action)
        e->action = action;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct extcap *e = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &e->c.request;
        break;
    case KEY_INTERFACES:
        request(e, ACTION_INTERFACES);
        break;
    case KEY_DLTS:
        request(e, ACTION_DLTS);
        break;
    case KEY_CONFIG:
        request(e, ACTION_CONFIG);
        break;
    case KEY_FILTER:
        e->filter = arg;
        request(e, ACTION_FILTER);
        break;
    case KEY_CAPTURE:
        request(e, ACTION_CAPTURE);
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
        argp_error(state, "unexpected argument '%s': pumice extcap takes only options", arg);
        break;
    case ARGP_KEY_END:
        if (e->action == ACTION_NONE)
            argp_error(state, "no action given: Wireshark calls this program; see --help");
        if (e->action != ACTION_INTERFACES && !e->interface)
            argp_error(state, "no interface given: --extcap-interface=NAME");
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
    switch (e.action) {
    case ACTION_INTERFACES:
        print_interfaces();
        break;
    case ACTION_DLTS:
        puts("dlt {number=1}{name=EN10MB}{display=Ethernet}");
        break;
    case ACTION_CONFIG:
        fputs(config, stdout);
        break;
    case ACTION_FILTER: /* Wireshark shows any output as an error in the filter */
        if (e.filter[0])
            puts("capture filters are not supported: use the options of the interface");
        break;
    case ACTION_CAPTURE:
        return capture(&e);
    case ACTION_NONE:
        break;
    }
    return 0;
}
