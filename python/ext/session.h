/* SPDX-License-Identifier: MIT */
/* The process's context. */
#ifndef TSHARE_EXT_SESSION_H
#define TSHARE_EXT_SESSION_H

#include "ext.h"

/* The process's context, borrowed; opened on first use. NULL with an error set. */
struct tshare_ctx *ts_session(void);

#endif /* TSHARE_EXT_SESSION_H */
