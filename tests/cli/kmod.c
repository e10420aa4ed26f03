// SPDX-License-Identifier: MIT
/*
 * A stub of libkmod for tests of the command: no test loads a module, and few machines have one
 * that is signed. Environment variables control it:
 *
 * STUB_KMOD_STATE  what kmod_module_get_initstate() returns
 * STUB_KMOD_INFO   lines "KEY=VALUE" of the installed module; without it none is installed
 * STUB_KMOD_CUT    what kmod_module_get_info() returns, for a file that is no module
 * STUB_KMOD_ERROR  what loading the module returns
 * STUB_KMOD_ROOT   where the files of sysfs and procfs that tell of modules are looked for
 * STUB_KMOD_UID    the effective user
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libkmod.h>

struct kmod_ctx {
	char unused;
};

struct kmod_module {
	char unused;
};

struct kmod_list {
	struct kmod_list *next;
	char *key, *value;
};

static struct kmod_ctx the_context;
static struct kmod_module the_module;

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

struct kmod_ctx *kmod_new(const char *dirname, const char *const *config_paths)
{
	(void)dirname;
	(void)config_paths;
	return &the_context;
}

struct kmod_ctx *kmod_unref(struct kmod_ctx *ctx)
{
	(void)ctx;
	return NULL;
}

int kmod_module_new_from_name(struct kmod_ctx *ctx, const char *name, struct kmod_module **module)
{
	(void)ctx;
	(void)name;
	*module = &the_module;
	return 0;
}

struct kmod_module *kmod_module_unref(struct kmod_module *module)
{
	(void)module;
	return NULL;
}

int kmod_module_get_initstate(const struct kmod_module *module)
{
	(void)module;
	return number("STUB_KMOD_STATE", -ENOENT);
}

const char *kmod_module_get_path(const struct kmod_module *module)
{
	(void)module;
	return getenv("STUB_KMOD_INFO") ? "/tshare.ko" : NULL;
}

int kmod_module_get_info(const struct kmod_module *module, struct kmod_list **list)
{
	char *lines, *line, *rest;
	struct kmod_list *entry;
	int count = 0;

	(void)module;
	if (getenv("STUB_KMOD_CUT"))
		return number("STUB_KMOD_CUT", 0);
	rest = lines = strdup(getenv("STUB_KMOD_INFO"));
	while ((line = strsep(&rest, "\n"))) {
		entry = calloc(1, sizeof(*entry));
		entry->key = strdup(strsep(&line, "="));
		entry->value = strdup(line ? line : "");
		entry->next = *list;
		*list = entry;
		count++;
	}
	free(lines);
	return count;
}

struct kmod_list *kmod_list_next(const struct kmod_list *list, const struct kmod_list *entry)
{
	(void)list;
	return entry->next;
}

const char *kmod_module_info_get_key(const struct kmod_list *entry)
{
	return entry->key;
}

const char *kmod_module_info_get_value(const struct kmod_list *entry)
{
	return entry->value;
}

void kmod_module_info_free_list(struct kmod_list *list)
{
	struct kmod_list *next;

	for (; list; list = next) {
		next = list->next;
		free(list->key);
		free(list->value);
		free(list);
	}
}

int kmod_module_probe_insert_module(
	struct kmod_module *module, unsigned int flags, const char *extra_options,
	int (*run_install)(struct kmod_module *module, const char *command, void *data),
	const void *data,
	void (*print_action)(struct kmod_module *module, bool install, const char *options))
{
	(void)module;
	(void)flags;
	(void)extra_options;
	(void)run_install;
	(void)data;
	(void)print_action;
	return number("STUB_KMOD_ERROR", 0);
}

int kmod_module_remove_module(struct kmod_module *module, unsigned int flags)
{
	(void)module;
	(void)flags;
	return number("STUB_KMOD_ERROR", 0);
}

uid_t geteuid(void)
{
	return number("STUB_KMOD_UID", 0);
}

static bool tells_of_modules(const char *path)
{
	return !strncmp(path, "/sys/module/", strlen("/sys/module/")) ||
	       !strncmp(path, "/sys/kernel/security/", strlen("/sys/kernel/security/")) ||
	       !strncmp(path, "/proc/sys/kernel/", strlen("/proc/sys/kernel/"));
}

static FILE *open_below_root(const char *name, const char *path, const char *mode)
{
	FILE *(*next)(const char *path, const char *mode);
	const char *root = getenv("STUB_KMOD_ROOT");
	char moved[4096];

	*(void **)&next = dlsym(RTLD_NEXT, name);
	if (!root || !tells_of_modules(path))
		return next(path, mode);
	snprintf(moved, sizeof(moved), "%s%s", root, path);
	return next(moved, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	return open_below_root("fopen", path, mode);
}

/* What fopen() is called where files have sizes of 64 bits. */
FILE *fopen64(const char *path, const char *mode)
{
	return open_below_root("fopen64", path, mode);
}
