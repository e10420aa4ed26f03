/* SPDX-License-Identifier: MIT */
/* What the running kernel says of modules, in sysfs and procfs. */
#ifndef TSHARE_CLI_KERNEL_H
#define TSHARE_CLI_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* Reads an attribute of the module that is loaded; false, and "", if there is none. */
bool kernel_read_module(const char *attribute, char *text, size_t size);

/* Whether it refuses modules that no key which it knows has signed, as under Secure Boot. */
bool kernel_wants_signatures(void);

/* Whether it loads no module until the machine is restarted. */
bool kernel_loads_no_modules(void);

#endif /* TSHARE_CLI_KERNEL_H */
