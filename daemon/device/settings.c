// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/net/netdev.h"

void settings_init(struct settings *s)
{
    memset(s, 0, sizeof(*s));
    s->ack_delay_us = -1;
    s->cnp_dscp = -1;
    s->selective = true;
    s->idle_us = 100;
    s->control_share = 50;
    s->handshake_s = 30;
    quota_limits_parse("", &s->quota);
    s->memory_timeout_ms = 3000;
    s->path_check_tries = 40;
    s->rcvbuf = 4u << 20;
    s->max_resends = 16;
    s->decisions_fd = s->ready_fd = -1;
    log_levels_parse("warn", &s->log_levels);
}

static bool good_name(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n >= PM_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    }
    return true;
}

/* Refuses an address that a device already has. */
static int check_new(const struct settings *s, const struct device_address *d, const union addr *addr, char *why)
{
    char a[ADDR_TEXT_MAX], b[ADDR_TEXT_MAX];

    for (unsigned i = 0; i <= s->devices; i++) {
        const struct device_address *other = i < s->devices ? &s->device[i] : d;

        for (unsigned j = 0; j < other->num_addrs; j++) {
            if (strcmp(addr_text(&other->addr[j], a), addr_text(addr, b)) != 0)
                continue;
            if (other == d)
                snprintf(why, ERROR_TEXT_MAX, "device %s has the address %s twice", d->name, a);
            else
                snprintf(why, ERROR_TEXT_MAX, "devices %s and %s have the same address %s", other->name, d->name, a);
            return -EINVAL;
        }
    }
    return 0;
}

static int add_addresses(const struct settings *s, struct device_address *d, const char *list, char *why)
{
    char text[DEVICE_ADDRS_MAX * (ADDR_TEXT_MAX + 1)], *rest = text, *item;
    bool fits = (size_t)snprintf(text, sizeof(text), "%s", list) < sizeof(text);

    while ((item = strsep(&rest, "+")) != NULL) {
        union addr addr;

        if (!fits || d->num_addrs == DEVICE_ADDRS_MAX) {
            snprintf(why, ERROR_TEXT_MAX, "device %s: too many addresses: expected at most %d", d->name,
                     DEVICE_ADDRS_MAX);
            return -EINVAL;
        }
        if (addr_parse(item, &addr) != 0)
            return error_invalid_value(why, "address", item,
                                       "a numeric IPv4 or IPv6 address, such as 127.0.0.1, fd00::1 or fe80::1%eth0");
        int rc = check_new(s, d, &addr, why);
        if (rc)
            return rc;
        d->addr[d->num_addrs++] = addr;
    }
    return 0;
}

int settings_add_device(struct settings *s, const char *name, const char *address, char why[ERROR_TEXT_MAX])
{
    struct device_address d = {0};

    if (s->devices == PM_DEVICES_MAX) {
        snprintf(why, ERROR_TEXT_MAX, "too many devices: expected at most %d", PM_DEVICES_MAX);
        return -EINVAL;
    }
    if (name)
        snprintf(d.name, sizeof(d.name), "%s", good_name(name) ? name : "");
    else
        snprintf(d.name, sizeof(d.name), "pumice%u", s->devices);
    if (!d.name[0])
        return error_invalid_value(why, "device", name, "a name of at most 31 letters, digits, _ and -");
    for (unsigned i = 0; i < s->devices; i++) {
        if (strcmp(s->device[i].name, d.name) == 0) {
            snprintf(why, ERROR_TEXT_MAX, "there are two devices with the name %s", d.name);
            return -EINVAL;
        }
    }
    int rc = add_addresses(s, &d, address, why);
    if (rc)
        return rc;
    s->device[s->devices++] = d;
    return 0;
}

void settings_finish(struct settings *s)
{
    if (s->path_check_map[0] && s->path_check == PATH_CHECK_OFF)
        s->path_check = PATH_CHECK_WARN; /* without checks the map would stay empty */
    if (s->devices)
        return;
    snprintf(s->device[0].name, sizeof(s->device[0].name), "pumice0");
    netdev_default_address(&s->device[0].addr[0]);
    s->device[0].num_addrs = 1;
    s->devices = 1;
}
