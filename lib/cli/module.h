/* SPDX-License-Identifier: MIT */
/* The kernel module, by way of libkmod. */
#ifndef TSHARE_CLI_MODULE_H
#define TSHARE_CLI_MODULE_H

#define MODULE_NAME "tshare"

/* "loaded", "built in", "not loaded", ...: a static string. */
const char *module_state(void);

/* EXIT_OK, or EXIT_FAILED after saying what failed. @parameters: "a=1 b=2" */
int module_load(const char *parameters);
int module_unload(void);

#endif /* TSHARE_CLI_MODULE_H */
