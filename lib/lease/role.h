/* SPDX-License-Identifier: MIT */
/* Which calls an object takes, and failures that several roles have. */
#ifndef TSHARE_LEASE_ROLE_H
#define TSHARE_LEASE_ROLE_H

#include "lease/object.h"

int role_fail_child(void);

/* The failure of a wait for one of the stream's regions, in words of streams: returns @err. */
int role_fail_wait(int err);

/* 0, or the failure of a producer's or another's call: -EACCES; -EOPNOTSUPP in a child of fork(). */
int role_check_producer(const struct tshare_stream *stream);
int role_check_reader(const struct tshare_stream *stream);

#endif /* TSHARE_LEASE_ROLE_H */
