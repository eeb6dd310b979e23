// SPDX-License-Identifier: BSD-2-Clause
/* Sends one datagram over libfabric's provider verbs. The client finds the server by the provider's name server.
 *   datagram server SERVICE           prints "ready", then the text that it receives
 *   datagram client NODE SERVICE TEXT
 * SERVICE is a number. The client tries for 30 seconds to find the server. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 64
#define PREFIX_MAX 64 /* room for the provider before the payload of a datagram, at each side */
#define MARK "text:" /* begins the text: some releases send the sender's prefix, too */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static struct fid_mr *mr;
static char buf[2 * PREFIX_MAX + TEXT_MAX];

static void need(int rc, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "datagram: %s: %s\n", what, fi_strerror(-rc));
    exit(1);
}

static int find(const char *node, const char *service, uint64_t flags)
{
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG;
    hints->mode = FI_MSG_PREFIX;
    hints->ep_attr->type = FI_EP_DGRAM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->fabric_attr->prov_name = strdup("verbs");
    int rc = fi_getinfo(FI_VERSION(1, 11), node, service, flags, hints, &info);
    fi_freeinfo(hints);
    return rc;
}

static void open_endpoint(void)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};
    struct fi_av_attr av_attr = {.type = FI_AV_MAP};
    need(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    need(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    need(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    need(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    need(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
    need(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the CQ");
    need(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind of the AV");
    need(fi_enable(ep), "fi_enable"); /* the server is registered now */
    need(fi_mr_reg(domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL), "fi_mr_reg");
    need(info->ep_attr->msg_prefix_size <= PREFIX_MAX ? 0 : -FI_ETOOSMALL, "the prefix");
}

static void completed(void)
{
    struct fi_cq_msg_entry entry;
    ssize_t n;
    while ((n = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
        ;
    need((int)n, "fi_cq_read");
}

static void close_endpoint(void)
{
    fi_close(&ep->fid);
    fi_close(&mr->fid);
    fi_close(&av->fid);
    fi_close(&cq->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(info);
}

static void serve(const char *service)
{
    need(find(NULL, service, FI_SOURCE), "fi_getinfo");
    open_endpoint();
    need((int)fi_recv(ep, buf, sizeof(buf), fi_mr_desc(mr), FI_ADDR_UNSPEC, NULL), "fi_recv");
    printf("ready\n");
    fflush(stdout);
    completed();
    const char *text = memmem(buf, sizeof(buf), MARK, sizeof(MARK) - 1);
    need(text ? 0 : -FI_ENOMSG, "the text");
    printf("received %.*s\n", TEXT_MAX, text + sizeof(MARK) - 1);
}

static void send_to(const char *node, const char *service, const char *text)
{
    fi_addr_t to;
    for (int i = 0; i < 300 && (find(node, service, 0) != 0 || !info->dest_addr); i++)
        usleep(100000);
    need(info && info->dest_addr ? 0 : -FI_EADDRNOTAVAIL, "the name server");
    open_endpoint();
    need(fi_av_insert(av, info->dest_addr, 1, &to, 0, NULL) == 1 ? 0 : -FI_EADDRNOTAVAIL, "fi_av_insert");
    size_t prefix = info->ep_attr->msg_prefix_size;
    snprintf(buf + prefix, TEXT_MAX, MARK "%s", text);
    need((int)fi_send(ep, buf, prefix + TEXT_MAX, fi_mr_desc(mr), to, NULL), "fi_send");
    completed();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "server") == 0) {
        serve(argv[2]);
    } else if (argc == 5 && strcmp(argv[1], "client") == 0) {
        send_to(argv[2], argv[3], argv[4]);
    } else {
        fprintf(stderr, "usage: datagram server SERVICE | datagram client NODE SERVICE TEXT\n");
        return 2;
    }
    close_endpoint();
    return 0;
}
