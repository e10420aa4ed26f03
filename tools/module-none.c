// SPDX-License-Identifier: MIT
/* Replaces module.c in a build without libkmod, and doesn't know which modules are installed. */
#include <string.h>

#include "cli.h"
#include "kernel.h"
#include "module.h"

const char *module_state(void)
{
	char text[32];

	if (kernel_read_module("initstate", text, sizeof(text))) {
		if (!strcmp(text, "coming"))
			return "being loaded";
		return strcmp(text, "going") ? "loaded" : "being unloaded";
	}
	return kernel_read_module("version", text, sizeof(text)) ? "built in" : "not loaded";
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
