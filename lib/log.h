/* SPDX-License-Identifier: MIT */
/* Where messages go: a program's function, or the standard error. */
#ifndef TSHARE_LOG_H
#define TSHARE_LOG_H

#include <syslog.h>

#include "tshare.h"

/* The members change together, under the process's lock. */
struct log {
	tshare_log_fn fn;
	void *data;
	int priority; /* the least urgent that is passed on */
};

/* -EINVAL for a priority that is not 0 to LOG_DEBUG; the error text calls it @argument. */
int log_check_priority(int priority, const char *argument);

/* @priority: 0 is the value of TSHARE_LOG. */
void log_init(struct log *log, tshare_log_fn fn, void *data, int priority);

/* The same for a log in use. Waits until no other thread is in the old function. */
void log_replace(struct log *log, tshare_log_fn fn, void *data, int priority);

void log_message(struct log *log, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* TSHARE_LOG_H */
