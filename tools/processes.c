// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "number.h"
#include "text.h"

#define DEBUGFS "/sys/kernel/debug/tshare/regions"

/* Bytes of a dma-buf's name that the kernel keeps, and what precedes it in /proc. */
#define DMABUF_NAME_MAX 31
#define DMABUF_PREFIX	"/dmabuf:"

/* Reads the name of @process->pid; "" if there is no such process. */
static void process_name(struct process *process)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	text_read_line(path, process->command, sizeof(process->command));
}

/* Adds a process once, even if it has several descriptors; NULL if memory is short. */
static const struct process *add_user(struct details *details, pid_t pid)
{
	struct process *users, *user;

	if (details->user_count && details->users[details->user_count - 1].pid == pid)
		return &details->users[details->user_count - 1];
	users = realloc(details->users, (details->user_count + 1) * sizeof(*users));
	if (!users)
		return NULL;
	details->users = users;
	user = &users[details->user_count++];
	user->pid = pid;
	process_name(user);
	return user;
}

/* The maker of a region on shm locks the file's first byte, see backend/shm.c. */
static bool has_makers_lock(pid_t pid, const char *fd)
{
	char path[64], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", pid, fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && getline(&line, &size, file) > 0)
		found = !strncmp(line, "lock:", 5) && strstr(line, " WRITE ") &&
			strstr(line, " 0 0\n");
	free(line);
	fclose(file);
	return found;
}

/* The module names a dma-buf after its region, with '?' for each byte that isn't text. */
static bool is_dmabuf_of(const char *name, const char *region)
{
	size_t i;

	for (i = 0; region[i] && i < DMABUF_NAME_MAX; i++)
		if (name[i] != region[i] && name[i] != '?')
			return false;
	return !name[i];
}

/* A descriptor as /proc shows it. */
struct descriptor {
	struct stat st;
	char target[sizeof(DMABUF_PREFIX) + DMABUF_NAME_MAX + 1];
};

static bool read_descriptor(int dir, const char *fd, struct descriptor *descriptor)
{
	ssize_t length;

	if (fstatat(dir, fd, &descriptor->st, 0))
		return false;
	length = readlinkat(dir, fd, descriptor->target, sizeof(descriptor->target) - 1);
	descriptor->target[length < 0 ? 0 : length] = '\0';
	return true;
}

/* On kmod each opener has a dma-buf, and so an inode, of its own. */
static bool is_of(const struct details *details, const struct descriptor *descriptor)
{
	if (!details->opened || descriptor->st.st_dev != details->device)
		return false;
	if (strcmp(details->backend, "kmod"))
		return descriptor->st.st_ino == details->inode;
	return !strncmp(descriptor->target, DMABUF_PREFIX, strlen(DMABUF_PREFIX)) &&
	       is_dmabuf_of(descriptor->target + strlen(DMABUF_PREFIX), details->info.name);
}

static void scan_process(struct details_list *list, pid_t pid, DIR *fds)
{
	struct descriptor descriptor;
	const struct process *user;
	const struct dirent *entry;
	struct details *details;
	size_t i;

	while ((entry = readdir(fds))) {
		if (!read_descriptor(dirfd(fds), entry->d_name, &descriptor))
			continue;
		for (i = 0; i < list->count; i++) {
			details = &list->regions[i];
			if (!is_of(details, &descriptor))
				continue;
			user = add_user(details, pid);
			if (user && !details->maker.pid && has_makers_lock(pid, entry->d_name))
				details->maker = *user;
		}
	}
}

/* Adds the users of each opened region, but not this process; on shm also the maker. */
static void processes_scan(struct details_list *list)
{
	const struct dirent *entry;
	char path[32];
	int32_t pid;
	DIR *proc, *fds;

	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		if (!parse_node(entry->d_name, &pid) || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		fds = opendir(path);
		if (!fds)
			continue;
		scan_process(list, pid, fds);
		closedir(fds);
	}
	if (proc)
		closedir(proc);
}

/* Reads a line of debugfs: columns of numbers and words, with the name as the last. */
static void read_debugfs_line(struct details_list *list, const char *line)
{
	char rung[sizeof(list->regions->rung)];
	uint64_t id;
	pid_t pid;
	size_t i;

	if (sscanf(line, "%" SCNu64 " %*s %*s %d %*s %*s %*s %*s %15s", &id, &pid, rung) != 3)
		return;
	for (i = 0; i < list->count; i++) {
		struct details *details = &list->regions[i];

		if (details->info.id != id)
			continue;
		strcpy(details->rung, rung);
		details->maker_exited = !pid;
		details->maker.pid = pid;
		process_name(&details->maker);
	}
}

static void read_debugfs(struct details_list *list)
{
	static const char columns[] = "id size uid pid users references mappings attachments rung ";
	FILE *file = fopen(DEBUGFS, "re");
	char *line = NULL;
	size_t size;

	if (!file)
		return;
	if (getline(&line, &size, file) > 0 && !strncmp(line, columns, strlen(columns)))
		while (getline(&line, &size, file) > 0)
			read_debugfs_line(list, line);
	free(line);
	fclose(file);
}

void processes_find(struct details_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->regions[i].opened && !strcmp(list->regions[i].backend, "kmod"))
			break;
	if (i < list->count)
		read_debugfs(list);
	processes_scan(list);
}
