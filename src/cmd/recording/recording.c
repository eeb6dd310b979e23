// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/recording/recording.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cmd/common/cmd.h"
#include "src/cmd/common/json_member.h"

#define RUN_FILE "run.json"
#define DECISIONS_FILE "decisions.jsonl"
#define RUN_BYTES_MAX (1u << 20)
#define DECISIONS_BYTES_MAX ((size_t)PM_DECISIONS_MAX * 256)

/* --- files ------------------------------------------------------------------------------------- */

static bool path_in(const char *dir, const char *name, char out[PATH_MAX])
{
    if ((size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX)
        return true;
    say("%.100s...: the path is too long", dir);
    return false;
}

/* Reads a file of at most `most` bytes. The caller frees the text. NULL: an error was printed. */
static char *read_file(const char *path, size_t most, size_t *len)
{
    FILE *f = fopen(path, "r");
    size_t room = 0, n = 1;
    char *text = NULL;

    *len = 0;
    if (!f) {
        say("can't read %s: %s", path, strerror(errno));
        return NULL;
    }
    while (n > 0 && *len <= most) {
        if (*len == room) {
            char *larger = realloc(text, room = room ? 2 * room : 4096);
            if (!larger)
                break;
            text = larger;
        }
        n = fread(text + *len, 1, room - *len, f);
        *len += n;
    }
    if (ferror(f) || n > 0) {
        say("can't read %s: %s", path,
            ferror(f)     ? strerror(errno)
            : *len > most ? "it is too large for a file of a recording"
                          : "out of memory");
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

/* --- run.json ---------------------------------------------------------------------------------- */

static bool is_list_of_texts(const json_t *list)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(list))
        return false;
    json_array_foreach (list, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

static const char *check_run(const json_t *run)
{
    static const char *const texts[] = {"pumice", "system", "directory"};
    static const char *const numbers[] = {"abi", "hosts", "exit_code", "decisions", "unrecorded"};

    if (!member_is(run, "format", RECORDING_FORMAT))
        return "it has no \"format\": \"" RECORDING_FORMAT "\", so it is no recording of pumice run --record";
    if (!json_is_integer(json_object_get(run, "version")))
        return "\"version\" is not a number";
    if (member_whole(run, "version") != RECORDING_VERSION)
        return "it has another version of the format: use the version of Pumice that made it, or record again";
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!json_is_string(json_object_get(run, texts[i])))
            return "\"pumice\", \"system\" or \"directory\" is not a text";
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!json_is_integer(json_object_get(run, numbers[i])))
            return "\"abi\", \"hosts\", \"exit_code\", \"decisions\" or \"unrecorded\" is not a number";
    if (!is_list_of_texts(json_object_get(run, "options")))
        return "\"options\" is not a list of texts";
    const json_t *script = json_object_get(run, "script"), *net = json_object_get(run, "net");
    if ((script && !json_is_string(script)) || (net && !json_is_string(net)))
        return "\"script\" or \"net\" is not a text";
    const json_t *command = json_object_get(run, "command");
    if (!is_list_of_texts(command) || json_array_size(command) == 0)
        return "\"command\" is not a list of at least one text";
    const json_t *program = json_object_get(run, "program");
    if (!json_is_string(json_object_get(program, "path")) || !json_is_string(json_object_get(program, "hash")))
        return "\"program\" has not the texts \"path\" and \"hash\"";
    return NULL;
}

json_t *recording_parse_run(const char *text, size_t len, char why[DECISION_WHY_MAX])
{
    json_error_t error;
    json_t *run = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);

    if (!run) {
        snprintf(why, DECISION_WHY_MAX, "line %d: %.150s", error.line, error.text);
        return NULL;
    }
    const char *problem = check_run(run);
    if (problem) {
        snprintf(why, DECISION_WHY_MAX, "%s", problem);
        json_decref(run);
        return NULL;
    }
    return run;
}

/* --- decisions.jsonl --------------------------------------------------------------------------- */

static bool add_line(struct recording *r, size_t *room, const char *line, size_t len, char why[DECISION_WHY_MAX])
{
    if (r->n == PM_DECISIONS_MAX) {
        snprintf(why, DECISION_WHY_MAX, "there are more than %u decisions", PM_DECISIONS_MAX);
        return false;
    }
    if (r->n == *room) {
        size_t more = *room ? 2 * *room : 64;
        struct host_decision *larger = realloc(r->decision, more * sizeof(*larger));

        if (!larger) {
            snprintf(why, DECISION_WHY_MAX, "out of memory");
            return false;
        }
        r->decision = larger;
        *room = more;
    }
    return decision_from_line(line, len, &r->decision[r->n++], why);
}

bool recording_parse_decisions(const char *text, size_t len, struct recording *r, char why[DECISION_WHY_MAX])
{
    const char *p = text, *end = text + len;
    char problem[DECISION_WHY_MAX];
    size_t room = 0;

    r->decision = NULL;
    r->n = 0;
    for (unsigned line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline ? newline : end) - p);

        if (n > 0 && p[0] != '#' && !add_line(r, &room, p, n, problem)) {
            snprintf(why, DECISION_WHY_MAX, "line %u: %.200s", line, problem);
            return false;
        }
        p += n + 1;
    }
    if (r->n)
        qsort(r->decision, r->n, sizeof(r->decision[0]), decision_compare);
    for (size_t i = 1; i < r->n; i++) {
        if (decision_compare(&r->decision[i - 1], &r->decision[i]) != 0)
            continue;
        char sentence[DECISION_LINE_MAX];
        decision_to_sentence(&r->decision[i], sentence);
        snprintf(why, DECISION_WHY_MAX, "there is a second decision about a packet, remove one of them: %.150s",
                 sentence);
        return false;
    }
    return true;
}

/* --- the directory ----------------------------------------------------------------------------- */

int recording_load(const char *dir, struct recording *r)
{
    char path[PATH_MAX], why[DECISION_WHY_MAX];
    size_t len;

    memset(r, 0, sizeof(*r));
    char *text = path_in(dir, RUN_FILE, path) ? read_file(path, RUN_BYTES_MAX, &len) : NULL;
    if (!text)
        return -1;
    r->run = recording_parse_run(text, len, why);
    free(text);
    if (!r->run) {
        say("%s: %s", path, why);
        return -1;
    }
    text = path_in(dir, DECISIONS_FILE, path) ? read_file(path, DECISIONS_BYTES_MAX, &len) : NULL;
    if (text && !recording_parse_decisions(text, len, r, why)) {
        say("%s: %s", path, why);
        free(text);
        text = NULL;
    }
    if (!text) {
        recording_free(r);
        return -1;
    }
    free(text);
    return 0;
}

void recording_free(struct recording *r)
{
    json_decref(r->run);
    free(r->decision);
    memset(r, 0, sizeof(*r));
}

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    unsigned entries = 0;

    while (d && readdir(d))
        entries++;
    if (d)
        closedir(d);
    return d && entries <= 2;
}

int recording_prepare(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;

    if (!path_in(dir, RUN_FILE, path))
        return -1;
    if (mkdir(dir, 0777) == 0)
        return 0;
    if (errno != EEXIST) {
        say("can't make the directory %s: %s", dir, strerror(errno));
        return -1;
    }
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) {
        say("%s exists and is no directory: name a directory for the recording", dir);
        return -1;
    }
    if (access(path, F_OK) != 0 && !is_empty(dir)) {
        say("%s has other files and no recording: name a new or empty directory for the recording", dir);
        return -1;
    }
    if (access(dir, W_OK) != 0) {
        say("can't write to the directory %s: %s", dir, strerror(errno));
        return -1;
    }
    return 0;
}

static bool write_decisions(FILE *f, const struct recording *r)
{
    char line[DECISION_LINE_MAX];

    for (size_t i = 0; i < r->n; i++) {
        decision_to_line(&r->decision[i], line);
        fprintf(f, "%s\n", line);
    }
    return true;
}

static bool write_run(FILE *f, const struct recording *r)
{
    bool ok = json_dumpf(r->run, f, JSON_INDENT(2)) == 0;

    fputc('\n', f);
    return ok;
}

/* Writes a file beside the old one, and puts it in its place. */
static int save_file(const char *dir, const char *name, bool (*write)(FILE *f, const struct recording *r),
                     const struct recording *r)
{
    char path[PATH_MAX], fresh[PATH_MAX + 8];
    FILE *f;

    if (!path_in(dir, name, path))
        return -1;
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    f = fopen(fresh, "w");
    bool ok = f && write(f, r);
    ok = f && !ferror(f) && ok;
    ok = f && fclose(f) == 0 && ok;
    if (ok && rename(fresh, path) == 0)
        return 0;
    say("can't write %s: %s", path, strerror(errno));
    unlink(fresh);
    return -1;
}

void recording_remove(const char *dir)
{
    char path[PATH_MAX];

    if (path_in(dir, RUN_FILE, path))
        unlink(path);
    if (path_in(dir, DECISIONS_FILE, path))
        unlink(path);
    rmdir(dir);
}

int recording_save(const char *dir, const struct recording *r)
{
    if (save_file(dir, DECISIONS_FILE, write_decisions, r) != 0)
        return -1;
    return save_file(dir, RUN_FILE, write_run, r);
}
