// SPDX-License-Identifier: MIT
/*
 * Has a V4L2 camera write its frames straight into a region, a ring of frames, which any
 * number of processes read while it runs. Stops at SIGINT and SIGTERM. camera.py is a
 * reader; Documentation/camera.rst explains both.
 *
 *	camera [-d DEVICE] [-s WIDTHxHEIGHT] [-n FRAMES] [-4] NAME
 *
 *	-d  the camera (default: /dev/video0)
 *	-s  picture size (default: as the camera is set; v4l2-ctl sets all the rest)
 *	-n  frames in the ring (default: 8; at most 32); the driver may demand more
 *	-4  put the ring below 4 GiB, for a device that has 32-bit addresses
 *
 * The region NAME holds these tensors:
 *
 *	frames   one picture for each place in the ring
 *	records  for generation g, in row g % len(records): the place of its frame, the camera's
 *	         sequence number, and the time in ns of CLOCK_MONOTONIC
 *	kept     frame g is not written again before generation g + kept
 *	fourcc   the pixel format
 *
 * Needs the module: only its regions have dma-bufs of their parts.
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
#include <sys/signalfd.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/videodev2.h>

#include <tshare.h>

#define TIMEOUT_MS 10000

/* A camera fills one buffer while another waits, unless its driver needs more. */
#define BUFFERS_NEEDED 2

struct config {
	const char *device;
	const char *name;
	uint32_t width;
	uint32_t height;
	uint32_t frames;
	bool dma32;
};

struct camera {
	int fd;
	struct v4l2_pix_format format;
	uint32_t needed;
};

/* At least as many as frames are kept. */
#define RECORDS VIDEO_MAX_FRAME

enum { RECORD_SLOT, RECORD_SEQUENCE, RECORD_TIME, RECORD_LEN };

/*
 * A slot is a place in the ring, and the number of the V4L2 buffer that is bound to it.
 * Half of the slots are kept for readers, the others are the camera's.
 */
struct ring {
	struct tshare_region *region;
	uint32_t slots;
	uint32_t kept;
	size_t slot_size;
	int dmabufs[VIDEO_MAX_FRAME];
	int64_t (*records)[RECORD_LEN];
	/* Of the newest frame, and the slot of each recent one: not read back from the region. */
	uint64_t generation;
	uint32_t slot_of[RECORDS];
};

/* How the pixels of a format lie in a row: an array of @channels elements each. */
static const struct pixels {
	uint32_t fourcc;
	struct tshare_dtype dtype;
	uint32_t channels;
} pixel_formats[] = {
	{ V4L2_PIX_FMT_YUYV, { 1, 8, 1 }, 2 },	{ V4L2_PIX_FMT_UYVY, { 1, 8, 1 }, 2 },
	{ V4L2_PIX_FMT_RGB24, { 1, 8, 1 }, 3 }, { V4L2_PIX_FMT_BGR24, { 1, 8, 1 }, 3 },
	{ V4L2_PIX_FMT_GREY, { 1, 8, 1 }, 1 },	{ V4L2_PIX_FMT_Y16, { 1, 16, 1 }, 1 },
};

static const struct pixels *find_pixels(uint32_t fourcc)
{
	for (size_t i = 0; i < sizeof(pixel_formats) / sizeof(pixel_formats[0]); i++)
		if (pixel_formats[i].fourcc == fourcc)
			return &pixel_formats[i];
	errx(1, "the camera's pixel format '%.4s' isn't supported (v4l2-ctl sets another)",
	     (const char *)&fourcc);
}

/* The camera */

static void open_camera(struct camera *camera, const struct config *config)
{
	struct v4l2_capability caps;
	struct v4l2_format format = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	struct v4l2_control needed = { .id = V4L2_CID_MIN_BUFFERS_FOR_CAPTURE };

	camera->fd = open(config->device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (camera->fd < 0)
		err(1, "%s", config->device);
	if (ioctl(camera->fd, VIDIOC_QUERYCAP, &caps))
		err(1, "%s: VIDIOC_QUERYCAP", config->device);
	if (~caps.device_caps & (V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING))
		errx(1, "%s: is no camera with the single-planar API", config->device);

	if (ioctl(camera->fd, VIDIOC_G_FMT, &format))
		err(1, "%s: VIDIOC_G_FMT", config->device);
	if (config->width) {
		format.fmt.pix.width = config->width;
		format.fmt.pix.height = config->height;
		/* For the driver to choose. */
		format.fmt.pix.bytesperline = 0;
	}
	/* Keeps the format from being changed by others, and stores what the driver made of it. */
	if (ioctl(camera->fd, VIDIOC_S_FMT, &format))
		err(1, "%s: VIDIOC_S_FMT", config->device);
	camera->format = format.fmt.pix;

	camera->needed = BUFFERS_NEEDED;
	if (!ioctl(camera->fd, VIDIOC_G_CTRL, &needed) && needed.value > BUFFERS_NEEDED)
		camera->needed = needed.value;
}

/* Returns the number of buffers, which is the driver's decision. */
static uint32_t request_buffers(const struct camera *camera, uint32_t count)
{
	struct v4l2_requestbuffers request = {
		.count = count,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
	};

	if (ioctl(camera->fd, VIDIOC_REQBUFS, &request))
		err(1, "VIDIOC_REQBUFS (can the driver import dma-bufs?)");
	return request.count;
}

static void stream(const struct camera *camera, bool on)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;

	if (ioctl(camera->fd, on ? VIDIOC_STREAMON : VIDIOC_STREAMOFF, &type))
		err(1, on ? "VIDIOC_STREAMON" : "VIDIOC_STREAMOFF");
}

/* The camera may write the slot from now on. */
static void queue_slot(const struct camera *camera, const struct ring *ring, uint32_t slot)
{
	struct v4l2_buffer buffer = {
		.index = slot,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
		.m.fd = ring->dmabufs[slot],
	};

	if (ioctl(camera->fd, VIDIOC_QBUF, &buffer))
		err(1, "VIDIOC_QBUF (can the camera reach the memory? see -4)");
}

/* Returns false if there is none after all. */
static bool dequeue(const struct camera *camera, struct v4l2_buffer *buffer)
{
	*buffer = (struct v4l2_buffer){
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
	};
	if (!ioctl(camera->fd, VIDIOC_DQBUF, buffer))
		return true;
	if (errno != EAGAIN)
		err(1, "VIDIOC_DQBUF");
	return false;
}

/* The ring */

/*
 * Between START and END the slot's frame is the processors', and what is in their caches
 * is what the camera has written. The caches are the machine's: no reader has to do this.
 */
static void sync_slot(const struct ring *ring, uint32_t slot, uint64_t start_or_end)
{
	struct dma_buf_sync sync = { .flags = start_or_end | DMA_BUF_SYNC_READ };

	if (ioctl(ring->dmabufs[slot], DMA_BUF_IOCTL_SYNC, &sync))
		err(1, "DMA_BUF_IOCTL_SYNC");
}

static void describe_frames(struct tshare_spec *spec, int64_t *shape, int64_t *strides,
			    const struct v4l2_pix_format *format, const struct ring *ring)
{
	const struct pixels *pixels = find_pixels(format->pixelformat);
	uint32_t itemsize = tshare_dtype_get_itemsize(pixels->dtype);

	if (format->bytesperline % itemsize ||
	    format->bytesperline < format->width * pixels->channels * itemsize ||
	    format->sizeimage < (uint64_t)format->bytesperline * format->height)
		errx(1, "the driver's format is inconsistent: %u bytes a row, %u a picture",
		     format->bytesperline, format->sizeimage);
	shape[0] = ring->slots;
	shape[1] = format->height;
	shape[2] = format->width;
	shape[3] = pixels->channels;
	strides[0] = ring->slot_size / itemsize;
	strides[1] = format->bytesperline / itemsize;
	strides[2] = pixels->channels;
	strides[3] = 1;
	*spec = (struct tshare_spec){
		.size = sizeof(*spec),
		.name = "frames",
		.dtype = pixels->dtype,
		.ndim = pixels->channels > 1 ? 4 : 3,
		.shape = shape,
		.strides = strides,
		.byte_offset = TSHARE_OFFSET_START,
	};
}

static void *tensor_data(struct tshare_region *region, const char *name)
{
	struct tshare_tensor *tensor;
	void *data;

	if (tshare_region_find_tensor(region, name, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	data = tshare_tensor_get_data(tensor);
	/* The region keeps the memory. */
	tshare_tensor_unref(tensor);
	return data;
}

static size_t get_page_size(struct tshare_ctx *ctx)
{
	struct tshare_limits limits = { .size = sizeof(limits) };

	if (tshare_ctx_get_limits(ctx, &limits) < 0)
		errx(1, "%s", tshare_error_get());
	if (!limits.dmabuf)
		errx(1, "needs the module tshare: regions in shared memory have no dma-bufs");
	return limits.page_size;
}

static void create_ring(struct ring *ring, struct tshare_ctx *ctx, const struct config *config,
			const struct v4l2_pix_format *format)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_DRAFT | TSHARE_CONTIGUOUS | (config->dma32 ? TSHARE_DMA32 : 0),
		.mode = 0640,
	};
	const int64_t records_shape[] = { RECORDS, RECORD_LEN };
	int64_t shape[4], strides[4];
	struct tshare_spec specs[] = {
		{ 0 },
		{ sizeof(specs[0]), "records", TSHARE_INT64, 2, records_shape, NULL, 0 },
		{ sizeof(specs[0]), "kept", TSHARE_UINT32, 0, NULL, NULL, 0 },
		{ sizeof(specs[0]), "fourcc", TSHARE_UINT32, 0, NULL, NULL, 0 },
	};

	describe_frames(&specs[0], shape, strides, format, ring);
	specs[1].byte_offset = ring->slots * ring->slot_size;
	if (tshare_region_create(ctx, config->name, 0, specs, sizeof(specs) / sizeof(specs[0]),
				 &options, &ring->region) < 0)
		errx(1, "%s", tshare_error_get());
	ring->records = tensor_data(ring->region, "records");
	*(uint32_t *)tensor_data(ring->region, "kept") = ring->kept;
	*(uint32_t *)tensor_data(ring->region, "fourcc") = format->pixelformat;

	for (uint32_t slot = 0; slot < ring->slots; slot++)
		if (tshare_region_export(ring->region, slot * ring->slot_size, ring->slot_size, 0,
					 &ring->dmabufs[slot]) < 0)
			errx(1, "%s", tshare_error_get());
}

/* Publishes the frame that the camera has written, and gives it the oldest kept one back. */
static void publish(const struct camera *camera, struct ring *ring, const struct v4l2_buffer *frame)
{
	uint64_t generation = ring->generation + 1;
	int64_t *record = ring->records[generation % RECORDS];

	sync_slot(ring, frame->index, DMA_BUF_SYNC_START);
	record[RECORD_SLOT] = frame->index;
	record[RECORD_SEQUENCE] = frame->sequence;
	record[RECORD_TIME] =
		frame->timestamp.tv_sec * 1000000000LL + frame->timestamp.tv_usec * 1000LL;
	ring->slot_of[generation % RECORDS] = frame->index;

	if (tshare_region_publish(ring->region, &ring->generation) < 0)
		errx(1, "%s", tshare_error_get());
	if (ring->generation != generation)
		errx(1, "another process has published in this region");

	/* Only now: readers compare the generation to find out whether a frame is still whole. */
	if (generation > ring->kept) {
		uint32_t oldest = ring->slot_of[(generation - ring->kept) % RECORDS];

		sync_slot(ring, oldest, DMA_BUF_SYNC_END);
		queue_slot(camera, ring, oldest);
	}
}

/*
 * Not before the first frame: a reader's wait ends with the publishers, and so would never
 * end if this process were killed before it had become one.
 */
static void show_ring(const struct ring *ring, const struct v4l2_pix_format *format)
{
	if (tshare_region_finish(ring->region, 0) < 0)
		errx(1, "%s", tshare_error_get());
	printf("camera: '%s' has %u frames of %ux%u %.4s; the last %u are kept\n",
	       tshare_region_get_name(ring->region), ring->slots, format->width, format->height,
	       (const char *)&format->pixelformat, ring->kept);
	fflush(stdout);
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

/* Returns when a signal has come. */
static void capture(const struct camera *camera, struct ring *ring, int signals)
{
	struct pollfd polled[] = {
		{ .fd = camera->fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	uint32_t damaged = 0, last = 0;
	struct v4l2_buffer buffer;

	for (;;) {
		int ready = poll(polled, 2, TIMEOUT_MS);

		if (ready < 0)
			err(1, "poll");
		if (!ready)
			errx(1, "the camera has sent nothing for %d s", TIMEOUT_MS / 1000);
		if (polled[1].revents)
			break;
		if (!dequeue(camera, &buffer))
			continue;
		last = buffer.sequence;
		if (buffer.flags & V4L2_BUF_FLAG_ERROR) {
			damaged++;
			queue_slot(camera, ring, buffer.index);
		} else {
			publish(camera, ring, &buffer);
			if (ring->generation == 1)
				show_ring(ring, &camera->format);
		}
	}
	printf("camera: %" PRIu64 " frames; %u damaged ones left out; the last has number %u\n",
	       ring->generation, damaged, last);
}

static void parse_arguments(struct config *config, int argc, char **argv)
{
	bool valid = true;
	int option;

	*config = (struct config){ .device = "/dev/video0", .frames = 8 };
	while ((option = getopt(argc, argv, "d:s:n:4")) != -1) {
		switch (option) {
		case 'd':
			config->device = optarg;
			break;
		case 's':
			valid &= sscanf(optarg, "%ux%u", &config->width, &config->height) == 2;
			break;
		case 'n':
			valid &= sscanf(optarg, "%u", &config->frames) == 1 &&
				 config->frames <= VIDEO_MAX_FRAME;
			break;
		case '4':
			config->dma32 = true;
			break;
		default:
			valid = false;
		}
	}
	config->name = argv[optind];
	if (!valid || optind != argc - 1)
		errx(2, "usage: camera [-d DEVICE] [-s WIDTHxHEIGHT] [-n FRAMES] [-4] NAME");
}

/* After an error the kernel cleans up: it stops the camera, and removes name and memory. */
int main(int argc, char **argv)
{
	struct ring ring = { 0 };
	struct tshare_ctx *ctx;
	struct camera camera;
	struct config config;
	size_t page;
	int signals;

	parse_arguments(&config, argc, argv);
	signals = open_signals();
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	page = get_page_size(ctx);

	open_camera(&camera, &config);
	ring.slots = config.frames > 2 * camera.needed ? config.frames : 2 * camera.needed;
	ring.slots = request_buffers(&camera, ring.slots);
	ring.kept = ring.slots / 2;
	if (ring.slots - ring.kept < camera.needed || ring.slots > VIDEO_MAX_FRAME)
		errx(1, "%s: the driver has %u buffers", config.device, ring.slots);
	/* A dma-buf is whole pages, and a camera may write all of sizeimage. */
	ring.slot_size = (camera.format.sizeimage + page - 1) / page * page;
	create_ring(&ring, ctx, &config, &camera.format);

	for (uint32_t slot = 0; slot < ring.slots; slot++)
		queue_slot(&camera, &ring, slot);
	stream(&camera, true);
	capture(&camera, &ring, signals);

	stream(&camera, false);
	request_buffers(&camera, 0);
	for (uint32_t slot = 0; slot < ring.slots; slot++)
		close(ring.dmabufs[slot]);
	close(camera.fd);
	tshare_region_unref(ring.region);
	tshare_ctx_unref(ctx);
	return 0;
}
