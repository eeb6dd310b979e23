// SPDX-License-Identifier: BSD-2-Clause
/* `pumice layout` explains windows of a running program. It explains the worked examples, bound in this program, like
 * those in files. It reports a window that is gone as gone. Address N of an example is byte N of a buffer. */
#include <inttypes.h>
#include <stdarg.h>

#include "tests/verbs/layout/layouts.h"

static struct vt_end a, b;
static char said[1 << 16];

/* Output and exit code of the command. */
static int pumice(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int pumice(const char *format, ...)
{
    char arguments[256], command[512];
    const char *build = getenv("VT_BUILD");
    va_list ap;
    va_start(ap, format);
    vsnprintf(arguments, sizeof(arguments), format, ap);
    va_end(ap);
    need(build &&
         snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice layout %s 2>&1", build, arguments) > 0);
    FILE *f = popen(command, "r");
    need(f);
    said[fread(said, 1, sizeof(said) - 1, f)] = 0;
    return WEXITSTATUS(pclose(f));
}

struct row { /* of a list of pieces */
    uint64_t off, len, addr;
    char path[64];
};

/* The lists of pieces in what a stream holds. */
static unsigned read_rows(FILE *f, struct row *rows, unsigned max)
{
    char line[256], name[64];
    unsigned n = 0;
    while (n < max && fgets(line, sizeof(line), f))
        n += sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNx64 " %63s %63s", &rows[n].off, &rows[n].len, &rows[n].addr,
                    name, rows[n].path) == 5;
    return n;
}

/* True if the reported text equals the golden file of the example. */
static bool as_in_file(const char *example)
{
    struct row want[64], got[64];
    char path[128];
    snprintf(path, sizeof(path), "tests/e2e/cli/layouts/%s.out", example);
    FILE *golden = fopen(path, "r"), *live = fmemopen(said, strlen(said), "r");
    need(golden && live);
    unsigned n = read_rows(golden, want, 64);
    bool same = n > 0 && read_rows(live, got, 64) == n;
    for (unsigned i = 0; i < n && same; i++)
        same = got[i].off == want[i].off && got[i].len == want[i].len &&
               got[i].addr == (uintptr_t)b.buf + want[i].addr && strcmp(got[i].path, want[i].path) == 0;
    fclose(golden);
    fclose(live);
    if (!same)
        printf("# %s\n", said);
    return same;
}

/* --- the examples */

#define AT(n) ((uintptr_t)b.buf + (n))
static struct ibv_mw *bound(unsigned type, unsigned count, struct pumice_mw_bind_layout_entry *e)
{
    struct ibv_mw *mw = vl_window(b.pd, IBV_MW_TYPE_2, (int)count);
    struct pumice_mw_bind_layout l = {0, (enum pumice_mw_bind_layout_type)type, count, e};
    need(vl_post_bind(b.qp, mw, &l, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) == 0 &&
         vt_next(b.scq).status == IBV_WC_SUCCESS);
    return mw;
}

static struct pumice_mw_bind_layout_entry items(uint64_t at, uint64_t length, uint64_t repeat, unsigned ndim,
                                                struct pumice_mw_dimension *dim)
{
    return (struct pumice_mw_bind_layout_entry){
        .mr = b.mr, .addr = AT(at), .length = length, .interleaved = {repeat, ndim, dim}};
}

static struct ibv_mw *column, *row, *cross;

static void examples(void)
{
    struct pumice_mw_dimension of4[] = {{40, 4}}, samples[] = {{16, 4}}, stamps[] = {{8, 2}}, three[] = {{16, 3}},
                               one[] = {{8, 1}}, tens[] = {{10, 3}}, plane[] = {{8, 5}, {40, 4}}, parts[] = {{12, 2}},
                               every[] = {{16, 2}};
    struct pumice_mw_bind_layout_entry e[2] = {items(0x1008, 8, 1, 1, of4)};
    column = bound(1, 1, e);
    ok(pumice("explain 0x%x", column->rkey) == 0 && as_in_file("column"), "the column");
    ok(strstr(said, "32 bytes, local, remote read; 1 entry; bound to QP") && strstr(said, "4 times every 40"),
       "and what it is bound to");
    e[0] = items(0xa0, 8, 1, 2, plane);
    struct ibv_mw *mw = bound(1, 1, e);
    ok(pumice("explain %u", mw->rkey) == 0 && as_in_file("face"), "the plane of a cube, by a decimal key");
    need(ibv_dealloc_mw(mw) == 0);
    e[0] = items(0x1000, 4, 2, 1, samples), e[1] = items(0x2000, 8, 1, 1, stamps);
    mw = bound(1, 2, e);
    ok(pumice("explain 0x%x", mw->rkey) == 0 && as_in_file("two_to_one"), "two to one");
    ok(pumice("explain 0x%x 22 3", mw->rkey) == 0 && strstr(said, "          22            2 ") &&
           strstr(said, "          24            1 "),
       "some bytes of it");
    need(ibv_dealloc_mw(mw) == 0);
    e[0] = items(0x1000, 4, 1, 1, three), e[1] = items(0x2000, 4, 1, 1, one);
    mw = bound(1, 2, e);
    ok(pumice("explain 0x%x", mw->rkey) == 0 && as_in_file("uneven"), "one that runs out");
    need(ibv_dealloc_mw(mw) == 0);
    e[0] = items(0x1000, 8, 1, 1, tens), e[1] = items(0x1040, 8, 1, 1, tens);
    mw = bound(1, 2, e);
    ok(pumice("explain 0x%x", mw->rkey) == 0 && as_in_file("in_turn"), "two in turn");
    need(ibv_dealloc_mw(mw) == 0);
    e[0] = (struct pumice_mw_bind_layout_entry){.mr = b.mr, .addr = AT(0x9028), .length = 40};
    row = bound(0, 1, e);
    e[0] = items(0, 12, 1, 1, parts), e[1] = items(0, 4, 1, 1, every);
    e[0].mem_obj_type = e[1].mem_obj_type = PUMICE_MW_ENTRY_USE_MW;
    e[0].mw = column, e[0].addr = 0, e[1].mw = row, e[1].addr = 4;
    cross = bound(1, 2, e);
    ok(pumice("explain 0x%x", cross->rkey) == 0 && as_in_file("nested") && strstr(said, ", 2 levels"), "nested ones");
}

/* --- the rest */

static void ends(void)
{
    ok(pumice("list") == 0 && strstr(said, ": 32 bytes, ") && strstr(said, "2 entries, 2 levels"), "all are listed");
    ok(pumice("explain 0x%x 30 2", cross->rkey) == 0 && pumice("explain 0x%x 30 3", cross->rkey) == 1 &&
           strstr(said, "within"),
       "not beyond the end");
    ok(pumice("explain 0x%x -m 2", cross->rkey) == 0 && strstr(said, "and more"), "the first two pieces");
    ok(pumice("explain 0x%x --json", cross->rkey) == 0 && strstr(said, "\"path\""), "as JSON");
    ok(vl_invalidate(b.qp, b.scq, row->rkey) == IBV_WC_SUCCESS, "one of them is invalidated");
    ok(pumice("explain 0x%x", cross->rkey) == 1 && strstr(said, "entry 1: gone") && strstr(said, "can't be reached") &&
           strstr(said, "           8            4 "),
       "then only what comes before it is shown");
    ok(pumice("explain 0x%x", row->rkey) == 1 && strstr(said, "not bound"), "and itself as not bound");
    uint32_t key = row->rkey;
    need(ibv_dealloc_mw(row) == 0 && ibv_dealloc_mw(cross) == 0 && ibv_dealloc_mw(column) == 0);
    ok(pumice("explain 0x%x", key) == 1 && strstr(said, "no program has"), "nor at all, when it is gone");
    ok(pumice("list") == 0 && strstr(said, "no program has"), "and nothing is listed");
}

/* An ordinary window, and one of a billion items. */
static void others(void)
{
    struct ibv_mw *mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = b.mr, .addr = AT(256), .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
    need(mw && ibv_bind_mw(b.qp, mw, &bind) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    ok(pumice("explain 0x%x %llu 8", mw->rkey, (unsigned long long)AT(300)) == 0 && strstr(said, "of region"),
       "an ordinary window, by its own addresses");
    need(ibv_dealloc_mw(mw) == 0);
    struct pumice_mw_dimension many = {0, 1000000000};
    struct pumice_mw_bind_layout_entry e = items(8, 8, 1, 1, &many);
    mw = bound(1, 1, &e);
    ok(pumice("explain 0x%x 7999999990", mw->rkey) == 0 && strstr(said, "  7999999992            8 "),
       "the end of a billion items");
    need(ibv_dealloc_mw(mw) == 0);
}

int main(void)
{
    VT_OWN("layouts of libpumice");
    struct ibv_context *ctx = vt_open();
    vt_end_open(&a, ctx);
    vt_end_open(&b, ctx);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    examples();
    ends();
    others();
    ok(vt_end_close(&a) && vt_end_close(&b) && ibv_close_device(ctx) == 0, "all is closed");
    return vt_failed;
}
