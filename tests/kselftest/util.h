/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for all test programs. They use only the kernel's ABI, not the library.
 *
 * Functions that call the kernel return a descriptor or 0, or a negative errno. A program is
 * skipped before its first test if it does not run as root or there is no device.
 */
#ifndef TSHARE_KSELFTEST_UTIL_H
#define TSHARE_KSELFTEST_UTIL_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/tshare.h>

#include <kselftest.h>

#define DEVICE "/dev/tshare"
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PAGE 4096ULL

/* Users without privileges. */
#define USER_A 64101
#define USER_B 64102
#define USER_C 64103

int xioctl(int fd, unsigned long cmd, void *arg);
int open_device(void);

/* The arguments for a region of @size bytes that only its owner may open; @name may be NULL. */
struct tshare_create create_args(__u64 size, const char *name);

/* Requests memory on @node. */
void set_node(struct tshare_create *args, __s32 node);

int do_create(int dev, struct tshare_create *args);

/* These create a region of create_args(): as it is, with another mode, with TSHARE_CREATE flags. */
int create(int dev, __u64 size, const char *name);
int create_mode(int dev, __u64 size, const char *name, __u32 mode);
int create_flags(int dev, __u64 size, const char *name, __u32 flags);
int create_persistent(int dev, __u64 size, const char *name);

/* A draft of one page. */
int create_draft(int dev, const char *name);

int finish_flags(int dev, int fd, __u32 flags);
int finish(int dev, int fd);
int finish_replacing(int dev, int fd);

int open_name(int dev, const char *name, __u32 flags);
int open_id(int dev, __u64 id, __u32 flags);

/* A deadline of OPEN that doesn't come. */
#define FOR_EVER INT64_MAX

/* The time in @ns nanoseconds, for OPEN. */
__s64 deadline_in(__s64 ns);

int unlink_name(int dev, const char *name);
int unlink_id(int dev, __u64 id);

/* A dma-buf over @size bytes of @fd from @offset on. */
int export_range(int dev, int fd, __u64 offset, __u64 size, __u32 flags);

/* Inode number of the counter of the region @id, which may be 0 if @fd shows it; or 0. */
unsigned long counter_inode_of(int dev, int fd, __u64 id);
unsigned long counter_inode(int dev, int fd);

int get_info_of(int dev, int fd, __u64 id, struct tshare_info *info);
int get_info(int dev, int fd, struct tshare_info *info);

/* The region's id, or 0. */
__u64 id_of(int dev, int fd);

/* Stores at most @count entries, and returns their number. */
int do_list(int dev, __u32 flags, struct tshare_list_entry *entries, __u32 count);

/* Whether @id is listed; a negative errno if there is no list. */
int listed(int dev, __u32 flags, __u64 id);

/* Whether the kernel maps regions 2 MiB at a time. */
bool maps_huge_pages(int dev);

#define RW (PROT_READ | PROT_WRITE)

/* Maps @size bytes of @fd, shared; MAP_FAILED on failure. */
void *map(int fd, size_t size, int prot);

/* As map(), at a multiple of 2 MiB, where the kernel can use large entries. */
void *map_aligned(int fd, size_t size, int prot);

/* @size, rounded up. */
__u64 whole_pages(__u64 size);

/* @size bytes of memory that end where nothing is mapped. */
void *guarded(size_t size);

/* The word at place @i of the memory that fill() fills for @seed. */
__u64 pattern(__u64 seed, size_t i);
void fill(void *mem, size_t size, __u64 seed);
bool filled(const void *mem, size_t size, __u64 seed);
bool zeroed(const void *mem, size_t size);

#define SYSFS "/sys/class/misc/tshare/"
#define MODULE_USES "/sys/module/tshare/refcnt"

/* The number that a file holds, or -1. */
long read_number(const char *path);

/* Number of the process's descriptors. */
long open_fds(void);

/* The module's counters of its live objects, and the process's descriptors. */
struct counters {
	long regions, exports, names, bytes, fds;
};

struct counters count_all(void);

/*
 * Waits up to half a minute for the module's counters to be those of @before, since another
 * process may still drop references. The descriptors are not compared.
 */
bool counters_return_to(struct counters before);

/* How many of @all rounds of a race to make: a quarter if TSHARE_TEST_SHORT is set. */
int rounds(int all);

/* How long a test looks for a race, unless TSHARE_TEST_STRESS asks for other seconds. */
int stress_seconds(int usual);

/*
 * Acts as another user, in no group but its own and @group, until act_as_root()
 * takes it back. Capabilities go and come with it.
 */
bool act_as(uid_t uid, gid_t gid, gid_t group);
bool act_as_user(uid_t uid);
bool act_as_root(void);

/* Becomes another user permanently; its own /proc/self still belongs to it. */
bool become(uid_t uid);

/* These change the effective capabilities, but not the permitted ones. */
bool drop_capability(int cap);
bool keep_only_capability(int cap);

/* Exit status of a child that runs @fn, or a negative signal number. */
int in_child(int (*fn)(void *arg), void *arg);

/* A child that makes a region, fills it, and waits to be killed; -1 if it can't. */
pid_t start_region_maker(struct tshare_create args);

/* Sends @fd through @sock. */
bool send_fd(int sock, int fd);

/* The descriptor that was sent, or -1. */
int receive_fd(int sock);

/* Writes a text of up to 127 bytes to a file that is there. */
bool write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* TSHARE_KSELFTEST_UTIL_H */
