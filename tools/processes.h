/* SPDX-License-Identifier: MIT */
/* Finds the processes that have regions open, by their descriptors in /proc. */
#ifndef TSHARE_CLI_PROCESSES_H
#define TSHARE_CLI_PROCESSES_H

#include "details.h"

/* Adds the users of each opened region, but not this process; on shm also the maker. */
void processes_scan(struct details_list *list);

/* Reads the name of @process->pid; "" if there is no such process. */
void process_name(struct process *process);

#endif /* TSHARE_CLI_PROCESSES_H */
