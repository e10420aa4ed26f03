/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_BASE_CONTAINER_H
#define TSHARE_BASE_CONTAINER_H

#include <stddef.h>

/* The struct of @type whose @member is at @pointer. */
#define container_of(pointer, type, member)                       \
	({                                                        \
		__typeof__(((type *)0)->member) *at_ = (pointer); \
		(type *)((char *)at_ - offsetof(type, member));   \
	})

#endif /* TSHARE_BASE_CONTAINER_H */
