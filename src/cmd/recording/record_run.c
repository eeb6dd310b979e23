// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/recording/record_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "pumice/version.h"
#include "src/cmd/common/cmd.h"
#include "src/cmd/common/json_member.h"
#include "src/cmd/recording/program_file.h"

#define FD_LEAST 10 /* the lab gives its daemons lower numbers */
#define NOT_MET_SHOWN 5

/* --- before the run ---------------------------------------------------------------------------- */

static void system_text(char out[256])
{
    struct utsname u;

    out[0] = 0;
    if (uname(&u) == 0)
        snprintf(out, 256, "%.60s %.100s %.60s", u.sysname, u.release, u.machine);
}

static void note_difference(const char *what, const char *then, const char *now)
{
    if (strcmp(then, now) != 0)
        say("note: %s: %s in the recording, %s now", what, then[0] ? then : "unknown", now[0] ? now : "unknown");
}

/* Says what differs from the recorded run, and may lead to other packets. */
static void note_differences(const json_t *run, unsigned hosts, char **command)
{
    const json_t *program = json_object_get(run, "program");
    json_t *present = program_file_describe(command[0]);
    char system[256], directory[PATH_MAX];

    system_text(system);
    if (!getcwd(directory, sizeof(directory)))
        directory[0] = 0;
    note_difference("version of Pumice", member_text(run, "pumice"), PUMICE_VERSION);
    if (member_whole(run, "abi") != PM_ABI_VERSION)
        say("note: the recording was made by another build of Pumice");
    note_difference("system", member_text(run, "system"), system);
    note_difference("directory", member_text(run, "directory"), directory);
    if (member_whole(run, "hosts") != (long long)hosts)
        say("note: hosts: %lld in the recording, %u now", member_whole(run, "hosts"), hosts);
    if (strcmp(member_text(program, "path"), member_text(present, "path")) != 0)
        note_difference("program", member_text(program, "path"), member_text(present, "path"));
    else if (strcmp(member_text(program, "hash"), member_text(present, "hash")) != 0)
        say("note: %s has changed since the recording", member_text(program, "path"));
    json_decref(present);
}

/* A recording is text, so the command must be. */
static int check_command(char **command)
{
    for (unsigned i = 0; command[i]; i++) {
        json_t *text = json_string(command[i]);

        if (!text) {
            say("--record: argument %u of the command is not UTF-8 text: give it in another way", i);
            return -1;
        }
        json_decref(text);
    }
    return 0;
}

static uint32_t planned_of(const struct record_run *r, unsigned host)
{
    uint32_t n = 0;

    for (size_t i = 0; i < r->planned.n; i++)
        n += r->planned.decision[i].host == host;
    return n;
}

static struct pm_decision *entries(const struct record_host *h)
{
    return (struct pm_decision *)(void *)((uint8_t *)h->page + PM_DECISIONS_AT);
}

/* Makes the memory of one host, and fills in what is planned. */
static int make_memory(struct record_run *r, unsigned host)
{
    struct record_host *h = &r->host[host];
    uint32_t planned = planned_of(r, host), capacity = r->record ? PM_DECISIONS_MAX : 0, n = 0;
    int fd = memfd_create("pumice-decisions", MFD_CLOEXEC);

    h->size = PM_DECISIONS_AT + (planned + (size_t)capacity) * sizeof(struct pm_decision);
    h->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
    if (fd >= 0)
        close(fd);
    if (h->fd < 0 || ftruncate(h->fd, (off_t)h->size) != 0)
        return -errno;
    h->page = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
    if (h->page == MAP_FAILED) {
        h->page = NULL;
        return -errno;
    }
    h->page->magic = PM_DECISIONS_MAGIC;
    h->page->abi_version = PM_ABI_VERSION;
    h->page->planned = planned;
    h->page->capacity = capacity;
    h->page->flags = r->replay ? PM_DECISIONS_REPLAY : 0;
    for (size_t i = 0; i < r->planned.n; i++)
        if (r->planned.decision[i].host == host)
            entries(h)[n++] = r->planned.decision[i].decision;
    return 0;
}

int record_start(struct record_run *r, unsigned hosts, char **command)
{
    if (!r->record && !r->replay)
        return 0;
    if (r->record && (check_command(command) != 0 || recording_prepare(r->record) != 0))
        return -1;
    if (r->replay) {
        if (recording_load(r->replay, &r->planned) != 0)
            return -1;
        note_differences(r->planned.run, hosts, command);
    }
    for (unsigned i = 0; i < hosts; i++) {
        int err = make_memory(r, i);

        if (err) {
            say("can't make memory for the decisions of host %u: %s", i, strerror(-err));
            return -1;
        }
        r->hosts++;
    }
    return 0;
}

int record_text(struct record_run *r, const char *option, const char *text)
{
    if (!r->record || !text[0])
        return 0;
    if (!r->texts)
        r->texts = json_object();
    int rc = json_object_set_new(r->texts, option, json_string(text));
    if (rc)
        say("--record: the file of --%s is not UTF-8 text", option);
    return rc;
}

int record_fd(const struct record_run *r, unsigned host)
{
    return host < r->hosts ? r->host[host].fd : -1;
}

/* --- after the run ----------------------------------------------------------------------------- */

/* Says which planned decisions met no packet. */
static void tell_unmet(const struct record_run *r)
{
    char sentence[DECISION_LINE_MAX];
    size_t unmet = 0, beyond = 0;

    for (size_t i = 0; i < r->planned.n; i++)
        beyond += r->planned.decision[i].host >= r->hosts;
    for (unsigned i = 0; i < r->hosts; i++) {
        for (uint32_t j = 0; j < r->host[i].page->planned; j++) {
            struct host_decision d = {i, entries(&r->host[i])[j]};

            if (d.decision.met == PM_MET_STRUCK || unmet++ >= NOT_MET_SHOWN)
                continue;
            decision_to_sentence(&d, sentence);
            say("note: %s: %s", d.decision.met == PM_MET_OTHER ? "another kind of packet was sent" : "no such packet",
                sentence);
        }
    }
    if (beyond)
        say("note: %zu decisions are about hosts that this run does not have", beyond);
    if (unmet + beyond)
        say("%zu of %zu recorded faults struck; the run took another way than the recorded one",
            r->planned.n - unmet - beyond, r->planned.n);
    else
        say("all %zu recorded faults struck", r->planned.n);
}

/* The daemon may forget how often it has sent a packet, and then gives a name twice. Returns how many were removed. */
static uint64_t remove_doubles(struct recording *r)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->n; i++)
        if (i == 0 || decision_compare(&r->decision[kept - 1], &r->decision[i]) != 0)
            r->decision[kept++] = r->decision[i];
    uint64_t removed = r->n - kept;
    r->n = kept;
    return removed;
}

/* Collects what the daemons have written down. Returns the number of decisions that had no room or are incomplete. */
static uint64_t collect(const struct record_run *r, struct recording *out)
{
    uint64_t total = 0, missing = 0;

    for (unsigned i = 0; i < r->hosts; i++)
        total += r->host[i].page->recorded;
    out->decision = calloc(total < PM_DECISIONS_MAX ? total + 1 : PM_DECISIONS_MAX, sizeof(*out->decision));
    if (!out->decision)
        return total;
    for (unsigned i = 0; i < r->hosts; i++) {
        const struct pm_decisions_page *page = r->host[i].page;
        const struct pm_decision *first = entries(&r->host[i]) + page->planned;
        uint64_t n = page->recorded;

        for (uint64_t j = 0; j < n; j++) {
            if (j >= page->capacity || first[j].packet.attempt == 0 || out->n == PM_DECISIONS_MAX)
                missing++;
            else
                out->decision[out->n++] = (struct host_decision){i, first[j]};
        }
    }
    qsort(out->decision, out->n, sizeof(*out->decision), decision_compare);
    return missing + remove_doubles(out);
}

static json_t *command_json(char **command)
{
    json_t *list = json_array();

    for (unsigned i = 0; command[i]; i++)
        json_array_append_new(list, json_string(command[i]));
    return list;
}

static int save(const struct record_run *r, char **command, int code)
{
    struct recording out = {0};
    uint64_t missing = collect(r, &out);
    char system[256], directory[PATH_MAX];

    system_text(system);
    if (!getcwd(directory, sizeof(directory)))
        directory[0] = 0;
    out.run =
        json_pack("{s:s, s:i, s:s, s:i, s:s, s:s%, s:i, s:O, s:o, s:o, s:i, s:I, s:I}", "format", RECORDING_FORMAT,
                  "version", RECORDING_VERSION, "pumice", PUMICE_VERSION, "abi", (int)PM_ABI_VERSION, "system", system,
                  "directory", directory, strlen(directory), "hosts", (int)r->hosts, "options", r->options, "command",
                  command_json(command), "program", program_file_describe(command[0]), "exit_code", code, "decisions",
                  (json_int_t)out.n, "unrecorded", (json_int_t)missing);
    if (r->texts)
        json_object_update(out.run, r->texts);
    int rc = -1;
    if (!out.run)
        say("--record: the names of the directory and the program are not UTF-8 text");
    else
        rc = recording_save(r->record, &out);
    if (rc == 0)
        say("%zu faults recorded in %s", out.n, r->record);
    if (rc == 0 && missing)
        say("%" PRIu64 " more had no room, so a replay is incomplete: use fewer faults", missing);
    recording_free(&out);
    return rc;
}

static void release(struct record_run *r)
{
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
        if (r->host[i].page)
            munmap(r->host[i].page, r->host[i].size);
        if (r->host[i].page)
            close(r->host[i].fd);
    }
    recording_free(&r->planned);
    json_decref(r->options);
    json_decref(r->texts);
    r->options = r->texts = NULL;
    r->hosts = 0;
}

int record_finish(struct record_run *r, char **command, int code)
{
    const char *again = r->record ? r->record : r->replay;

    if (r->replay && r->hosts)
        tell_unmet(r);
    if (r->record && r->hosts && save(r, command, code) != 0)
        code = code ? code : EXIT_OWN;
    else if (code && again && r->hosts)
        say("to repeat this run: pumice replay %s", again);
    release(r);
    return code;
}
