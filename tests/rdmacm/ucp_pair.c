// SPDX-License-Identifier: BSD-2-Clause
/* A client and a server of UCX (UCP) that connect by a socket address. The server sends back what the client sends, and the
 * client compares.
 *     ucp_pair PORT              the server, for one client
 *     ucp_pair PORT ADDRESS      the client */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { ROUNDS = 100, LONGEST = 300000, TAG = 7 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_conn_request_h request; /* of the client that connects */
static bool lost; /* the peer has closed its end */
static uint8_t out[LONGEST], in[LONGEST];

static void need(ucs_status_t status, const char *what)
{
    if (status == UCS_OK)
        return;
    printf("ucp_pair: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void on_request(ucp_conn_request_h r, void *unused)
{
    (void)unused;
    request = r;
}

static void on_error(void *unused, ucp_ep_h ep, ucs_status_t status)
{
    (void)unused;
    (void)ep;
    (void)status;
    lost = true;
}

static void open_worker(void)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                         .thread_mode = UCS_THREAD_MODE_SINGLE};

    need(ucp_init(&params, NULL, &context), "ucp_init");
    need(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
}

/* Until the operation is over. */
static void finish(ucs_status_ptr_t op, const char *what)
{
    if (!op)
        return;
    if (UCS_PTR_IS_ERR(op))
        need(UCS_PTR_STATUS(op), what);
    while (ucp_request_check_status(op) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    need(ucp_request_check_status(op), what);
    ucp_request_free(op);
}

static void send_to(ucp_ep_h ep, size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    finish(ucp_tag_send_nbx(ep, out, length, TAG, &none), "send");
}

static void receive(size_t length)
{
    ucp_request_param_t none = {.op_attr_mask = 0};

    finish(ucp_tag_recv_nbx(worker, in, length, TAG, UINT64_MAX, &none), "receive");
}

static size_t length_of(unsigned round)
{
    return round == 0 ? 1 : (size_t)round * round * 29 % LONGEST + 1;
}

static ucp_ep_params_t common(void)
{
    return (ucp_ep_params_t){.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                             .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                             .err_handler = {.cb = on_error}};
}

static void end(ucp_ep_h ep)
{
    ucp_request_param_t flush = {.op_attr_mask = 0};

    ucs_status_ptr_t op = ucp_ep_close_nbx(ep, &flush);
    if (UCS_PTR_IS_PTR(op)) {
        while (ucp_request_check_status(op) == UCS_INPROGRESS)
            ucp_worker_progress(worker);
        ucp_request_free(op);
    }
}

static void serve(const struct sockaddr_in *address)
{
    ucp_listener_params_t params = {.field_mask =
                                        UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
                                    .sockaddr = {(const struct sockaddr *)address, sizeof(*address)},
                                    .conn_handler = {.cb = on_request}};
    ucp_listener_h listener;
    ucp_ep_params_t to = common();
    ucp_ep_h ep;

    need(ucp_listener_create(worker, &params, &listener), "ucp_listener_create");
    while (!request)
        ucp_worker_progress(worker);
    to.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
    to.conn_request = request;
    need(ucp_ep_create(worker, &to, &ep), "ucp_ep_create");
    for (unsigned round = 0; round < ROUNDS; round++) {
        receive(length_of(round));
        memcpy(out, in, length_of(round));
        send_to(ep, length_of(round));
    }
    while (!lost)
        ucp_worker_progress(worker);
    end(ep);
    ucp_listener_destroy(listener);
}

static void call(const struct sockaddr_in *address)
{
    ucp_ep_params_t to = common();
    ucp_ep_h ep;

    to.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    to.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    to.sockaddr = (ucs_sock_addr_t){(const struct sockaddr *)address, sizeof(*address)};
    need(ucp_ep_create(worker, &to, &ep), "ucp_ep_create");
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < length_of(round); i++)
            out[i] = (uint8_t)(i * 5 + round);
        memset(in, 0, length_of(round));
        send_to(ep, length_of(round));
        receive(length_of(round));
        if (memcmp(in, out, length_of(round)) != 0) {
            printf("ucp_pair: wrong data in round %u\n", round);
            exit(1);
        }
    }
    end(ep);
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: ucp_pair PORT [ADDRESS]\n");
        return 2;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    open_worker();
    if (argc == 3 && inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
        return 2;
    if (argc == 2)
        serve(&address);
    else
        call(&address);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    printf("ok %d rounds\n", ROUNDS);
    return 0;
}
