// SPDX-License-Identifier: BSD-2-Clause
/* Scalable Reliable Connections (SRC) under the names of the 2007 proposal ("[PATCHv3 RFC] Scalable Reliable
 * Connection: API and documentation"). They are built on XRC, into which the proposal developed. This header holds only
 * inline functions that call the verbs API. They work with any device that has XRC (IBV_DEVICE_XRC).
 *
 * The proposal has one QP type for two roles; XRC has a type for each. ibv_create_src_qp chooses the type. In the first
 * role a QP sends ("qp1 is only used to post send WRs"). In the second role it does the transport checks of a domain
 * ("qp2 … neither send nor receive WRs are posted on qp2").
 *
 *   proposal                       here
 *   IBV_DEVICE_SRC                 IBV_DEVICE_XRC, in device_cap_flags
 *   struct ibv_src_domain          struct ibv_xrcd
 *   ibv_open_src_domain            ibv_open_xrcd
 *   ibv_close_src_domain           ibv_close_xrcd
 *   ibv_create_src_srq             ibv_create_srq_ex with IBV_SRQT_XRC
 *   srq->src_srq_num               ibv_src_srq_num(srq), ibv_get_srq_num
 *   IBV_QPT_SRC, attr.src_domain   ibv_create_src_qp: IBV_QPT_XRC_SEND or IBV_QPT_XRC_RECV
 *   wr.src_remote_srq_num          wr.qp_type.xrc.remote_srqn */
#ifndef PUMICE_SRC_H
#define PUMICE_SRC_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IBV_DEVICE_SRC IBV_DEVICE_XRC
#define IBV_QPT_SRC IBV_QPT_XRC_SEND
#define ibv_src_domain ibv_xrcd
/* A member of struct ibv_send_wr. */
#define src_remote_srq_num qp_type.xrc.remote_srqn

/* Opens the domain that belongs to the file behind fd. The inode of the file identifies the domain; its name does not
 * matter. fd -1 makes a domain without a file; oflag must then be O_CREAT. O_CREAT makes the domain if it does not
 * exist; O_CREAT with O_EXCL fails if it exists. NULL with errno: EAGAIN (the domain does not exist, and oflag has no
 * O_CREAT), EINVAL (the domain exists, and oflag has O_EXCL; or oflag has other flags), EBADF, EOPNOTSUPP. */
static inline struct ibv_src_domain *ibv_open_src_domain(struct ibv_context *context, int fd, int oflag)
{
    struct ibv_xrcd_init_attr attr;
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = fd;
    attr.oflags = oflag;
    return ibv_open_xrcd(context, &attr);
}

/* Returns 0 or an errno value. EBUSY: QPs or SRQs of this process use the domain. The domain ends with its last
 * reference. */
static inline int ibv_close_src_domain(struct ibv_src_domain *d)
{
    return ibv_close_xrcd(d);
}

/* Creates a shared receive queue of a domain. Its completions go to src_cq. The function sets max_wr and max_sge of
 * the attributes to the granted values. NULL with errno. */
static inline struct ibv_srq *ibv_create_src_srq(struct ibv_pd *pd, struct ibv_src_domain *domain,
                                                 struct ibv_cq *src_cq, struct ibv_srq_init_attr *srq_init_attr)
{
    struct ibv_srq_init_attr_ex attr = {
        srq_init_attr->srq_context,
        srq_init_attr->attr,
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        IBV_SRQT_XRC,
        pd,
        domain,
        src_cq,
        {0, 0},
    };
    struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &attr);
    if (srq)
        srq_init_attr->attr = attr.attr;
    return srq;
}

/* The number by which senders name the queue. 0: the queue belongs to no domain. */
static inline uint32_t ibv_src_srq_num(struct ibv_srq *srq)
{
    uint32_t num = 0;
    return ibv_get_srq_num(srq, &num) ? 0 : num;
}

/* Creates a QP of type IBV_QPT_SRC. If max_send_wr is above 0, the QP sends, and needs pd and send_cq. Otherwise it
 * is the receiving end: it belongs to domain and has neither queues nor CQs. The receive queue, receive CQ and SRQ of
 * the attributes are ignored. NULL with errno. */
static inline struct ibv_qp *ibv_create_src_qp(struct ibv_pd *pd, struct ibv_src_domain *domain,
                                               struct ibv_qp_init_attr *qp_init_attr)
{
    struct ibv_qp_init_attr_ex attr = {0};
    struct ibv_qp *qp;
    if (qp_init_attr->qp_type != IBV_QPT_SRC) {
        errno = EINVAL;
        return NULL;
    }
    attr.qp_context = qp_init_attr->qp_context;
    attr.sq_sig_all = qp_init_attr->sq_sig_all;
    if (qp_init_attr->cap.max_send_wr) {
        attr.qp_type = IBV_QPT_XRC_SEND;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD;
        attr.pd = pd;
        attr.send_cq = qp_init_attr->send_cq;
        attr.cap = qp_init_attr->cap;
        attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    } else {
        attr.qp_type = IBV_QPT_XRC_RECV;
        attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        attr.xrcd = domain;
    }
    qp = ibv_create_qp_ex(pd->context, &attr);
    if (qp)
        qp_init_attr->cap = attr.cap;
    return qp;
}

#ifdef __cplusplus
}
#endif

#endif
