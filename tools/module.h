/* SPDX-License-Identifier: MIT */
/* State, loading and unloading of the kernel module, through libkmod. */
#ifndef TSHARE_CLI_MODULE_H
#define TSHARE_CLI_MODULE_H

#include <stdbool.h>

#include "kernel.h"

/* The remedy for a truncated file, as after a full disk, which DKMS 3.0.10 doesn't notice. */
#define MODULE_REINSTALL                                                                  \
	"if DKMS installed it, run 'dkms install --force " MODULE_NAME "/" TSHARE_VERSION \
	"' as root when its disk has room"

/* The remedies where the kernel wants signatures. DKMS signs if it finds openssl. */
#define MODULE_SIGN  "install openssl and have DKMS build it again"
#define MODULE_ENROL "'mokutil --import /var/lib/dkms/mok.pub' as root, and restart the machine"

/* The module that is installed for the running kernel. */
struct module_file {
	bool exists;
	bool is_damaged;     /* it is truncated or no module; nothing else is known */
	char version[32];    /* "" if it has none */
	char srcversion[32]; /* the same for all builds of the same sources */
	bool is_signed;
	char signer[128]; /* the name of its key, or "" where libkmod can't read it */
};

/* "loaded", "built in", "not loaded", ...: a static string. */
const char *module_state(void);

void module_examine_file(struct module_file *file);

/*
 * Calls @fn with the name of each parameter of the installed module. Returns false if no module is
 * installed, or if it can't be read: module_load() prints that error.
 */
bool module_each_parameter(void (*fn)(const char *name, void *data), void *data);

/* Return EXIT_OK, or EXIT_FAILED after printing the error. @parameters: "a=1 b=2" */
int module_load(const char *parameters);
int module_unload(void);

#endif /* TSHARE_CLI_MODULE_H */
