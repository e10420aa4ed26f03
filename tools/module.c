// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

static void take_info(struct module_file *file, const char *key, const char *value)
{
	if (!strcmp(key, "version"))
		snprintf(file->version, sizeof(file->version), "%s", value);
	else if (!strcmp(key, "srcversion"))
		snprintf(file->srcversion, sizeof(file->srcversion), "%s", value);
	else if (!strcmp(key, "sig_id"))
		file->is_signed = true;
	else if (!strcmp(key, "signer"))
		snprintf(file->signer, sizeof(file->signer), "%s", value);
}

/* Other errors, such as -EACCES, concern the caller or the machine. */
static bool is_about_contents(int err)
{
	return err == -EINVAL || err == -ENOEXEC || err == -ENODATA;
}

static void examine_file(struct kmod_module *module, struct module_file *file)
{
	struct kmod_list *info = NULL, *entry;
	int err;

	*file = (struct module_file){ .exists = kmod_module_get_path(module) };
	if (!file->exists)
		return;
	err = kmod_module_get_info(module, &info);
	file->is_damaged = is_about_contents(err);
	if (err < 0)
		return;
	kmod_list_foreach(entry, info)
		take_info(file, kmod_module_info_get_key(entry), kmod_module_info_get_value(entry));
	kmod_module_info_free_list(info);
}

void module_examine_file(struct module_file *file)
{
	struct kmod_module *module;
	struct kmod_ctx *kmod;

	*file = (struct module_file){ 0 };
	module = find_module(&kmod);
	if (!module)
		return;
	examine_file(module, file);
	release_module(kmod, module);
}

/* A line of the module's information is "parmtype=NAME:TYPE". */
static void call_with_parameter(struct kmod_list *entry, void (*fn)(const char *name, void *data),
				void *data)
{
	const char *value = kmod_module_info_get_value(entry);
	char name[64];

	if (strcmp(kmod_module_info_get_key(entry), "parmtype"))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ":"), value);
	fn(name, data);
}

bool module_each_parameter(void (*fn)(const char *name, void *data), void *data)
{
	struct kmod_list *info = NULL, *entry;
	struct kmod_module *module;
	struct kmod_ctx *kmod;
	bool done;

	module = find_module(&kmod);
	if (!module)
		return false;
	done = kmod_module_get_path(module) && kmod_module_get_info(module, &info) >= 0;
	if (done) {
		kmod_list_foreach(entry, info) call_with_parameter(entry, fn, data);
		kmod_module_info_free_list(info);
	}
	release_module(kmod, module);
	return done;
}

static int fail_signature(const char *release)
{
	struct module_file file;

	module_examine_file(&file);
	if (!file.is_signed)
		return failure("the module " MODULE_NAME " is installed but not signed, and kernel "
			       "%s accepts only signed modules (" MODULE_SIGN ")",
			       release);
	return failure("the module " MODULE_NAME " is installed, but kernel %s does not accept "
		       "the key that signed it (if DKMS did, run " MODULE_ENROL ")",
		       release);
}

/*
 * A locked-down kernel returns -EPERM for a signature that it refuses, as for a caller without
 * privileges.
 */
static int fail_permission(const char *release)
{
	if (geteuid())
		return failure("permission denied (run it as root)");
	if (kernel_loads_no_modules())
		return failure("kernel %s loads no modules until the machine is restarted "
			       "(kernel.modules_disabled is 1)",
			       release);
	if (kernel_wants_signatures())
		return fail_signature(release);
	return failure("permission denied (run it as root of the machine, not of a container)");
}

/*
 * Whether @err comes from a damaged file. The kernel returns -EINVAL for an empty file, and libkmod
 * for one that it can't unpack. For other damage the kernel returns -ENOEXEC; but if it accepts
 * only signed modules, it checks the signature at the end first, and finds none.
 */
static bool is_file_damaged(int err)
{
	struct module_file file;

	if (err == -EPERM && geteuid())
		return false;
	module_examine_file(&file);
	return file.is_damaged;
}

static int fail_load(int err)
{
	struct utsname kernel;

	uname(&kernel);
	if (is_file_damaged(err))
		return failure("the module " MODULE_NAME
			       " is installed for kernel %s, but its file "
			       "is cut off or damaged (" MODULE_REINSTALL ")",
			       kernel.release);
	switch (err) {
	case -ENOENT:
		return failure("the module " MODULE_NAME " is not installed for kernel %s",
			       kernel.release);
	case -EPERM:
	case -EACCES:
		return fail_permission(kernel.release);
	case -ENOEXEC:
		return failure("the module " MODULE_NAME " was not built for kernel %s",
			       kernel.release);
	case -EKEYREJECTED:
	case -ENOKEY:
		return fail_signature(kernel.release);
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
			       "'tshare list --all-namespaces')");
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
