// SPDX-License-Identifier: MIT
/*
 * A V4L2 camera fills the slots of a stream, and other programs read the frames there.
 * Stops at SIGINT and SIGTERM. camera.py does the same, and is a reader, too;
 * Documentation/camera.rst explains both.
 *
 *	camera [-n SLOTS] [-4] [-k] DEVICE NAME
 *
 *	-n  slots, 3 to 32 (default: 8); the driver may demand more
 *	-4  memory below 4 GiB, for a device that has 32-bit addresses
 *	-k  let readers keep all frames: a slow one then slows the camera down
 *
 * A frame has the fields image and fourcc, V4L2's name for the pixel format. Its sequence and
 * its flags are those of V4L2's buffer.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/videodev2.h>

#include <tshare.h>

/* How soon a slot is queued that a reader has given back while no frame comes. */
#define POLL_MS	   50
#define TIMEOUT_MS 10000

/* Where the camera's frames are copied. */
#define COPIED_BUFFERS 4

enum { FIELD_IMAGE, FIELD_FOURCC, FIELDS };

struct config {
	const char *device;
	const char *name;
	uint32_t slots;
	uint32_t stream_flags;
	uint32_t region_flags;
};

/* How the pixels of a format lie in a row: @channels elements each. */
static const struct pixels {
	uint32_t fourcc;
	struct tshare_dtype dtype;
	uint32_t channels;
} pixel_formats[] = {
	{ V4L2_PIX_FMT_YUYV, { 1, 8, 1 }, 2 },	{ V4L2_PIX_FMT_UYVY, { 1, 8, 1 }, 2 },
	{ V4L2_PIX_FMT_RGB24, { 1, 8, 1 }, 3 }, { V4L2_PIX_FMT_BGR24, { 1, 8, 1 }, 3 },
	{ V4L2_PIX_FMT_GREY, { 1, 8, 1 }, 1 },	{ V4L2_PIX_FMT_Y16, { 1, 16, 1 }, 1 },
};

/*
 * With V4L2_MEMORY_DMABUF buffer i is slot i of the stream. Loans are the frames of those that are
 * queued. With V4L2_MEMORY_MMAP the buffers are the driver's own, which are always queued.
 */
struct camera {
	int fd;
	struct v4l2_pix_format format;
	const struct pixels *pixels;
	uint32_t pixel_size;
	enum v4l2_memory memory;
	uint32_t buffers;
	uint32_t queued;
	struct tshare_stream *stream;
	int dmabufs[VIDEO_MAX_FRAME];
	struct tshare_frame *loans[VIDEO_MAX_FRAME];
	const char *maps[VIDEO_MAX_FRAME];
};

/* The camera */

static void open_camera(struct camera *camera, const char *path)
{
	struct v4l2_format format = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	size_t i;

	camera->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (camera->fd < 0)
		err(1, "%s", path);
	if (ioctl(camera->fd, VIDIOC_G_FMT, &format))
		err(1, "%s is no camera with the single-planar API", path);
	camera->format = format.fmt.pix;
	for (i = 0; i < sizeof(pixel_formats) / sizeof(pixel_formats[0]); i++)
		if (pixel_formats[i].fourcc == format.fmt.pix.pixelformat)
			camera->pixels = &pixel_formats[i];
	if (!camera->pixels)
		errx(1, "the pixel format '%.4s' isn't supported (v4l2-ctl sets another)",
		     (const char *)&format.fmt.pix.pixelformat);
	camera->pixel_size =
		tshare_dtype_get_itemsize(camera->pixels->dtype) * camera->pixels->channels;
	if (camera->format.bytesperline < camera->format.width * camera->pixel_size)
		errx(1, "the driver's format is inconsistent: rows of %u bytes",
		     camera->format.bytesperline);
}

/* Returns false if the driver has no such memory. The number is its decision. */
static bool request_buffers(struct camera *camera, enum v4l2_memory memory, uint32_t count)
{
	struct v4l2_requestbuffers request = {
		.count = count,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = memory,
	};

	if (ioctl(camera->fd, VIDIOC_REQBUFS, &request)) {
		if (errno != EINVAL)
			err(1, "VIDIOC_REQBUFS");
		return false;
	}
	if (request.count > VIDEO_MAX_FRAME)
		errx(1, "the driver demands %u buffers", request.count);
	camera->memory = memory;
	camera->buffers = request.count;
	return true;
}

static struct v4l2_buffer buffer_of(const struct camera *camera, uint32_t index)
{
	return (struct v4l2_buffer){
		.index = index,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = camera->memory,
	};
}

/* The camera may write the buffer from now on. */
static void queue_buffer(struct camera *camera, uint32_t index)
{
	struct v4l2_buffer buffer = buffer_of(camera, index);

	if (camera->memory == V4L2_MEMORY_DMABUF)
		buffer.m.fd = camera->dmabufs[index];
	if (ioctl(camera->fd, VIDIOC_QBUF, &buffer))
		err(1, "VIDIOC_QBUF (can the camera reach the memory? see -4)");
	camera->queued++;
}

/* Returns false if the camera has filled no other buffer. */
static bool dequeue_buffer(struct camera *camera, struct v4l2_buffer *buffer)
{
	*buffer = buffer_of(camera, 0);
	if (!ioctl(camera->fd, VIDIOC_DQBUF, buffer)) {
		camera->queued--;
		return true;
	}
	if (errno != EAGAIN)
		err(1, "VIDIOC_DQBUF");
	return false;
}

static void switch_camera(const struct camera *camera, bool on)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;

	if (ioctl(camera->fd, on ? VIDIOC_STREAMON : VIDIOC_STREAMOFF, &type))
		err(1, on ? "VIDIOC_STREAMON" : "VIDIOC_STREAMOFF");
}

/* The stream */

static void check(int error)
{
	if (error < 0)
		errx(1, "%s", tshare_error_get());
}

/* Requests buffers that are slots or, if that can't be, some to copy from. */
static void choose_memory(struct camera *camera, struct tshare_ctx *ctx, uint32_t slots)
{
	struct tshare_limits limits = { .size = sizeof(limits) };

	check(tshare_ctx_get_limits(ctx, &limits));
	if (!limits.dmabuf)
		warnx("copies each frame: shared memory has no dma-bufs");
	else if (camera->format.bytesperline % camera->pixel_size)
		warnx("copies each frame: a row of %u bytes isn't of whole pixels",
		      camera->format.bytesperline);
	else if (request_buffers(camera, V4L2_MEMORY_DMABUF, slots))
		return;
	else
		warnx("copies each frame: the driver imports no dma-bufs");
	if (!request_buffers(camera, V4L2_MEMORY_MMAP, COPIED_BUFFERS))
		errx(1, "the driver has no buffers that can be mapped");
}

static void create_stream(struct camera *camera, struct tshare_ctx *ctx,
			  const struct config *config)
{
	const struct v4l2_pix_format *format = &camera->format;
	bool in_place = camera->memory == V4L2_MEMORY_DMABUF;
	int64_t shape[] = { format->height, format->width, camera->pixels->channels };
	const struct tshare_spec fields[FIELDS] = {
		[FIELD_IMAGE] = { sizeof(*fields), "image", camera->pixels->dtype, 3, shape },
		[FIELD_FOURCC] = { sizeof(*fields), "fourcc", TSHARE_UINT32 },
	};
	const struct tshare_options region = {
		.size = sizeof(region),
		.flags = in_place ? config->region_flags : 0,
		.mode = 0640,
	};
	const struct tshare_stream_options options = {
		.size = sizeof(options),
		.slots = in_place ? camera->buffers : config->slots,
		.flags = config->stream_flags,
		.region = &region,
	};

	/* The camera may write all of sizeimage. */
	if (in_place) {
		shape[0] = (format->sizeimage + format->bytesperline - 1) / format->bytesperline;
		shape[1] = format->bytesperline / camera->pixel_size;
	}
	check(tshare_stream_create(ctx, config->name, fields, FIELDS, &options, &camera->stream));
}

/*
 * Between START and END the slot is the processors', and what is in their caches is what the
 * camera has written. The caches are the machine's: no reader has to do this.
 */
static void sync_slot(const struct camera *camera, uint32_t slot, uint64_t start_or_end)
{
	struct dma_buf_sync sync = { .flags = start_or_end | DMA_BUF_SYNC_READ };

	if (ioctl(camera->dmabufs[slot], DMA_BUF_IOCTL_SYNC, &sync))
		err(1, "DMA_BUF_IOCTL_SYNC");
}

static void export_slots(struct camera *camera)
{
	struct tshare_region *region = tshare_stream_get_region(camera->stream);
	struct tshare_tensor *slots;
	uint64_t start, size;
	uint32_t i;

	check(tshare_region_find_tensor(region, "image", &slots));
	start = tshare_tensor_get_byte_offset(slots);
	size = tshare_tensor_get_strides(slots)[0] *
	       tshare_dtype_get_itemsize(camera->pixels->dtype);
	tshare_tensor_unref(slots);
	for (i = 0; i < camera->buffers; i++) {
		check(tshare_region_export(region, start + i * size, size, 0, &camera->dmabufs[i]));
		sync_slot(camera, i, DMA_BUF_SYNC_START);
	}
}

static void map_buffers(struct camera *camera)
{
	struct v4l2_buffer buffer;
	uint32_t i;

	for (i = 0; i < camera->buffers; i++) {
		buffer = buffer_of(camera, i);
		if (ioctl(camera->fd, VIDIOC_QUERYBUF, &buffer))
			err(1, "VIDIOC_QUERYBUF");
		camera->maps[i] = mmap(NULL, buffer.length, PROT_READ, MAP_SHARED, camera->fd,
				       buffer.m.offset);
		if (camera->maps[i] == MAP_FAILED)
			err(1, "mmap");
		queue_buffer(camera, i);
	}
}

/* Returns NULL if no slot is free. */
static struct tshare_frame *loan(struct camera *camera)
{
	struct tshare_frame *frame;
	int error = tshare_stream_loan(camera->stream, 0, &frame);

	if (error == -ETIMEDOUT)
		return NULL;
	check(error);
	return frame;
}

static void queue_free_slots(struct camera *camera)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct tshare_frame *frame;

	while ((frame = loan(camera))) {
		check(tshare_frame_get_info(frame, &info));
		camera->loans[info.slot] = frame;
		sync_slot(camera, info.slot, DMA_BUF_SYNC_END);
		queue_buffer(camera, info.slot);
	}
}

static void *field_data(struct tshare_frame *frame, size_t field)
{
	struct tshare_tensor *tensor;
	void *data;

	check(tshare_frame_get_tensor(frame, field, &tensor));
	data = tshare_tensor_get_data(tensor);
	/* The frame keeps the slot. */
	tshare_tensor_unref(tensor);
	return data;
}

static struct tshare_frame *copy_buffer(struct camera *camera, uint32_t index)
{
	size_t row = (size_t)camera->format.width * camera->pixel_size;
	struct tshare_frame *frame = loan(camera);
	const char *source = camera->maps[index];
	char *image;
	size_t y;

	if (frame) {
		image = field_data(frame, FIELD_IMAGE);
		for (y = 0; y < camera->format.height; y++)
			memcpy(image + y * row, source + y * camera->format.bytesperline, row);
	}
	queue_buffer(camera, index);
	return frame;
}

/* Returns the frame of a buffer; NULL if there is no free slot to copy it to. */
static struct tshare_frame *take_buffer(struct camera *camera, uint32_t index)
{
	struct tshare_frame *frame;

	if (camera->memory == V4L2_MEMORY_MMAP)
		return copy_buffer(camera, index);
	sync_slot(camera, index, DMA_BUF_SYNC_START);
	frame = camera->loans[index];
	camera->loans[index] = NULL;
	return frame;
}

static void publish(const struct camera *camera, struct tshare_frame *frame,
		    const struct v4l2_buffer *buffer)
{
	const int64_t shape[] = { camera->format.height, camera->format.width,
				  camera->pixels->channels };
	struct tshare_frame_info info = {
		.size = sizeof(info),
		.sequence = buffer->sequence,
		.flags = buffer->flags,
	};

	if ((buffer->flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
		info.captured_ns = buffer->timestamp.tv_sec * 1000000000LL +
				   buffer->timestamp.tv_usec * 1000LL;
	*(uint32_t *)field_data(frame, FIELD_FOURCC) = camera->format.pixelformat;
	check(tshare_frame_set_info(frame, &info));
	check(tshare_frame_set_shape(frame, FIELD_IMAGE, shape));
	check(tshare_frame_publish(frame));
}

/* Signals come by a descriptor, and so interrupt no system call. */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		err(1, "sigprocmask");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		err(1, "signalfd");
	return fd;
}

/* The camera or the readers have done nothing for some time. */
static void report_standstill(const struct camera *camera)
{
	if (camera->queued)
		errx(1, "the camera has sent nothing for %d s", TIMEOUT_MS / 1000);
	/* The last loan's: it names who holds the slots. */
	warnx("%s", tshare_error_get());
}

/* Returns when a signal has come. */
static void capture(struct camera *camera, int signals)
{
	struct pollfd polled[] = {
		{ .fd = camera->fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	uint32_t damaged = 0, last = 0, idle_ms = 0;
	struct tshare_frame *frame;
	struct v4l2_buffer buffer;
	uint64_t published = 0;

	for (;;) {
		/* Readers give slots back meanwhile. */
		int ready = poll(polled, 2, POLL_MS);

		if (ready < 0)
			err(1, "poll");
		if (polled[1].revents)
			break;
		idle_ms = ready ? 0 : idle_ms + POLL_MS;
		if (idle_ms && idle_ms % TIMEOUT_MS == 0)
			report_standstill(camera);
		while (dequeue_buffer(camera, &buffer)) {
			last = buffer.sequence;
			frame = take_buffer(camera, buffer.index);
			if (buffer.flags & V4L2_BUF_FLAG_ERROR) {
				damaged++;
			} else if (frame) {
				publish(camera, frame, &buffer);
				published++;
			}
			/* A damaged one is abandoned. */
			tshare_frame_unref(frame);
		}
		if (camera->memory == V4L2_MEMORY_DMABUF)
			queue_free_slots(camera);
	}
	printf("camera: %" PRIu64 " frames; %u damaged ones left out; the last has number %u\n",
	       published, damaged, last);
}

static void parse_arguments(struct config *config, int argc, char **argv)
{
	bool valid = true;
	int option;

	*config = (struct config){ .slots = 8, .region_flags = TSHARE_CONTIGUOUS };
	while ((option = getopt(argc, argv, "n:4k")) != -1) {
		switch (option) {
		case 'n':
			valid &= sscanf(optarg, "%u", &config->slots) == 1 && config->slots >= 3 &&
				 config->slots <= VIDEO_MAX_FRAME;
			break;
		case '4':
			config->region_flags |= TSHARE_DMA32;
			break;
		case 'k':
			config->stream_flags |= TSHARE_KEEP_ALL;
			break;
		default:
			valid = false;
		}
	}
	if (!valid || optind != argc - 2)
		errx(2, "usage: camera [-n SLOTS] [-4] [-k] DEVICE NAME");
	config->device = argv[optind];
	config->name = argv[optind + 1];
}

/* After an error the kernel cleans up: it stops the camera, and removes names and memory. */
int main(int argc, char **argv)
{
	struct camera camera = { 0 };
	struct config config;
	struct tshare_ctx *ctx;
	uint32_t i;
	int signals;

	parse_arguments(&config, argc, argv);
	signals = open_signals();
	check(tshare_ctx_new(NULL, &ctx));
	open_camera(&camera, config.device);
	choose_memory(&camera, ctx, config.slots);
	create_stream(&camera, ctx, &config);
	if (camera.memory == V4L2_MEMORY_DMABUF) {
		export_slots(&camera);
		queue_free_slots(&camera);
	} else {
		map_buffers(&camera);
	}
	switch_camera(&camera, true);
	printf("camera: '%s' has %u slots of %ux%u %.4s\n", config.name,
	       camera.memory == V4L2_MEMORY_DMABUF ? camera.buffers : config.slots,
	       camera.format.width, camera.format.height, (const char *)&camera.format.pixelformat);
	fflush(stdout);
	capture(&camera, signals);

	check(tshare_stream_close(camera.stream, 0));
	switch_camera(&camera, false);
	for (i = 0; i < camera.buffers; i++)
		tshare_frame_unref(camera.loans[i]);
	tshare_stream_unref(camera.stream);
	tshare_ctx_unref(ctx);
	return 0;
}
