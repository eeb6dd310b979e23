// SPDX-License-Identifier: BSD-2-Clause
#include "examples/tagmpi/show.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const show_mode[SHOW_MODES] = {"offload on", "offload off"};

static void usage(const struct show_options *o, int code)
{
    FILE *f = code ? stderr : stdout;

    fprintf(f, "usage: pumice run --hosts 2 -- %s [--ranks N] [--offload on|off|both]", o->name);
    if (o->size_name)
        fprintf(f, " [--%s N]", o->size_name);
    fprintf(f, "\n%s\n", o->what);
    exit(code);
}

static unsigned number(const struct show_options *o, const char *text, unsigned min, unsigned max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end == 0 && n >= min && n <= max)
        return (unsigned)n;
    fprintf(stderr, "%s: a number from %u to %u, not %s\n", o->name, min, max, text);
    exit(2);
}

void show_parse(struct show_options *o, int argc, char **argv)
{
    const struct option options[] = {
        {"ranks", 1, NULL, 'r'}, {"offload", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {o->size_name, 1, NULL, 's'}, {0}};
    int c;

    o->on = o->off = true;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'r') {
            o->ranks = number(o, optarg, o->min_ranks, BOOT_MAX_RANKS);
        } else if (c == 's') {
            o->size = number(o, optarg, 1, o->max_size);
        } else if (c == 'o' &&
                   (strcmp(optarg, "on") == 0 || strcmp(optarg, "off") == 0 || strcmp(optarg, "both") == 0)) {
            o->on = strcmp(optarg, "off") != 0;
            o->off = strcmp(optarg, "on") != 0;
        } else {
            usage(o, c == 'h' ? 0 : 2);
        }
    }
    if (optind < argc)
        usage(o, 2);
}

bool show_wanted(const struct show_options *o, int mode)
{
    return mode == 0 ? o->on : o->off;
}

const char *show_where(const struct boot *b)
{
    static char text[64];

    if (b->hosts == 0)
        snprintf(text, sizeof(text), "%u ranks", b->ranks);
    else
        snprintf(text, sizeof(text), "%u ranks on %u host%s", b->ranks, b->hosts, b->hosts == 1 ? "" : "s");
    return text;
}

struct tagmpi_counts show_sum(const struct boot *b, const struct tagmpi *t)
{
    struct tagmpi_counts mine = tagmpi_counts(t), all[BOOT_MAX_RANKS], sum = {0};

    boot_exchange(b, &mine, all, sizeof(mine));
    for (unsigned i = 0; i < b->ranks; i++) {
        sum.device_eager += all[i].device_eager;
        sum.device_rendezvous += all[i].device_rendezvous;
        sum.software_arriving += all[i].software_arriving;
        sum.software_waiting += all[i].software_waiting;
        sum.adds += all[i].adds;
        sum.dels += all[i].dels;
        sum.syncs += all[i].syncs;
    }
    return sum;
}

static void row(const struct show_options *o, const char *what, const struct tagmpi_counts *counts, size_t at)
{
    printf("  %-36s", what);
    for (int mode = 0; mode < SHOW_MODES; mode++) {
        uint64_t n;
        memcpy(&n, (const char *)&counts[mode] + at, sizeof(n));
        if (show_wanted(o, mode))
            printf(" %12llu", (unsigned long long)n);
    }
    printf("\n");
}

void show_counts(const struct show_options *o, const struct tagmpi_counts counts[SHOW_MODES])
{
    printf("%-38s", "who matched what (all ranks)");
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(o, mode))
            printf(" %12s", show_mode[mode]);
    printf("\n");
    row(o, "device, eager", counts, offsetof(struct tagmpi_counts, device_eager));
    row(o, "device, rendezvous", counts, offsetof(struct tagmpi_counts, device_rendezvous));
    row(o, "software, as the message came", counts, offsetof(struct tagmpi_counts, software_arriving));
    row(o, "software, as the receive was posted", counts, offsetof(struct tagmpi_counts, software_waiting));
    row(o, "ADDs to the device's list", counts, offsetof(struct tagmpi_counts, adds));
    row(o, "DELs", counts, offsetof(struct tagmpi_counts, dels));
    row(o, "SYNCs", counts, offsetof(struct tagmpi_counts, syncs));
}

double show_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
