// SPDX-License-Identifier: MIT
/*
 * A V4L2 camera's frames into a region: written there by the camera, against V4L2's own
 * buffers, mapped and copied from. The time from frame to frame, and the processor's time
 * that the program takes for one.
 *
 *	camera DEVICE
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/videodev2.h>

#include <tshare.h>

#include "pair.h"

#define WIDTH	1920
#define HEIGHT	1080
#define BUFFERS 4
#define FRAMES	40
#define ROUNDS	5
#define PAGE	4096

static struct tshare_region *region;
static int video, dmabufs[BUFFERS];
static size_t picture, slot_size;
static char *mapped[BUFFERS];

/* Of the stream that ended last, for each frame. */
static double cpu_time;

static void video_ioctl(unsigned long request, void *arg, const char *what)
{
	if (ioctl(video, request, arg))
		err(1, "%s", what);
}

#define VIDEO(request, arg) video_ioctl(request, arg, #request)

static double get_cpu_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void request_buffers(unsigned int memory, unsigned int count)
{
	struct v4l2_requestbuffers request = {
		.count = count,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = memory,
	};

	VIDEO(VIDIOC_REQBUFS, &request);
	if (request.count != count)
		errx(1, "the driver has %u buffers, not %u", request.count, count);
}

static void queue(unsigned int memory, unsigned int index)
{
	struct v4l2_buffer buffer = {
		.index = index,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = memory,
	};

	if (memory == V4L2_MEMORY_DMABUF)
		buffer.m.fd = dmabufs[index];
	VIDEO(VIDIOC_QBUF, &buffer);
}

static void map_buffers(void)
{
	for (unsigned int i = 0; i < BUFFERS; i++) {
		struct v4l2_buffer buffer = {
			.index = i,
			.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
			.memory = V4L2_MEMORY_MMAP,
		};

		VIDEO(VIDIOC_QUERYBUF, &buffer);
		mapped[i] =
			mmap(NULL, buffer.length, PROT_READ, MAP_SHARED, video, buffer.m.offset);
		if (mapped[i] == MAP_FAILED)
			err(1, "mmap");
	}
}

static void unmap_buffers(void)
{
	for (unsigned int i = 0; i < BUFFERS; i++)
		munmap(mapped[i], picture);
}

/* Takes a frame, as a program that shares it does, and gives the buffer back. */
static void take_frame(unsigned int memory)
{
	struct v4l2_buffer buffer = {
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = memory,
	};
	char *data = tshare_region_get_data(region);

	VIDEO(VIDIOC_DQBUF, &buffer);
	if (memory == V4L2_MEMORY_MMAP)
		memcpy(data + buffer.index * slot_size, mapped[buffer.index], picture);
	if (tshare_region_publish(region, NULL) < 0)
		errx(1, "%s", tshare_error_get());
	queue(memory, buffer.index);
}

/* Returns the seconds from one frame to the next. */
static double stream(unsigned int memory)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
	double start;

	request_buffers(memory, BUFFERS);
	if (memory == V4L2_MEMORY_MMAP)
		map_buffers();
	for (unsigned int i = 0; i < BUFFERS; i++)
		queue(memory, i);
	VIDEO(VIDIOC_STREAMON, &type);
	take_frame(memory);
	start = pair_now();
	cpu_time = get_cpu_time();
	for (unsigned int i = 0; i < FRAMES; i++)
		take_frame(memory);
	cpu_time = (get_cpu_time() - cpu_time) / FRAMES;
	start = pair_now() - start;
	VIDEO(VIDIOC_STREAMOFF, &type);
	if (memory == V4L2_MEMORY_MMAP)
		unmap_buffers();
	request_buffers(memory, 0);
	return start / FRAMES;
}

static double imported(void)
{
	return stream(V4L2_MEMORY_DMABUF);
}

static double copied(void)
{
	return stream(V4L2_MEMORY_MMAP);
}

static double imported_cpu(void)
{
	stream(V4L2_MEMORY_DMABUF);
	return cpu_time;
}

static double copied_cpu(void)
{
	stream(V4L2_MEMORY_MMAP);
	return cpu_time;
}

static void open_camera(const char *path)
{
	struct v4l2_format format = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };

	video = open(path, O_RDWR | O_CLOEXEC);
	if (video < 0)
		err(1, "%s", path);
	format.fmt.pix.width = WIDTH;
	format.fmt.pix.height = HEIGHT;
	format.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
	VIDEO(VIDIOC_S_FMT, &format);
	if (format.fmt.pix.width != WIDTH || format.fmt.pix.height != HEIGHT)
		errx(1, "%s: has no pictures of %dx%d", path, WIDTH, HEIGHT);
	picture = format.fmt.pix.sizeimage;
	slot_size = (picture + PAGE - 1) / PAGE * PAGE;
}

int main(int argc, char **argv)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_CONTIGUOUS | TSHARE_DMA32,
	};
	struct tshare_ctx *ctx;

	if (argc != 2)
		errx(2, "usage: camera DEVICE");
	open_camera(argv[1]);
	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_region_create(ctx, NULL, BUFFERS * slot_size, NULL, 0, &options, &region) < 0)
		errx(1, "%s", tshare_error_get());
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (tshare_region_export(region, i * slot_size, slot_size, 0, &dmabufs[i]) < 0)
			errx(1, "%s", tshare_error_get());

	pair_run("C: camera, 1920x1080, frame to frame", "V4L2's own buffers, copied", imported,
		 copied, ROUNDS, 0);
	pair_run("C: the same, processor time a frame", "V4L2's own buffers, copied", imported_cpu,
		 copied_cpu, ROUNDS, 0);
	tshare_region_unref(region);
	tshare_ctx_unref(ctx);
	return 0;
}
