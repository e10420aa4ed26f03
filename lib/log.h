/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LOG_H
#define TSHARE_LOG_H

#include <syslog.h>

struct tshare_ctx;

/* Sets @ctx up to write what TSHARE_LOG asks for to standard error. */
void tshare_log_init(struct tshare_ctx *ctx);

void tshare_log(struct tshare_ctx *ctx, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* TSHARE_LOG_H */
