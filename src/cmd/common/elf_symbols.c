// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/elf_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the section .gnu.version, this bit marks a version that is not the default. */
#define VERSYM_HIDDEN_BIT 0x8000
#define VERSIONS_MAX 1024 /* of one file; libc has some 40 */

/* An open file, with the sections that matter. */
struct elf_file {
    int fd;
    Elf *elf;
    Elf_Scn *symbols, *versyms, *verdefs, *verneeds;
    GElf_Shdr symbols_head, verdefs_head, verneeds_head;
    const char *version[VERSIONS_MAX]; /* by index; NULL: not wanted */
};

static void close_file(struct elf_file *f)
{
    if (f->elf)
        elf_end(f->elf);
    if (f->fd >= 0)
        close(f->fd);
}

static int open_file(const char *path, struct elf_file *f)
{
    Elf_Scn *section = NULL;
    GElf_Shdr head;

    memset(f, 0, sizeof(*f));
    elf_version(EV_CURRENT);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0)
        return -errno;
    f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
    if (!f->elf || elf_kind(f->elf) != ELF_K_ELF) {
        close_file(f);
        return -ENOEXEC;
    }
    while ((section = elf_nextscn(f->elf, section)) && gelf_getshdr(section, &head)) {
        if (head.sh_type == SHT_DYNSYM) {
            f->symbols = section;
            f->symbols_head = head;
        } else if (head.sh_type == SHT_GNU_versym) {
            f->versyms = section;
        } else if (head.sh_type == SHT_GNU_verdef) {
            f->verdefs = section;
            f->verdefs_head = head;
        } else if (head.sh_type == SHT_GNU_verneed) {
            f->verneeds = section;
            f->verneeds_head = head;
        }
    }
    return 0;
}

static int append(struct elf_symbols *list, const char *name, const char *version)
{
    struct elf_symbol *grown = reallocarray(list->symbol, list->n + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    list->symbol = grown;
    struct elf_symbol *s = &grown[list->n];
    s->name = strdup(name ? name : "");
    s->version = strdup(version ? version : "");
    if (!s->name || !s->version) {
        free(s->name);
        free(s->version);
        return -ENOMEM;
    }
    list->n++;
    return 0;
}

/* Notes the name of a version under its index, and appends it to the list. */
static int add_version(struct elf_file *f, const GElf_Shdr *head, size_t name, unsigned index, struct elf_symbols *list)
{
    const char *text = elf_strptr(f->elf, head->sh_link, name);

    index &= ~(unsigned)VERSYM_HIDDEN_BIT;
    if (!text || index >= VERSIONS_MAX)
        return 0;
    f->version[index] = text;
    return append(list, "", text);
}

static int read_defined_versions(struct elf_file *f, struct elf_symbols *list)
{
    Elf_Data *data = f->verdefs ? elf_getdata(f->verdefs, NULL) : NULL;
    GElf_Verdef def;
    GElf_Verdaux aux;
    int rc = 0;

    for (int at = 0; data && rc == 0 && gelf_getverdef(data, at, &def); at += (int)def.vd_next) {
        /* The base version is the name of the library itself. */
        if (!(def.vd_flags & VER_FLG_BASE) && gelf_getverdaux(data, at + (int)def.vd_aux, &aux))
            rc = add_version(f, &f->verdefs_head, aux.vda_name, def.vd_ndx, list);
        if (!def.vd_next)
            break;
    }
    return rc;
}

static int read_needed_versions(struct elf_file *f, const char *soname, struct elf_symbols *list)
{
    Elf_Data *data = f->verneeds ? elf_getdata(f->verneeds, NULL) : NULL;
    GElf_Verneed need;
    GElf_Vernaux aux;
    int rc = 0;

    for (int at = 0; data && rc == 0 && gelf_getverneed(data, at, &need); at += (int)need.vn_next) {
        const char *file = elf_strptr(f->elf, f->verneeds_head.sh_link, need.vn_file);
        bool wanted = file && strcmp(file, soname) == 0;

        for (int k = at + (int)need.vn_aux; wanted && rc == 0 && gelf_getvernaux(data, k, &aux);
             k += (int)aux.vna_next) {
            if (!(aux.vna_flags & VER_FLG_WEAK))
                rc = add_version(f, &f->verneeds_head, aux.vna_name, aux.vna_other, list);
            if (!aux.vna_next)
                break;
        }
        if (!need.vn_next)
            break;
    }
    return rc;
}

/* Appends the defined or the undefined symbols whose versions were noted before. */
static int read_symbols(struct elf_file *f, bool defined, struct elf_symbols *list)
{
    Elf_Data *symbols = f->symbols ? elf_getdata(f->symbols, NULL) : NULL;
    Elf_Data *versyms = f->versyms ? elf_getdata(f->versyms, NULL) : NULL;
    GElf_Versym versym;
    GElf_Sym symbol;
    int rc = 0;

    if (!symbols || !versyms)
        return 0;
    for (int i = 1; rc == 0 && gelf_getsym(symbols, i, &symbol) && gelf_getversym(versyms, i, &versym); i++) {
        unsigned index = versym & ~(unsigned)VERSYM_HIDDEN_BIT;

        if (index >= VERSIONS_MAX || !f->version[index] || (symbol.st_shndx != SHN_UNDEF) != defined)
            continue;
        if (!defined && GELF_ST_BIND(symbol.st_info) == STB_WEAK)
            continue;
        rc = append(list, elf_strptr(f->elf, f->symbols_head.sh_link, symbol.st_name), f->version[index]);
    }
    return rc;
}

static int compare(const void *a, const void *b)
{
    const struct elf_symbol *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->version, y->version);
}

static int read_file(const char *path, const char *soname, struct elf_symbols *list)
{
    struct elf_file f;
    int rc = open_file(path, &f);

    if (rc)
        return rc;
    rc = soname ? read_needed_versions(&f, soname, list) : read_defined_versions(&f, list);
    if (rc == 0)
        rc = read_symbols(&f, !soname, list);
    close_file(&f);
    if (list->n)
        qsort(list->symbol, list->n, sizeof(list->symbol[0]), compare);
    return rc;
}

int elf_symbols_defined(const char *path, struct elf_symbols *list)
{
    return read_file(path, NULL, list);
}

int elf_symbols_imported(const char *path, const char *soname, struct elf_symbols *list)
{
    return read_file(path, soname, list);
}

bool elf_symbols_have(const struct elf_symbols *list, const struct elf_symbol *symbol)
{
    return list->n && bsearch(symbol, list->symbol, list->n, sizeof(list->symbol[0]), compare);
}

void elf_symbols_free(struct elf_symbols *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->symbol[i].name);
        free(list->symbol[i].version);
    }
    free(list->symbol);
    *list = (struct elf_symbols){0};
}
