/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * tshare: shared memory for tensors
 *
 * The kernel ABI of the character device /dev/tshare.
 */
#ifndef _UAPI_LINUX_TSHARE_H
#define _UAPI_LINUX_TSHARE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: overview
 *
 * /dev/tshare creates *regions*: physically contiguous, zeroed memory of any size from one
 * byte up. TSHARE_IOCTL_CREATE creates a region, TSHARE_IOCTL_OPEN opens one by name or id.
 * Both export a new dma-buf over the region and return its file descriptor, which carries the
 * opener's access. A process uses the memory through that descriptor alone:
 *
 * - mmap() maps the memory, with MAP_SHARED only and never PROT_EXEC;
 * - DMA_BUF_IOCTL_SYNC brackets CPU access beside devices, see below;
 * - DMA_BUF_IOCTL_EXPORT_SYNC_FILE and _IMPORT_SYNC_FILE exchange fences;
 * - SCM_RIGHTS passes it to another process;
 * - close() drops its reference.
 *
 * A *user* of a region is a descriptor of one of its dma-bufs, a mapping or a device's
 * attachment. The memory is freed when no user, pinned page or name is left.
 *
 * TSHARE_IOCTL_EXPORT makes a dma-buf over a *range* of a region's pages, for a
 * device that takes no offset, or for a process that may reach no other pages. It
 * also makes a read-only dma-buf from a writable one.
 *
 * A region may also consist of another driver's dma-buf, such as a camera's, a
 * GPU's or a heap's. TSHARE_CREATE_DMABUF gives such a *foreign* dma-buf a name, a mode and
 * descriptors; see struct tshare_create.
 *
 * A region may have a *name*. Names belong to the IPC namespace in which /dev/tshare was
 * opened, and to the open file through which they were created. When the file's last
 * descriptor is closed, by close(), exit() or SIGKILL, the kernel removes its names.
 * TSHARE_CREATE_PERSIST keeps a name until TSHARE_IOCTL_UNLINK or the end of the namespace.
 * TSHARE_CREATE_USERS keeps it while the region has users. Removing a name never takes the
 * memory from its users.
 *
 * A region created with TSHARE_CREATE_DRAFT is a *draft*: it holds its name, but no process
 * can open it until its maker has filled it and called TSHARE_IOCTL_FINISH. Until then the
 * kernel removes the name when the maker's open file is closed or the draft loses its last
 * user, whatever lifetime CREATE asked for. The maker may pass the draft's descriptor to
 * another process.
 *
 * With TSHARE_CREATE_REPLACE the name may be that of another region, which the caller must be
 * allowed to unlink. The name moves to the new region in one step. The old region stays with
 * its users, without a name. A draft takes the name over when it is finished with
 * TSHARE_FINISH_REPLACE. Until then the name leads to the old region.
 *
 * An open file of the device, and a watch, keeps its IPC namespace alive. Names, regions,
 * dma-bufs and mappings don't. When no process is in a namespace or can enter it, its names
 * are removed, as System V shared memory is; the module needs up to a second to notice that. A
 * namespace other than the initial one loses its regions once it has neither open files nor
 * names with TSHARE_CREATE_PERSIST or _USERS. The regions stay with their users, but can't be
 * found any more: neither by another open of the device there, nor in a later namespace with
 * the same inode number.
 *
 * Beside its memory a region has a *counter*, a page of shared memory on which
 * processes can sleep with futex(); see TSHARE_IOCTL_COUNTER.
 *
 * A region's owner, group and mode decide which processes may open it, as for a
 * file. CAP_IPC_OWNER in the user namespace of the IPC namespace overrides them.
 *
 * An administrator may reserve memory for regions of more than 2 MiB, the *pool*. Such a
 * region comes from the pool if that has enough contiguous memory, else from a search of the
 * other memory.
 *
 * A region carries an immutable list of *tensor descriptors*. The kernel checks that each
 * tensor lies inside the region, keeps the descriptors, and copies them to every opener, so
 * that no reader has to trust a writer's memory for shapes.
 */

/**
 * DOC: CPU access beside devices
 *
 * A device may work on a copy of the memory. The kernel uses bounce buffers for memory that
 * the device doesn't reach (in a confidential guest, with swiotlb=force, above 4 GiB without
 * an IOMMU), and some devices don't snoop the processors' caches. A CPU access then needs a
 * *bracket*: DMA_BUF_SYNC_START before it and DMA_BUF_SYNC_END after it, with the same
 * direction. A bracket for writing has DMA_BUF_SYNC_WRITE or _RW.
 *
 * - START waits for fences, then copies what devices have written to the memory. It skips
 *   pages on which a bracket for writing is open, through any dma-buf of the region: these may
 *   show old bytes until that bracket ends.
 * - END of a bracket for writing copies all the pages of its dma-buf to the devices. Every
 *   other END copies nothing: one for reading alone, one without START, one through a
 *   read-only descriptor.
 * - A dma-buf counts its open brackets for writing. Processes that share its file share the
 *   count. When the file is released, as after a kill, its open brackets end.
 *
 * So no process's bracket undoes what another stores in a bracket. These bytes can be lost:
 *
 * - stores without a bracket for writing, at the next START of any process that has the region
 *   open, even to read, or when a device unmaps it;
 * - a device's writes to pages on which a bracket for writing is open;
 * - the CPU's stores to pages that a device has mapped for writing alone;
 * - the writes of all devices but one, if several have mapped the same pages for writing.
 */

/**
 * DOC: extension rules
 *
 * Every command takes one extensible structure, whose size is part of the command's number. A
 * kernel accepts any size from that of the structure's first version on:
 *
 * - members that an older program lacks are taken as zero;
 * - members that an older kernel lacks must be zero, else -E2BIG.
 *
 * Zero selects what the kernel did before the member existed. Unknown flags and reserved
 * members other than zero are -EINVAL. Unknown commands are -ENOTTY. The kernel ignores what
 * an "out" member holds on input, and may store to it even if the command fails.
 *
 * Arrays of structures are passed as a pointer, a count and the size of one
 * element, so that elements can grow in the same way. Tensor descriptors are
 * records that each have a size of their own; see struct tshare_desc for how
 * they grow.
 */

/**
 * DOC: errors
 *
 * What each errno means, for every command of the device:
 *
 * E2BIG
 *    the structure is larger than this kernel knows and its unknown part is not zero; an
 *    array's element is larger than a page; or more descriptors than TSHARE_DESC_MAX, or more
 *    bytes of them than TSHARE_DESCS_SIZE_MAX
 * EACCES
 *    the region's mode denies the access; or a read-only dma-buf was to be mapped
 *    writable, written by a device, or exported writable
 * EAGAIN
 *    the name leads to the region @other_than
 * EBADF
 *    @fd is not an open file
 * EDQUOT
 *    a limit is reached: RLIMIT_MEMLOCK (without CAP_IPC_LOCK); one of the module's, for all
 *    regions, a namespace or a user; or one of the caller's cgroup or those above it:
 *    memory.max, for regions of up to 2 MiB, or dmem.max, for all regions on kernels with the
 *    dmem controller. A page that stays pinned after its region is gone keeps its folio
 *    counted, and for dmem.max the whole region. Or the namespace has TSHARE_WATCH_MAX watches
 * EEXIST
 *    the name is taken: by a draft, or by another region that the caller did not
 *    ask to replace
 * EFAULT
 *    a pointer is not to readable or writable memory of the caller
 * EINTR
 *    a fatal signal arrived while the kernel searched for memory, listed regions or
 *    copied descriptors; or a signal that the program handles arrived while it
 *    waited for a name
 * EINVAL
 *    an unknown flag, a reserved member that is not zero, flags or members that exclude one
 *    another or that need a name, a structure or an array's element smaller than its first
 *    version, a size or count of zero, a negative deadline, a malformed or missing name, a
 *    malformed descriptor, mode bits outside 0666, a node that is not online or without
 *    TSHARE_CREATE_NODE, a buffer too short for what a watch stores, a @fd that is not a
 *    dma-buf, or another driver's without an @id, a @fd to finish that is not a draft's, a @fd
 *    of TSHARE_CREATE_DMABUF that is not a dma-buf, is one of this device's or is empty, a range
 *    that is not whole pages, a mapping that is not MAP_SHARED, or a mapping of device memory
 *    through another driver's file
 * EINPROGRESS
 *    the name or id is a draft's
 * EIO
 *    the descriptors of a region could not be read back from swap
 * EMFILE
 *    the process has no descriptor left
 * ENAMETOOLONG
 *    a region's name without a terminating NUL in TSHARE_NAME_LEN bytes, or a
 *    tensor's of more than TSHARE_TENSOR_NAME_MAX bytes
 * ENFILE
 *    the system has no open file left
 * ENOENT
 *    no such name or id in this namespace, or the dma-buf is not that region's; the draft that
 *    the caller waited for has ended unfinished; or the draft to be finished has lost its name
 * ENOMEM
 *    no contiguous memory of that size, on that node, below 4 GiB; or no memory, in the system
 *    or the memory cgroup, for descriptors, a counter, or the kernel's own record of a region,
 *    a dma-buf, a range or a watch
 * ENOTTY
 *    unknown command
 * EOPNOTSUPP
 *    a range of a foreign dma-buf, or TSHARE_CREATE_USERS for one
 * EPERM
 *    the caller is neither owner of the region whose name it unlinks or replaces,
 *    nor privileged; TSHARE_LIST_ALL without CAP_SYS_ADMIN; a draft that was
 *    created through another open file; or an executable mapping
 * ERANGE
 *    a descriptor's tensor is not wholly inside the region, or a range not wholly
 *    inside the dma-buf; or the foreign dma-buf has fewer bytes than asked for
 * ETIMEDOUT
 *    the name could not be opened before @deadline_ns
 */

/* A number that is free in Documentation/userspace-api/ioctl/ioctl-number.rst. */
#define TSHARE_IOCTL_MAGIC 0xC8

/* The version of this ABI that TSHARE_IOCTL_QUERY reports; extensions don't change it. */
#define TSHARE_ABI_VERSION 1

/* Bytes of a region's name, the terminating NUL included. */
#define TSHARE_NAME_LEN 128

/* Bytes of a tensor's name, without the NUL. */
#define TSHARE_TENSOR_NAME_MAX 1023

/* The most dimensions that a tensor can have. */
#define TSHARE_NDIM_MAX 32

/* The most tensors that a region can describe, and bytes of all their descriptors. */
#define TSHARE_DESC_MAX	      1048576
#define TSHARE_DESCS_SIZE_MAX (256U << 20)

/**
 * struct tshare_desc - what one tensor of a region looks like
 * @size: bytes of the record: of this structure, @dims and what follows them
 * @ndim: number of dimensions, 0 (a scalar) to TSHARE_NDIM_MAX
 * @name_len: bytes of the tensor's name without the NUL, 0 (no name) to
 *            TSHARE_TENSOR_NAME_MAX
 * @byte_offset: bytes from the region's start to element [0, 0, ...]
 * @dtype_code: type code, as in DLPack (0 int, 1 uint, 2 float, 4 bfloat, 5
 *              complex, 6 bool, ...); not interpreted by the kernel
 * @dtype_bits: bits of one lane, 1 to 255; below 8, elements are packed
 * @dtype_lanes: lanes of one element, from 1
 * @flags: must be zero
 * @dims: @ndim numbers of elements, from 0, along each dimension; then @ndim
 *        strides: elements (not bytes) from one index to the next, which may be
 *        negative
 *
 * The name follows @dims: @name_len bytes of any value but NUL, '/' among them,
 * then a NUL, then as many zeros as make the record's size a multiple of 8.
 * Names need not be unique for the kernel.
 *
 * The descriptors of a region are one buffer of such records without gaps, so that each begins
 * at a multiple of 8. A record with two dimensions and a name of 60 bytes, for example, has
 * 120 bytes.
 *
 * Every element must lie wholly inside the region. The elements together, with dimensions of
 * zero left out of the product, must have less than 2^63 bits, even where strides of zero put
 * them in one place. A tensor with a dimension of zero has no element; its @byte_offset may
 * equal the region's size.
 *
 * A later version may append data behind the name, at a multiple of 8. @size then counts it,
 * and a bit of @flags marks it. A kernel or library that doesn't know the bit refuses the
 * record. So @size always follows from @ndim, @name_len and @flags, and any other @size is
 * -EINVAL.
 */
struct tshare_desc {
	__u32 size;
	__u16 ndim;
	__u16 name_len;
	__u64 byte_offset;
	__u8 dtype_code;
	__u8 dtype_bits;
	__u16 dtype_lanes;
	__u32 flags;
#ifndef __cplusplus /* C++ has no flexible array members */
	__s64 dims[];
#endif
};

/* struct tshare_query.features: what this kernel and machine can do. */
#define TSHARE_FEATURE_HUGE_MAP (1ULL << 0) /* mappings are made 2 MiB at a time */

/**
 * struct tshare_query - ioctl(TSHARE_IOCTL_QUERY)
 * @flags: in: must be zero
 * @version: out: TSHARE_ABI_VERSION of the module
 * @features: out: TSHARE_FEATURE_*
 * @page_size: out: bytes of a page; sizes of regions are multiples of it
 * @huge_page_size: out: bytes of the largest page that regions are made of and
 *                  mapped with; align mappings to it
 * @name_len: out: TSHARE_NAME_LEN of the module
 * @ndim_max: out: TSHARE_NDIM_MAX of the module
 * @desc_max: out: TSHARE_DESC_MAX of the module
 * @tensor_name_max: out: TSHARE_TENSOR_NAME_MAX of the module
 * @descs_size_max: out: TSHARE_DESCS_SIZE_MAX of the module
 * @reserved: out: zero
 * @bytes_limit: out: bytes that all regions together may have
 * @bytes_used: out: bytes that count against the limits: those of all regions, of their
 *              descriptors where these take more than a page, a page for each foreign region,
 *              and bytes of regions that are gone but still pinned. Without CAP_SYS_ADMIN in
 *              the initial user namespace, those of the caller's IPC namespace alone
 * @region_bytes_max: out: bytes that a new region of this caller may have, its descriptors
 *                    counted as in @bytes_used, by all limits but those of cgroups. CREATE may
 *                    still fail: for its cgroup's limit, for regions that @bytes_used leaves
 *                    out, or because no contiguous memory of that size is left
 *
 * Report the version, features and limits of the module. Needs no permission
 * beyond that to open the device.
 */
struct tshare_query {
	__u32 flags;
	__u32 version;
	__u64 features;
	__u32 page_size;
	__u32 huge_page_size;
	__u32 name_len;
	__u32 ndim_max;
	__u32 desc_max;
	__u32 tensor_name_max;
	__u32 descs_size_max;
	__u32 reserved;
	__u64 bytes_limit;
	__u64 bytes_used;
	__u64 region_bytes_max;
};

#define TSHARE_IOCTL_QUERY _IOWR(TSHARE_IOCTL_MAGIC, 0x00, struct tshare_query)

/* struct tshare_create.flags; bits 0 to 4 are those of TSHARE_REGION_* */
#define TSHARE_CREATE_PERSIST	 (1U << 0) /* the name stays until it is unlinked */
#define TSHARE_CREATE_USERS	 (1U << 1) /* the name stays while the region has users */
#define TSHARE_CREATE_DRAFT	 (1U << 2) /* the name can't be opened before FINISH */
#define TSHARE_CREATE_DMA32	 (1U << 3) /* physical addresses below 4 GiB */
#define TSHARE_CREATE_DMABUF	 (1U << 4) /* the memory is the dma-buf @fd */
#define TSHARE_CREATE_REPLACE	 (1U << 5) /* the name may be another region's */
#define TSHARE_CREATE_NODE	 (1U << 6) /* on the NUMA node @node */
#define TSHARE_CREATE_NO_CLOEXEC (1U << 7) /* the descriptor survives execve() */

/**
 * struct tshare_create - ioctl(TSHARE_IOCTL_CREATE)
 * @size: in: bytes wanted, from 1; out: bytes of the region, rounded up to
 *        whole pages
 * @flags: in: TSHARE_CREATE_*; TSHARE_CREATE_PERSIST, _USERS, _DRAFT, _REPLACE
 *         and _DMABUF need a name; not both _PERSIST and _USERS
 * @mode: in: permission bits to read and to write, in 0666
 * @node: in: with TSHARE_CREATE_NODE the NUMA node that the memory must be on,
 *        else must be zero
 * @fd: in: with TSHARE_CREATE_DMABUF descriptor of the foreign dma-buf; out:
 *      descriptor of a dma-buf of the region, readable and writable
 * @descs: in: pointer to a buffer of tensor descriptors, see struct tshare_desc
 * @descs_size: in: bytes of the buffer, at most TSHARE_DESCS_SIZE_MAX
 * @desc_count: in: number of descriptors, 0 to TSHARE_DESC_MAX; they must fill
 *              the buffer exactly
 * @id: out: the region's id, never used again while the module is loaded; ids rise within a
 *      namespace until it has made 2^24 regions or loses its regions (see the overview), and
 *      reveal nothing of other namespaces
 * @reserved: in: must be zero
 * @name: in: NUL-terminated name without '/', not "." or ".."; empty for none
 *
 * Create a region of zeroed, physically contiguous memory. Its owner and group
 * are the caller's. On failure nothing is left behind.
 *
 * The kernel keeps a copy of the descriptors, charged to the caller's memory cgroup. A copy of
 * more than a page is in shared memory, which can be swapped. Its pages count against all
 * limits, as the region's own do.
 *
 * With TSHARE_CREATE_DMABUF the region is *foreign*: it consists of the dma-buf @fd, which
 * another driver has exported. @size is then the least bytes that the dma-buf must have, or 0;
 * out: the bytes that it has, inside which tensors must lie. @fd, out: another descriptor of
 * the same dma-buf. TSHARE_CREATE_DMA32 and _NODE are requests for memory, so they are -EINVAL
 * with it.
 *
 * A foreign region exists, and holds a reference to the dma-buf, as long as its name exists.
 * It counts as one page against all limits; the dma-buf's memory counts against none.
 *
 * Any process that has the dma-buf can create another region of it, with a name, descriptors
 * and a counter of its own. So the dma-buf doesn't identify the region: INFO, COUNTER and
 * FINISH also take the @id that CREATE and OPEN return, and look it up in the caller's
 * namespace as OPEN does. INFO and COUNTER check no mode, as for other regions' dma-bufs, and
 * ids can be guessed. So any process that has the dma-buf can read the region's name and
 * descriptors, and open the counter with the same access as the memory.
 *
 * OPEN returns a descriptor of the same dma-buf. A dma-buf has one file, and so one mode:
 *
 * - if it is writable, the opener must be allowed to write the region and gets a writable
 *   descriptor, even without TSHARE_OPEN_WRITE;
 * - if it is read-only, TSHARE_OPEN_WRITE is -EACCES.
 *
 * The driver that exported the dma-buf decides what can be done with the memory,
 * for example whether mmap() works.
 *
 * A read-only file prevents writes through mmap(), but not by devices: a driver that imports a
 * dma-buf need not check its file's mode. A process that may open such a region and has such a
 * device can write the memory.
 */
struct tshare_create {
	__u64 size;
	__u32 flags;
	__u32 mode;
	__s32 node;
	__s32 fd;
	__aligned_u64 descs;
	__u32 descs_size;
	__u32 desc_count;
	__u64 id;
	__u64 reserved;
	char name[TSHARE_NAME_LEN];
};

#define TSHARE_IOCTL_CREATE _IOWR(TSHARE_IOCTL_MAGIC, 0x01, struct tshare_create)

/* struct tshare_open.flags */
#define TSHARE_OPEN_WRITE      (1U << 0) /* for writing too; else read-only */
#define TSHARE_OPEN_NO_CLOEXEC (1U << 1) /* the descriptor survives execve() */

/**
 * struct tshare_open - ioctl(TSHARE_IOCTL_OPEN)
 * @flags: in: TSHARE_OPEN_*
 * @fd: out: descriptor of a dma-buf of the region
 * @id: in: the region's id if @name is empty, else must be zero; out: its id
 * @size: out: bytes of the region
 * @descs: in: pointer to a buffer for the region's descriptors, see struct
 *         tshare_desc; not looked at if @descs_size is too small
 * @descs_size: in: bytes of the buffer; out: bytes that the descriptors take.
 *              If that is more than the buffer has, none was stored
 * @desc_count: out: descriptors that the region has
 * @deadline_ns: in: deadline of the wait until @name can be opened, in nanoseconds of
 *               CLOCK_MONOTONIC in the caller's time namespace; 0 not to wait, 2^63 - 1 for
 *               ever; needs a name
 * @other_than: in: id of a region not to open even if @name leads to it, or 0; needs a name
 * @draft: in: must be zero in a new call. If a signal interrupts the call or its deadline
 *         passes, out: the draft that it waited for, or 0. To continue the call, pass the
 *         structure again, with any @deadline_ns but 0
 * @name: in: name of the region, or empty to go by @id
 *
 * Open a region: export a dma-buf over it, with the access asked for. A read-only
 * dma-buf can't be mapped writable, nor made so with mprotect(), nor imported by a
 * device for writing. The mode of a foreign region's dma-buf is its exporter's, see
 * struct tshare_create.
 *
 * An id finds regions of the caller's namespace; with CAP_SYS_ADMIN in the initial
 * user namespace, of any. A draft can't be opened, not even by its maker. A draft
 * that has lost its name can never be opened.
 *
 * Without @deadline_ns the call returns ENOENT if there is no such name, EINPROGRESS if a
 * draft has it, and EAGAIN if it leads to @other_than. With it the call sleeps instead, until
 * the name leads to a finished region other than @other_than. It returns ENOENT if a draft has
 * the name and ends unfinished, and EACCES if the name leads to a region that the caller may
 * not open. If a draft was finished but lost the name before the caller looked, the call waits
 * for the next region of that name. If the deadline has passed when the call begins, it looks
 * once. After SIGSTOP and SIGCONT the call continues. A call that continues also returns ENOENT
 * if meanwhile the draft was finished and the region is gone.
 */
struct tshare_open {
	__u32 flags;
	__s32 fd;
	__u64 id;
	__u64 size;
	__aligned_u64 descs;
	__u32 descs_size;
	__u32 desc_count;
	__s64 deadline_ns;
	__u64 other_than;
	__u64 draft;
	char name[TSHARE_NAME_LEN];
};

#define TSHARE_IOCTL_OPEN _IOWR(TSHARE_IOCTL_MAGIC, 0x02, struct tshare_open)

/**
 * struct tshare_unlink - ioctl(TSHARE_IOCTL_UNLINK)
 * @flags: in: must be zero
 * @reserved: in: must be zero
 * @id: in: id of the region whose name to remove if @name is empty, else must
 *      be zero; reaches other namespaces as in TSHARE_IOCTL_OPEN
 * @name: in: the name
 *
 * Remove a name. The memory stays with its users. A draft that loses its name can't
 * be finished any more. The caller must be the region's owner, or have
 * CAP_IPC_OWNER in the user namespace of its IPC namespace.
 */
struct tshare_unlink {
	__u32 flags;
	__u32 reserved;
	__u64 id;
	char name[TSHARE_NAME_LEN];
};

#define TSHARE_IOCTL_UNLINK _IOWR(TSHARE_IOCTL_MAGIC, 0x03, struct tshare_unlink)

/*
 * struct tshare_info.region_flags and struct tshare_list_entry.region_flags; bits 0 to 4 are
 * those of TSHARE_CREATE_*
 */
#define TSHARE_REGION_PERSIST  (1U << 0) /* its name stays until unlinked */
#define TSHARE_REGION_USERS    (1U << 1) /* its name stays while it has users */
#define TSHARE_REGION_DRAFT    (1U << 2) /* it has not been finished */
#define TSHARE_REGION_DMA32    (1U << 3) /* was asked to be below 4 GiB */
#define TSHARE_REGION_FOREIGN  (1U << 4) /* it consists of another driver's dma-buf */
#define TSHARE_REGION_WRITABLE (1U << 5) /* this dma-buf (INFO) or caller (LIST) may write */
#define TSHARE_REGION_PHYS     (1U << 6) /* INFO: @phys_addr is valid */
#define TSHARE_REGION_POOL     (1U << 7) /* its memory is a pool's, and returns there */

/**
 * struct tshare_info - ioctl(TSHARE_IOCTL_INFO)
 * @fd: in: descriptor of a dma-buf that this device exported, or of a foreign
 *      region's
 * @flags: in: must be zero
 * @id: in: the region's id, or 0 if @fd is of a dma-buf that this device exported; out: its id
 * @size: out: bytes of the region
 * @uid: out: owner, in the caller's user namespace
 * @gid: out: group, likewise
 * @mode: out: permission bits
 * @node: out: NUMA node that the memory is on, -1 where that is unknown
 * @region_flags: out: TSHARE_REGION_*
 * @reserved: in: must be zero
 * @phys_addr: out: physical address of the region's first byte for callers with CAP_SYS_RAWIO
 *             in the initial user namespace, with TSHARE_REGION_PHYS in @region_flags; else 0.
 *             For devices without a driver that imports dma-bufs: an FPGA, or a DMA engine
 *             that is programmed from user space. Behind an IOMMU devices use other addresses
 * @descs: in: pointer to a buffer for the region's descriptors, see struct
 *         tshare_desc; not looked at if @descs_size is too small
 * @descs_size: in: bytes of the buffer; out: bytes that the descriptors take.
 *              If that is more than the buffer has, none was stored
 * @desc_count: out: descriptors that the region has
 * @offset: out: bytes of the region before the first of this dma-buf
 * @length: out: bytes of this dma-buf
 * @name: out: the region's name, empty if it has none or has lost it
 *
 * Report the properties of a region. Needs only the descriptor, and for a foreign region its
 * id. The device may be open in another namespace than the region's, unless the region is
 * foreign.
 *
 * A dma-buf of a range (see TSHARE_IOCTL_EXPORT) has no descriptors, since they
 * count bytes from the region's start: @desc_count is 0.
 */
struct tshare_info {
	__s32 fd;
	__u32 flags;
	__u64 id;
	__u64 size;
	__u32 uid;
	__u32 gid;
	__u32 mode;
	__s32 node;
	__u32 region_flags;
	__u32 reserved;
	__u64 phys_addr;
	__aligned_u64 descs;
	__u32 descs_size;
	__u32 desc_count;
	__u64 offset;
	__u64 length;
	char name[TSHARE_NAME_LEN];
};

#define TSHARE_IOCTL_INFO _IOWR(TSHARE_IOCTL_MAGIC, 0x04, struct tshare_info)

/**
 * struct tshare_list_entry - one region in a TSHARE_IOCTL_LIST
 * @id: the region's id
 * @size: bytes of the region
 * @uid: owner, in the caller's user namespace
 * @gid: group, likewise
 * @mode: permission bits
 * @node: NUMA node that the memory is on, -1 where that is unknown
 * @region_flags: TSHARE_REGION_*
 * @desc_count: number of tensors described
 * @name: name, empty if it has none
 */
struct tshare_list_entry {
	__u64 id;
	__u64 size;
	__u32 uid;
	__u32 gid;
	__u32 mode;
	__s32 node;
	__u32 region_flags;
	__u32 desc_count;
	char name[TSHARE_NAME_LEN];
};

/* struct tshare_list.flags */
#define TSHARE_LIST_ALL (1U << 0) /* all namespaces; CAP_SYS_ADMIN in the initial user namespace */

/**
 * struct tshare_list - ioctl(TSHARE_IOCTL_LIST)
 * @cursor: in: 0 to begin, else what the previous call stored here; out: where
 *          the next call continues
 * @entries: in: pointer to an array of struct tshare_list_entry
 * @count: in: elements in @entries, from 1; out: elements stored, less than
 *         asked for at the end of the list
 * @entry_size: in: sizeof(struct tshare_list_entry), bytes
 * @flags: in: TSHARE_LIST_*
 * @reserved: in: must be zero
 *
 * List the regions of the caller's namespace that it may read or owns, named or not, in the order
 * of their ids. A region that is created or freed between two calls may be listed or not. No
 * region is listed twice. @cursor reveals no id of a region that was not listed.
 */
struct tshare_list {
	__u64 cursor;
	__aligned_u64 entries;
	__u32 count;
	__u32 entry_size;
	__u32 flags;
	__u32 reserved;
};

#define TSHARE_IOCTL_LIST _IOWR(TSHARE_IOCTL_MAGIC, 0x05, struct tshare_list)

/* struct tshare_counter.flags */
#define TSHARE_COUNTER_NO_CLOEXEC (1U << 0) /* the descriptor survives execve() */

/**
 * struct tshare_counter - ioctl(TSHARE_IOCTL_COUNTER)
 * @fd: in: descriptor of a dma-buf that this device exported, or of a foreign region's
 * @flags: in: TSHARE_COUNTER_*
 * @counter_fd: out: descriptor of a file that is the region's counter
 * @reserved: in: must be zero
 * @id: in, out: as in TSHARE_IOCTL_INFO
 *
 * Open a region's counter: one page of shared memory, initially zero, the same for
 * all users of the region. futex() works on a shared mapping of this file, where
 * FUTEX_WAIT needs read access alone; it doesn't work on the region's own memory.
 * The kernel doesn't interpret the page.
 *
 * Each call returns an open file description of its own, so that an F_OFD_SETLK
 * lock belongs to one caller. It is writable if @fd is, else read-only. The file
 * can't be opened in another way, truncated, extended or sealed. It holds no
 * reference to the region, and outlives the region while it is open or mapped.
 *
 * udmabuf takes the file as it takes any memfd, and doesn't look at its mode: a
 * process that may open /dev/udmabuf can write a counter that it may only read.
 */
struct tshare_counter {
	__s32 fd;
	__u32 flags;
	__s32 counter_fd;
	__u32 reserved;
	__u64 id;
};

#define TSHARE_IOCTL_COUNTER _IOWR(TSHARE_IOCTL_MAGIC, 0x06, struct tshare_counter)

/* struct tshare_finish.flags */
#define TSHARE_FINISH_REPLACE (1U << 0) /* the name may be another region's */

/**
 * struct tshare_finish - ioctl(TSHARE_IOCTL_FINISH)
 * @fd: in: descriptor of a dma-buf of the draft
 * @flags: in: TSHARE_FINISH_*
 * @id: in: as in TSHARE_IOCTL_INFO
 *
 * Finish a draft: in one step its name leads to it, and stays for the lifetime that CREATE
 * asked for. Openers see what the caller wrote to the memory before. The call must go through
 * the open file that created the draft; any process that has that file may make it. The draft
 * stays a draft if another region has the name and TSHARE_FINISH_REPLACE is missing (EEXIST),
 * or if the caller may not unlink that region (EPERM).
 */
struct tshare_finish {
	__s32 fd;
	__u32 flags;
	__u64 id;
};

#define TSHARE_IOCTL_FINISH _IOWR(TSHARE_IOCTL_MAGIC, 0x07, struct tshare_finish)

/* struct tshare_export.flags */
#define TSHARE_EXPORT_WRITE	 (1U << 0) /* for writing too; else read-only */
#define TSHARE_EXPORT_NO_CLOEXEC (1U << 1) /* the descriptor survives execve() */

/**
 * struct tshare_export - ioctl(TSHARE_IOCTL_EXPORT)
 * @fd: in: descriptor of a dma-buf that this device exported
 * @flags: in: TSHARE_EXPORT_*; TSHARE_EXPORT_WRITE needs a writable @fd
 * @offset: in: bytes of the dma-buf @fd before the range, whole pages
 * @size: in: bytes of the range, whole pages, or 0 for all from @offset on; out:
 *        bytes of the range
 * @export_fd: out: descriptor of the new dma-buf
 * @reserved: in: must be zero
 *
 * Export a dma-buf over a range of another one's pages. It holds a reference to the
 * region, as every dma-buf of it does, independent of @fd. Through it mmap(),
 * devices and TSHARE_IOCTL_EXPORT reach these pages and no others, and offsets
 * count from their start. Needs no permission beyond what @fd carries.
 *
 * Dma-bufs over exactly the same pages of a region share their fences, whichever call exported
 * them. Dma-bufs over different pages don't, even where the pages overlap. DMA_BUF_IOCTL_SYNC
 * copies only between the dma-buf's own pages and devices' mappings of them.
 *
 * The kernel can map 2 MiB at a time where the mapping's address is congruent modulo 2 MiB
 * with its offset in the region: struct tshare_info.offset plus the offset of mmap().
 */
struct tshare_export {
	__s32 fd;
	__u32 flags;
	__u64 offset;
	__u64 size;
	__s32 export_fd;
	__u32 reserved;
};

#define TSHARE_IOCTL_EXPORT _IOWR(TSHARE_IOCTL_MAGIC, 0x08, struct tshare_export)

/* The most watches that a namespace can have. */
#define TSHARE_WATCH_MAX 8192

/* struct tshare_watch.flags */
#define TSHARE_WATCH_NO_CLOEXEC (1U << 0) /* the descriptor survives execve() */

/**
 * struct tshare_watch - ioctl(TSHARE_IOCTL_WATCH)
 * @flags: in: TSHARE_WATCH_*
 * @fd: out: descriptor of a new file, the watch
 * @name: in: the name, not empty
 *
 * Watch a name. read() of the watch stores a __u64: the id of the region that the name leads
 * to, or 0 if it leads to none, or to a draft. Every read() but the first sleeps until the
 * name has changed since the last one, or fails with EAGAIN if the file is O_NONBLOCK. poll()
 * reports POLLIN when read() won't sleep. Changes between two reads count as one. A shorter
 * buffer is EINVAL.
 *
 * Needs no permission to open the regions: CREATE and OPEN also show every process in a
 * namespace which names are taken. A watch keeps the IPC namespace alive, as an open file of
 * the device does, but no region. Processes that share the file share its state: a change is
 * reported to one of them. A namespace can have TSHARE_WATCH_MAX watches: EDQUOT beyond that.
 */
struct tshare_watch {
	__u32 flags;
	__s32 fd;
	char name[TSHARE_NAME_LEN];
};

#define TSHARE_IOCTL_WATCH _IOWR(TSHARE_IOCTL_MAGIC, 0x09, struct tshare_watch)

#endif /* _UAPI_LINUX_TSHARE_H */
