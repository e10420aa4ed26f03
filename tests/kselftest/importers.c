// SPDX-License-Identifier: GPL-2.0-only
/* Real devices that import regions: vgem, a DRM driver, and vivid, a camera. */
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <linux/videodev2.h>

#include "fence.h"
#include "harness.h"

static int open_video(__u32 capability)
{
	struct v4l2_capability caps;
	char path[32];
	int fd, minor;

	for (minor = 0; minor < 16; minor++) {
		sprintf(path, "/dev/video%d", minor);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (!ioctl(fd, VIDIOC_QUERYCAP, &caps) &&
		    !strcmp((char *)caps.driver, "vivid") && caps.device_caps & capability)
			return fd;
		close(fd);
	}
	return -1;
}

FIXTURE(vgem)
{
	int drm;
	int dev;
	int rw;
	int ro;
	struct counters before;
};

FIXTURE_SETUP(vgem)
{
	self->drm = open_drm("vgem");
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, 5 * MIB, "shown");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "shown", 0);
	ASSERT_LE(0, self->ro);
	self->before = count_all();
}

FIXTURE_TEARDOWN(vgem)
{
	close(self->drm);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

TEST_F(vgem, imports_a_region_and_exports_the_same)
{
	char *mem = map(self->rw, 5 * MIB, RW), *back;
	__u32 handle;
	int fd;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, import_gem(self->drm, self->rw, &handle));
	fd = export_gem(self->drm, handle);
	ASSERT_LE(0, fd);
	EXPECT_EQ(id_of(self->dev, self->rw), id_of(self->dev, fd));
	back = map(fd, 5 * MIB, RW);
	ASSERT_NE(MAP_FAILED, back);
	fill(back, 5 * MIB, 1);
	EXPECT_TRUE(filled(mem, 5 * MIB, 1));
	EXPECT_EQ(0, close_gem(self->drm, handle));
}

TEST_F(vgem, import_keeps_the_memory)
{
	struct counters before;
	__u32 handle;
	char *mem;
	int fd;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	before = count_all();
	fd = create(self->dev, 2 * MIB, NULL);
	mem = map(fd, 2 * MIB, RW);
	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 2 * MIB, 1);
	ASSERT_EQ(0, import_gem(self->drm, fd, &handle));
	munmap(mem, 2 * MIB);
	close(fd);
	EXPECT_EQ(before.regions + 1, read_number(SYSFS "regions"));
	fd = export_gem(self->drm, handle);
	mem = map(fd, 2 * MIB, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, 2 * MIB, 1));
	munmap(mem, 2 * MIB);
	close(fd);
	EXPECT_EQ(0, close_gem(self->drm, handle));
	EXPECT_SAME_COUNTERS(before);
}

/* Newer kernels' vgem maps nothing of what it imports: it may have it, and no more. */
TEST_F(vgem, can_not_write_a_read_only_export)
{
	struct drm_mode_map_dumb args = {};
	int err, fd;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	err = import_gem(self->drm, self->ro, &args.handle);
	if (err) {
		EXPECT_EQ(-EACCES, err);
	} else {
		EXPECT_EQ(-EINVAL, xioctl(self->drm, DRM_IOCTL_MODE_MAP_DUMB, &args));
		fd = export_gem(self->drm, args.handle);
		ASSERT_LE(0, fd);
		EXPECT_EQ(MAP_FAILED, map(fd, PAGE, RW));
		EXPECT_EQ(EACCES, errno);
		close(fd);
		EXPECT_EQ(0, close_gem(self->drm, args.handle));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(vgem, does_not_map_what_it_has_imported)
{
	struct drm_mode_map_dumb args = {};

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, import_gem(self->drm, self->rw, &args.handle));
	EXPECT_EQ(-EINVAL, xioctl(self->drm, DRM_IOCTL_MODE_MAP_DUMB, &args));
}

TEST_F(vgem, cpu_access_is_synced_with_the_device)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	__u32 handle;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, import_gem(self->drm, self->rw, &handle));
	EXPECT_EQ(0, xioctl(self->ro, DMA_BUF_IOCTL_SYNC, &sync));
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	EXPECT_EQ(0, xioctl(self->ro, DMA_BUF_IOCTL_SYNC, &sync));
}

TEST_F(vgem, fence_is_seen_through_every_dma_buf_of_the_region)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int fences;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	EXPECT_EQ(0, ready(self->rw, POLLIN | POLLOUT));
	EXPECT_EQ(0, ready(self->ro, POLLIN | POLLOUT));
	fences = export_fences(self->ro, DMA_BUF_SYNC_READ);
	ASSERT_LE(0, fences);
	EXPECT_EQ(0, ready(fences, POLLIN));

	ASSERT_EQ(0, signal_fence(self->drm, &attach));
	EXPECT_EQ(POLLIN, ready(fences, POLLIN));
	EXPECT_EQ(POLLIN | POLLOUT, ready(self->ro, POLLIN | POLLOUT));
}

TEST_F(vgem, read_fence_holds_back_writers_only)
{
	struct drm_vgem_fence_attach attach = {};

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	EXPECT_EQ(POLLIN, ready(self->ro, POLLIN));
	EXPECT_EQ(0, ready(self->ro, POLLOUT));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
	EXPECT_EQ(POLLOUT, ready(self->ro, POLLOUT));
}

TEST_F(vgem, imported_fence_is_seen_through_every_dma_buf_of_the_region)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int other = create(self->dev, PAGE, "other"), other_ro, fences;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_LE(0, other);
	other_ro = open_name(self->dev, "other", 0);
	ASSERT_LE(0, other_ro);
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	fences = export_fences(self->rw, DMA_BUF_SYNC_RW);
	ASSERT_LE(0, fences);
	EXPECT_EQ(POLLIN, ready(other_ro, POLLIN));
	ASSERT_EQ(0, import_fences(other, fences, DMA_BUF_SYNC_WRITE));
	EXPECT_EQ(0, ready(other_ro, POLLIN));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
	EXPECT_EQ(POLLIN, ready(other_ro, POLLIN));
}

TEST_F(vgem, fence_is_seen_through_every_dma_buf_of_the_range)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int one, two, fences;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	one = export_range(self->dev, self->rw, MIB, MIB, TSHARE_EXPORT_WRITE);
	two = export_range(self->dev, self->ro, MIB, MIB, 0);
	ASSERT_LE(0, two);
	ASSERT_EQ(0, attach_fence(self->drm, one, &attach));
	EXPECT_EQ(0, ready(one, POLLIN | POLLOUT));
	EXPECT_EQ(0, ready(two, POLLIN | POLLOUT));
	fences = export_fences(two, DMA_BUF_SYNC_READ);
	ASSERT_LE(0, fences);
	EXPECT_EQ(0, ready(fences, POLLIN));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
	EXPECT_EQ(POLLIN, ready(fences, POLLIN));
	EXPECT_EQ(POLLIN | POLLOUT, ready(two, POLLIN | POLLOUT));
}

TEST_F(vgem, imported_fence_is_seen_through_every_dma_buf_of_the_range)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int one, two, fences;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	one = export_range(self->dev, self->rw, MIB, MIB, TSHARE_EXPORT_WRITE);
	two = export_range(self->dev, self->rw, MIB, MIB, 0);
	ASSERT_LE(0, two);
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	fences = export_fences(self->rw, DMA_BUF_SYNC_RW);
	ASSERT_LE(0, fences);
	EXPECT_EQ(POLLIN, ready(two, POLLIN));
	ASSERT_EQ(0, import_fences(one, fences, DMA_BUF_SYNC_WRITE));
	EXPECT_EQ(0, ready(two, POLLIN));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
	EXPECT_EQ(POLLIN, ready(two, POLLIN));
}

/* A frame that a device works on delays neither the other frames nor the whole region. */
TEST_F(vgem, fence_of_a_range_holds_up_nothing_else)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int fd, other, overlapping;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	fd = export_range(self->dev, self->rw, MIB, MIB, TSHARE_EXPORT_WRITE);
	other = export_range(self->dev, self->rw, 2 * MIB, MIB, 0);
	overlapping = export_range(self->dev, self->rw, MIB, MIB + PAGE, 0);
	ASSERT_LE(0, overlapping);
	ASSERT_EQ(0, attach_fence(self->drm, fd, &attach));
	EXPECT_EQ(0, ready(fd, POLLIN));
	EXPECT_EQ(POLLIN | POLLOUT, ready(other, POLLIN | POLLOUT));
	EXPECT_EQ(POLLIN | POLLOUT, ready(overlapping, POLLIN | POLLOUT));
	EXPECT_EQ(POLLIN | POLLOUT, ready(self->rw, POLLIN | POLLOUT));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
}

TEST_F(vgem, whole_exported_again_has_the_regions_fences)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int again;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	again = export_range(self->dev, self->ro, 0, 5 * MIB, 0);
	ASSERT_LE(0, again);
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	EXPECT_EQ(0, ready(again, POLLIN));
	ASSERT_EQ(0, signal_fence(self->drm, &attach));
}

TEST_F(vgem, pending_fence_does_not_leak_with_the_range)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };
	int fd;

	if (self->drm < 0)
		SKIP(return, "no vgem");
	fd = export_range(self->dev, self->rw, MIB, MIB, TSHARE_EXPORT_WRITE);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, attach_fence(self->drm, fd, &attach));
	EXPECT_EQ(0, close_gem(self->drm, attach.handle));
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
	/* The range has another dma-buf now. */
	fd = export_range(self->dev, self->rw, MIB, MIB, 0);
	EXPECT_EQ(POLLIN, ready(fd, POLLIN));
}

TEST_F(vgem, pending_fence_does_not_leak_with_the_region)
{
	struct drm_vgem_fence_attach attach = { .flags = VGEM_FENCE_WRITE };

	if (self->drm < 0)
		SKIP(return, "no vgem");
	ASSERT_EQ(0, attach_fence(self->drm, self->rw, &attach));
	EXPECT_EQ(0, close_gem(self->drm, attach.handle));
	close(self->rw);
	close(self->ro);
	EXPECT_EQ(0, unlink_name(self->dev, "shown"));
	EXPECT_EQ(self->before.regions - 1, read_number(SYSFS "regions"));
}

FIXTURE(vivid)
{
	int video;
	int dev;
	int rw;
	int ro;
	int spare;
	/* Bytes of a picture, and of the region that holds it. */
	size_t picture;
	size_t size;
	enum v4l2_buf_type type;
};

FIXTURE_VARIANT(vivid)
{
	bool output;
};

FIXTURE_VARIANT_ADD(vivid, capture)
{
	.output = false,
};

FIXTURE_VARIANT_ADD(vivid, output)
{
	.output = true,
};

/* Sets the smallest picture size, and requests two buffers of the caller's memory. */
static size_t prepare_video(int video, enum v4l2_buf_type type)
{
	struct v4l2_format format = { .type = type };
	struct v4l2_requestbuffers request = {
		.count = 2,
		.type = type,
		.memory = V4L2_MEMORY_DMABUF,
	};

	format.fmt.pix.width = 320;
	format.fmt.pix.height = 180;
	format.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
	if (ioctl(video, VIDIOC_S_FMT, &format) || ioctl(video, VIDIOC_REQBUFS, &request))
		return 0;
	return format.fmt.pix.sizeimage;
}

FIXTURE_SETUP(vivid)
{
	struct tshare_create args;

	self->type = variant->output ? V4L2_BUF_TYPE_VIDEO_OUTPUT : V4L2_BUF_TYPE_VIDEO_CAPTURE;
	self->video = open_video(variant->output ? V4L2_CAP_VIDEO_OUTPUT : V4L2_CAP_VIDEO_CAPTURE);
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	if (self->video < 0)
		return;
	self->picture = prepare_video(self->video, self->type);
	ASSERT_NE(0, self->picture);
	args = create_args(self->picture, "frame");
	args.flags = TSHARE_CREATE_DMA32;
	self->rw = do_create(self->dev, &args);
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "frame", 0);
	ASSERT_LE(0, self->ro);
	self->size = args.size;
	args = create_args(self->picture, NULL);
	args.flags = TSHARE_CREATE_DMA32;
	self->spare = do_create(self->dev, &args);
	ASSERT_LE(0, self->spare);
}

FIXTURE_TEARDOWN(vivid)
{
	close(self->video);
	close(self->spare);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

static int queue(int video, enum v4l2_buf_type type, __u32 index, int fd, size_t picture)
{
	struct v4l2_buffer buffer = {
		.index = index,
		.type = type,
		.memory = V4L2_MEMORY_DMABUF,
		.m.fd = fd,
		.bytesused = type == V4L2_BUF_TYPE_VIDEO_OUTPUT ? picture : 0,
		.field = V4L2_FIELD_NONE,
	};

	return xioctl(video, VIDIOC_QBUF, &buffer);
}

/* Waits until the device has finished a buffer, and returns its index. */
static int dequeue(int video, enum v4l2_buf_type type)
{
	struct v4l2_buffer buffer = { .type = type, .memory = V4L2_MEMORY_DMABUF };
	struct pollfd polled = {
		.fd = video,
		.events = type == V4L2_BUF_TYPE_VIDEO_OUTPUT ? POLLOUT : POLLIN,
	};

	if (poll(&polled, 1, 20000) != 1)
		return -ETIMEDOUT;
	return xioctl(video, VIDIOC_DQBUF, &buffer) ?: (int)buffer.index;
}

/* Starts with two pictures, since an output keeps one until it has the next. */
static int start(int video, enum v4l2_buf_type type, int first, int second, size_t picture)
{
	int arg = type;

	return queue(video, type, 0, first, picture) ?: queue(video, type, 1, second, picture) ?:
	       xioctl(video, VIDIOC_STREAMON, &arg);
}

static int stop(int video, enum v4l2_buf_type type)
{
	int arg = type;

	return xioctl(video, VIDIOC_STREAMOFF, &arg);
}

TEST_F(vivid, streams_through_a_region)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };
	int i;
	char *mem;

	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	mem = map(self->ro, self->size, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_TRUE(zeroed(mem, self->size));
	ASSERT_EQ(0, start(self->video, self->type, self->rw, self->spare, self->picture));
	for (i = 0; i < 4; i++) {
		int index = dequeue(self->video, self->type);

		ASSERT_EQ(i % 2, index);
		EXPECT_EQ(0, xioctl(self->ro, DMA_BUF_IOCTL_SYNC, &sync));
		EXPECT_EQ(variant->output, zeroed(mem, self->size));
		ASSERT_EQ(0, queue(self->video, self->type, index, index ? self->spare : self->rw,
				   self->picture));
	}
	EXPECT_EQ(0, stop(self->video, self->type));
}

/*
 * V4L2 takes no offset: each frame of a ring has a descriptor. Behind each is a
 * page that belongs to none.
 */
TEST_F(vivid, streams_through_the_frames_of_a_ring)
{
	size_t frame = self->size + PAGE;
	struct tshare_create args = create_args(3 * frame, NULL);
	int ring, frames[3], i, at, seen = 0;
	char *mem;

	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	args.flags = TSHARE_CREATE_DMA32;
	ring = do_create(self->dev, &args);
	mem = map(ring, 3 * frame, RW);
	ASSERT_NE(MAP_FAILED, mem);
	for (i = 0; i < 3; i++) {
		frames[i] = export_range(self->dev, ring, i * frame, self->size,
					 TSHARE_EXPORT_WRITE);
		ASSERT_LE(0, frames[i]);
	}
	ASSERT_EQ(0, start(self->video, self->type, frames[0], frames[2], self->picture));
	for (i = 0; i < 4; i++) {
		at = dequeue(self->video, self->type);
		ASSERT_EQ(i % 2, at);
		seen |= !zeroed(mem + 2 * at * frame, self->size) << at;
		ASSERT_EQ(0, queue(self->video, self->type, at, frames[2 * at], self->picture));
	}
	EXPECT_EQ(0, stop(self->video, self->type));
	EXPECT_EQ(variant->output ? 0 : 3, seen);
	EXPECT_TRUE(zeroed(mem + frame, self->size));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(zeroed(mem + i * frame + self->size, PAGE));
}

TEST_F(vivid, does_not_map_what_it_has_imported)
{
	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	ASSERT_EQ(0, start(self->video, self->type, self->rw, self->spare, self->picture));
	EXPECT_EQ(MAP_FAILED, map(self->video, PAGE, RW));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, stop(self->video, self->type));
}

/* Frame number of the page that is mapped at @mem, 0 if it isn't known. */
static __u64 pfn_of(const void *mem)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	__u64 entry = 0;

	if (pread(pagemap, &entry, sizeof(entry), (uintptr_t)mem / PAGE * 8) != sizeof(entry))
		entry = 0;
	close(pagemap);
	return entry & ((1ULL << 55) - 1);
}

/* The pages of shared memory that another exporter makes a dma-buf of, in an order of choice. */
struct pages {
	int memfd;
	char *mem;
	__u32 count;
	/* Which page comes where. */
	__u32 *order;
};

static bool allocate_pages(struct pages *pages, __u32 count)
{
	size_t size = count * PAGE;

	pages->count = count;
	pages->order = calloc(count, sizeof(*pages->order));
	pages->memfd = memfd_create("scattered", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!pages->order || ftruncate(pages->memfd, size) ||
	    fcntl(pages->memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return false;
	pages->mem = map(pages->memfd, size, RW);
	if (pages->mem == MAP_FAILED)
		return false;
	memset(pages->mem, 0, size);
	return true;
}

/* Every second page, then the others; or all as they are. */
static void order_pages(struct pages *pages, bool alternate)
{
	__u32 half = (pages->count + 1) / 2, i;

	for (i = 0; i < pages->count; i++)
		pages->order[i] = !alternate ? i : i < half ? 2 * i : 2 * (i - half) + 1;
}

static __u64 pfn_at(const struct pages *pages, __u32 i)
{
	return pfn_of(pages->mem + pages->order[i] * PAGE);
}

static bool pages_are_contiguous(const struct pages *pages)
{
	__u32 i;

	for (i = 1; i < pages->count; i++)
		if (pfn_at(pages, i) != pfn_at(pages, 0) + i)
			return false;
	return true;
}

static bool pages_are_below_4_gib(const struct pages *pages)
{
	__u32 i;

	for (i = 0; i < pages->count; i++)
		if (pfn_at(pages, i) >= 4 * GIB / PAGE)
			return false;
	return true;
}

static int export_pages(const struct pages *pages)
{
	size_t size = sizeof(struct udmabuf_create_list) +
		      pages->count * sizeof(struct udmabuf_create_item);
	struct udmabuf_create_list *list = calloc(1, size);
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;
	__u32 i;

	if (device < 0 || !list)
		return -errno;
	list->flags = UDMABUF_FLAGS_CLOEXEC;
	list->count = pages->count;
	for (i = 0; i < pages->count; i++)
		list->list[i] = (struct udmabuf_create_item){
			.memfd = pages->memfd,
			.offset = pages->order[i] * PAGE,
			.size = PAGE,
		};
	fd = xioctl(device, UDMABUF_CREATE_LIST, list);
	free(list);
	close(device);
	return fd;
}

/*
 * The proof that contiguity is what the camera needs: it has no list of pages, and refuses
 * what another exporter gathers. Of two orders of the same pages one is scattered.
 */
TEST_F(vivid, refuses_memory_that_is_scattered)
{
	struct pages pages;
	int fd;

	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	if (access("/dev/udmabuf", R_OK | W_OK))
		SKIP(return, "the kernel has no udmabuf");
	ASSERT_TRUE(allocate_pages(&pages, self->size / PAGE));
	if (!pages_are_below_4_gib(&pages))
		SKIP(return, "the device has a copy of memory above 4 GiB");
	order_pages(&pages, false);
	if (pages_are_contiguous(&pages))
		order_pages(&pages, true);
	ASSERT_FALSE(pages_are_contiguous(&pages));
	fd = export_pages(&pages);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, queue(self->video, self->type, 0, self->rw, self->picture));
	EXPECT_EQ(-EFAULT, queue(self->video, self->type, 1, fd, self->picture));
}

TEST_F(vivid, may_read_a_read_only_export_but_not_write_it)
{
	char *mem;
	int err;

	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	mem = map(self->ro, self->size, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	err = start(self->video, self->type, self->ro, self->spare, self->picture);
	if (variant->output) {
		ASSERT_EQ(0, err);
		EXPECT_EQ(0, dequeue(self->video, self->type));
		EXPECT_EQ(0, stop(self->video, self->type));
	} else {
		/* videobuf2 returns EINVAL for any error of the exporter. */
		EXPECT_EQ(-EINVAL, err);
	}
	EXPECT_TRUE(zeroed(mem, self->size));
}

TEST_F(vivid, keeps_a_queued_region_when_all_else_is_gone)
{
	long regions;

	if (self->video < 0)
		SKIP(return, "no vivid with this kind of node");
	regions = read_number(SYSFS "regions");
	ASSERT_EQ(0, start(self->video, self->type, self->rw, self->spare, self->picture));
	ASSERT_EQ(0, unlink_name(self->dev, "frame"));
	close(self->rw);
	close(self->ro);
	close(self->spare);
	EXPECT_EQ(regions, read_number(SYSFS "regions"));
	EXPECT_EQ(0, dequeue(self->video, self->type));
	EXPECT_EQ(0, stop(self->video, self->type));
	close(self->video);
	EXPECT_EQ(regions - 2, read_number(SYSFS "regions"));
}

TEST_HARNESS_MAIN
