/* SPDX-License-Identifier: MIT */
/* The names that consumers give themselves. */
#ifndef TSHARE_LEASE_SEAT_LABEL_H
#define TSHARE_LEASE_SEAT_LABEL_H

#include "lease/object.h"

#define SEAT_COMMAND_LEN 16

void seat_label(struct tshare_stream *stream);

/* Its program's name, for a terminal and for a sentence: it may be forged. */
void seat_command(const struct tshare_stream *stream, int seat, char *command);

#endif /* TSHARE_LEASE_SEAT_LABEL_H */
