// SPDX-License-Identifier: MIT
/* What tshare_ctx_list() and tshare_region_get_info() return. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../util.h"

TEST(list_reports_named_regions)
{
	struct found found = { .name = unique("listed") };
	struct tshare_tensor *tensor = new_tensor(found.name, TSHARE_UINT8, 2, shape_4x8);
	struct tshare_region *unnamed = new_region(NULL);

	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(found.count == 1);
	CHECK(found.info.id == tshare_region_get_id(tshare_tensor_get_region(tensor)));
	CHECK(found.info.region_size == tshare_region_get_size(tshare_tensor_get_region(tensor)));
	CHECK(found.info.uid == geteuid() && found.info.gid == getegid());
	CHECK(found.info.mode == 0600);
	CHECK(found.info.tensor_count == 1);
	CHECK(!(found.info.flags & TSHARE_READONLY));
	CHECK(found.info.lifetime == TSHARE_LIFETIME_MAKER);
	found = (struct found){ .name = "" };
	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(!found.count);
	tshare_tensor_unref(tensor);
	tshare_region_unref(unnamed);
}

static int stop(const struct tshare_region_info *info, void *data)
{
	(void)info;
	++*(int *)data;
	return 77;
}

TEST(list_stops_when_the_callback_returns_nonzero)
{
	struct tshare_region *a = new_region(unique("stop-a")), *b = new_region(unique("stop-b"));
	int calls = 0;

	CHECK(tshare_ctx_list(ctx, stop, &calls) == 77);
	CHECK(calls == 1);
	tshare_region_unref(a);
	tshare_region_unref(b);
}

TEST(list_reports_more_than_one_batch)
{
	struct found found = { .name = unique("batch") };
	struct tshare_region *regions[200];
	char name[32];
	int i;

	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "test-%d-batch-%d", getpid(), i);
		regions[i] = new_region(name);
	}
	for (i = 0; i < 200; i += 33) {
		snprintf(name, sizeof(name), "test-%d-batch-%d", getpid(), i);
		found = (struct found){ .name = name };
		CHECK(!tshare_ctx_list(ctx, find_listed, &found));
		CHECK(found.count == 1);
	}
	for (i = 0; i < 200; i++)
		tshare_region_unref(regions[i]);
}

TEST(info_reports_the_options)
{
	const char *name = unique("info");
	struct tshare_region *region = new_region_mode(name, 0640);
	struct tshare_region_info info = { .size = sizeof(info) };

	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.id == tshare_region_get_id(region));
	CHECK(info.region_size == tshare_region_get_size(region));
	CHECK(info.uid == geteuid() && info.gid == getegid());
	CHECK(info.mode == 0640);
	CHECK(info.tensor_count == 0);
	CHECK(!strcmp(info.name, name));
	CHECK(!(info.flags & TSHARE_READONLY));
	tshare_region_unref(region);
}

TEST(info_reports_a_removed_name_as_none)
{
	const char *name = unique("gone");
	struct tshare_region *region = new_region(name);
	struct tshare_region_info info = { .size = sizeof(info) };

	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(!strcmp(info.name, ""));
	CHECK(!strcmp(tshare_region_get_name(region), name));
	tshare_region_unref(region);
}

TEST(info_reports_read_only_access)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_region(name), *reader;
	struct tshare_region_info info = { .size = sizeof(info) };

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	CHECK(!tshare_region_get_info(reader, &info));
	CHECK(info.flags & TSHARE_READONLY);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(the_umask_is_ignored)
{
	struct tshare_options options = { .size = sizeof(options) };
	mode_t before = umask(0777);
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;
	int err;

	options.mode = 0666;
	err = tshare_region_create(ctx, unique("umask"), 1, NULL, 0, &options, &region);
	umask(before);
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.mode == 0666);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
