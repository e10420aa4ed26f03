/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_CONSUMER_H
#define TSHARE_LEASE_CONSUMER_H

#include <stdint.h>

#include "lease/object.h"

/* Takes a seat, for a consumer, and finds where to begin. */
int consumer_join(struct tshare_stream *stream, uint32_t history);
void consumer_leave(struct tshare_stream *stream);

#endif /* TSHARE_LEASE_CONSUMER_H */
