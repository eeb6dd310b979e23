// SPDX-License-Identifier: BSD-2-Clause
/* pumice run: starts a lab, runs one command in it, and ends the lab. */
#include "src/cmd/run/run.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/capture/capture_run.h"
#include "src/cmd/check/check_run.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/fault_request.h"
#include "src/cmd/common/paths.h"
#include "src/cmd/common/targets.h"
#include "src/cmd/common/verbs_symbols.h"
#include "src/cmd/lab/lab.h"
#include "src/cmd/recording/record_run.h"
#include "src/cmd/run/name_server.h"
#include "src/cmd/run/net_file.h"
#include "src/cmd/run/program.h"
#include "src/cmd/run/traffic.h"

struct run_options {
    struct lab_options lab;
    const char *fault, *script, *net, *unkind, *seed;
    const char *capture; /* file; NULL: none */
    struct check_options check;
    struct record_run recording;
    bool spread; /* each process sees one device of its host */
    bool began; /* the command was started */
    bool capture_lost; /* also the packets that faults lose */
    char **command; /* NULL-terminated */
};

enum key {
    KEY_HOSTS = 'n',
    KEY_DEVICES = 'd',
    KEY_ADDRESSES = 'a',
    KEY_FAULT = 'f',
    KEY_SEED = 's',
    KEY_CAPTURE = 'C',
    KEY_LOOPBACK = 256,
    KEY_MEMORY,
    KEY_SANDBOX,
    KEY_GSO,
    KEY_ECN,
    KEY_E2E_CREDITS,
    KEY_SELECTIVE,
    KEY_PROFILE,
    KEY_TM_PROFILE,
    KEY_CONFIG,
    KEY_LOG_LEVEL,
    KEY_LOG_FORMAT,
    KEY_KEEP_LOGS,
    KEY_CPUS,
    KEY_IPV6,
    KEY_CAPTURE_LOST,
    KEY_SPREAD,
    KEY_SCRIPT,
    KEY_NET,
    KEY_CHECK,
    KEY_CHECK_REPORT,
    KEY_CHECK_FAIL,
    KEY_UNKIND,
    KEY_RECORD,
    KEY_REPLAY,
};

static const struct argp_option options[] = {
    {"hosts", KEY_HOSTS, "N", 0, "Number of virtual hosts; default: 1", 1},
    {"devices", KEY_DEVICES, "N", 0, "Number of devices of each host, each with a thread of its own; default: 1", 1},
    {"spread", KEY_SPREAD, "on|off", 0,
     "Whether each process sees one of several devices, in turn; off: it sees all; default: on", 1},
    {"addresses", KEY_ADDRESSES, "A,B,...", 0,
     "Addresses of the hosts, or of each device of each host; default: 127.0.0.1, 127.0.0.2 and so on, or others of "
     "127.0.0.0/8 if these are in use; several addresses of one device: A1+A2",
     1},
    {"ipv6", KEY_IPV6, NULL, 0,
     "Give the hosts the addresses fd00::1, fd00::2 and so on, in a network namespace if this machine does not have "
     "them",
     1},
    {"fault", KEY_FAULT, "SPEC", 0,
     "Faults that each host applies to the packets it sends, such as loss=1%,dup=1%,reorder=5%,delay=50us,corrupt=0.1%",
     2},
    {"unkind", KEY_UNKIND, "KIND,...", OPTION_ARG_OPTIONAL,
     "Let the devices do what specifications allow and Pumice otherwise never does, such as placement; without KIND, "
     "all of it",
     2},
    {"script", KEY_SCRIPT, "FILE", 0,
     "Faults as a timeline that begins with COMMAND, such as: at 2s: link down for 500ms; see pumice-fault(1)", 2},
    {"net", KEY_NET, "FILE", 0,
     "Emulate a network between the hosts: bandwidth, latency and queues of its links; see docs/faults.md", 2},
    {"seed", KEY_SEED, "S", 0,
     "Seed of the faults and of unkind devices; default: 1; the same seed gives the same faults", 2},
    {"capture", KEY_CAPTURE, "FILE", 0,
     "Capture the packets that all hosts send to a pcapng file, each packet once, after faults were applied", 2},
    {"capture-lost", KEY_CAPTURE_LOST, NULL, 0, "Capture the packets that faults lose, too, at interfaces of their own",
     2},
    {"record", KEY_RECORD, "DIR", 0, "Write down which packets the faults strike, for pumice replay", 2},
    {"replay", KEY_REPLAY, "DIR", 0, "Strike the packets that this recording names, and no others", 2},
    {"check", KEY_CHECK, "RULE,...", OPTION_ARG_OPTIONAL,
     "Check how the programs use verbs, and tell their mistakes at the end; without RULE, by all rules but touch", 2},
    {"check-report", KEY_CHECK_REPORT, "FILE", 0, "Write the findings to FILE: .json, .sarif, or .xml (JUnit)", 2},
    {"check-fail", KEY_CHECK_FAIL, NULL, 0, "With findings, the exit code is 124, unless COMMAND fails itself", 2},
    {"loopback", KEY_LOOPBACK, "engine|wire", 0,
     "Whether traffic within one device stays in its engine (as in a NIC) or goes over the network", 3},
    {"memory", KEY_MEMORY, "auto|process_vm|proc_mem", 0, "How the daemon reaches the memory of programs", 3},
    {"sandbox", KEY_SANDBOX, "on|off", 0, "Whether the daemons give up the rights that they do not need; default: on",
     3},
    {"gso", KEY_GSO, "auto|on|off", 0,
     "Many packets per system call; auto: off while a sniffer runs, because a capture shows them as one packet", 3},
    {"ecn", KEY_ECN, "on|off", 0,
     "Whether congested routers, and the fault ce=P, may mark packets so that senders slow down", 3},
    {"e2e-credits", KEY_E2E_CREDITS, "on|off", 0,
     "Whether senders wait until their peers have receive requests, instead of being refused (RNR NAK)", 3},
    {"selective", KEY_SELECTIVE, "on|off", 0,
     "Whether daemons send only what was lost again, instead of everything behind it, too; default: on", 3},
    {"cpus", KEY_CPUS, "any|spread", 0,
     "Processors of the daemons; spread: bind each device to one, if there are several devices and few processors", 3},
    {"profile", KEY_PROFILE, "NAME", 0,
     "Be like an adapter: connectx-4, connectx-6, bluefield-3, e810, bcm57508, rxe; default: none of them", 3},
    {"tm-profile", KEY_TM_PROFILE, "auto|generous|mlx5", 0,
     "How strict tag matching is; auto: as the profile says; mlx5: as mlx5 adapters are", 3},
    {"log-level", KEY_LOG_LEVEL, "error|warn|info|debug[,AREA=LEVEL...]", 0,
     "Log level of the daemons; areas: daemon, net, session, qp, packet", 4},
    {"log-format", KEY_LOG_FORMAT, "text|json", 0, "Log format of the daemons", 4},
    {"keep-logs", KEY_KEEP_LOGS, NULL, 0, "Keep the daemons' logs, and print their directory", 4},
    {0},
};

static const char doc[] =
    "Runs COMMAND with private virtual hosts, which end with it. COMMAND and its children see the RDMA device of host "
    "0, or of the host that pumice on chooses. Processes that mpirun starts are distributed over the hosts.\v"
    "Examples:\n"
    "  pumice run ibv_devinfo -v\n"
    "  pumice run --hosts 2 --fault loss=1% -- sh -c 'pumice on 0 -- ib_write_bw &\n"
    "      sleep 1; pumice on 1 -- ib_write_bw 127.0.0.1'\n"
    "  pumice run --hosts 2 -- bash\n\n"
    "The exit code is that of COMMAND, or 128 plus the signal that ended it; 127 if there is no such command, 126 if "
    "it can't be executed, 125 if pumice itself or one of its daemons failed.";

static void pass(struct lab_options *lab, const char *name, const char *value)
{
    lab->pass[lab->num_pass++] = name;
    lab->pass[lab->num_pass++] = value;
}

/* Passes an option of this command on to the daemons. They check the value. */
static void pass_option(struct lab_options *lab, int key, const char *value)
{
    static char names[KEY_KEEP_LOGS - KEY_LOOPBACK][32];
    char *name = names[key - KEY_LOOPBACK];

    for (size_t i = 0; options[i].name; i++)
        if (options[i].key == key)
            snprintf(name, sizeof(names[0]), "--%s", options[i].name);
    pass(lab, name, value);
}

/* Does the option say what runs, so that a recording has it? The others say what is shown of a run. */
static bool is_recorded(int key)
{
    switch (key) {
    case KEY_CAPTURE:
    case KEY_CAPTURE_LOST:
    case KEY_CHECK:
    case KEY_CHECK_REPORT:
    case KEY_CHECK_FAIL:
    case KEY_LOG_LEVEL:
    case KEY_LOG_FORMAT:
    case KEY_KEEP_LOGS:
    case KEY_RECORD:
    case KEY_REPLAY:
    case KEY_SCRIPT: /* a recording has the texts of these two files */
    case KEY_NET:
        return false;
    default:
        return true;
    }
}

bool run_option_is_recorded(const char *text)
{
    size_t len = strcspn(text, "=");

    for (size_t i = 0; options[i].name; i++)
        if (strncmp(text, "--", 2) == 0 && strlen(options[i].name) + 2 == len &&
            strncmp(text + 2, options[i].name, len - 2) == 0)
            return is_recorded(options[i].key) &&
                   ((text[len] == '=') == (options[i].arg != NULL) || (options[i].flags & OPTION_ARG_OPTIONAL));
    return false;
}

/* Keeps the text of an option for a recording. */
static void keep_option(struct run_options *o, int key, const char *arg)
{
    for (size_t i = 0; options[i].name; i++)
        if (options[i].key == key && is_recorded(key))
            json_array_append_new(o->recording.options,
                                  json_sprintf("--%s%s%s", options[i].name, arg ? "=" : "", arg ? arg : ""));
}

static void check_seed(struct argp_state *state, const char *text)
{
    char *end;

    errno = 0;
    strtoull(text, &end, 0);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        argp_error(state, "--seed: invalid value \"%s\": expected a number, such as 7 or 0x7f", text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run_options *o = state->input;
    long n;

    keep_option(o, key, arg);
    switch (key) {
    case KEY_HOSTS:
        n = parse_number(arg, 1, HOSTS_MAX);
        if (n < 0)
            argp_error(state, "--hosts: invalid value \"%s\": expected a number from 1 to %d", arg, HOSTS_MAX);
        o->lab.hosts = (unsigned)n;
        break;
    case KEY_DEVICES:
        n = parse_number(arg, 1, DEVICES_MAX);
        if (n < 0)
            argp_error(state, "--devices: invalid value \"%s\": expected a number from 1 to %d", arg, DEVICES_MAX);
        o->lab.devices = (unsigned)n;
        break;
    case KEY_SPREAD:
        if (strcmp(arg, "on") != 0 && strcmp(arg, "off") != 0)
            argp_error(state, "--spread: invalid value \"%s\": expected on or off", arg);
        o->spread = strcmp(arg, "on") == 0;
        break;
    case KEY_ADDRESSES:
        o->lab.addresses = arg;
        break;
    case KEY_FAULT:
        o->fault = arg;
        break;
    case KEY_NET:
        o->net = arg;
        break;
    case KEY_SCRIPT:
        o->script = arg;
        break;
    case KEY_UNKIND:
        o->unkind = arg ? arg : "all";
        break;
    case KEY_SEED:
        check_seed(state, arg);
        o->seed = arg;
        break;
    case KEY_CAPTURE:
        o->capture = arg;
        break;
    case KEY_CAPTURE_LOST:
        o->capture_lost = true;
        break;
    case KEY_RECORD:
        o->recording.record = arg;
        break;
    case KEY_REPLAY:
        o->recording.replay = arg;
        break;
    case KEY_CHECK:
        o->check.rules = arg ? arg : "all";
        break;
    case KEY_CHECK_REPORT:
        o->check.report = arg;
        break;
    case KEY_CHECK_FAIL:
        o->check.fail = true;
        break;
    case KEY_LOOPBACK:
    case KEY_MEMORY:
    case KEY_SANDBOX:
    case KEY_GSO:
    case KEY_ECN:
    case KEY_E2E_CREDITS:
    case KEY_SELECTIVE:
    case KEY_PROFILE:
    case KEY_TM_PROFILE:
    case KEY_LOG_LEVEL:
    case KEY_LOG_FORMAT:
        pass_option(&o->lab, key, arg);
        break;
    case KEY_CPUS:
        if (strcmp(arg, "spread") != 0 && strcmp(arg, "any") != 0)
            argp_error(state, "--cpus: invalid value \"%s\": expected any or spread", arg);
        o->lab.spread_cpus = strcmp(arg, "spread") == 0;
        break;
    case KEY_IPV6:
        o->lab.ipv6 = true;
        break;
    case KEY_KEEP_LOGS:
        o->lab.keep_logs = true;
        break;
    case ARGP_KEY_ARG:
        o->command = &state->argv[state->next - 1];
        state->next = state->argc;
        break;
    case ARGP_KEY_END:
        if (o->lab.ipv6 && o->lab.addresses)
            argp_error(state, "--ipv6 chooses the addresses itself: give either --ipv6 or --addresses");
        if (o->capture_lost && !o->capture)
            argp_error(state, "--capture-lost needs --capture FILE");
        if (!check_options_right(&o->check))
            exit(EXIT_OWN);
        break;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given; to run a shell: pumice run -- %s",
                   getenv("SHELL") ? getenv("SHELL") : "sh");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Without --hosts, the number of addresses tells the number of hosts. */
static void set_default_options(struct run_options *o)
{
    if (!o->lab.hosts) {
        unsigned items = 1;

        for (const char *p = o->lab.addresses ? o->lab.addresses : ""; *p; p++)
            items += *p == ',';
        o->lab.hosts = items / o->lab.devices ? items / o->lab.devices : 1;
        if (o->lab.hosts > HOSTS_MAX)
            o->lab.hosts = HOSTS_MAX;
    }
    if (o->fault)
        pass(&o->lab, "--fault", o->fault);
    if (o->unkind)
        pass(&o->lab, "--unkind", o->unkind);
    if ((o->fault || o->script || o->unkind) && !o->seed) {
        o->seed = "1";
        keep_option(o, KEY_SEED, o->seed);
    }
    if (o->seed)
        pass(&o->lab, "--seed", o->seed);
}

/* Says how to repeat what the seed decides. */
static void tell_seed(const struct run_options *o, const char *what)
{
    say("%s:%s%s%s%s%s%s%s --seed %s", what, o->fault ? " --fault '" : "", o->fault ? o->fault : "",
        o->fault ? "'" : "", o->script ? " --script " : "", o->script ? o->script : "", o->unkind ? " --unkind=" : "",
        o->unkind ? o->unkind : "", o->seed);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* Sets LD_PRELOAD. It can't hold a path with a space, so for such a path this makes a symbolic link in the lab's
 * directory. */
static int set_preload(const struct lab *lab, const struct check_options *check)
{
    char dir[PATH_MAX], link[PATH_MAX], value[4 * PATH_MAX];

    if (!paths_library(dir))
        return -1;
    if (strpbrk(dir, ": \t\n;")) {
        snprintf(link, sizeof(link), "%.*s/lib", PATH_MAX - 8, lab->dir);
        if (symlink(dir, link) == 0)
            strcpy(dir, link);
    }
    if (check_prepare(check, dir, lab->dir) != 0 || program_preload(dir, value, sizeof(value)) != 0)
        return -1;
    setenv("LD_PRELOAD", value, 1);
    return 0;
}

/* Adds the directory of this executable to PATH, so that the command finds `pumice on` even if Pumice is not installed.
 * */
static void set_path(void)
{
    const char *path = getenv("PATH");
    char self[PATH_MAX], found[PATH_MAX], real[PATH_MAX], value[8 * PATH_MAX];

    paths_self(self);
    if (!self[0] || !path)
        return;
    if (paths_command("pumice", found) == 0 && realpath(found, real) && strrchr(real, '/')) {
        *strrchr(real, '/') = 0;
        if (strcmp(real, self) == 0)
            return;
    }
    if ((size_t)snprintf(value, sizeof(value), "%s:%s", self, path) < sizeof(value))
        setenv("PATH", value, 1);
}

static int set_environment(const struct lab *lab, const struct run_options *o)
{
    char number[12], socket[SOCKET_PATH_MAX];

    snprintf(number, sizeof(number), "%u", lab->hosts);
    targets_lab_socket(lab->dir, 0, socket);
    setenv(PM_ENV_LAB, lab->dir, 1);
    setenv(PM_ENV_HOSTS, number, 1);
    setenv(PM_ENV_SOCKET, socket, 1);
    unsetenv(PM_ENV_HOST);
    if (o->spread && lab->devices > 1)
        setenv(PM_ENV_SPREAD, "1", 1);
    else
        unsetenv(PM_ENV_SPREAD);
    name_server_reserve();
    return set_preload(lab, &o->check);
}

/* Waits for the command, and passes the signals in set, which are blocked, on to it. Returns its wait status. */
static int wait_for_command(pid_t child, const sigset_t *set, struct lab *lab)
{
    int status;

    for (;;) {
        siginfo_t info;
        pid_t pid;
        int sig = sigwaitinfo(set, &info);

        if (sig < 0)
            continue;
        if (sig != SIGCHLD) {
            /* The command has already got the signals that come from the terminal. */
            if (info.si_code != SI_KERNEL)
                kill(child, sig);
            continue;
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            if (pid == child)
                return status;
            lab_ended(lab, pid, status);
        }
    }
}

static int run_command(struct run_options *o, struct lab *lab)
{
    static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    pid_t self = getpid(), child;
    sigset_t set, before;
    int status;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self)
            _exit(EXIT_OWN);
        sigprocmask(SIG_SETMASK, &before, NULL);
        program_exec(o->command);
    }
    if (child < 0) {
        say("can't fork: %s", strerror(errno));
        return EXIT_OWN;
    }
    status = wait_for_command(child, &set, lab);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Sets the faults of all hosts once more, so that their times begin together, and now. Returns 0, or -1 after printing an
 * error. */
static int start_faults(struct run_options *o, const struct lab *lab)
{
    char socket[SOCKET_PATH_MAX];
    struct fault_request r;

    if (!o->fault && !o->script)
        return 0;
    if (fault_request_init(&r, o->fault ? o->fault : "", o->script, strtoull(o->seed, NULL, 0)) != 0)
        return -1;
    if (record_text(&o->recording, "script", r.req.script) != 0)
        return -1;
    fault_request_start(&r);
    r.req.hosts = lab->hosts;
    for (unsigned i = 0; i < lab->hosts; i++) {
        targets_lab_socket(lab->dir, i, socket);
        if (fault_request_send(&r, socket, i) != 0)
            return -1;
    }
    return 0;
}

static int run_captured(struct run_options *o, struct lab *lab)
{
    pid_t capture = 0;

    if (o->capture)
        capture = capture_start(lab->dir, lab->hosts, o->capture, o->capture_lost);
    if (capture < 0)
        return EXIT_OWN;
    o->began = start_faults(o, lab) == 0;
    int code = o->began ? run_command(o, lab) : EXIT_OWN;
    if (capture && !capture_stop(capture) && code == 0)
        code = EXIT_OWN;
    return code;
}

/* Checks the command's file before anything starts. Returns 0 or the exit code, after printing an error. */
static int check_command(const char *name)
{
    char path[PATH_MAX];
    int err = paths_command(name, path);

    if (err) {
        say("%s: %s", name, err == ENOENT ? "no such command" : strerror(err));
        return err == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC;
    }
    paths_warn_no_preload(path);
    return 0;
}

/* Says why UCX has no transports over verbs, if it can't load them. UCX itself says so only in its debug log. */
static void explain_ucx(void)
{
    struct elf_symbols ours = {0};
    struct verbs_missing m;

    if (verbs_symbols_ours(&ours) == 0 && verbs_symbols_check_ucx(&ours, "", &m) > 0)
        say("no program made a queue pair, and UCX can't load its transports over verbs: %s imports %s, which Pumice's "
            "client library does not have; pumice doctor says more",
            m.file, m.symbol);
    elf_symbols_free(&ours);
}

/* Explains why the command did not use the devices. If it succeeded, it then tests something else than the user
 * expects. (A command that fails mostly prints the reason itself.) */
static void explain_unused(const struct lab *lab, int code)
{
    enum traffic t = traffic_check(lab);

    if (t == TRAFFIC_NO_QP)
        explain_ucx();
    else if (t != TRAFFIC_OK && code == 0)
        say("%s; MPIs and UCX use shared memory between processes of one machine by default; to use RDMA, set for "
            "example UCX_TLS=rc_v,self (docs/mpi.md)",
            t == TRAFFIC_NONE ? "no packet went over the devices, though several processes made queue pairs"
                              : "no packet went over the connections that were made, only datagrams to set them up");
}

int cmd_run(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "[--] COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
    static struct lab lab;
    static struct run_options o = {.lab.devices = 1, .spread = true};
    int code;

    o.recording.options = json_array();
    argp_err_exit_status = EXIT_OWN;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    set_default_options(&o);
    set_path();
    code = check_command(o.command[0]);
    if (code)
        return code;
    /* The parent may have set SIGCHLD to be ignored. Then the exit codes of children would be lost. */
    signal(SIGCHLD, SIG_DFL);
    if (record_start(&o.recording, o.lab.hosts, o.command) != 0)
        return EXIT_OWN;
    for (unsigned i = 0; i < o.lab.hosts; i++)
        o.lab.decisions_fd[i] = record_fd(&o.recording, i);
    check_daemons(&o.check);
    if (o.net && (!(o.lab.net = net_file_read(o.net)) || record_text(&o.recording, "net", o.lab.net) != 0))
        return EXIT_OWN;
    if (lab_start(&lab, &o.lab) != 0)
        return EXIT_OWN;
    if (o.net)
        net_file_explain(&lab);
    if (o.unkind)
        tell_seed(&o, "the devices are unkind");
    if (set_environment(&lab, &o) == 0) {
        code = run_captured(&o, &lab);
        if (o.began)
            explain_unused(&lab, code);
        code = check_tell(&o.check, lab.dir, code);
    } else {
        code = EXIT_OWN;
    }
    lab_stop(&lab);
    if (code == 0 && lab.crashed)
        code = EXIT_OWN;
    bool recorded = o.recording.record || o.recording.replay;
    code = record_finish(&o.recording, o.command, code);
    if (code && o.began && (o.fault || o.script || o.unkind) && !recorded)
        tell_seed(&o, "to repeat this run");
    return code;
}
