// SPDX-License-Identifier: MIT
/* Details of a region from the region itself, its file and the module's debugfs; prints them. */
#define _GNU_SOURCE 1
#include "details.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "json.h"
#include "report.h"

int details_add(const struct tshare_region_info *info, void *data)
{
	struct details_list *list = data;
	struct details *regions;

	if (list->count == list->room) {
		list->room = 2 * list->room + 16;
		regions = realloc(list->regions, list->room * sizeof(*regions));
		if (!regions)
			return failure("out of memory");
		list->regions = regions;
	}
	list->regions[list->count++] = (struct details){ .info = *info, .created = -1 };
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct details *left = a, *right = b;

	return strcmp(left->info.name, right->info.name);
}

static int end_list(struct details_list *list, int ret)
{
	if (ret < 0)
		return failure_of_library(ret);
	if (list->count)
		qsort(list->regions, list->count, sizeof(*list->regions), compare_names);
	return ret;
}

int details_list(struct tshare_ctx *ctx, struct details_list *list)
{
	return end_list(list, tshare_ctx_list(ctx, details_add, list));
}

int details_list_all(struct tshare_ctx *ctx, struct details_list *list)
{
	return end_list(list, tshare_ctx_list_all(ctx, details_add, list));
}

void details_release(struct details_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		free(list->regions[i].users);
	free(list->regions);
}

/* A file on shm was made with its region; a dma-buf is made when a process opens the region. */
static void read_file(struct details *details, int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st))
		return;
	details->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	details->inode = st.stx_ino;
	if (!strcmp(details->backend, "shm") && st.stx_mask & STATX_BTIME)
		details->created = st.stx_btime.tv_sec;
}

void details_read(struct details *details, struct tshare_region *region)
{
	bool has_publishers;
	int err;

	details->opened = true;
	details->backend = tshare_region_get_backend(region);
	read_file(details, tshare_region_get_fd(region));
	if (tshare_region_get_generation(region, &details->generation))
		return;
	err = tshare_region_has_publishers(region, &has_publishers);
	if (err == -EOWNERDEAD)
		details->publishers = PUBLISHERS_DEAD;
	else if (!err && has_publishers)
		details->publishers = PUBLISHERS_LIVE;
}

void details_open(struct tshare_ctx *ctx, struct details_list *list)
{
	struct tshare_region *region;
	struct details *details;
	size_t i;

	for (i = 0; i < list->count; i++) {
		details = &list->regions[i];
		if (open_readonly(ctx, details->info.name, &region))
			continue;
		/* The name may meanwhile lead to another region. */
		if (tshare_region_get_id(region) == details->info.id)
			details_read(details, region);
		tshare_region_unref(region);
	}
}

const char *details_state(const struct details *details)
{
	static const char *const names[] = {
		[PUBLISHERS_NONE] = "-",
		[PUBLISHERS_LIVE] = "live",
		[PUBLISHERS_DEAD] = "dead",
	};

	return details->info.flags & TSHARE_DRAFT ? "draft" : names[details->publishers];
}

/* Without debugfs, as far as the backend reports it. */
const char *details_rung(const struct details *details)
{
	if (details->rung[0])
		return details->rung;
	if (details->info.flags & TSHARE_POOL)
		return "pool";
	return details->info.flags & TSHARE_FOREIGN ? "dmabuf" : "-";
}

void details_age(const struct details *details, char text[DETAILS_TEXT_LEN])
{
	int64_t age = time(NULL) - details->created;

	if (details->created < 0)
		strcpy(text, "-");
	else if (age < 60)
		sprintf(text, "%" PRId64 "s", age < 0 ? 0 : age);
	else if (age < 3600)
		sprintf(text, "%" PRId64 "m", age / 60);
	else if (age < 172800)
		sprintf(text, "%" PRId64 "h", age / 3600);
	else
		sprintf(text, "%" PRId64 "d", age / 86400);
}

void details_maker(const struct details *details, char text[DETAILS_TEXT_LEN])
{
	if (details->maker.pid)
		snprintf(text, DETAILS_TEXT_LEN, "%d %s", details->maker.pid,
			 details->maker.command);
	else
		strcpy(text, details->maker_exited ? "exited" : "-");
}

static void process_json(const char *key, const struct process *process)
{
	json_open(key, '{');
	json_int("pid", process->pid);
	json_string("command", process->command);
	json_close('}');
}

void details_maker_json(const char *key, const struct details *details)
{
	if (details->maker.pid)
		process_json(key, &details->maker);
	else
		json_null(key);
}

void details_json(const struct details *details)
{
	size_t i;

	if (details->opened)
		json_uint("generation", details->generation);
	else
		json_null("generation");
	json_string("state", details_state(details));
	json_string("rung", details_rung(details));
	if (details->created < 0)
		json_null("created");
	else
		json_int("created", details->created);
	details_maker_json("maker", details);
	json_open("users", '[');
	for (i = 0; i < details->user_count; i++)
		process_json(NULL, &details->users[i]);
	json_close(']');
}
