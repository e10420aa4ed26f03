/* SPDX-License-Identifier: MIT */
/* Finds the processes that have regions open, by their descriptors in /proc. */
#ifndef TSHARE_CLI_PROCESSES_H
#define TSHARE_CLI_PROCESSES_H

#include "details.h"

/* Adds what /proc and debugfs show of the regions that were opened. */
void processes_find(struct details_list *list);

#endif /* TSHARE_CLI_PROCESSES_H */
