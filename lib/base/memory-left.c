// SPDX-License-Identifier: MIT
/*
 * Estimates how much memory the system and the cgroup still have. A memfd or a tmpfs
 * may exceed it: then the OOM killer comes instead of an error.
 */
#define _GNU_SOURCE 1
#include "base/memory-left.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/process.h"

/* A memory cgroup is charged for the pages, and for their index and page tables. */
#define OVERHEAD_MIN   (UINT64_C(1) << 20)
#define OVERHEAD_SHARE 64

struct system {
	uint64_t available; /* UINT64_MAX if unknown */
	uint64_t swap;
};

static uint64_t saturating_difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* NULL if the file can't be opened; if a shortage is the reason, stores it in @err. */
static FILE *open_file(const char *path, int *err)
{
	FILE *file = fd_fopen(path);

	if (!file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		*err = -errno;
	return file;
}

static struct system read_system(int *err)
{
	_cleanup_fclose_ FILE *file = open_file("/proc/meminfo", err);
	struct system system = { UINT64_MAX, 0 };
	char line[128];
	uint64_t kib;

	if (!file)
		return system;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			system.available = kib * 1024;
		else if (sscanf(line, "SwapFree: %" SCNu64, &kib) == 1)
			system.swap = kib * 1024;
	}
	if (system.available != UINT64_MAX)
		system.available += system.swap;
	return system;
}

/* Where cgroup version 2 is mounted, and which cgroup is the root there; found once. */
static char mount_point[PATH_MAX], mount_root[PATH_MAX];

/* The path of a cgroup below the mount point. */
#define CGROUP_PATH_MAX (2UL * PATH_MAX)
static bool mount_looked_for; /* under the process's lock, as the paths are until it is set */

static void look_for_mount(int *err)
{
	_cleanup_fclose_ FILE *file = open_file("/proc/self/mountinfo", err);
	char line[3 * PATH_MAX], *type;

	mount_looked_for = !*err;
	while (file && !*mount_point && fgets(line, sizeof(line), file)) {
		type = strstr(line, " - ");
		if (!type || strncmp(type, " - cgroup2 ", 11) ||
		    sscanf(line, "%*d %*d %*s %4095s %4095s", mount_root, mount_point) != 2)
			*mount_point = '\0';
	}
}

static void find_mount(int *err)
{
	process_lock();
	if (!mount_looked_for)
		look_for_mount(err);
	process_unlock();
}

/* Finds the directory of the process's cgroup; false if none is visible. */
static bool find_cgroup(char path[CGROUP_PATH_MAX], int *err)
{
	_cleanup_fclose_ FILE *file = open_file("/proc/self/cgroup", err);
	char line[PATH_MAX], *own = NULL;
	size_t root;

	while (file && !own && fgets(line, sizeof(line), file))
		if (!strncmp(line, "0::/", 4))
			own = line + 3;
	find_mount(err);
	if (!own || *err || !*mount_point)
		return false;
	own[strcspn(own, "\n")] = '\0';
	/* The mounted root is mostly "/". A cgroup outside of it begins with "/..". */
	root = strcmp(mount_root, "/") ? strlen(mount_root) : 0;
	if (strncmp(own, mount_root, root) || (own[root] && own[root] != '/') ||
	    !strncmp(own + root, "/..", 3))
		return false;
	snprintf(path, CGROUP_PATH_MAX, "%s%s", mount_point, own + root);
	return true;
}

static FILE *open_in(const char *cgroup, const char *name, int *err)
{
	char path[CGROUP_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	return open_file(path, err);
}

/* A number; UINT64_MAX for "max" and for a missing file, as in the root. */
static uint64_t read_number(const char *cgroup, const char *name, int *err)
{
	_cleanup_fclose_ FILE *file = open_in(cgroup, name, err);
	uint64_t number;

	if (!file || fscanf(file, "%" SCNu64, &number) != 1)
		number = UINT64_MAX;
	return number;
}

/* Caches of the cgroup that the kernel can reclaim. Shared memory is not among them. */
static uint64_t read_reclaimable(const char *cgroup, int *err)
{
	static const char *const kinds[] = { "inactive_file", "active_file", "slab_reclaimable" };
	_cleanup_fclose_ FILE *file = open_in(cgroup, "memory.stat", err);
	uint64_t bytes, total = 0;
	char line[128], kind[64];
	size_t i;

	while (file && fgets(line, sizeof(line), file))
		for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (sscanf(line, "%63s %" SCNu64, kind, &bytes) == 2 &&
			    !strcmp(kind, kinds[i]))
				total += bytes;
	return total;
}

static uint64_t read_swap(const char *cgroup, uint64_t system_swap, int *err)
{
	uint64_t limit = read_number(cgroup, "memory.swap.max", err), left;

	if (limit == UINT64_MAX)
		return system_swap;
	left = saturating_difference(limit, read_number(cgroup, "memory.swap.current", err));
	return left < system_swap ? left : system_swap;
}

/* Bytes that one cgroup has left. */
static uint64_t read_cgroup(const char *cgroup, uint64_t system_swap, int *err)
{
	uint64_t limit = read_number(cgroup, "memory.max", err), used, left;

	if (limit == UINT64_MAX)
		return UINT64_MAX;
	used = read_number(cgroup, "memory.current", err);
	used = saturating_difference(used, read_reclaimable(cgroup, err));
	left = saturating_difference(limit, used);
	left += read_swap(cgroup, system_swap, err);
	return saturating_difference(left, OVERHEAD_MIN + left / OVERHEAD_SHARE);
}

int memory_available(uint64_t *available, const char **limit)
{
	char cgroup[CGROUP_PATH_MAX], *slash;
	struct system system;
	int err = 0;
	uint64_t left;

	system = read_system(&err);
	*available = system.available;
	*limit = "the system";
	if (!find_cgroup(cgroup, &err))
		return err;
	/* The limit of each ancestor holds, too. */
	do {
		left = read_cgroup(cgroup, system.swap, &err);
		if (left < *available) {
			*available = left;
			*limit = "the memory cgroup";
		}
		slash = strrchr(cgroup, '/');
		if (slash)
			*slash = '\0';
	} while (slash && strlen(cgroup) >= strlen(mount_point));
	return err;
}
