/* SPDX-License-Identifier: MIT */
/* The process's context. */
#ifndef TSHARE_EXT_SESSION_H
#define TSHARE_EXT_SESSION_H

#include "ext.h"

/* The process's context, borrowed; opened on first use. NULL with an error set. */
struct tshare_ctx *ts_session(void);
/*
 * The same with a reference, for a wait: a handler of a signal may fork, and the child's first
 * ts_session() drops the parent's context, which the wait goes on with.
 */
struct tshare_ctx *ts_hold_session(void);

#endif /* TSHARE_EXT_SESSION_H */
