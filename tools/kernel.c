// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "kernel.h"
#include "text.h"

bool kernel_read_module(const char *attribute, char *text, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/" MODULE_NAME "/%s", attribute);
	return text_read_line(path, text, size);
}

/* A kernel that was booted under Secure Boot is locked down, without module.sig_enforce. */
bool kernel_wants_signatures(void)
{
	char text[64];

	if (text_read_line("/sys/module/module/parameters/sig_enforce", text, sizeof(text)) &&
	    text[0] == 'Y')
		return true;
	return text_read_line("/sys/kernel/security/lockdown", text, sizeof(text)) &&
	       !strstr(text, "[none]");
}

bool kernel_loads_no_modules(void)
{
	char text[8];

	return text_read_line("/proc/sys/kernel/modules_disabled", text, sizeof(text)) &&
	       text[0] == '1';
}
