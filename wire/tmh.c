// SPDX-License-Identifier: BSD-2-Clause
#include "wire/tmh.h"

#include <string.h>

#include "wire/bytes.h"

bool tmh_decode(const uint8_t *p, size_t len, struct tmh *out)
{
    if (len < TMH_LEN)
        return false;
    p = get_u8(p, &out->opcode);
    memcpy(out->reserved, p, sizeof(out->reserved));
    p = get_be32(p + sizeof(out->reserved), &out->app_ctx);
    get_be64(p, &out->tag);
    return true;
}

bool rvh_decode(const uint8_t *p, size_t len, struct rvh *out)
{
    if (len < RVH_LEN)
        return false;
    p = get_be64(p, &out->va);
    p = get_be32(p, &out->rkey);
    get_be32(p, &out->len);
    return true;
}

size_t tmh_encode(const struct tmh *t, uint8_t *dst)
{
    uint8_t *d = put_u8(dst, t->opcode);

    memcpy(d, t->reserved, sizeof(t->reserved));
    d = put_be32(d + sizeof(t->reserved), t->app_ctx);
    d = put_be64(d, t->tag);
    return (size_t)(d - dst);
}

size_t rvh_encode(const struct rvh *r, uint8_t *dst)
{
    uint8_t *d = put_be64(dst, r->va);

    d = put_be32(d, r->rkey);
    d = put_be32(d, r->len);
    return (size_t)(d - dst);
}
