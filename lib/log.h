/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LOG_H
#define TSHARE_LOG_H

#include <syslog.h>

#include "tshare.h"

/* -EINVAL for a priority that is not 0 to LOG_DEBUG; the error text calls it @argument. */
int log_check_priority(int priority, const char *argument);

/*
 * Sets where the messages of @ctx go from now on, and how urgent they have to be; 0 is
 * the value of TSHARE_LOG. Waits for no thread.
 */
void log_set_fn(struct tshare_ctx *ctx, tshare_log_fn fn, void *data, int priority);

void log_message(struct tshare_ctx *ctx, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* TSHARE_LOG_H */
