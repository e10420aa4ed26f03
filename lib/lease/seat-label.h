/* SPDX-License-Identifier: MIT */
/* The names that seats' processes give themselves in NAME.seats: only to be shown. */
#ifndef TSHARE_LEASE_SEAT_LABEL_H
#define TSHARE_LEASE_SEAT_LABEL_H

#include <stdatomic.h>
#include <stdint.h>

#define SEAT_COMMAND_LEN 16

struct seat_labels {
	_Atomic(int32_t) *pids;
	char (*commands)[SEAT_COMMAND_LEN];
};

/* Writes this process's; removes it. */
void seat_label(const struct seat_labels *labels, int seat);
void seat_unlabel(const struct seat_labels *labels, int seat);

/* Its program's name, for a terminal and for a sentence: it may be forged. */
void seat_command(const struct seat_labels *labels, int seat, char *command);

#endif /* TSHARE_LEASE_SEAT_LABEL_H */
