// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/config.h"

#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/options.h"

/* The file that is being read. The callbacks of libconfuse have no argument for it. Only the main thread reads
 * files. */
static struct {
    struct settings *settings;
    char *why;
    const char *file;
} reading;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    int n;

    if (reading.why[0])
        return; /* the first error counts; the others follow from it */
    n = snprintf(reading.why, ERROR_TEXT_MAX, "%s:%d: ", reading.file, cfg ? cfg->line : 0);
    if (n > 0 && n < ERROR_TEXT_MAX)
        vsnprintf(reading.why + n, ERROR_TEXT_MAX - (size_t)n, fmt, ap);
}

/* Called for each value when its line was read, so that an error names this line. */
static int on_value(cfg_t *cfg, cfg_opt_t *opt)
{
    char text[ERROR_TEXT_MAX];
    const char *value = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
    const char *name = cfg_opt_name(opt);

    if (options_set(reading.settings, name, value ? value : "", text) != 0) {
        cfg_error(cfg, "%s", text);
        return -1;
    }
    return 0;
}

/* Called when the section of a device is complete. */
static int on_device(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *sec = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    const char *address = cfg_getstr(sec, "address");
    char text[ERROR_TEXT_MAX];

    if (!address) {
        cfg_error(cfg, "device %s has no address: expected address = ADDRESS", cfg_title(sec));
        return -1;
    }
    if (settings_add_device(reading.settings, cfg_title(sec), address, text) != 0) {
        cfg_error(cfg, "%s", text);
        return -1;
    }
    return 0;
}

static cfg_t *make_parser(void)
{
    static cfg_opt_t device_opts[] = {CFG_STR("address", NULL, CFGF_NONE), CFG_END()};
    cfg_opt_t opts[2 * OPTIONS_MAX + 2];
    unsigned n = 0;
    cfg_t *cfg;

    for (const struct option_def *o = options; o->name; o++) {
        if (o->flags & OPTION_IN_FILE)
            opts[n++] = (cfg_opt_t)CFG_STR(o->name, NULL, CFGF_NONE);
        if (o->alias)
            opts[n++] = (cfg_opt_t)CFG_STR(o->alias, NULL, CFGF_NONE);
    }
    opts[n] = (cfg_opt_t)CFG_SEC("device", device_opts, CFGF_MULTI | CFGF_TITLE);
    opts[n + 1] = (cfg_opt_t)CFG_END();
    cfg = cfg_init(opts, CFGF_NONE); /* copies opts */
    if (!cfg)
        return NULL;
    cfg_set_error_function(cfg, on_error);
    for (unsigned i = 0; i < n; i++)
        cfg_set_validate_func(cfg, opts[i].name, on_value);
    cfg_set_validate_func(cfg, "device", on_device);
    return cfg;
}

static int finish(cfg_t *cfg, int rc, struct settings *s, char *why)
{
    cfg_free(cfg);
    if (rc == CFG_SUCCESS) {
        s->devices_replaceable = s->devices != 0;
        return 0;
    }
    if (!why[0])
        snprintf(why, ERROR_TEXT_MAX, "%s: not a configuration file: expected lines such as gso = auto", reading.file);
    return -EINVAL;
}

int config_load(struct settings *s, const char *path, char why[ERROR_TEXT_MAX])
{
    FILE *f = fopen(path, "re");
    cfg_t *cfg;
    int rc;

    if (!f) {
        rc = -errno;
        snprintf(why, ERROR_TEXT_MAX, "%s: %s", path, strerror(-rc));
        return rc;
    }
    why[0] = 0;
    reading.settings = s;
    reading.why = why;
    reading.file = path;
    cfg = make_parser();
    rc = cfg ? cfg_parse_fp(cfg, f) : CFG_PARSE_ERROR;
    fclose(f);
    return finish(cfg, rc, s, why);
}

int config_load_text(struct settings *s, const char *text, char why[ERROR_TEXT_MAX])
{
    cfg_t *cfg;

    why[0] = 0;
    reading.settings = s;
    reading.why = why;
    reading.file = "config";
    cfg = make_parser();
    return finish(cfg, cfg ? cfg_parse_buf(cfg, text) : CFG_PARSE_ERROR, s, why);
}
