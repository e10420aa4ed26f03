// SPDX-License-Identifier: MIT
/* Replaces module.c in a build without libkmod. */
#include "cli.h"
#include "module.h"

const char *module_state(void)
{
	return "unknown (built without libkmod)";
}

void module_examine_file(struct module_file *file)
{
	*file = (struct module_file){ 0 };
}

bool module_each_parameter(void (*fn)(const char *name, void *data), void *data)
{
	(void)fn;
	(void)data;
	return false;
}

int module_load(const char *parameters)
{
	(void)parameters;
	return failure("built without libkmod (run 'modprobe " MODULE_NAME "')");
}

int module_unload(void)
{
	return failure("built without libkmod (run 'modprobe -r " MODULE_NAME "')");
}
