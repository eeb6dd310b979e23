// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/check/base/handler.h"

static bool (*touched)(uint64_t address, enum guard_access access, const void *instruction);
static unsigned guards;

/* --- pages ------------------------------------------------------------------------------------- */

bool guard_can(uint64_t from, uint64_t to)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t at = from, begin, end;
    char line[512], rights[8];

    /* The mappings come in the order of their addresses. */
    while (maps && at < to && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, rights) != 3 || end <= at)
            continue;
        if (begin > at || rights[0] != 'r' || rights[1] != 'w' || rights[3] != 'p')
            break;
        at = end;
    }
    if (maps)
        fclose(maps);
    return at >= to;
}

void guard_set(struct guard *g, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    from = (from + page - 1) / page * page;
    to = to / page * page;
    *g = (struct guard){0};
    if (from >= to || guards == GUARDS_MAX ||
        mprotect((void *)from, to - from, PROT_NONE) != 0) // NOLINT: of the program
        return;
    *g = (struct guard){from, to};
    guards++;
}

void guard_lift(struct guard *g)
{
    if (g->from == g->to)
        return;
    mprotect((void *)g->from, g->to - g->from, PROT_READ | PROT_WRITE); // NOLINT: of the program
    *g = (struct guard){0};
    guards--;
}

/* --- the signal -------------------------------------------------------------------------------- */

static enum guard_access access_of(const ucontext_t *u)
{
#if defined(__x86_64__)
    return u->uc_mcontext.gregs[REG_ERR] & 2 ? GUARD_WRITE : GUARD_READ;
#else
    (void)u;
    return GUARD_UNKNOWN;
#endif
}

static bool on_fault(siginfo_t *info, void *context)
{
    return info->si_code == SEGV_ACCERR &&
           touched((uintptr_t)info->si_addr, access_of(context), handler_instruction(context));
}

void guard_start(bool (*fn)(uint64_t address, enum guard_access access, const void *instruction))
{
    touched = fn;
    handler_take(SIGSEGV, on_fault);
}
