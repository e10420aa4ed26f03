/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events tshare:* of tracefs and perf. A field that has a size or an address counts
 * bytes. A result is 0 or a negative errno.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tshare

#if !defined(TSHARE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TSHARE_TRACE_H

#include <linux/tracepoint.h>

struct tshare_create;
struct tshare_open;
struct tshare_region;
struct tshare_request;
struct vm_area_struct;

/*
 * The end of a CREATE. If no region was made, the node is the one asked for, or -1. An invalid
 * name is shown as "".
 */
TRACE_EVENT(tshare_create,
	TP_PROTO(const struct tshare_create *req, const struct tshare_region *region, int result),

	TP_ARGS(req, region, result),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, bytes)
		__field(u32, flags)
		__field(int, node)
		__field(int, result)
		__string(rung, region ? region->rung : "none")
		__string(name, tshare_name_check(req->name, NULL) ? "" : req->name)
	),

	TP_fast_assign(
		__entry->id = region ? region->id : 0;
		__entry->bytes = req->size;
		__entry->flags = req->flags;
		__entry->node = region ? tshare_region_node(region) :
				req->flags & TSHARE_CREATE_NODE ? req->node : NUMA_NO_NODE;
		__entry->result = result;
		TSHARE_ASSIGN_STR(rung, region ? region->rung : "none");
		TSHARE_ASSIGN_STR(name, tshare_name_check(req->name, NULL) ? "" : req->name);
		tshare_name_mask(__get_str(name));
	),

	TP_printk("id=%llu bytes=%llu node=%d flags=%s rung=%s result=%d name=%s",
		  __entry->id, __entry->bytes, __entry->node,
		  __print_flags(__entry->flags, "|",
				{ TSHARE_CREATE_PERSIST, "persist" },
				{ TSHARE_CREATE_DMA32, "dma32" },
				{ TSHARE_CREATE_NO_CLOEXEC, "no_cloexec" },
				{ TSHARE_CREATE_USERS, "users" },
				{ TSHARE_CREATE_DRAFT, "draft" },
				{ TSHARE_CREATE_REPLACE, "replace" },
				{ TSHARE_CREATE_NODE, "node" },
				{ TSHARE_CREATE_DMABUF, "dmabuf" }),
		  __get_str(rung), __entry->result, __get_str(name))
);

/*
 * The end of a search for memory: how many runs it tried to take, and how many pages in use
 * were moved out of the run that it took.
 */
TRACE_EVENT(tshare_search,
	TP_PROTO(const struct tshare_request *req, unsigned int tries, unsigned long moved, u64 ns,
		 int result),

	TP_ARGS(req, tries, moved, ns, result),

	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u64, ns)
		__field(unsigned long, moved)
		__field(unsigned int, tries)
		__field(int, node)
		__field(bool, dma32)
		__field(int, result)
	),

	TP_fast_assign(
		__entry->bytes = (u64)req->nr_pages << PAGE_SHIFT;
		__entry->ns = ns;
		__entry->moved = moved;
		__entry->tries = tries;
		__entry->node = req->node;
		__entry->dma32 = req->dma32;
		__entry->result = result;
	),

	TP_printk("bytes=%llu node=%d dma32=%d tries=%u moved=%lu ns=%llu result=%d",
		  __entry->bytes, __entry->node, __entry->dma32, __entry->tries, __entry->moved,
		  __entry->ns, __entry->result)
);

/*
 * A VMA that maps a part of a region. fork() maps what it copies, and mremap() what it moves.
 * Unmapping a part of a VMA splits it first, which maps the new piece. So there is an unmap
 * for each map, though not of the same size.
 */
DECLARE_EVENT_CLASS(tshare_area,
	TP_PROTO(const struct tshare_region *region, const struct vm_area_struct *vma),

	TP_ARGS(region, vma),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(unsigned long, addr)
		__field(u64, offset)
		__field(u64, bytes)
	),

	TP_fast_assign(
		__entry->id = region->id;
		__entry->addr = vma->vm_start;
		__entry->offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		__entry->bytes = vma->vm_end - vma->vm_start;
	),

	TP_printk("id=%llu addr=0x%lx offset=%llu bytes=%llu",
		  __entry->id, __entry->addr, __entry->offset, __entry->bytes)
);

DEFINE_EVENT(tshare_area, tshare_map,
	TP_PROTO(const struct tshare_region *region, const struct vm_area_struct *vma),
	TP_ARGS(region, vma)
);

DEFINE_EVENT(tshare_area, tshare_unmap,
	TP_PROTO(const struct tshare_region *region, const struct vm_area_struct *vma),
	TP_ARGS(region, vma)
);

/* The end of an OPEN, by name or, if that is "", by id. */
TRACE_EVENT(tshare_open,
	TP_PROTO(const struct tshare_open *req, int result),

	TP_ARGS(req, result),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(u32, flags)
		__field(int, result)
		__string(name, tshare_name_check(req->name, NULL) ? "" : req->name)
	),

	TP_fast_assign(
		__entry->id = req->id;
		__entry->flags = req->flags;
		__entry->result = result;
		TSHARE_ASSIGN_STR(name, tshare_name_check(req->name, NULL) ? "" : req->name);
		tshare_name_mask(__get_str(name));
	),

	TP_printk("id=%llu flags=%s result=%d name=%s", __entry->id,
		  __print_flags(__entry->flags, "|",
				{ TSHARE_OPEN_WRITE, "write" },
				{ TSHARE_OPEN_NO_CLOEXEC, "no_cloexec" }),
		  __entry->result, __get_str(name))
);

/* The end of a region. Pages that are still pinned are freed later. */
TRACE_EVENT(tshare_release,
	TP_PROTO(const struct tshare_region *region),

	TP_ARGS(region),

	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, bytes)
	),

	TP_fast_assign(
		__entry->id = region->id;
		__entry->bytes = tshare_region_bytes(region);
	),

	TP_printk("id=%llu bytes=%llu", __entry->id, __entry->bytes)
);

#endif /* TSHARE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
