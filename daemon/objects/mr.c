// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/mr.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/device/device.h"
#include "daemon/objects/mr_file.h"
#include "daemon/objects/pd.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

/* Flags without effect here: huge pages, relaxed ordering, and on-demand paging. All client memory is accessed on
 * demand anyway. */
#define ACCESS_NO_MATTER ((uint32_t)(IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_OPTIONAL_RANGE))

/* A NIC finds missing memory when it pins the region. Here a test of the first and the last byte finds most errors. */
static int check_memory(struct session *s, const struct pm_reg_mr_req *rq, struct control_reply *rp)
{
    if (s->client_mem->path == PM_MEMORY_NONE)
        return control_fail(rp, -EPERM,
                            "the daemon can't reach the memory of process %d (neither process_vm_readv nor "
                            "/proc/self/mem worked)",
                            (int)s->cred.pid);
    if (rq->length == 0 || (rq->access & IBV_ACCESS_ON_DEMAND))
        return 0;
    bool good = rq->va + (rq->length - 1) >= rq->va && mem_backend_probe(&s->device->memory, s->client_mem, rq->va) &&
                mem_backend_probe(&s->device->memory, s->client_mem, rq->va + (rq->length - 1));
    if (s->client_mem->stuck)
        return control_fail(rp, -ETIMEDOUT,
                            "the memory at 0x%" PRIx64 ", length %" PRIu64 " does not answer within %u ms", rq->va,
                            rq->length, s->client_mem->limit_ms);
    if (!good)
        return control_fail(rp, -EFAULT, "no memory at 0x%" PRIx64 ", length %" PRIu64, rq->va, rq->length);
    return 0;
}

/* Flags of regions that the device's profile refuses. */
static int check_access(const struct session *s, uint32_t access, struct control_reply *rp)
{
    uint32_t absent = s->device->limits.absent;

    if (access & IBV_ACCESS_ON_DEMAND && absent & PM_ABSENT_ODP)
        return control_fail(rp, -EOPNOTSUPP, "the device has no on-demand paging");
    if (access & (ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT) && absent & PM_ABSENT_FLUSH)
        return control_fail(rp, -EOPNOTSUPP, "the device has no RDMA FLUSH");
    return 0;
}

static int check(struct session *s, const struct pm_reg_mr_req *rq, struct control_reply *rp, struct pd **pd,
                 struct mr_init *init)
{
    *pd = handles_get(&s->pds, rq->pd);
    if (!*pd)
        return control_fail(rp, -EINVAL, "no protection domain %u", rq->pd);
    *init = (struct mr_init){
        .pd = (*pd)->number,
        .space = s->client_mem->number | (rq->access & IBV_ACCESS_ON_DEMAND ? CLIENT_MEM_ON_DEMAND : 0u),
        .va = rq->va,
        .iova = rq->iova,
        .length = rq->length,
        .access = rq->access & ~ACCESS_NO_MATTER,
    };
    int rc = check_access(s, rq->access, rp);

    return rc ? rc : check_memory(s, rq, rp);
}

static int explain(const struct session *s, int rc, struct control_reply *rp)
{
    switch (rc) {
    case -ENOMEM:
        return control_fail(rp, rc, "no more than %u memory regions on a device", s->device->limits.max_mr);
    case -EBUSY:
        return control_fail(rp, rc, "a memory window is bound to the region");
    default:
        return control_fail(
            rp, rc, "the access flags contradict each other (remote write needs local write), or the range wraps");
    }
}

/* Frees a record that has no key. */
static void discard(struct session *s, struct mr *mr)
{
    mr_file_unmap(s, mr->file);
    free(mr);
}

int mr_reg(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_reg_mr_req *r = rq;
    struct pm_handle *rep;
    struct mr_init init;
    struct pd *pd;
    struct mr *mr;
    int rc = check(s, r, rp, &pd, &init);

    if (rc)
        return rc;
    if (s->device->num_mrs >= s->device->limits.max_mr)
        return explain(s, -ENOMEM, rp);
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    mr->file = mr_file_map(s, r);
    init.space |= mr_file_space(mr->file);
    rc = mr_register(s->device->engine, &init, &mr->key);
    if (rc) {
        discard(s, mr);
        return explain(s, rc, rp);
    }
    rc = handles_add_at(&s->mrs, mr, mr->key);
    if (rc) {
        mr_deregister(s->device->engine, mr->key);
        discard(s, mr);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    mr->pd = pd;
    mr->va = r->va;
    mr->length = r->length;
    mr->access = r->access;
    pd->users++;
    s->device->num_mrs++;
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = mr->key;
    return 0;
}

int mr_rereg(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_rereg_mr_req *r = rq;
    struct mr *mr = handles_get(&s->mrs, r->key);
    struct mr_init init;
    struct pd *pd;

    if (!mr)
        return control_fail(rp, -EINVAL, "no memory region with key 0x%x", r->key);
    int rc = check(s, &r->mr, rp, &pd, &init);
    if (rc)
        return rc;
    /* A region that stays where it is keeps its pages. */
    bool stays = r->mr.va == mr->va && r->mr.length == mr->length && s->request && s->request->fds == 0;
    struct mr_file *file = stays ? mr->file : mr_file_map(s, &r->mr);
    init.space |= mr_file_space(file);
    rc = mr_reregister(s->device->engine, mr->key, &init);
    if (rc) {
        if (!stays)
            mr_file_unmap(s, file);
        return explain(s, rc, rp);
    }
    if (!stays)
        mr_file_unmap(s, mr->file);
    mr->file = file;
    mr->pd->users--;
    pd->users++;
    mr->pd = pd;
    mr->va = r->mr.va;
    mr->length = r->mr.length;
    mr->access = r->mr.access;
    return 0;
}

void mr_free(struct session *s, struct mr *mr)
{
    handles_remove(&s->mrs, mr->key);
    mr->pd->users--;
    s->device->num_mrs--;
    quota_release(&s->owner, QUOTA_MRS);
    discard(s, mr);
}

int mr_dereg(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct mr *mr = handles_get(&s->mrs, h->handle);

    if (!mr)
        return control_fail(rp, -EINVAL, "no memory region with key 0x%x", h->handle);
    int rc = mr_deregister(s->device->engine, mr->key);
    if (rc)
        return explain(s, rc, rp);
    mr_free(s, mr);
    return 0;
}
