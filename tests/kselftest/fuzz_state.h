/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process of the fuzzer has open and mapped, and the arguments that it makes of numbers.
 *
 * Threads share it without locks: a descriptor that another thread closes meanwhile is one more
 * case. Only close() must not be called twice, so a slot is emptied in one step.
 */
#ifndef TSHARE_KSELFTEST_FUZZ_STATE_H
#define TSHARE_KSELFTEST_FUZZ_STATE_H

#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "driver/importer.h"
#include "record.h"

#define FUZZ_ARGS  6
#define FUZZ_SLOTS 24
#define FUZZ_MAPS  6
#define FUZZ_MEMFDS 8

/* What the descriptor in a slot is; any other kind is for calls that must refuse it. */
enum fuzz_kind { FUZZ_DEVICE, FUZZ_DMABUF, FUZZ_COUNTER, FUZZ_FOREIGN, FUZZ_FENCE, FUZZ_OTHER };

/* Mappings lie in an area that is reserved, each in a part of its own. */
#define FUZZ_MAP_ROOM (32 * MIB)

struct fuzz_state {
	int fds[FUZZ_SLOTS];
	enum fuzz_kind kinds[FUZZ_SLOTS];
	__u32 next;
	char *area;
	size_t map_sizes[FUZZ_MAPS];
	/* Where nothing may be written, and where nothing is mapped behind. */
	char *readonly;
	char *edge;
	/* The importer's file, or -1. Two importers at once would be a mistake of theirs. */
	int importer;
	/* Of one page, two pages and so on. */
	int memfds[FUZZ_MEMFDS];
	/* The IPC namespace to return to. */
	int namespace;
	/* The least descriptor that calls may close: those below are the fuzzer's own. */
	int first;
	struct records few;
	struct records many;
};

static struct fuzz_state fuzz;

/* Of the calling thread. */
struct fuzz_thread {
	int fail_nth;
	bool has_timer;
	timer_t timer;
	bool other_user;
	bool other_namespace;
	bool other_policy;
	__u64 last_id;
};

static __thread sigjmp_buf fuzz_fault;
static __thread volatile sig_atomic_t fuzz_may_fault;

/* A call may fault where its arguments are, in memory that another thread unmaps. */
static void fuzz_on_fault(int number)
{
	if (!fuzz_may_fault) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	fuzz_may_fault = 0;
	siglongjmp(fuzz_fault, 1);
}

static void fuzz_on_alarm(int number)
{
	(void)number;
}

/* Copies, and returns false where a part is not there. */
static inline bool fuzz_copy(void *to, const void *from, size_t size)
{
	if (sigsetjmp(fuzz_fault, 0))
		return false;
	fuzz_may_fault = 1;
	memcpy(to, from, size);
	fuzz_may_fault = 0;
	return true;
}

static inline char *fuzz_map_start(__u32 i)
{
	return fuzz.area + i % FUZZ_MAPS * FUZZ_MAP_ROOM;
}

/* Takes all mappings away. */
static inline bool fuzz_reserve_area(void)
{
	void *area = mmap(fuzz.area, FUZZ_MAPS * FUZZ_MAP_ROOM, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fuzz.area ? MAP_FIXED : 0),
			  -1, 0);

	if (area == MAP_FAILED)
		return false;
	fuzz.area = area;
	memset(fuzz.map_sizes, 0, sizeof(fuzz.map_sizes));
	return true;
}

static inline void fuzz_close_slot(__u32 slot)
{
	int fd = __atomic_exchange_n(&fuzz.fds[slot], -1, __ATOMIC_RELAXED);

	if (fd >= 0)
		close(fd);
}

/* Keeps @fd, or returns the error that it is. */
static inline int fuzz_keep(int fd, enum fuzz_kind kind)
{
	__u32 slot = __atomic_fetch_add(&fuzz.next, 1, __ATOMIC_RELAXED) % FUZZ_SLOTS;

	/* Another process may have written where the kernel stored the descriptor. */
	if (fd < fuzz.first)
		return fd < 0 ? fd : -EBADF;
	fuzz_close_slot(slot);
	fuzz.kinds[slot] = kind;
	__atomic_store_n(&fuzz.fds[slot], fd, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Before the first process is started, and for as long as any runs: on 6.1 a kernel with
 * CONFIG_DEBUG_VM crashes when a memfd goes while a page of it is mapped by a udmabuf's file.
 */
static inline bool fuzz_memfds_init(void)
{
	int i;

	for (i = 0; i < FUZZ_MEMFDS; i++) {
		fuzz.memfds[i] = memfd_create("tshare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (ftruncate(fuzz.memfds[i], (i + 1) * PAGE) ||
		    fcntl(fuzz.memfds[i], F_ADD_SEALS, F_SEAL_SHRINK))
			return false;
	}
	return true;
}

static inline bool fuzz_state_init(bool importer)
{
	static const struct sigaction on_fault = {
		.sa_handler = fuzz_on_fault,
		.sa_flags = SA_NODEFER | SA_ONSTACK,
	};
	static const struct sigaction on_alarm = {
		.sa_handler = fuzz_on_alarm,
		.sa_flags = SA_ONSTACK,
	};
	int i;

	for (i = 0; i < FUZZ_SLOTS; i++)
		fuzz.fds[i] = -1;
	fuzz.readonly = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fuzz.edge = (char *)guarded(64 * KIB) + 64 * KIB;
	fuzz.importer = importer ? open(IMPORTER, O_RDWR | O_CLOEXEC) : -1;
	fuzz.namespace = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
	fuzz.few = many_records(3);
	fuzz.many = many_records(300);
	sigaction(SIGSEGV, &on_fault, NULL);
	sigaction(SIGBUS, &on_fault, NULL);
	sigaction(SIGALRM, &on_alarm, NULL);
	return fuzz.readonly != MAP_FAILED && fuzz.namespace >= 0 && fuzz_reserve_area();
}

static inline void fuzz_state_clear(void)
{
	static const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	__u32 slot;

	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	fuzz_reserve_area();
	if (fuzz.importer >= 0)
		ioctl(fuzz.importer, IMPORTER_IOCTL_DETACH);
	for (slot = 0; slot < FUZZ_SLOTS; slot++)
		fuzz_close_slot(slot);
	fuzz.next = 0;
}

/* Arguments */

static inline __u32 fuzz_slot(enum fuzz_kind kind, __u32 number)
{
	__u32 slots[FUZZ_SLOTS], count = 0, slot;

	for (slot = 0; slot < FUZZ_SLOTS; slot++)
		if (fuzz.fds[slot] >= 0 && fuzz.kinds[slot] == kind)
			slots[count++] = slot;
	return count ? slots[number % count] : number % FUZZ_SLOTS;
}

/* A descriptor, of another kind once in 16 times. */
static inline int fuzz_fd(enum fuzz_kind kind, __u32 number)
{
	static const int wrong[] = { -1, 0, 1 << 20, 0x7fffffff };

	if (number % 16 != 15)
		return fuzz.fds[fuzz_slot(kind, number >> 4)];
	number >>= 4;
	if (number & 1)
		return wrong[number / 2 % ARRAY_SIZE(wrong)];
	return fuzz.fds[number / 2 % FUZZ_SLOTS];
}

/* Bytes of a region or a range. Most are few, or the kernel would zero memory all the time. */
static inline __u64 fuzz_size(__u32 number)
{
	static const __u64 usual[] = { PAGE, PAGE, 2 * PAGE, 4 * PAGE, 16 * PAGE };
	static const __u64 odd[] = {
		0, 1, PAGE - 1, PAGE + 1, 2 * MIB, 2 * MIB - PAGE, 2 * MIB + 1, 2 * MIB + 3 * PAGE,
		4 * MIB, 6 * MIB + PAGE, 8 * MIB, 1ULL << 31, 1ULL << 32, 1ULL << 40, 1ULL << 63,
		-PAGE, -1ULL,
	};

	if (number % 4)
		return usual[number / 4 % ARRAY_SIZE(usual)];
	return odd[number / 4 % ARRAY_SIZE(odd)];
}

/* Bytes from the start of one. */
static inline __u64 fuzz_offset(__u32 number)
{
	static const __u64 odd[] = {
		1, PAGE - 1, 2 * MIB, 2 * MIB - PAGE, 1ULL << 40, -PAGE, -1ULL,
	};

	if (number % 4 == 3)
		return odd[number / 4 % ARRAY_SIZE(odd)];
	return number / 4 % 8 * PAGE;
}

static inline void fuzz_name(char *name, __u32 number)
{
	static const char *const odd[] = { "", ".", "..", "a/b", "tshare", "b", "\n", "\xff" };

	memset(name, 0, TSHARE_NAME_LEN);
	if (number % 8 < 5)
		name[0] = 'a' + number % 8;
	else if (number % 8 < 7)
		strcpy(name, odd[number / 8 % ARRAY_SIZE(odd)]);
	else
		memset(name, 'n', TSHARE_NAME_LEN - (number / 8 % 8 != 7));
}

/* One or several of the flags 0 to @count - 1, seldom one more. */
static inline __u32 fuzz_flags(__u32 number, __u32 count)
{
	__u32 flags = number >> 8;

	if (number % 4 == 0)
		return 0;
	if (number % 4 == 1)
		return 1U << flags % count;
	if (number % 64 == 2)
		return flags;
	return flags & (number >> 16) & ((1U << count) - 1);
}

static inline __u32 fuzz_mode(__u32 number)
{
	static const __u32 modes[] = { 0600, 0666, 0644, 0400, 0060, 0006, 0, 0666, 0777, ~0U };

	return modes[number % ARRAY_SIZE(modes)];
}

/*
 * Where an array of @size bytes is: in @memory, in a mapping, or where it can't be. What is in
 * a mapping is copied there, as far as it goes.
 */
static inline void *fuzz_place(void *memory, size_t size, __u32 number)
{
	char *place;

	switch (number % 32) {
	case 0:
		return NULL;
	case 1:
		place = fuzz.readonly + PAGE - size % PAGE;
		break;
	case 2:
		/* The end of it is not there. */
		place = fuzz.edge - size / 2;
		break;
	case 3:
		return (void *)(~0UL << (number / 32 % 64));
	case 4:
	case 5:
		place = fuzz_map_start(number / 32) + number / 256 % (2 * PAGE);
		break;
	default:
		return memory;
	}
	fuzz_copy(place, memory, size);
	return place;
}

#endif /* TSHARE_KSELFTEST_FUZZ_STATE_H */
