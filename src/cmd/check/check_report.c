// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/check_report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "src/check/base/rule.h"

#define PAGE "docs/checks.md"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

/* --- JSON -------------------------------------------------------------------------------------- */

static json_t *place_json(const struct place *p)
{
    return json_pack("{s:s, s:I, s:s, s:s, s:i}", "module", p->module, "offset", (json_int_t)p->offset, "function",
                     p->function, "file", p->file, "line", p->line);
}

static json_t *calls_json(const struct calls *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(list, place_json(&c->list[i]));
    return list;
}

static json_t *finding_json(const struct finding *f)
{
    json_t *other = f->other.n ? json_pack("{s:s, s:o}", "what", f->whose, "calls", calls_json(&f->other)) : NULL;

    return json_pack("{s:s, s:s, s:I, s:i, s:o*, s:o, s:o*}", "rule", f->rule, "text", f->text, "count",
                     (json_int_t)f->count, "processes", (int)f->processes, "place",
                     f->where.n ? place_json(&f->where.list[0]) : NULL, "calls", calls_json(&f->where), "other", other);
}

static json_t *as_json(const struct findings *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, finding_json(&f->list[i]));
    return json_pack("{s:o}", "findings", list);
}

/* --- SARIF (Static Analysis Results Interchange Format 2.1.0, OASIS) ---------------------------- */

static json_t *sarif_location(const struct place *p)
{
    json_t *region = p->line > 0 ? json_pack("{s:i}", "startLine", p->line) : NULL;
    json_t *physical =
        json_pack("{s:{s:s}, s:o*}", "artifactLocation", "uri", p->file[0] ? p->file : p->module, "region", region);

    if (p->function[0])
        return json_pack("{s:o, s:[{s:s}]}", "physicalLocation", physical, "logicalLocations", "name", p->function);
    return json_pack("{s:o}", "physicalLocation", physical);
}

static json_t *sarif_rules(void)
{
    json_t *rules = json_array();

    for (enum rule r = 0; r < RULES; r++)
        json_array_append_new(
            rules, json_pack("{s:s, s:{s:s}}", "id", rule_name(r), "shortDescription", "text", rule_what(r)));
    return rules;
}

/* A stack as SARIF has it. */
static json_t *sarif_stack(const char *message, const struct calls *c)
{
    json_t *frames = json_array();

    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(frames, json_pack("{s:o}", "location", sarif_location(&c->list[i])));
    return json_pack("{s:{s:s}, s:o}", "message", "text", message, "frames", frames);
}

static json_t *sarif_result(const struct finding *f)
{
    json_t *stacks = json_array(), *locations = json_array(), *related = NULL;

    if (f->where.n) {
        json_array_append_new(locations, sarif_location(&f->where.list[0]));
        json_array_append_new(stacks, sarif_stack(f->text, &f->where));
    }
    if (f->other.n) {
        json_t *other = sarif_location(&f->other.list[0]);

        json_object_set_new(other, "message", json_pack("{s:s}", "text", f->whose));
        related = json_pack("[o]", other);
        json_array_append_new(stacks, sarif_stack(f->whose, &f->other));
    }
    return json_pack("{s:s, s:s, s:{s:s}, s:I, s:o, s:o, s:o*}", "ruleId", f->rule, "level", "error", "message", "text",
                     f->text, "occurrenceCount", (json_int_t)f->count, "locations", locations, "stacks", stacks,
                     "relatedLocations", related);
}

static json_t *as_sarif(const struct findings *f)
{
    json_t *results = json_array();

    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(results, sarif_result(&f->list[i]));
    return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:o}}, s:o}]}", "$schema",
                     "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
                     "version", "2.1.0", "runs", "tool", "driver", "name", "pumice check", "rules", sarif_rules(),
                     "results", results);
}

/* --- JUnit ------------------------------------------------------------------------------------- */

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
        }
    }
}

static void put_calls(FILE *out, const struct calls *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct place *p = &c->list[i];

        fputs(i ? "\n  from " : "\n  in ", out);
        put_escaped(out, p->function[0] ? p->function : p->module);
        if (p->file[0]) {
            fputs(", ", out);
            put_escaped(out, p->file);
            fprintf(out, ":%d", p->line);
        }
    }
}

static void put_failure(FILE *out, const struct finding *g)
{
    fputs("    <failure message=\"", out);
    put_escaped(out, g->text);
    fprintf(out, "\">%" PRIu64 " time%s", g->count, g->count == 1 ? "" : "s");
    put_calls(out, &g->where);
    if (g->other.n) {
        fputs("\n", out);
        put_escaped(out, g->whose);
        fputs(":", out);
        put_calls(out, &g->other);
    }
    fputs("</failure>\n", out);
}

static bool has_rule(const struct findings *f, enum rule r)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->list[i].rule, rule_name(r)) == 0)
            return true;
    }
    return false;
}

static int rules_with_findings(const struct findings *f)
{
    int n = 0;

    for (enum rule r = 0; r < RULES; r++)
        n += has_rule(f, r);
    return n;
}

/* A test for each rule. It fails if there are findings. */
static void put_junit(FILE *out, const struct findings *f)
{
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pumice check\" tests=\"%d\" failures=\"%d\">\n",
        (int)RULES, rules_with_findings(f));
    for (enum rule r = 0; r < RULES; r++) {
        fprintf(out, "  <testcase classname=\"check\" name=\"%s\">\n", rule_name(r));
        for (size_t i = 0; i < f->n; i++) {
            if (strcmp(f->list[i].rule, rule_name(r)) == 0)
                put_failure(out, &f->list[i]);
        }
        fputs("  </testcase>\n", out);
    }
    fputs("</testsuite>\n", out);
}

/* --- files ------------------------------------------------------------------------------------- */

bool check_report_known(const char *path)
{
    return ends_with(path, ".json") || ends_with(path, ".sarif") || ends_with(path, ".xml");
}

int check_report_create(const char *path)
{
    FILE *out = fopen(path, "we");

    return out && fclose(out) == 0 ? 0 : -errno;
}

int check_report_write(const char *path, const struct findings *f)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return -errno;
    if (ends_with(path, ".xml")) {
        put_junit(out, f);
    } else {
        json_t *doc = ends_with(path, ".sarif") ? as_sarif(f) : as_json(f);

        json_dumpf(doc, out, JSON_INDENT(2));
        fputc('\n', out);
        json_decref(doc);
    }
    bool bad = ferror(out);
    return fclose(out) != 0 || bad ? -EIO : 0;
}
