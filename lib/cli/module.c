// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include <libkmod.h>

#include "cli.h"
#include "module.h"

static struct kmod_module *find_module(struct kmod_ctx **kmod)
{
	struct kmod_module *module;

	*kmod = kmod_new(NULL, NULL);
	if (!*kmod)
		return NULL;
	if (!kmod_module_new_from_name(*kmod, MODULE_NAME, &module))
		return module;
	kmod_unref(*kmod);
	return NULL;
}

static void release_module(struct kmod_ctx *kmod, struct kmod_module *module)
{
	kmod_module_unref(module);
	kmod_unref(kmod);
}

const char *module_state(void)
{
	struct kmod_module *module;
	struct kmod_ctx *kmod;
	const char *state;

	module = find_module(&kmod);
	if (!module)
		return "unknown";
	switch (kmod_module_get_initstate(module)) {
	case KMOD_MODULE_BUILTIN:
		state = "built in";
		break;
	case KMOD_MODULE_LIVE:
		state = "loaded";
		break;
	case KMOD_MODULE_COMING:
		state = "being loaded";
		break;
	case KMOD_MODULE_GOING:
		state = "being unloaded";
		break;
	default:
		state = kmod_module_get_path(module) ? "not loaded" : "not installed";
	}
	release_module(kmod, module);
	return state;
}

static int fail_load(int err)
{
	struct utsname kernel;

	uname(&kernel);
	switch (err) {
	case -ENOENT:
		return failure("the module " MODULE_NAME " is not installed for kernel %s",
			       kernel.release);
	case -EPERM:
	case -EACCES:
		return failure("load: permission denied (run it as root)");
	case -ENOEXEC:
		return failure("the module " MODULE_NAME " was not built for kernel %s",
			       kernel.release);
	case -EKEYREJECTED:
	case -ENOKEY:
		return failure("load: kernel %s accepts only signed modules", kernel.release);
	case -EINVAL:
		return failure("the module " MODULE_NAME " rejected its parameters (see the "
			       "kernel log)");
	default:
		return failure("the module " MODULE_NAME ": %s", strerror(-err));
	}
}

int module_load(const char *parameters)
{
	struct kmod_module *module;
	struct kmod_ctx *kmod;
	int err;

	module = find_module(&kmod);
	if (!module)
		return failure("libkmod: %s", strerror(errno));
	if (kmod_module_get_initstate(module) < 0 && !kmod_module_get_path(module))
		err = -ENOENT;
	else
		err = kmod_module_probe_insert_module(module, KMOD_PROBE_FAIL_ON_LOADED, parameters,
						      NULL, NULL, NULL);
	release_module(kmod, module);
	if (err == -EEXIST)
		return failure("the module " MODULE_NAME " is already loaded");
	return err ? fail_load(err) : EXIT_OK;
}

static int fail_unload(int err)
{
	switch (err) {
	case -ENOENT:
		return failure("the module " MODULE_NAME " is not loaded");
	case -EPERM:
		return failure("permission denied (run it as root)");
	case -EBUSY:
	case -EWOULDBLOCK:
		return failure("the module " MODULE_NAME " is in use (a process has "
			       "/dev/tshare or a region open, or a persistent name is left: see "
			       "'tshare list')");
	default:
		return failure("the module " MODULE_NAME ": %s", strerror(-err));
	}
}

int module_unload(void)
{
	struct kmod_module *module;
	struct kmod_ctx *kmod;
	int err;

	module = find_module(&kmod);
	if (!module)
		return failure("libkmod: %s", strerror(errno));
	if (kmod_module_get_initstate(module) < 0)
		err = -ENOENT;
	else
		err = kmod_module_remove_module(module, KMOD_REMOVE_NOLOG);
	release_module(kmod, module);
	return err ? fail_unload(err) : EXIT_OK;
}
