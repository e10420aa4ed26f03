/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The ABI of the test device that imports regions, the module
 * tshare_importer. Each open file imports one dma-buf at a time. mmap() of the
 * file is mmap() of the dma-buf, with the checks of the exporter alone.
 */
#ifndef TSHARE_IMPORTER_H
#define TSHARE_IMPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define IMPORTER "/dev/tshare-importer"

/* The most that is transferred at a time: what the device buffers, less one byte. */
#define IMPORTER_TRANSFER_MAX 2048

/* struct importer_attach.direction, the numbers of enum dma_data_direction */
#define IMPORTER_BOTH_WAYS 0
#define IMPORTER_TO_DEVICE 1
#define IMPORTER_FROM_DEVICE 2

/**
 * struct importer_attach - attach to a dma-buf and map it for the device
 * @fd: in: descriptor of the dma-buf
 * @direction: in: IMPORTER_*
 * @segment_max: in: the most bytes that the device takes in one segment
 * @entries: out: entries of the scatterlist
 * @boundary: in: a segment crosses no multiple of this plus one
 * @dma_entries: out: entries as the device sees them
 * @address_bits: in: the device has addresses of so many bits, 0 for 64
 */
struct importer_attach {
	__s32 fd;
	__u32 direction;
	__u32 segment_max;
	__u32 entries;
	__u64 boundary;
	__u32 dma_entries;
	__u32 address_bits;
};

/**
 * struct importer_entry - one entry of the scatterlist
 * @index: in: its number
 * @length: out: bytes, as the exporter made it
 * @dma_address: out: where the device sees it, 0 beyond the device's entries
 * @dma_length: out: bytes that the device sees there
 * @reserved: ignored
 */
struct importer_entry {
	__u32 index;
	__u32 length;
	__u64 dma_address;
	__u32 dma_length;
	__u32 reserved;
};

/**
 * struct importer_transfer - have the device read or write the dma-buf
 * @offset: in: bytes from the start of the dma-buf; ignored by IMPORTER_IOCTL_LATE
 * @data: in: pointer to what is written, or to where to store what was read
 * @size: in: bytes, up to IMPORTER_TRANSFER_MAX
 * @write: in: whether the device writes, whatever the direction that it was attached with
 *
 * IMPORTER_IOCTL_LATE has the device go on at the bus address of the last transfer, also after
 * DETACH. What is there then may be anybody's, so that it is EOPNOTSUPP but where an IOMMU
 * takes away what is unmapped at once (iommu.strict=1).
 */
struct importer_transfer {
	__u64 offset;
	__u64 data;
	__u32 size;
	__u32 write;
};

/**
 * struct importer_vmap - read one word through the kernel's own mapping
 * @offset: in: bytes from the start of the dma-buf
 * @word: out: what is there
 */
struct importer_vmap {
	__u64 offset;
	__u64 word;
};

/* What mmap() sets up in its area before it forwards: nothing, or device memory. */
#define IMPORTER_AREA_PLAIN 0
#define IMPORTER_AREA_IO 1
#define IMPORTER_AREA_PFNMAP 2
#define IMPORTER_AREA_MIXEDMAP 3

#define IMPORTER_IOCTL_ATTACH	_IOWR('t', 0, struct importer_attach)
#define IMPORTER_IOCTL_ENTRY	_IOWR('t', 1, struct importer_entry)
#define IMPORTER_IOCTL_TRANSFER _IOWR('t', 2, struct importer_transfer)
#define IMPORTER_IOCTL_VMAP	_IOWR('t', 3, struct importer_vmap)
#define IMPORTER_IOCTL_DETACH	_IO('t', 4)
#define IMPORTER_IOCTL_AREA	_IO('t', 5) /* with IMPORTER_AREA_* as argument */
#define IMPORTER_IOCTL_LATE	_IOWR('t', 6, struct importer_transfer)

#endif /* TSHARE_IMPORTER_H */
