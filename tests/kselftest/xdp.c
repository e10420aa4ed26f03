// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets arrive in a region, and leave from it, by AF_XDP.
 *
 * The network is a pair of veth interfaces in a namespace of its own. A program for the
 * kernel's BPF machine directs what arrives at one of them to the socket.
 */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "harness.h"

#define SIZE (4 * MIB)

/* The socket's memory: chunks of a part of the region. */
#define UMEM_OFFSET (MIB + PAGE)
#define UMEM_SIZE (64 * CHUNK)
#define CHUNK 2048ULL
#define RING_ENTRIES 64
#define PACKETS 32
#define PACKET_SIZE 1024

/* For experiments within one network. */
#define ETHERTYPE 0x88b5

static void __attribute__((constructor)) need_xdp(void)
{
	int sock = socket(AF_XDP, SOCK_RAW, 0);

	if (sock < 0)
		ksft_exit_skip("the kernel has no AF_XDP\n");
	close(sock);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	int ret = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return ret < 0 ? -errno : ret;
}

/* The socket of each queue. */
static int create_socket_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_XSKMAP,
		.key_size = sizeof(__u32),
		.value_size = sizeof(__u32),
		.max_entries = 1,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

static int set_socket(int map, int sock)
{
	__u32 key = 0, value = sock;
	union bpf_attr attr = {
		.map_fd = map,
		.key = (uintptr_t)&key,
		.value = (uintptr_t)&value,
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* return bpf_redirect_map(map, ctx->rx_queue_index, XDP_PASS); */
static int load_program(int map)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct xdp_md, rx_queue_index) },
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{},
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)code,
		.insn_cnt = ARRAY_SIZE(code),
		.license = (uintptr_t)"GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach_program(int program, int interface)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = program,
			.target_ifindex = interface,
			.attach_type = BPF_XDP,
			.flags = XDP_FLAGS_SKB_MODE,
		},
	};

	return bpf(BPF_LINK_CREATE, &attr);
}

/* One of the socket's four rings, of addresses or of descriptors. */
struct queue {
	__u32 *producer;
	__u32 *consumer;
	void *entries;
};

static int map_queue(struct queue *queue, int sock, int option, const struct xdp_ring_offset *at,
		     off_t offset, size_t entry_size)
{
	int entries = RING_ENTRIES;
	char *mem;

	if (setsockopt(sock, SOL_XDP, option, &entries, sizeof(entries)))
		return -errno;
	mem = mmap(NULL, at->desc + RING_ENTRIES * entry_size, RW, MAP_SHARED | MAP_POPULATE,
		   sock, offset);
	if (mem == MAP_FAILED)
		return -errno;
	*queue = (struct queue){
		.producer = (__u32 *)(mem + at->producer),
		.consumer = (__u32 *)(mem + at->consumer),
		.entries = mem + at->desc,
	};
	return 0;
}

FIXTURE(xdp)
{
	int dev;
	int rw;
	char *mem;
	/* As another process sees it. */
	const char *seen;
	int sock;
	int peer;
	int interface;
	int peer_interface;
	struct queue fill, completion, rx, tx;
};

static int register_memory(int sock, void *mem)
{
	struct xdp_umem_reg args = {
		.addr = (uintptr_t)mem,
		.len = UMEM_SIZE,
		.chunk_size = CHUNK,
	};

	return setsockopt(sock, SOL_XDP, XDP_UMEM_REG, &args, sizeof(args)) ? -errno : 0;
}

/* Two interfaces that lead to each other, and send nothing on their own, as IPv6 would. */
static int make_interfaces(void)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	return system("cd /proc/sys/net/ipv6/conf/default || exit 0; echo 1 >disable_ipv6") ||
	       system("ip link add tshare0 type veth peer name tshare1") ||
	       system("ip link set tshare0 up") || system("ip link set tshare1 up");
}

static int open_peer(int interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE),
		.sll_ifindex = interface,
	};
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETHERTYPE));

	return bind(sock, (struct sockaddr *)&address, sizeof(address)) ? -errno : sock;
}

/* Binds the socket to the interface's only queue, with copies, as veth has no other way. */
static int bind_socket(int sock, int interface)
{
	struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP,
		.sxdp_ifindex = interface,
		.sxdp_flags = XDP_COPY,
	};

	return bind(sock, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

FIXTURE_SETUP(xdp)
{
	struct xdp_mmap_offsets at;
	socklen_t len = sizeof(at);
	int sockets;

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, SIZE, NULL);
	self->mem = map_aligned(self->rw, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->seen = map(open_id(self->dev, id_of(self->dev, self->rw), 0), SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, self->seen);

	ASSERT_EQ(0, make_interfaces());
	self->interface = if_nametoindex("tshare0");
	self->peer = open_peer(if_nametoindex("tshare1"));
	ASSERT_LE(0, self->peer);

	self->sock = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	ASSERT_LE(0, self->sock);
	ASSERT_EQ(0, register_memory(self->sock, self->mem + UMEM_OFFSET));
	ASSERT_EQ(0, getsockopt(self->sock, SOL_XDP, XDP_MMAP_OFFSETS, &at, &len));
	ASSERT_EQ(0, map_queue(&self->fill, self->sock, XDP_UMEM_FILL_RING, &at.fr,
			       XDP_UMEM_PGOFF_FILL_RING, sizeof(__u64)));
	ASSERT_EQ(0, map_queue(&self->completion, self->sock, XDP_UMEM_COMPLETION_RING, &at.cr,
			       XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(__u64)));
	ASSERT_EQ(0, map_queue(&self->rx, self->sock, XDP_RX_RING, &at.rx, XDP_PGOFF_RX_RING,
			       sizeof(struct xdp_desc)));
	ASSERT_EQ(0, map_queue(&self->tx, self->sock, XDP_TX_RING, &at.tx, XDP_PGOFF_TX_RING,
			       sizeof(struct xdp_desc)));
	ASSERT_EQ(0, bind_socket(self->sock, self->interface));
	sockets = create_socket_map();
	ASSERT_LE(0, sockets);
	ASSERT_EQ(0, set_socket(sockets, self->sock));
	ASSERT_LE(0, attach_program(load_program(sockets), self->interface));
}

FIXTURE_TEARDOWN(xdp)
{
	close(self->sock);
	close(self->peer);
	munmap(self->mem, SIZE);
	close(self->rw);
	close(self->dev);
}

struct packet {
	struct ethhdr header;
	char pad[2];
	__u64 words[(PACKET_SIZE - 16) / 8];
};

static struct packet make_packet(__u64 seed)
{
	struct packet packet = {
		.header = {
			.h_dest = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
			.h_source = { 2, 0, 0, 0, 0, 1 },
			.h_proto = htons(ETHERTYPE),
		},
	};

	fill(packet.words, sizeof(packet.words), seed);
	return packet;
}

/* Gives every second chunk to the socket. */
static void give_chunks(struct queue *fill)
{
	__u64 *addresses = fill->entries;
	__u32 i;

	for (i = 0; i < PACKETS; i++)
		addresses[i] = 2 * i * CHUNK;
	__atomic_store_n(fill->producer, PACKETS, __ATOMIC_RELEASE);
}

static bool send_packets(int peer)
{
	__u32 i;

	for (i = 0; i < PACKETS; i++) {
		struct packet packet = make_packet(i);

		if (send(peer, &packet, sizeof(packet), 0) != sizeof(packet))
			return false;
	}
	return true;
}

/* Waits until the socket has produced @count entries. */
static bool wait_for(int sock, const struct queue *queue, short events, __u32 count)
{
	struct pollfd polled = { .fd = sock, .events = events };
	int tries;

	for (tries = 0; tries < 3000; tries++) {
		if (__atomic_load_n(queue->producer, __ATOMIC_ACQUIRE) >= count)
			return true;
		/* Packets that are there already don't count as news. */
		poll(&polled, 1, 10);
		usleep(1000);
	}
	return false;
}

static bool is_packet(const void *data, __u64 seed)
{
	struct packet packet = make_packet(seed);

	return !memcmp(data, &packet, sizeof(packet));
}

TEST_F(xdp, packets_arrive_in_the_region)
{
	const struct xdp_desc *descs = self->rx.entries;
	const char *umem = self->seen + UMEM_OFFSET;
	__u32 i;

	give_chunks(&self->fill);
	ASSERT_TRUE(send_packets(self->peer));
	ASSERT_TRUE(wait_for(self->sock, &self->rx, POLLIN, PACKETS));
	for (i = 0; i < PACKETS; i++) {
		EXPECT_EQ(sizeof(struct packet), descs[i].len);
		EXPECT_EQ(2 * i, descs[i].addr / CHUNK);
		EXPECT_TRUE(is_packet(umem + descs[i].addr, i));
		/* The next chunk is nobody's. */
		EXPECT_TRUE(zeroed(umem + (2 * i + 1) * CHUNK, CHUNK));
	}
	EXPECT_TRUE(zeroed(self->seen, UMEM_OFFSET));
	EXPECT_TRUE(zeroed(umem + UMEM_SIZE, SIZE - UMEM_OFFSET - UMEM_SIZE));
}

TEST_F(xdp, packets_leave_from_the_region)
{
	struct xdp_desc *descs = self->tx.entries;
	struct packet packet;
	__u32 i;

	for (i = 0; i < PACKETS; i++) {
		descs[i] = (struct xdp_desc){ .addr = i * CHUNK + 256, .len = sizeof(packet) };
		packet = make_packet(i);
		memcpy(self->mem + UMEM_OFFSET + descs[i].addr, &packet, sizeof(packet));
	}
	__atomic_store_n(self->tx.producer, PACKETS, __ATOMIC_RELEASE);
	/* The kernel takes some at a time. */
	for (i = 0; i < 1000 && __atomic_load_n(self->tx.consumer, __ATOMIC_ACQUIRE) < PACKETS; i++)
		sendto(self->sock, NULL, 0, MSG_DONTWAIT, NULL, 0);
	for (i = 0; i < PACKETS; i++) {
		ASSERT_EQ(sizeof(packet), (size_t)recv(self->peer, &packet, sizeof(packet), 0));
		EXPECT_TRUE(is_packet(&packet, i));
	}
	EXPECT_TRUE(wait_for(self->sock, &self->completion, POLLOUT, PACKETS));
}

TEST_F(xdp, memory_that_is_read_only_is_refused)
{
	int sock = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	ASSERT_LE(0, sock);
	EXPECT_EQ(-EFAULT, register_memory(sock, (char *)self->seen));
	EXPECT_EQ(0, register_memory(sock, self->mem));
	close(sock);
}

TEST_F(xdp, packets_arrive_though_the_mapping_is_gone)
{
	const struct xdp_desc *descs = self->rx.entries;
	__u32 i;

	munmap(self->mem, SIZE);
	close(self->rw);
	self->rw = -1;
	give_chunks(&self->fill);
	ASSERT_TRUE(send_packets(self->peer));
	ASSERT_TRUE(wait_for(self->sock, &self->rx, POLLIN, PACKETS));
	for (i = 0; i < PACKETS; i++)
		EXPECT_TRUE(is_packet(self->seen + UMEM_OFFSET + descs[i].addr, i));
}

TEST_HARNESS_MAIN
