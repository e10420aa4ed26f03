/* SPDX-License-Identifier: MIT */
/* Signals that end a verb in an orderly way: SIGINT, SIGTERM and SIGHUP. */
#ifndef TSHARE_CLI_ENDING_H
#define TSHARE_CLI_ENDING_H

#include <stdint.h>

/* From now on they arrive only in ending_wait(). An ignored signal, as by nohup(1), stays so. */
void ending_begin(void);

/*
 * Waits until @fd is readable, until the time is over, or until a signal arrives. Returns the
 * number of a signal that has arrived, also before this call; else 0.
 * @fd: or -1; @timeout_ns: negative for ever
 */
int ending_wait(int fd, int64_t timeout_ns);

/* Ends the process as the signal would have done without ending_begin(). */
void ending_raise(int number);

/* CLOCK_MONOTONIC, in nanoseconds. */
int64_t ending_now(void);

#endif /* TSHARE_CLI_ENDING_H */
