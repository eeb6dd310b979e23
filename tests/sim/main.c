// SPDX-License-Identifier: BSD-2-Clause
/* The simulator's command line. */
#include "tests/sim/connections/cms.h"
#include "tests/sim/emulated/emulated.h"
#include "tests/sim/scenarios/cases.h"
#include "tests/sim/tag_matching/tm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TM_EXCHANGES 2000u
#define CM_EXCHANGES 2000u

struct options {
    uint64_t seed, count, mask;
    bool has_seed, has_mask, has_count, verbose, keep, selective, hand_over;
    const char *name; /* --case */
    const char *out; /* directory for captures */
    uint64_t max_failures;
};
/* One exchange. */
struct job {
    const struct sim_case *script; /* NULL: drawn from the seed */
    uint64_t seed, mask;
    bool has_mask, selective, hand_over;
};
static uint64_t passed, failed;
static struct engine_counters seen; /* of exchanges by seed: shows how much they cover */
static struct sim sim; /* 200 KB, too large for the stack */

static void usage(FILE *f)
{
    fputs(
        "usage: sim [--seed S [--mask M]] [-n COUNT] [--case NAME [--mask M]] [--list] [--verbose] [--out DIR]\n"
        "       sim --tm SEED [COUNT [MAX_FAILURES]]   exchanges with tag matching\n"
        "       sim --cm SEED [COUNT [MAX_FAILURES]]   exchanges with connection management\n"
        "       sim --slow [CELL]  connections over slow paths with small and large buffers; CELL: one of them, in "
        "full\n"
        "       sim --net [NAME]   emulated networks, compared with a computed answer; NAME: one of them\n"
        "       sim --goodput   virtual-time goodput at several rates of loss, for people\n"
        "Without --seed and --case: all cases, then seeds 1 ... COUNT (15000), then 2000 with tag matching and 2000\n"
        "with connection management.\n"
        "  --seed S     exchanges with seeds S ... S + COUNT - 1 (COUNT is 1)\n"
        "  --mask M     lose packet n of an exchange if bit n % 64 of M is set, instead of what the seed says\n"
        "  --case NAME  one scripted case; --list names them\n"
        "  --selective  with --case: both ends understand selective acknowledgements\n"
        "  --hand-over  with --seed: QPs of one host hand runs of packets to each other. Without it, such an exchange\n"
        "               runs both ways, and all results must be the same\n"
        "  --verbose    print everything that happens\n"
        "  --keep       leave captures of exchanges that went well, too\n"
        "  --out DIR    where captures of failed exchanges go (build/sim)\n"
        "  --max-failures N  stop after so many (10)\n",
        f);
}

/* --- one exchange ------------------------------------------------------------------------------ */

static int run(const struct job *j, struct capture *capture)
{
    memset(&sim, 0, sizeof sim);
    if (j->script) {
        case_setup(&sim, j->script, j->mask, j->selective);
    } else {
        sim.sc.seed = j->seed;
        scenario_draw(&sim);
        if (j->has_mask) {
            sim.sc.net.mask = j->mask;
            sim.sc.net.mask_once = false;
            sim.sc.lossless = sim.sc.lossless && j->mask == 0;
        }
        sim.sc.hand_over = j->hand_over && sim.sc.direct_loop;
    }
    sim.capture = capture;
    int err = sim_run(&sim);
    return err == 0 && j->script ? case_check(&sim, j->script, j->mask) : err;
}

static void replay_line(const struct job *j, char *out, size_t cap)
{
    if (j->script) {
        snprintf(out, cap, "sim --case %s%s --mask %#llx", j->script->name, j->selective ? " --selective" : "",
                 (unsigned long long)j->mask);
    } else if (j->has_mask) {
        snprintf(out, cap, "sim --seed %llu --mask %#llx%s", (unsigned long long)j->seed, (unsigned long long)j->mask,
                 j->hand_over ? " --hand-over" : "");
    } else {
        snprintf(out, cap, "sim --seed %llu%s", (unsigned long long)j->seed, j->hand_over ? " --hand-over" : "");
    }
}

static void make_dirs(const char *path)
{
    char part[512];
    snprintf(part, sizeof part, "%s/", path);
    for (char *p = part + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(part, 0777);
        *p = '/';
    }
}

static void capture_path(const struct job *j, const struct options *o, char *path, size_t cap)
{
    make_dirs(o->out);
    if (j->script) {
        snprintf(path, cap, "%s/%s-%llx.pcapng", o->out, j->script->name, (unsigned long long)j->mask);
    } else {
        snprintf(path, cap, "%s/seed-%llu.pcapng", o->out, (unsigned long long)j->seed);
    }
}

/* Runs the exchange again and records everything. */
static void explain(const struct job *j, const struct options *o)
{
    char path[512], replay[256];
    capture_path(j, o, path, sizeof path);
    struct capture *c = capture_start(path, o->verbose);
    if (!c) {
        printf("    (can't write %s: %s)\n", path, strerror(errno));
        return;
    }
    run(j, c);
    capture_end(c);
    replay_line(j, replay, sizeof replay);
    printf("    replay:  %s --verbose\n    capture: %s\n", replay, path);
}

/* Runs the exchange with a capture that is kept. */
static int run_kept(const struct job *j, const struct options *o)
{
    char path[512];
    capture_path(j, o, path, sizeof path);
    struct capture *c = capture_start(path, false);
    if (!c) {
        fprintf(stderr, "sim: can't write %s: %s\n", path, strerror(errno));
        exit(2);
    }
    capture_only_peers(c);
    int err = run(j, c);
    capture_end(c);
    /* Such captures are full of violations. */
    if (sim.sc.rogues) {
        char *name = strrchr(path, '/') + 1, other[512];
        snprintf(other, sizeof other, "%.*srogue-%s", (int)(name - path), path, name);
        rename(path, other);
    }
    return err;
}

static struct { /* exchanges within hosts that were repeated with runs */
    uint64_t exchanges, runs, packets, writes, writes_without;
} handed;

/* Do QPs of one host send each other packets that don't pass the network? */
static bool has_inside(const struct sim *s)
{
    bool any = s->dg.n > 0;
    for (int i = 0; i < s->sc.nends; i++) {
        any = any || s->end[i].host == s->end[i].peer->host;
    }
    return any && s->sc.direct_loop;
}

/* Says what is not as it was before. */
static void tell_difference(const struct totals *before, const struct totals *now)
{
    int n = snprintf(sim.failure, sizeof sim.failure, "with runs within a host, something is not as without:");
    size_t cap = sizeof sim.failure;
#define X(name, text)                                                                                                  \
    if (now->counters.name != before->counters.name && (size_t)n < cap)                                                \
        n += snprintf(sim.failure + n, cap - (size_t)n, " " #name " %llu, not %llu",                                   \
                      (unsigned long long)now->counters.name, (unsigned long long)before->counters.name);
    ENGINE_COUNTERS(X)
#undef X
}

/* Repeats the exchange that has just gone well, with runs instead of packets within a host. All must be as before: each
 * completion at the same time, each packet between hosts, each counter. */
static bool same_with_runs(const struct job *j, const struct options *o)
{
    struct job again = *j;
    struct totals before = sim.totals;
    uint64_t trace = sim.trace;
    char replay[256];
    again.hand_over = true;
    replay_line(&again, replay, sizeof replay);
    int err = run(&again, NULL);
    struct totals *now = &sim.totals;
    bool same = sim.trace == trace && now->done_at == before.done_at && now->packets == before.packets &&
                memcmp(&now->counters, &before.counters, sizeof now->counters) == 0;
    if (err == 0 && !same) {
        tell_difference(&before, now);
    }
    handed.exchanges += now->runs > 0;
    handed.runs += now->runs;
    handed.packets += now->handed;
    handed.writes += now->runs ? now->writes : 0;
    handed.writes_without += now->runs ? before.writes : 0;
    if (err == 0 && same) {
        return true;
    }
    printf("FAILED  %s\n    %s\n", replay, sim.failure);
    explain(&again, o);
    return false;
}

static bool run_job(const struct job *j, const struct options *o)
{
    char replay[256];
    int err = o->keep ? run_kept(j, o) : run(j, NULL);
    replay_line(j, replay, sizeof replay);
    if (err == 0) {
        uint64_t trace = sim.trace;
        passed++;
        /* The same seed must give the same run. */
        if ((o->verbose && o->has_seed) || (j->seed % 64 == 0 && !j->script)) {
            run(j, NULL);
            if (sim.trace != trace) {
                printf("FAILED  %s: a second run sends other packets\n", replay);
                passed--;
                failed++;
            }
        }
        if (!j->script && !j->hand_over && has_inside(&sim) && !same_with_runs(j, o)) {
            passed--;
            failed++;
        }
        return failed < o->max_failures;
    }
    printf("FAILED  %s\n    %s\n", replay, sim.failure);
    failed++;
    explain(j, o);
    return failed < o->max_failures;
}

/* --- many exchanges ---------------------------------------------------------------------------- */

static bool run_variants(const struct sim_case *c, const struct options *o, bool selective)
{
    struct job j = {.script = c, .mask = o->mask, .selective = selective};
    if (o->has_mask) {
        return run_job(&j, o);
    }
    uint32_t packets = 0;
    uint64_t before = failed, variants = 1;
    for (uint64_t v = 0; v < variants; v++) {
        j.mask = case_mask(c, v, packets);
        if (!run_job(&j, o)) {
            return false;
        }
        if (v == 0) {
            packets = sim.net.sent;
            variants = case_variants(c, packets);
        }
    }
    if (o->verbose || o->name) {
        printf("%-24s %5llu exchanges%s, %s\n", c->name, (unsigned long long)variants, selective ? " (selective)" : "",
               failed == before ? "ok" : "FAILED");
    }
    return true;
}

/* Cases that lose each packet in turn also run with selective retransmission. The other cases say how the ends recover. */
static bool run_case(const struct sim_case *c, const struct options *o)
{
    if (o->selective || o->has_mask || c->sweep == SWEEP_NONE) {
        return run_variants(c, o, o->selective);
    }
    return run_variants(c, o, false) && run_variants(c, o, true);
}

static int run_cases(const struct options *o)
{
    bool found = false;
    for (size_t i = 0; i < sim_case_count; i++) {
        if (!o->name || strcmp(o->name, sim_cases[i].name) == 0) {
            found = true;
            if (!run_case(&sim_cases[i], o)) {
                break;
            }
        }
    }
    if (!found) {
        fprintf(stderr, "sim: no case is called %s; --list names them\n", o->name);
        return -1;
    }
    return 0;
}

static void run_seeds(const struct options *o)
{
    for (uint64_t i = 0; i < o->count; i++) {
        struct job j = {.seed = o->seed + i, .mask = o->mask, .has_mask = o->has_mask, .hand_over = o->hand_over};
        if (!run_job(&j, o)) {
            return;
        }
        seen.reordered_requests += sim.totals.counters.reordered_requests;
        seen.sacks_rcvd += sim.totals.counters.sacks_rcvd;
        seen.selective_retrans += sim.totals.counters.selective_retrans;
        seen.reorder_no_room += sim.totals.counters.reorder_no_room;
    }
    printf(
        "selective acknowledgements: %llu requests reordered, %llu without room; %llu SACKs, %llu packets sent again "
        "alone\n",
        (unsigned long long)seen.reordered_requests, (unsigned long long)seen.reorder_no_room,
        (unsigned long long)seen.sacks_rcvd, (unsigned long long)seen.selective_retrans);
    printf(
        "within a host: %llu exchanges are the same with %llu runs of %llu packets; %llu writes to memory instead of "
        "%llu\n",
        (unsigned long long)handed.exchanges, (unsigned long long)handed.runs, (unsigned long long)handed.packets,
        (unsigned long long)handed.writes, (unsigned long long)handed.writes_without);
}

/* Reports a single exchange in full. */
static void tell(const struct options *o)
{
    struct job j = {.seed = o->seed,
                    .mask = o->mask,
                    .has_mask = o->has_mask,
                    .selective = o->selective,
                    .hand_over = o->hand_over};
    for (size_t i = 0; o->name && i < sim_case_count; i++) {
        if (strcmp(o->name, sim_cases[i].name) == 0) {
            j.script = &sim_cases[i];
        }
    }
    explain(&j, o);
    if (sim.failure[0]) {
        printf("FAILED  %s\n", sim.failure);
    }
}

/* --- tag matching ------------------------------------------------------------------------------ */

static void run_tm(uint64_t seed, uint64_t count, uint64_t max_failures)
{
    static struct tms s;
    uint64_t wrong = 0, device = 0, program = 0, incomplete = 0, late = 0, died = 0;
    for (uint64_t i = 0; i < count && wrong < max_failures; i++) {
        if (tms_run(&s, seed + i, count == 1) == 0) {
            passed++;
        } else {
            printf("FAILED  sim --tm %llu\n    %s\n", (unsigned long long)s.seed, s.failure);
            wrong++;
        }
        device += s.hw_matches;
        program += s.sw_matches;
        incomplete += s.incompletes;
        late += s.late_cancels;
        died += s.dead_entries;
    }
    failed += wrong;
    printf(
        "tag matching: %llu messages matched by the device, %llu by the program; %llu incomplete, %llu deletions too "
        "late, %llu died\n",
        (unsigned long long)device, (unsigned long long)program, (unsigned long long)incomplete,
        (unsigned long long)late, (unsigned long long)died);
}

/* --- connection management ----------------------------------------------------------------------- */

static void run_cm(uint64_t seed, uint64_t count, uint64_t max_failures)
{
    static struct cms s;
    uint64_t wrong = 0;
    unsigned established = 0, rejected = 0, unreachable = 0, deaths = 0;
    for (uint64_t i = 0; i < count && wrong < max_failures; i++) {
        int err = cms_run(&s, seed + i, count == 1);
        uint64_t trace = s.trace;
        if (err == 0 && i % 64 == 0 && (cms_run(&s, seed + i, false) != 0 || s.trace != trace))
            snprintf(s.failure, sizeof s.failure, "a second run sends other messages");
        established += s.established;
        rejected += s.rejected;
        unreachable += s.unreachable;
        deaths += s.deaths;
        if (!s.failure[0]) {
            passed++;
            continue;
        }
        printf("FAILED  sim --cm %llu\n    %s\n", (unsigned long long)s.seed, s.failure);
        wrong++;
    }
    failed += wrong;
    printf("connection management: %u ends established, %u rejected, %u unreachable; %u hosts died\n", established,
           rejected, unreachable, deaths);
}

/* --- arguments --------------------------------------------------------------------------------- */

static bool number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = text ? strtoull(text, &end, 0) : 0;
    return text && errno == 0 && *text && !*end;
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok = true;
        if (strcmp(a, "--seed") == 0) {
            ok = o->has_seed = number(v, &o->seed);
            i++;
        } else if (strcmp(a, "--mask") == 0) {
            ok = o->has_mask = number(v, &o->mask);
            i++;
        } else if (strcmp(a, "-n") == 0) {
            ok = o->has_count = number(v, &o->count);
            i++;
        } else if (strcmp(a, "--max-failures") == 0) {
            ok = number(v, &o->max_failures);
            i++;
        } else if (strcmp(a, "--case") == 0) {
            ok = (o->name = v) != NULL;
            i++;
        } else if (strcmp(a, "--out") == 0) {
            ok = (o->out = v) != NULL;
            i++;
        } else if (strcmp(a, "--selective") == 0) {
            o->selective = true;
        } else if (strcmp(a, "--hand-over") == 0) {
            o->hand_over = true;
        } else if (strcmp(a, "--keep") == 0) {
            o->keep = true;
        } else if (strcmp(a, "--verbose") == 0) {
            o->verbose = true;
        } else {
            ok = false;
        }
        if (!ok) {
            fprintf(stderr, "sim: %s: not understood\n", a);
            usage(stderr);
            return -1;
        }
    }
    return 0;
}

static void list(void)
{
    for (size_t i = 0; i < sim_case_count; i++) {
        printf("%-24s %s\n", sim_cases[i].name, sim_cases[i].about);
    }
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1, .out = "build/sim", .max_failures = 10};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--goodput") == 0) {
        goodput_report();
        return 0;
    }
    if (argc >= 2 && argc <= 3 && strcmp(argv[1], "--slow") == 0) {
        return slow_paths(argv[2], true, &passed) == 0 ? 0 : 1;
    }
    if (argc >= 2 && argc <= 3 && strcmp(argv[1], "--net") == 0) {
        return emulated_networks(argv[2], true, &passed) == 0 ? 0 : 1;
    }
    uint64_t first, number_of = 1;
    bool is_tm = argc > 1 && strcmp(argv[1], "--tm") == 0, is_cm = argc > 1 && strcmp(argv[1], "--cm") == 0;
    if (argc >= 3 && argc <= 5 && (is_tm || is_cm)) {
        if (!number(argv[2], &first) || (argc > 3 && !number(argv[3], &number_of)) ||
            (argc > 4 && !number(argv[4], &o.max_failures)))
            return 2;
        (is_tm ? run_tm : run_cm)(first, number_of, o.max_failures);
        printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
        return failed ? 1 : 0;
    }
    if (parse(argc, argv, &o) != 0) {
        return 2;
    }
    o.count = o.has_count ? o.count : o.has_seed ? 1 : 15000;
    if (o.verbose && ((o.has_seed && o.count == 1) || (o.name && o.has_mask))) {
        tell(&o);
    }
    if (!o.has_seed && run_cases(&o) != 0) {
        return 2;
    }
    if (!o.name && failed < o.max_failures) {
        run_seeds(&o);
    }
    if (!o.name && !o.has_seed && failed < o.max_failures) {
        run_tm(1, o.has_count && o.count < TM_EXCHANGES ? o.count : TM_EXCHANGES, o.max_failures);
    }
    if (!o.name && !o.has_seed && failed < o.max_failures) {
        run_cm(1, o.has_count && o.count < CM_EXCHANGES ? o.count : CM_EXCHANGES, o.max_failures);
    }
    if (!o.name && !o.has_seed && !o.has_count && failed < o.max_failures) {
        failed += slow_paths(NULL, false, &passed);
        failed += emulated_networks(NULL, false, &passed);
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)failed);
    return failed ? 1 : 0;
}
