// SPDX-License-Identifier: MIT
/* In the place of module.c where libkmod was not there to build with. */
#include "cli.h"
#include "module.h"

const char *module_state(void)
{
	return "unknown (built without libkmod)";
}

int module_load(const char *parameters)
{
	(void)parameters;
	return failure("built without libkmod; use modprobe " MODULE_NAME);
}

int module_unload(void)
{
	return failure("built without libkmod; use modprobe -r " MODULE_NAME);
}
