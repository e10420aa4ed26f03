/* SPDX-License-Identifier: MIT */
/* Facts about modules in the running kernel, from sysfs and procfs. */
#ifndef TSHARE_CLI_KERNEL_H
#define TSHARE_CLI_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/* The module. */
#define MODULE_NAME "tshare"

/* Reads an attribute of the loaded module; false, and "", if there is none. */
bool kernel_read_module(const char *attribute, char *text, size_t size);

/* Whether the kernel refuses modules that lack a known key's signature, as under Secure Boot. */
bool kernel_wants_signatures(void);

/* Whether the kernel loads no module until the machine is restarted. */
bool kernel_loads_no_modules(void);

#endif /* TSHARE_CLI_KERNEL_H */
