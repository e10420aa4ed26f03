// SPDX-License-Identifier: GPL-2.0-only
/* The events of tracefs: each is enabled, made to happen, and read. */
#include <sys/sysinfo.h>
#include <sys/time.h>

#include "harness.h"
#include "tracing.h"

#define EVENTS	TRACING "events/tshare/"
#define MAX_MIB "/sys/module/tshare/parameters/max_mib"

static void __attribute__((constructor)) need_tracing(void)
{
	trace_mount();
	if (access(TRACING "events", F_OK))
		ksft_exit_skip("the kernel has no events in tracefs\n");
}

/* Empties the trace, and has @event recorded, which nobody else in the guest makes happen. */
static bool trace_begin(const char *event)
{
	char path[128];

	snprintf(path, sizeof(path), EVENTS "%s/enable", event);
	return trace_clear() && write_file(path, "1");
}

/* Copies what the @number-th @event from 0 on has recorded to @line, without what precedes it. */
static bool trace_line(const char *event, int number, char line[1024])
{
	FILE *file = fopen(TRACING "trace", "re");
	char start[64], *at;
	bool found = false;

	snprintf(start, sizeof(start), ": %s: ", event);
	while (file && !found && fgets(line, 1024, file)) {
		at = strstr(line, start);
		found = at && !number--;
		if (found)
			memmove(line, at + strlen(start), strlen(at + strlen(start)) + 1);
	}
	if (file)
		fclose(file);
	if (!found)
		*line = 0;
	return found;
}

static int trace_count(const char *event)
{
	char line[1024];
	int count = 0;

	while (trace_line(event, count, line))
		count++;
	return count;
}

/* The text of a line's @field, up to the next space or the line's end. */
static const char *field(const char *line, const char *field)
{
	static char value[256];
	char start[64];
	const char *at;

	snprintf(start, sizeof(start), " %s=", field);
	at = strstr(line, start);
	if (!at && !strncmp(line, start + 1, strlen(start + 1)))
		at = line - 1;
	if (!at)
		return "";
	at += strlen(start);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n "), at);
	return value;
}

static long long number(const char *line, const char *name)
{
	const char *value = field(line, name);

	return *value ? strtoll(value, NULL, 0) : -4096;
}

FIXTURE(trace)
{
	int dev;
	char line[1024];
};

/*
 * All processes' events are recorded: to record some processes' alone the kernel would change its
 * scheduler's code, while another processor runs it.
 */
FIXTURE_SETUP(trace)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	ASSERT_TRUE(write_file(EVENTS "enable", "0"));
}

FIXTURE_TEARDOWN(trace)
{
	EXPECT_TRUE(write_file(EVENTS "enable", "0"));
	close(self->dev);
}

TEST_F(trace, create_is_recorded)
{
	struct tshare_info info;
	int fd;

	ASSERT_TRUE(trace_begin("tshare_create"));
	fd = create_flags(self->dev, PAGE + 1, "traced",
			  TSHARE_CREATE_USERS | TSHARE_CREATE_REPLACE);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ((long long)info.id, number(self->line, "id"));
	EXPECT_EQ(2 * PAGE, number(self->line, "bytes"));
	EXPECT_EQ(info.node, number(self->line, "node"));
	EXPECT_STREQ("users|replace", field(self->line, "flags"));
	EXPECT_STREQ("buddy", field(self->line, "rung"));
	EXPECT_EQ(0, number(self->line, "result"));
	EXPECT_STREQ("traced", field(self->line, "name"));
}

TEST_F(trace, create_records_the_rung_of_a_large_region)
{
	ASSERT_TRUE(trace_begin("tshare_create"));
	ASSERT_LE(0, create(self->dev, 8 * MIB, NULL));
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	EXPECT_STREQ("contig", field(self->line, "rung"));
	EXPECT_STREQ("", field(self->line, "name"));
}

TEST_F(trace, create_that_fails_is_recorded)
{
	struct tshare_create args = create_args(PAGE, "taken");

	ASSERT_LE(0, create(self->dev, PAGE, "taken"));
	ASSERT_TRUE(trace_begin("tshare_create"));
	set_node(&args, 0);
	ASSERT_EQ(-EEXIST, do_create(self->dev, &args));
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	EXPECT_EQ(0, number(self->line, "id"));
	EXPECT_EQ(0, number(self->line, "node"));
	EXPECT_STREQ("none", field(self->line, "rung"));
	EXPECT_EQ(-EEXIST, number(self->line, "result"));
}

TEST_F(trace, name_without_an_end_is_recorded_as_none)
{
	struct tshare_create args = create_args(PAGE, NULL);

	memset(args.name, 'x', sizeof(args.name));
	ASSERT_TRUE(trace_begin("tshare_create"));
	ASSERT_EQ(-ENAMETOOLONG, do_create(self->dev, &args));
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	EXPECT_STREQ("", field(self->line, "name"));
	EXPECT_EQ(-ENAMETOOLONG, number(self->line, "result"));
}

TEST_F(trace, name_makes_no_lines)
{
	ASSERT_TRUE(trace_begin("tshare_create"));
	ASSERT_LE(0, create(self->dev, PAGE, "two\nlines\x7f"));
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	EXPECT_STREQ("two?lines?", field(self->line, "name"));
}

TEST_F(trace, name_has_no_control_characters_of_unicode)
{
	/*
	 * CSI as a byte, in UTF-8, and in longer forms; sequences that end too early; half a
	 * pair of UTF-16, and what is beyond the last character; ends of lines and paragraphs,
	 * and changes of direction, with their neighbours.
	 */
	static const char *const names[][2] = {
		{ "\x9bm", "?m" },	     { "\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0" },
		{ "\xe0\x82\x9b", "???" },	     { "\xf0\x80\x82\x9b", "????" },
		{ "\xe3\x83", "??" },		     { "\xe3\x83m\x9b", "??m?" },
		{ "\xff\xf8\x90\x80\x80", "?????" }, { "\xc3\xc3\x9b", "?\xc3\x9b" },
		{ "\xed\xa0\x80\xed\xbf\xbf", "??????" },
		{ "\xf4\x90\x80\x80\xf7\xbf\xbf\xbf", "????????" },
		{ "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
		  "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf" },
		{ "\xe2\x80\xa8\xe2\x80\xae", "??????" },
		{ "\xe2\x81\xa6\xe2\x81\xa9", "??????" },
		{ "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
		  "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		ASSERT_TRUE(trace_begin("tshare_create"));
		ASSERT_LE(0, create(self->dev, PAGE, names[i][0]));
		ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
		EXPECT_STREQ(names[i][1], field(self->line, "name"));
	}
}

TEST_F(trace, name_in_utf_8_is_shown_as_it_is)
{
	static const char name[] = "caméra-Û-ラ-🎥";

	ASSERT_TRUE(trace_begin("tshare_create"));
	ASSERT_LE(0, create(self->dev, PAGE, name));
	ASSERT_TRUE(trace_line("tshare_create", 0, self->line));
	EXPECT_STREQ(name, field(self->line, "name"));
}

TEST_F(trace, search_is_recorded)
{
	ASSERT_TRUE(trace_begin("tshare_search"));
	ASSERT_LE(0, create(self->dev, 8 * MIB, NULL));
	ASSERT_TRUE(trace_line("tshare_search", 0, self->line));
	EXPECT_EQ(8 * MIB, number(self->line, "bytes"));
	EXPECT_EQ(-1, number(self->line, "node"));
	EXPECT_EQ(0, number(self->line, "dma32"));
	EXPECT_LE(1, number(self->line, "tries"));
	EXPECT_LE(0, number(self->line, "moved"));
	EXPECT_GE((long long)(8 * MIB / PAGE), number(self->line, "moved"));
	EXPECT_LT(0, number(self->line, "ns"));
	EXPECT_EQ(0, number(self->line, "result"));
}

/* The search takes the first stretch that it can empty, so little memory is in its way soon. */
TEST_F(trace, search_records_the_pages_that_it_moves)
{
	struct sysinfo memory;
	long long moved = 0;
	size_t size, i;
	char *mem;

	ASSERT_EQ(0, sysinfo(&memory));
	close(create(self->dev, 64 * MIB, NULL));
	for (size = 64 * MIB; moved <= 0 && size < memory.freeram * memory.mem_unit / 2;
	     size *= 2) {
		mem = mmap(NULL, size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, mem);
		madvise(mem, size, MADV_HUGEPAGE);
		for (i = 0; i < size; i += PAGE)
			mem[i] = 1;
		ASSERT_TRUE(trace_begin("tshare_search"));
		close(create(self->dev, 64 * MIB, NULL));
		ASSERT_TRUE(trace_line("tshare_search", 0, self->line));
		moved = number(self->line, "moved");
	}
	EXPECT_LT(0, moved);
}

TEST_F(trace, search_that_fails_is_recorded)
{
	struct sysinfo memory;
	__u64 size;

	ASSERT_EQ(0, sysinfo(&memory));
	ASSERT_TRUE(write_file(MAX_MIB, "1000000"));
	ASSERT_TRUE(trace_begin("tshare_search"));
	/* There is no zone of that size. */
	size = (memory.totalram * memory.mem_unit - 4 * MIB) & -PAGE;
	EXPECT_EQ(-ENOMEM, create_flags(self->dev, size, NULL, TSHARE_CREATE_DMA32));
	EXPECT_TRUE(write_file(MAX_MIB, "0"));
	ASSERT_TRUE(trace_line("tshare_search", 0, self->line));
	EXPECT_EQ((long long)size, number(self->line, "bytes"));
	EXPECT_EQ(1, number(self->line, "dma32"));
	EXPECT_EQ(0, number(self->line, "moved"));
	EXPECT_EQ(-ENOMEM, number(self->line, "result"));
}

TEST_F(trace, small_region_makes_no_search)
{
	ASSERT_TRUE(trace_begin("tshare_search"));
	ASSERT_LE(0, create(self->dev, PAGE, NULL));
	EXPECT_EQ(0, trace_count("tshare_search"));
}

/* Whether event @number of a kind is about these bytes of the region, at @addr. */
static bool is_area(const char *event, int which, __u64 id, const void *addr, __u64 offset,
		    __u64 bytes)
{
	char line[1024];

	if (!trace_line(event, which, line))
		return false;
	return number(line, "id") == (long long)id &&
	       (const void *)(uintptr_t)number(line, "addr") == addr &&
	       number(line, "offset") == (long long)offset &&
	       number(line, "bytes") == (long long)bytes;
}

TEST_F(trace, map_and_unmap_are_recorded)
{
	int fd = create(self->dev, 8 * PAGE, NULL);
	__u64 id = id_of(self->dev, fd);
	char *mem;

	ASSERT_LE(0, fd);
	ASSERT_TRUE(trace_begin("tshare_map"));
	ASSERT_TRUE(write_file(EVENTS "tshare_unmap/enable", "1"));
	mem = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 2 * PAGE);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(is_area("tshare_map", 0, id, mem, 2 * PAGE, 4 * PAGE));
	EXPECT_EQ(0, trace_count("tshare_unmap"));
	munmap(mem, 4 * PAGE);
	EXPECT_TRUE(is_area("tshare_unmap", 0, id, mem, 2 * PAGE, 4 * PAGE));
	EXPECT_EQ(1, trace_count("tshare_map"));
	EXPECT_EQ(1, trace_count("tshare_unmap"));
}

TEST_F(trace, map_of_a_range_is_recorded_where_it_is_in_the_region)
{
	int fd = create(self->dev, 8 * PAGE, NULL), part;
	char *mem;

	part = export_range(self->dev, fd, 4 * PAGE, 2 * PAGE, TSHARE_EXPORT_WRITE);
	ASSERT_LE(0, part);
	ASSERT_TRUE(trace_begin("tshare_map"));
	mem = map(part, 2 * PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(is_area("tshare_map", 0, id_of(self->dev, fd), mem, 4 * PAGE, 2 * PAGE));
}

TEST_F(trace, map_that_is_refused_is_not_recorded)
{
	int fd = create(self->dev, PAGE, NULL);

	ASSERT_TRUE(trace_begin("tshare_map"));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(MAP_FAILED, map(fd, PAGE, RW | PROT_EXEC));
	EXPECT_EQ(0, trace_count("tshare_map"));
}

static int do_nothing(void *arg)
{
	return !arg;
}

static char page[PAGE];

TEST_F(trace, each_map_has_an_unmap)
{
	int fd = create(self->dev, 8 * PAGE, NULL);
	char *mem, *moved;

	ASSERT_TRUE(trace_begin("tshare_map"));
	ASSERT_TRUE(write_file(EVENTS "tshare_unmap/enable", "1"));
	mem = map(fd, 8 * PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	/* A copy in a child, a hole, a piece with other access, and one that moves. */
	EXPECT_EQ(0, in_child(do_nothing, page));
	EXPECT_EQ(2, trace_count("tshare_map"));
	EXPECT_EQ(1, trace_count("tshare_unmap"));
	EXPECT_EQ(0, munmap(mem + 2 * PAGE, PAGE));
	EXPECT_EQ(0, mprotect(mem + 4 * PAGE, PAGE, PROT_READ));
	moved = mremap(mem, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	EXPECT_NE(MAP_FAILED, moved);
	EXPECT_LT(trace_count("tshare_unmap"), trace_count("tshare_map"));
	munmap(moved, 2 * PAGE);
	munmap(mem, 8 * PAGE);
	EXPECT_LE(5, trace_count("tshare_map"));
	EXPECT_EQ(trace_count("tshare_map"), trace_count("tshare_unmap"));
}

static void take_signal(int signal)
{
	(void)signal;
}

/* Until the open waits, an alarm may come too early, and is repeated. */
TEST_F(trace, open_that_a_signal_ends_is_recorded_as_its_caller_sees_it)
{
	struct sigaction action = { .sa_handler = take_signal };
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } }, none = {};
	struct tshare_open args = { .name = "missing", .deadline_ns = FOR_EVER };
	int fd;

	sigaction(SIGALRM, &action, NULL);
	ASSERT_TRUE(trace_begin("tshare_open"));
	setitimer(ITIMER_REAL, &timer, NULL);
	fd = ioctl(self->dev, TSHARE_IOCTL_OPEN, &args);
	EXPECT_EQ(EINTR, fd < 0 ? errno : 0);
	setitimer(ITIMER_REAL, &none, NULL);
	ASSERT_TRUE(trace_line("tshare_open", 0, self->line));
	EXPECT_EQ(-EINTR, number(self->line, "result"));
}

TEST_F(trace, open_is_recorded)
{
	int fd = create(self->dev, PAGE, "opened");

	ASSERT_TRUE(trace_begin("tshare_open"));
	ASSERT_LE(0, open_name(self->dev, "opened", TSHARE_OPEN_WRITE));
	ASSERT_EQ(-ENOENT, open_name(self->dev, "missing", 0));
	ASSERT_TRUE(trace_line("tshare_open", 0, self->line));
	EXPECT_EQ((long long)id_of(self->dev, fd), number(self->line, "id"));
	EXPECT_STREQ("write", field(self->line, "flags"));
	EXPECT_EQ(0, number(self->line, "result"));
	EXPECT_STREQ("opened", field(self->line, "name"));
	ASSERT_TRUE(trace_line("tshare_open", 1, self->line));
	EXPECT_EQ(-ENOENT, number(self->line, "result"));
	EXPECT_STREQ("missing", field(self->line, "name"));
}

TEST_F(trace, release_is_recorded)
{
	int fd = create(self->dev, 3 * PAGE, NULL);
	__u64 id = id_of(self->dev, fd);

	ASSERT_TRUE(trace_begin("tshare_release"));
	EXPECT_EQ(0, trace_count("tshare_release"));
	close(fd);
	ASSERT_TRUE(trace_line("tshare_release", 0, self->line));
	EXPECT_EQ((long long)id, number(self->line, "id"));
	EXPECT_EQ(3 * PAGE, number(self->line, "bytes"));
}

TEST_HARNESS_MAIN
