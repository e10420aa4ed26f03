// SPDX-License-Identifier: MIT
/*
 * Has the kernel put the packets of a network interface into a region, a ring of packets, which
 * any number of processes read while it runs. Stops at SIGINT and SIGTERM. packets.py is a
 * reader.
 *
 *	packets INTERFACE NAME
 *
 * By AF_XDP, packets of the interface's first queue go to the region instead of the kernel's own
 * network code. The program needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
 *
 * The region NAME holds these tensors:
 *
 *	packets  (256, 2048) bytes: a chunk for each packet
 *	records  for generation g, in row g % len(records): the chunk of its packet, where in the
 *	         chunk that begins, and its length
 *	kept     packet g is not written again before generation g + kept
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>

#include <tshare.h>

#define CHUNK_SIZE 2048UL
#define CHUNKS	   256

/* Half of the chunks are kept for readers, the others are the kernel's. */
#define KEPT (CHUNKS / 2)

#define RECORDS CHUNKS

enum { RECORD_CHUNK, RECORD_OFFSET, RECORD_LENGTH, RECORD_LEN };

/* A ring that the kernel shares: entries [consumer, producer), modulo CHUNKS. */
struct queue {
	uint32_t *producer;
	uint32_t *consumer;
	void *entries;
};

struct ring {
	struct tshare_region *region;
	uint8_t *packets;
	int64_t (*records)[RECORD_LEN];
	uint64_t generation;
	/* The chunk of each recent packet: not read back from the region. */
	uint64_t chunk_of[RECORDS];
	/* Chunks that the kernel may write, and chunks that it has written. */
	struct queue fill;
	struct queue received;
	int sock;
};

/* The region */

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

static void create_ring(struct ring *ring, struct tshare_ctx *ctx, const char *name)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_DRAFT,
		.mode = 0640,
	};
	const int64_t packets_shape[] = { CHUNKS, CHUNK_SIZE };
	const int64_t records_shape[] = { RECORDS, RECORD_LEN };
	const struct tshare_spec specs[] = {
		{ sizeof(specs[0]), "packets", TSHARE_UINT8, 2, packets_shape, NULL,
		  TSHARE_OFFSET_START },
		{ sizeof(specs[0]), "records", TSHARE_INT64, 2, records_shape, NULL, 0 },
		{ sizeof(specs[0]), "kept", TSHARE_UINT32, 0, NULL, NULL, 0 },
	};

	if (tshare_region_create(ctx, name, 0, specs, sizeof(specs) / sizeof(specs[0]), &options,
				 &ring->region) < 0)
		errx(1, "%s", tshare_error_get());
	ring->packets = tensor_data(ring->region, "packets");
	ring->records = tensor_data(ring->region, "records");
	*(uint32_t *)tensor_data(ring->region, "kept") = KEPT;
}

/* The socket, whose memory is the tensor of packets */

static void map_queue(struct queue *queue, int sock, int option, const struct xdp_ring_offset *at,
		      off_t offset, size_t entry_size)
{
	int entries = CHUNKS;
	char *data;

	if (setsockopt(sock, SOL_XDP, option, &entries, sizeof(entries)))
		err(1, "AF_XDP");
	data = mmap(NULL, at->desc + CHUNKS * entry_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE, sock, offset);
	if (data == MAP_FAILED)
		err(1, "mmap");
	queue->producer = (uint32_t *)(data + at->producer);
	queue->consumer = (uint32_t *)(data + at->consumer);
	queue->entries = data + at->desc;
}

static void open_socket(struct ring *ring)
{
	const struct xdp_umem_reg memory = {
		.addr = (uintptr_t)ring->packets,
		.len = CHUNKS * CHUNK_SIZE,
		.chunk_size = CHUNK_SIZE,
	};
	int completions = CHUNKS;
	struct xdp_mmap_offsets at;
	socklen_t size = sizeof(at);

	ring->sock = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (ring->sock < 0)
		err(1, "AF_XDP");
	if (setsockopt(ring->sock, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)))
		err(1, "XDP_UMEM_REG");
	/* Nothing is sent, but without this ring there is no memory for the kernel. */
	if (setsockopt(ring->sock, SOL_XDP, XDP_UMEM_COMPLETION_RING, &completions,
		       sizeof(completions)) ||
	    getsockopt(ring->sock, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size))
		err(1, "AF_XDP");
	map_queue(&ring->fill, ring->sock, XDP_UMEM_FILL_RING, &at.fr, XDP_UMEM_PGOFF_FILL_RING,
		  sizeof(uint64_t));
	map_queue(&ring->received, ring->sock, XDP_RX_RING, &at.rx, XDP_PGOFF_RX_RING,
		  sizeof(struct xdp_desc));
}

static void bind_socket(const struct ring *ring, const char *name, uint32_t interface)
{
	const struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP,
		.sxdp_ifindex = interface,
	};

	if (bind(ring->sock, (const struct sockaddr *)&address, sizeof(address)))
		err(1, "%s", name);
}

/* The program that the kernel runs for each packet */

static int call_bpf(enum bpf_cmd command, union bpf_attr *attr, const char *what)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (result < 0)
		err(1, "%s", what);
	return (int)result;
}

/* The socket for each of the interface's queues: only the first has one. */
static int create_socket_map(const struct ring *ring)
{
	uint32_t queue = 0, sock = ring->sock;
	union bpf_attr create = {
		.map_type = BPF_MAP_TYPE_XSKMAP,
		.key_size = sizeof(queue),
		.value_size = sizeof(sock),
		.max_entries = 1,
	};
	int map = call_bpf(BPF_MAP_CREATE, &create, "BPF_MAP_CREATE");
	union bpf_attr update = {
		.map_fd = map,
		.key = (uintptr_t)&queue,
		.value = (uintptr_t)&sock,
	};

	call_bpf(BPF_MAP_UPDATE_ELEM, &update, "BPF_MAP_UPDATE_ELEM");
	return map;
}

/*
 * return bpf_redirect_map(map, ctx->rx_queue_index, XDP_PASS);
 *
 * The kernel detaches it when this process ends.
 */
static void attach_program(int map, const char *name, uint32_t interface)
{
	static const char license[] = "GPL";
	const struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(code[0]),
		.license = (uintptr_t)license,
	};
	union bpf_attr attach = {
		.link_create = {
			.prog_fd = call_bpf(BPF_PROG_LOAD, &load, "BPF_PROG_LOAD"),
			.target_ifindex = interface,
			.attach_type = BPF_XDP,
		},
	};

	call_bpf(BPF_LINK_CREATE, &attach, name);
}

/* Packets */

/* The kernel may write the chunk from now on. */
static void give_chunk(struct queue *fill, uint64_t chunk)
{
	uint32_t producer = *fill->producer;

	((uint64_t *)fill->entries)[producer % CHUNKS] = chunk * CHUNK_SIZE;
	__atomic_store_n(fill->producer, producer + 1, __ATOMIC_RELEASE);
}

/* Publishes a packet, and gives the kernel the chunk of the oldest kept one. */
static void publish(struct ring *ring, const struct xdp_desc *desc)
{
	uint64_t generation = ring->generation + 1;
	uint64_t chunk = desc->addr / CHUNK_SIZE;
	int64_t *record = ring->records[generation % RECORDS];

	record[RECORD_CHUNK] = (int64_t)chunk;
	record[RECORD_OFFSET] = (int64_t)(desc->addr % CHUNK_SIZE);
	record[RECORD_LENGTH] = desc->len;
	ring->chunk_of[generation % RECORDS] = chunk;

	if (tshare_region_publish(ring->region, &ring->generation) < 0)
		errx(1, "%s", tshare_error_get());
	if (ring->generation != generation)
		errx(1, "another process has published in this region");

	/* Only now: readers compare the generation to find out whether a packet is still whole. */
	if (generation > KEPT)
		give_chunk(&ring->fill, ring->chunk_of[(generation - KEPT) % RECORDS]);
}

/* A reader's wait ends with the publishers; so readers come when there is one. */
static void show_ring(const struct ring *ring)
{
	if (tshare_region_finish(ring->region, 0) < 0)
		errx(1, "%s", tshare_error_get());
	printf("packets: '%s' has the last %d packets\n", tshare_region_get_name(ring->region),
	       KEPT);
	fflush(stdout);
}

static void receive(struct ring *ring)
{
	struct queue *received = &ring->received;
	uint32_t consumer = *received->consumer;

	while (consumer != __atomic_load_n(received->producer, __ATOMIC_ACQUIRE)) {
		publish(ring, (struct xdp_desc *)received->entries + consumer % CHUNKS);
		if (ring->generation == 1)
			show_ring(ring);
		__atomic_store_n(received->consumer, ++consumer, __ATOMIC_RELEASE);
	}
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

static void run(struct ring *ring, int signals)
{
	struct pollfd polled[] = {
		{ .fd = ring->sock, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	for (;;) {
		if (poll(polled, 2, -1) < 0)
			err(1, "poll");
		if (polled[1].revents)
			break;
		receive(ring);
	}
	printf("packets: %" PRIu64 " packets\n", ring->generation);
}

/* After an error the kernel cleans up: it detaches the program, and removes name and memory. */
int main(int argc, char **argv)
{
	struct ring ring = { 0 };
	struct tshare_ctx *ctx;
	uint32_t interface;
	int signals;

	if (argc != 3)
		errx(2, "usage: packets INTERFACE NAME");
	interface = if_nametoindex(argv[1]);
	if (!interface)
		err(1, "%s", argv[1]);
	signals = open_signals();
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	create_ring(&ring, ctx, argv[2]);
	open_socket(&ring);
	for (uint64_t chunk = 0; chunk < CHUNKS; chunk++)
		give_chunk(&ring.fill, chunk);
	bind_socket(&ring, argv[1], interface);
	attach_program(create_socket_map(&ring), argv[1], interface);
	printf("packets: waiting for the first packet at %s\n", argv[1]);
	fflush(stdout);
	run(&ring, signals);

	tshare_region_unref(ring.region);
	tshare_ctx_unref(ctx);
	return 0;
}
