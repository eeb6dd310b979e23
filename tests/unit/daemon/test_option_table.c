// SPDX-License-Identifier: BSD-2-Clause
/* Walks the table of options (daemon/options.h). The command line and the configuration file accept each option with
 * good values and refuse bad ones with the same message. The manual page describes each. SIGHUP changes those options
 * that are marked so, and no others. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/command_line.h"
#include "daemon/config.h"
#include "daemon/environment.h"
#include "daemon/options.h"
#include "daemon/reload.h"

/* Two different valid values, an invalid one, and the error message. NULL: the option takes any text. */
static const struct values {
    const char *name, *good, *other, *bad, *says;
} values[] = {
    {"socket", "/run/a.sock", "/run/b.sock",
     "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678",
     "expected at most 107 characters"},
    {"group", "a", "b", "0123456789012345678901234567890123456789012345678901234567890123",
     "expected at most 63 characters"},
    {"quota", "qps=100,all=none", "bytes=2G", "qps=", "expected KIND=LIMIT"},
    {"control-share", "1", "100", "0", "expected a number from 1 to 100"},
    {"handshake-timeout", "1", "86400", "0", "expected a number of seconds from 1 to 86400"},
    {"idle-exit", "1", "31536000", "-1", "expected a number of seconds from 0 (never) to 31536000"},
    {"sandbox", "off", "on", "no", "expected on or off"},
    {"device", "a=127.0.0.1", "b=127.0.0.2", "a", "expected NAME=ADDRESS"},
    {"address", "127.0.0.1", "127.0.0.2", "127.1", "expected a numeric IPv4 or IPv6 address"},
    {"mtu", "1024", "auto", "77", "expected auto, 256, 512, 1024, 2048 or 4096"},
    {"loopback", "wire", "engine", "udp", "expected engine or wire"},
    {"gso", "off", "on", "maybe", "expected auto, on or off"},
    {"ecn", "on", "off", "1", "expected on or off"},
    {"e2e-credits", "on", "off", "1", "expected on or off"},
    {"selective", "off", "on", "1", "expected on or off"},
    {"peers", "10.0.0.0/8,fd00::/8", "192.0.2.1", "10.0.0.0/33", "expected any, or up to 64 prefixes"},
    {"rcvbuf", "65536", "1073741824", "65535", "expected a number of bytes from 65536 to 1073741824"},
    {"cnp-dscp", "0", "63", "64", "expected a number from 0 to 63"},
    {"profile", "e810", "default", "connectx",
     "expected default, connectx-4, connectx-6, bluefield-3, e810, bcm57508 or rxe"},
    {"tm-profile", "mlx5", "auto", "mlx", "expected auto, generous or mlx5"},
    {"window", "1", "0x10", "0", "expected a number of packets from 1 to 4194304"},
    {"max-resends", "0", "8", "4194305", "expected a number of packets from 0 (no limit of its own) to 4194304"},
    {"ack-delay-us", "0", "250", "251", "expected a number of microseconds from 0 (off) to 250"},
    {"min-timeout-us", "1000", "60000000", "999", "expected a number of microseconds from 1000 to 60000000"},
    {"idle-us", "0", "10000000", "x", "expected a number of microseconds from 0 (sleep at once) to 10000000"},
    {"cpus", "0,1", "2", "0,", "expected any, or numbers of processors"},
    {"memory", "process_vm", "proc_mem", "none", "expected auto, process_vm or proc_mem"},
    {"memory-timeout", "20", "60000", "19", "expected a number of milliseconds from 20 to 60000"},
    {"connectivity", "warn", "enforce", "on", "expected off, warn or enforce"},
    {"connectivity-tries", "1", "10000", "0", "expected a number from 1 to 10000"},
    {"connectivity-map", "/tmp/a", "/tmp/b", NULL, NULL},
    {"net", "/tmp/a", "/tmp/b", NULL, NULL},
    {"fault", "loss=1%", "dup=2%", "loss=5", "loss"},
    {"seed", "1", "2", "-1", "expected a whole number"},
    {"unkind", "all", "placement", "placement,", "expected off, all, or kinds with commas between: placement"},
    {"log-level", "info", "warn,qp=debug", "loud", "expected error, warn, info or debug"},
    {"log-format", "json", "text", "xml", "expected text or json"},
    {"metrics", "9400", "[::1]:9400", "192.0.2.1:9400", "ADDRESS:PORT with a loopback address"},
    {"ready-fd", "4", "5", "-1", "expected the number of an open file descriptor"},
    {"decisions-fd", "4", "5", "-1", "expected the number of an open file descriptor"},
};

static const struct values *values_of(const struct option_def *o)
{
    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (strcmp(values[i].name, o->name) == 0)
            return &values[i];
    }
    cr_assert_fail("%s: this test has no values for it", o->name);
    return NULL;
}

static bool is_setting(const struct option_def *o)
{
    return o->set != NULL;
}

/* Reads the command line `pumiced --NAME=VALUE` in a child process, since an error ends the process. Returns the exit
 * code; *s receives what the child read, err what it wrote to standard error. */
static int read_command_line(const char *name, const char *value, struct settings *s, char *err, size_t size)
{
    char argument[256], *argv[] = {"pumiced", argument, NULL};
    int result[2], text[2], status;
    ssize_t n;
    pid_t pid;

    snprintf(argument, sizeof(argument), "--%s=%s", name, value);
    cr_assert(pipe(result) == 0 && pipe(text) == 0);
    pid = fork();
    if (pid == 0) {
        dup2(text[1], STDERR_FILENO);
        settings_init(s);
        command_line_read(2, argv, s);
        _exit(write(result[1], s, sizeof(*s)) == (ssize_t)sizeof(*s) ? 0 : 99);
    }
    close(result[1]);
    close(text[1]);
    n = read(result[0], s, sizeof(*s));
    cr_assert(n == 0 || n == (ssize_t)sizeof(*s));
    n = read(text[0], err, size - 1);
    err[n > 0 ? n : 0] = 0;
    close(result[0]);
    close(text[0]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(option_table, names_are_unique_and_members_do_not_overlap)
{
    for (const struct option_def *o = options; o->name; o++) {
        cr_expect_not_null(o->help, "%s", o->name);
        cr_expect_leq(o->offset + o->size, sizeof(struct settings), "%s", o->name);
        for (const struct option_def *p = options; p < o; p++) {
            cr_expect_str_neq(o->name, p->name);
            cr_expect(o->size == 0 || o->offset + o->size <= p->offset || p->offset + p->size <= o->offset, "%s and %s",
                      o->name, p->name);
        }
    }
}

Test(option_table, the_command_line_takes_good_values)
{
    struct settings start, first, second;
    char err[1024];

    settings_init(&start);
    for (const struct option_def *o = options; o->name; o++) {
        const struct values *v = is_setting(o) ? values_of(o) : NULL;

        if (!v)
            continue;
        cr_expect_eq(read_command_line(o->name, v->good, &first, err, sizeof(err)), 0, "--%s=%s: %s", o->name, v->good,
                     err);
        cr_expect_eq(read_command_line(o->name, v->other, &second, err, sizeof(err)), 0, "--%s=%s: %s", o->name,
                     v->other, err);
        if (o->size) {
            cr_expect_not(option_is_equal(o, &start, &first), "--%s=%s changes nothing", o->name, v->good);
            cr_expect_not(option_is_equal(o, &first, &second), "--%s=%s changes nothing", o->name, v->other);
        }
        for (const struct option_def *p = options; p->name; p++) {
            if (p != o && strcmp(o->name, "address") != 0)
                cr_expect(option_is_equal(p, &start, &second), "--%s=%s changes %s", o->name, v->other, p->name);
        }
    }
}

/* PUMICED_LOG_LEVEL for log-level */
static void variable(const struct option_def *o, char name[64])
{
    snprintf(name, 64, "PUMICED_%s", o->name);
    for (char *p = name; *p; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

Test(option_table, the_environment_has_the_same_options)
{
    struct settings start, by_name, by_variable;
    char why[ERROR_TEXT_MAX] = "", name[64];

    settings_init(&start);
    for (const struct option_def *o = options; o->name; o++) {
        const struct values *v = is_setting(o) ? values_of(o) : NULL;

        if (!v)
            continue;
        settings_init(&by_name);
        settings_init(&by_variable);
        cr_expect_eq(options_set(&by_name, o->name, v->good, why), 0, "%s", why);
        variable(o, name);
        setenv(name, v->good, 1);
        cr_expect_eq(environment_read(&by_variable, why), 0, "%s=%s: %s", name, v->good, why);
        for (const struct option_def *p = options; p->name; p++)
            cr_expect(option_is_equal(p, &by_name, &by_variable), "%s sets %s otherwise", name, p->name);
        if (v->bad) {
            setenv(name, v->bad, 1);
            cr_expect_eq(environment_read(&by_variable, why), -EINVAL, "%s=%s", name, v->bad);
            cr_expect(strstr(why, name) && strstr(why, v->says), "%s=%s: %s", name, v->bad, why);
        }
        unsetenv(name);
    }
}

Test(option_table, devices_of_the_environment)
{
    struct settings s;
    char why[ERROR_TEXT_MAX] = "";

    settings_init(&s);
    cr_assert_eq(config_load_text(&s, "device a { address = 127.0.0.1 }\n", why), 0);
    setenv("PUMICED_DEVICE", " b=127.0.0.2  c=127.0.0.3 ", 1);
    cr_assert_eq(environment_read(&s, why), 0, "%s", why);
    cr_expect_eq(s.devices, 2);
    cr_expect_str_eq(s.device[0].name, "b");
    cr_expect_str_eq(s.device[1].name, "c");
    cr_assert_eq(options_set(&s, "device", "d=127.0.0.4", why), 0);
    cr_expect_eq(s.devices, 1);
    cr_expect_str_eq(s.device[0].name, "d");
    unsetenv("PUMICED_DEVICE");
}

Test(option_table, a_variable_must_belong_to_an_option)
{
    struct settings s;
    char why[ERROR_TEXT_MAX] = "";

    settings_init(&s);
    setenv("PUMICED_OPTIONS", "--nonsense", 1); /* the systemd units pass it */
    cr_expect_eq(environment_read(&s, why), 0, "%s", why);
    setenv("PUMICED_OPTION", "1", 1);
    cr_expect_eq(environment_read(&s, why), -EINVAL);
    cr_expect_not_null(strstr(why, "PUMICED_OPTION,"), "%s", why);
}

Test(option_table, the_command_line_refuses_bad_values)
{
    struct settings s;
    char err[1024], start[64];

    for (const struct option_def *o = options; o->name; o++) {
        const struct values *v = is_setting(o) ? values_of(o) : NULL;

        if (!v || !v->bad)
            continue;
        snprintf(start, sizeof(start), "pumiced: --%s: ", o->name);
        cr_expect_eq(read_command_line(o->name, v->bad, &s, err, sizeof(err)), 2, "--%s=%s", o->name, v->bad);
        cr_expect_eq(strncmp(err, start, strlen(start)), 0, "\"%s\" does not begin with \"%s\"", err, start);
        cr_expect_not_null(strstr(err, v->says), "\"%s\" does not say \"%s\"", err, v->says);
    }
}

Test(option_table, the_file_takes_good_values)
{
    struct settings start, first, second;
    char text[256], why[ERROR_TEXT_MAX];

    settings_init(&start);
    for (const struct option_def *o = options; o->name; o++) {
        const struct values *v = o->flags & OPTION_IN_FILE ? values_of(o) : NULL;

        if (!v)
            continue;
        settings_init(&first);
        settings_init(&second);
        snprintf(text, sizeof(text), "%s = \"%s\"\n", o->name, v->good);
        cr_expect_eq(config_load_text(&first, text, why), 0, "%s", why);
        snprintf(text, sizeof(text), "%s = \"%s\"\n", o->alias ? o->alias : o->name, v->other);
        cr_expect_eq(config_load_text(&second, text, why), 0, "%s", why);
        cr_expect_not(option_is_equal(o, &start, &first), "%s = %s changes nothing", o->name, v->good);
        cr_expect_not(option_is_equal(o, &first, &second), "%s = %s changes nothing", o->name, v->other);
    }
}

Test(option_table, the_file_refuses_bad_values)
{
    struct settings s;
    char text[256], start[64], why[ERROR_TEXT_MAX];

    for (const struct option_def *o = options; o->name; o++) {
        const struct values *v = o->flags & OPTION_IN_FILE ? values_of(o) : NULL;

        if (!v || !v->bad)
            continue;
        settings_init(&s);
        snprintf(text, sizeof(text), "\n%s = \"%s\"\n", o->name, v->bad);
        snprintf(start, sizeof(start), "config:2: %s: ", o->name);
        cr_expect_eq(config_load_text(&s, text, why), -EINVAL, "%s = %s", o->name, v->bad);
        cr_expect_eq(strncmp(why, start, strlen(start)), 0, "\"%s\" does not begin with \"%s\"", why, start);
        cr_expect_not_null(strstr(why, v->says), "\"%s\" does not say \"%s\"", why, v->says);
    }
}

Test(option_table, the_file_refuses_what_only_the_command_line_takes)
{
    struct settings s;
    char text[64], why[ERROR_TEXT_MAX];

    for (const struct option_def *o = options; o->name; o++) {
        if (o->flags & OPTION_IN_FILE)
            continue;
        settings_init(&s);
        snprintf(text, sizeof(text), "%s = 1\n", o->name);
        cr_expect_neq(config_load_text(&s, text, why), 0, "%s = 1", o->name);
        cr_expect_eq(strncmp(why, "config:1: ", 10), 0, "%s: \"%s\"", o->name, why);
    }
}

/* One setting in the configuration changes at a time. The server's settings must follow if the option is marked. */
Test(option_table, sighup_changes_what_is_marked)
{
    static struct server server; /* without devices */
    static struct settings current, fresh;
    char others[ERROR_TEXT_MAX], why[ERROR_TEXT_MAX];

    server.settings = &current;
    for (const struct option_def *o = options; o->name; o++) {
        bool reload = o->flags & OPTION_RELOAD;

        if (!is_setting(o) || !o->size)
            continue;
        settings_init(&current);
        settings_init(&fresh);
        cr_assert_eq(o->set(o, &fresh, values_of(o)->good, why), 0, "%s", why);
        reload_apply(&server, &fresh, others);
        cr_expect_eq(option_is_equal(o, &current, &fresh), reload, "%s", o->name);
        cr_expect_str_eq(others, reload ? "" : o->name);
    }
}

Test(option_table, sighup_applies_faults_and_log)
{
    static struct server server;
    static struct settings current, fresh;
    char others[ERROR_TEXT_MAX], why[ERROR_TEXT_MAX];

    server.settings = &current;
    settings_init(&current);
    settings_init(&fresh);
    cr_assert_eq(options_set(&fresh, "fault", "loss=1%", why), 0);
    cr_assert_eq(options_set(&fresh, "seed", "7", why), 0);
    cr_assert_eq(options_set(&fresh, "log-level", "error,net=debug", why), 0);
    cr_assert_eq(options_set(&fresh, "mtu", "256", why), 0);
    cr_assert_eq(options_set(&fresh, "gso", "off", why), 0);
    reload_apply(&server, &fresh, others);
    cr_expect_str_eq(others, "mtu, gso");
    cr_expect_str_eq(server.devices.fault, "loss=1%");
    cr_expect_eq(server.devices.seed, 7);
    cr_expect(log_enabled(LOG_NET, LOG_LEVEL_DEBUG));
    cr_expect_not(log_enabled(LOG_QP, LOG_LEVEL_WARN));

    strcpy(server.devices.fault, "dup=2%"); /* meanwhile, `pumice fault` has set it */
    reload_apply(&server, &fresh, others);
    cr_expect_str_eq(server.devices.fault, "dup=2%", "the configuration says the same as before");
}

/* Finds the next option that the page describes, without its dashes: a line such as ".BR \-f ", " \-\-foreground"
 * after ".TP". False: there is none. */
static bool next_in_page(FILE *page, char *name, size_t size)
{
    char line[1024];
    bool heading = false;

    while (fgets(line, sizeof(line), page)) {
        const char *p = heading && strncmp(line, ".B", 2) == 0 ? strstr(line, "\\-\\-") : NULL;

        heading = strncmp(line, ".TP", 3) == 0;
        if (!p)
            continue;
        p += 4;
        for (size_t i = 0; i + 1 < size; p++) {
            if (*p == '\\') /* "\-" is "-" */
                continue;
            name[i++] = *p;
            name[i] = 0;
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *p)) {
                name[i - 1] = 0;
                return true;
            }
        }
    }
    return false;
}

Test(option_table, the_manual_page_has_all_in_this_order)
{
    FILE *page = fopen("docs/man/pumiced.8", "r");
    char name[64];

    cr_assert_not_null(page, "this test must run in the project's root");
    for (const struct option_def *o = options; o->name; o++) {
        cr_assert(next_in_page(page, name, sizeof(name)), "docs/man/pumiced.8 lacks --%s", o->name);
        cr_expect_str_eq(name, o->name, "docs/man/pumiced.8 has --%s where the table has --%s", name, o->name);
    }
    cr_expect_not(next_in_page(page, name, sizeof(name)), "docs/man/pumiced.8: there is no option --%s", name);
    fclose(page);
}
