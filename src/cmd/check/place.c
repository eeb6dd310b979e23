// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/check/place.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many verbs are inline functions of <infiniband/verbs.h>. The place is where the program calls one. */
static bool is_verb(Dwarf_Die *scope)
{
    const char *name = dwarf_tag(scope) == DW_TAG_inlined_subroutine ? dwarf_diename(scope) : NULL;

    return name && (strncmp(name, "ibv_", 4) == 0 || strncmp(name, "__ibv_", 6) == 0);
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
    snprintf(p->file, sizeof(p->file), "%s", dwarf_filesrc(files, file_number, NULL, NULL));
    p->line = (int)line;
}

static bool is_function(Dwarf_Die *scope)
{
    return dwarf_tag(scope) == DW_TAG_inlined_subroutine || dwarf_tag(scope) == DW_TAG_subprogram;
}

/* Leaves inlined verbs, and takes the name of the function that calls them. */
static void leave_verbs(struct place *p, Dwfl_Module *module, GElf_Addr address)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes = NULL;
    int n = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;

    for (int i = 0; i < n; i++) {
        const char *name = is_function(&scopes[i]) ? dwarf_diename(&scopes[i]) : NULL;

        if (is_verb(&scopes[i])) {
            take_call(p, unit, &scopes[i]);
        } else if (name) {
            snprintf(p->function, sizeof(p->function), "%s", name);
            break;
        }
    }
    free(scopes);
}

static void look(struct place *p, Dwfl_Module *module)
{
    GElf_Addr bias = 0, address;
    const char *name, *file;
    Dwfl_Line *line;

    if (!module)
        return;
    /* The offset counts from the address of the first byte of the file. */
    dwfl_module_info(module, NULL, &bias, NULL, NULL, NULL, NULL, NULL);
    address = bias + p->offset;
    name = dwfl_module_addrname(module, address);
    if (name)
        snprintf(p->function, sizeof(p->function), "%s", name);
    line = dwfl_module_getsrc(module, address);
    file = line ? dwfl_lineinfo(line, NULL, &p->line, NULL, NULL, NULL) : NULL;
    if (file)
        snprintf(p->file, sizeof(p->file), "%s", file);
    leave_verbs(p, module, address);
}

void place_find(struct place *p)
{
    static char *no_path;
    static const Dwfl_Callbacks callbacks = {
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &no_path,
    };

    if (!p->module[0])
        return;
    Dwfl *d = dwfl_begin(&callbacks);
    if (!d)
        return;
    dwfl_report_begin(d);
    Dwfl_Module *module = dwfl_report_offline(d, p->module, p->module, -1);
    dwfl_report_end(d, NULL, NULL);
    look(p, module);
    dwfl_end(d);
}
