/* SPDX-License-Identifier: MIT */
/* Descriptors for poll() that are readable when there is news. */
#ifndef TSHARE_GENERATION_EVENT_H
#define TSHARE_GENERATION_EVENT_H

struct tshare_waiter;

int event_get_fd(struct tshare_waiter *waiter, int *fd);

/* Closes it, if there is one. */
void event_end(struct tshare_waiter *waiter);

#endif /* TSHARE_GENERATION_EVENT_H */
