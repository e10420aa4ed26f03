/* SPDX-License-Identifier: MIT */
/*
 * A named region's maker, users and age, which the backend doesn't report. /proc shows them for
 * processes that the caller may inspect, debugfs to root.
 */
#ifndef TSHARE_CLI_DETAILS_H
#define TSHARE_CLI_DETAILS_H

#include <sys/stat.h>

#include "cli.h"

/* Bytes of a process's name in /proc, with the terminating NUL. */
#define COMMAND_LEN 16

struct process {
	pid_t pid; /* 0: unknown */
	char command[COMMAND_LEN];
};

enum publishers { PUBLISHERS_NONE, PUBLISHERS_LIVE, PUBLISHERS_DEAD };

struct details {
	struct tshare_region_info info;
	bool opened; /* the members below are known, as far as possible */
	const char *backend;
	uint64_t generation;
	double rate; /* publishes per second; negative: unknown */
	enum publishers publishers;
	int64_t created; /* seconds since 1970; -1: unknown */
	dev_t device;	 /* of the region's file, or of all dma-bufs */
	ino_t inode;
	char rung[16]; /* "" : unknown */
	bool maker_exited;
	struct process maker;
	struct process *users;
	size_t user_count;
};

struct details_list {
	struct details *regions;
	size_t count;
	size_t room;
};

/* Lists the regions, sorted by name, without details. Returns an exit status. */
int details_list(struct tshare_ctx *ctx, struct details_list *list);
/* As details_list(), for all IPC namespaces. */
int details_list_all(struct tshare_ctx *ctx, struct details_list *list);
/* Adds a region to the list @data. */
int details_add(const struct tshare_region_info *info, void *data);
void details_release(struct details_list *list);

/* Opens each region, and reads its details. */
void details_open(struct tshare_ctx *ctx, struct details_list *list);
/* Reads the details of an open region. */
void details_read(struct details *details, struct tshare_region *region);

/* Prints the members of a region's JSON object. */
void details_json(const struct details *details);
void details_maker_json(const char *key, const struct details *details);

#define DETAILS_TEXT_LEN 64
void details_age(const struct details *details, char text[DETAILS_TEXT_LEN]);
void details_maker(const struct details *details, char text[DETAILS_TEXT_LEN]);
/* "draft", "live", "dead", or "-" if nobody has published */
const char *details_state(const struct details *details);
const char *details_rung(const struct details *details);

#endif /* TSHARE_CLI_DETAILS_H */
