// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util.h"

struct tshare_ctx *ctx;
const struct tshare_open_options readonly_options = {
	.size = sizeof(readonly_options),
	.flags = TSHARE_READONLY,
};

const int64_t shape_4x8[2] = { 4, 8 };

int ctx_new(const char *backend, struct tshare_ctx **new)
{
	struct tshare_ctx_options options = { .size = sizeof(options), .backend = backend };

	return tshare_ctx_new(&options, new);
}

void open_context(void)
{
	CHECK(!tshare_ctx_new(NULL, &ctx));
}

void close_context(void)
{
	ctx = tshare_ctx_unref(ctx);
}

struct tshare_limits limits_of(struct tshare_ctx *context)
{
	struct tshare_limits limits = { .size = sizeof(limits) };

	CHECK(!tshare_ctx_get_limits(context, &limits));
	return limits;
}

const char *unique(const char *stem)
{
	static char names[4][TSHARE_NAME_MAX + 1];
	static unsigned int next;
	char *name = names[next++ % 4];

	snprintf(name, sizeof(names[0]), "test-%d-%s", getpid(), stem);
	return name;
}

struct tshare_region *new_region_mode(const char *name, uint32_t mode)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;

	options.mode = mode;
	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
	return region;
}

struct tshare_region *new_region(const char *name)
{
	return new_region_mode(name, 0600);
}

struct tshare_tensor *new_tensor(const char *name, struct tshare_dtype dtype, int32_t ndim,
				 const int64_t *shape)
{
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_create(ctx, name, dtype, ndim, shape, NULL, &tensor));
	return tensor;
}

int find_listed(const struct tshare_region_info *info, void *data)
{
	struct found *found = data;

	if (strcmp(info->name, found->name))
		return 0;
	found->info = *info;
	found->count++;
	return 0;
}

bool all_zero(const void *data, size_t size)
{
	const char *bytes = data;

	while (size--)
		if (*bytes++)
			return false;
	return true;
}

unsigned char *new_content(size_t size)
{
	unsigned char *content = malloc(size);
	uint32_t random = 1;
	size_t i;

	CHECK(content);
	for (i = 0; i < size; i++) {
		random = random * 1103515245 + 12345;
		content[i] = random >> 16;
	}
	return content;
}

void write_all(int fd, const void *data, size_t size)
{
	size_t written;
	ssize_t count;

	for (written = 0; written < size; written += count) {
		count = write(fd, (const char *)data + written, size - written);
		CHECK(count > 0);
	}
}

size_t open_descriptors(void)
{
	size_t count = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

bool leave_descriptors(unsigned int count)
{
	struct rlimit limit = {};
	int next = dup(0);
	bool left;

	limit.rlim_cur = limit.rlim_max = next;
	left = next >= 0 &&
	       (count ? leave_descriptors(count - 1) : !setrlimit(RLIMIT_NOFILE, &limit));
	return !close(next) && left;
}

bool error_says(const char *part)
{
	if (strstr(tshare_error_get(), part))
		return true;
	printf("# last error: %s\n", tshare_error_get());
	return false;
}

bool is_asleep(int thread)
{
	char path[64], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(file);
	return state == 'S';
}

int rounds(int all)
{
	return getenv("TSHARE_TEST_SHORT") ? (all + 3) / 4 : all;
}

int open_error(const char *name)
{
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, NULL, &region);
	if (!err)
		tshare_region_unref(region);
	return err;
}

bool exists(const char *name)
{
	struct tshare_region *region;
	struct tshare_ctx *other;
	bool found;

	if (tshare_ctx_new(NULL, &other))
		return false;
	found = !tshare_region_open(other, name, &readonly_options, &region);
	if (found)
		tshare_region_unref(region);
	tshare_ctx_unref(other);
	return found;
}

bool become(unsigned int uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

bool steps_open(struct steps *steps)
{
	return !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, steps->ends);
}

void steps_close(struct steps *steps)
{
	close(steps->ends[0]);
	close(steps->ends[1]);
}

bool send_byte(int end)
{
	return send(end, "", 1, MSG_NOSIGNAL) == 1;
}

bool await_byte(int end)
{
	char byte;

	return read(end, &byte, 1) == 1;
}

/* Room for one descriptor, aligned as a control message must be. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

bool send_fd(int end, int fd)
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union control control = { { 0 } };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(end, &message, MSG_NOSIGNAL) == 1;
}

int receive_fd(int end)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union control control = { { 0 } };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;
	int fd;

	if (recvmsg(end, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}
