// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/place.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct places {
    Dwfl *dwfl;
    struct module {
        char *name;
        Dwfl_Module *is; /* NULL: it can't be read */
        struct module *next;
    } * modules;
};

/* --- modules ----------------------------------------------------------------------------------- */

struct places *places_new(void)
{
    static char *no_path;
    static const Dwfl_Callbacks callbacks = {
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &no_path,
    };
    struct places *all = calloc(1, sizeof(*all));

    if (all && !(all->dwfl = dwfl_begin(&callbacks))) {
        free(all);
        return NULL;
    }
    return all;
}

void places_free(struct places *all)
{
    struct module *m;

    if (!all)
        return;
    while ((m = all->modules)) {
        all->modules = m->next;
        free(m->name);
        free(m);
    }
    dwfl_end(all->dwfl);
    free(all);
}

static Dwfl_Module *module_of(struct places *all, const char *name)
{
    struct module *m = all->modules;

    while (m && strcmp(m->name, name) != 0)
        m = m->next;
    if (m)
        return m->is;
    m = calloc(1, sizeof(*m));
    if (!m || !(m->name = strdup(name))) {
        free(m);
        return NULL;
    }
    dwfl_report_begin_add(all->dwfl);
    m->is = dwfl_report_offline(all->dwfl, name, name, -1);
    dwfl_report_end(all->dwfl, NULL, NULL);
    m->next = all->modules;
    all->modules = m;
    return m->is;
}

/* --- inlined functions ------------------------------------------------------------------------- */

/* Many verbs are inline functions of <infiniband/verbs.h>. The place is where the program calls one. */
static bool is_verb(Dwarf_Die *scope)
{
    const char *name = dwarf_tag(scope) == DW_TAG_inlined_subroutine ? dwarf_diename(scope) : NULL;

    return name && (strncmp(name, "ibv_", 4) == 0 || strncmp(name, "__ibv_", 6) == 0);
}

/* A compiler that was given a name such as "." for headers writes "./header.h". Reports name files as a repository does. */
static void take_file(struct place *p, const char *file)
{
    while (strncmp(file, "./", 2) == 0)
        file += 2;
    snprintf(p->file, sizeof(p->file), "%s", file);
}

/* The line that calls an inlined function. */
static void take_call(struct place *p, Dwarf_Die *unit, Dwarf_Die *scope)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file_number = 0, line = 0;
    Dwarf_Files *files;
    size_t n;

    if (dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &file_number) != 0 ||
        dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attribute), &line) != 0 ||
        dwarf_getsrcfiles(unit, &files, &n) != 0 || file_number >= n)
        return;
    const char *file = dwarf_filesrc(files, file_number, NULL, NULL);
    if (file)
        take_file(p, file);
    p->line = (int)line;
}

static bool is_function(Dwarf_Die *scope)
{
    return dwarf_tag(scope) == DW_TAG_inlined_subroutine || dwarf_tag(scope) == DW_TAG_subprogram;
}

/* The scopes of an address, from the innermost one to the function that was not inlined. Returns how many. */
static int scopes_of(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes)
{
    Dwarf_Die *found = NULL;
    /* Outside of an inlined function, these are the scopes of its definition. Those of its call are its parents. */
    int n = dwarf_getscopes(unit, address, &found);

    n = n > 0 ? dwarf_getscopes_die(&found[0], scopes) : 0;
    free(found);
    return n;
}

/* found[0] has the file and line of the address. */
static size_t expand(Dwfl_Module *module, GElf_Addr address, struct place found[PLACE_INLINED])
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes = NULL;
    int scope_count = unit ? scopes_of(unit, address - bias, &scopes) : 0;
    struct place call = found[0];
    size_t n = 0;

    for (int i = 0; i < scope_count && n < PLACE_INLINED; i++) {
        const char *name = is_function(&scopes[i]) ? dwarf_diename(&scopes[i]) : NULL;
        bool inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;

        if (name && !is_verb(&scopes[i])) {
            found[n] = call;
            snprintf(found[n++].function, sizeof(found[0].function), "%s", name);
        }
        if (inlined)
            take_call(&call, unit, &scopes[i]);
        else if (name)
            break;
    }
    free(scopes);
    return n ? n : 1;
}

size_t place_find(struct places *all, const struct place *raw, struct place found[PLACE_INLINED])
{
    Dwfl_Module *module = raw->module[0] ? module_of(all, raw->module) : NULL;
    GElf_Addr bias = 0, address;
    const char *name, *file;
    Dwfl_Line *line;

    found[0] = *raw;
    if (!module)
        return 1;
    /* The offset counts from the address of the first byte of the file. */
    dwfl_module_info(module, NULL, &bias, NULL, NULL, NULL, NULL, NULL);
    address = bias + raw->offset;
    name = dwfl_module_addrname(module, address);
    if (name)
        snprintf(found[0].function, sizeof(found[0].function), "%s", name);
    line = dwfl_module_getsrc(module, address);
    file = line ? dwfl_lineinfo(line, NULL, &found[0].line, NULL, NULL, NULL) : NULL;
    if (file)
        take_file(&found[0], file);
    return expand(module, address, found);
}
