/* SPDX-License-Identifier: MIT */
/* Which processes have regions open, by the descriptors that /proc shows. */
#ifndef TSHARE_CLI_PROCESSES_H
#define TSHARE_CLI_PROCESSES_H

#include "details.h"

/* Adds the users of all regions that were opened, and on shm the maker, but not this process. */
void processes_scan(struct details_list *list);

/* Reads the name of @process->pid, "" if there is none such. */
void process_name(struct process *process);

#endif /* TSHARE_CLI_PROCESSES_H */
