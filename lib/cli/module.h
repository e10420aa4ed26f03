/* SPDX-License-Identifier: MIT */
/* State, loading and unloading of the kernel module, by libkmod. */
#ifndef TSHARE_CLI_MODULE_H
#define TSHARE_CLI_MODULE_H

#define MODULE_NAME "tshare"

/* "loaded", "built in", "not loaded", ...: a static string. */
const char *module_state(void);

/* Return EXIT_OK, or EXIT_FAILED after printing the error. @parameters: "a=1 b=2" */
int module_load(const char *parameters);
int module_unload(void);

#endif /* TSHARE_CLI_MODULE_H */
