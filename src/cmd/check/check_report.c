// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/check_report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "src/check/rule.h"

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

static json_t *as_json(const struct findings *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->n; i++) {
        const struct finding *g = &f->list[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:i, s:o}", "rule", g->rule, "text", g->text, "count",
                                              (json_int_t)g->count, "processes", (int)g->processes, "place",
                                              place_json(&g->place)));
    }
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

static json_t *as_sarif(const struct findings *f)
{
    json_t *results = json_array();

    for (size_t i = 0; i < f->n; i++) {
        const struct finding *g = &f->list[i];

        json_array_append_new(results, json_pack("{s:s, s:s, s:{s:s}, s:I, s:[o]}", "ruleId", g->rule, "level", "error",
                                                 "message", "text", g->text, "occurrenceCount", (json_int_t)g->count,
                                                 "locations", sarif_location(&g->place)));
    }
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

static void put_failure(FILE *out, const struct finding *g)
{
    fputs("    <failure message=\"", out);
    put_escaped(out, g->text);
    fprintf(out, "\">%" PRIu64 " times, in ", g->count);
    put_escaped(out, g->place.function[0] ? g->place.function : g->place.module);
    if (g->place.file[0]) {
        fputs(", ", out);
        put_escaped(out, g->place.file);
        fprintf(out, ":%d", g->place.line);
    }
    fputs("</failure>\n", out);
}

/* A test for each rule. It fails if there are findings. */
static void put_junit(FILE *out, const struct findings *f)
{
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pumice check\" tests=\"%d\">\n",
            (int)RULES);
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
