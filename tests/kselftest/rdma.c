// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA from region to region: soft RoCE registers their mappings.
 *
 * Both ends are processes of this machine, with a region each, on one device, over one of two
 * veth interfaces.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>

#include "harness.h"
#include "release.h"

#define DEVICE_NAME "tshare-rxe"
#define ADDRESS "198.51.100.1"
#define SIZE (4 * MIB + 3 * PAGE)

/* What is moved, from and to where: into two large entries, and at no page's start. */
#define FROM (MIB + 512)
#define TO (2 * MIB - 3 * PAGE - 64)
#define MOVED (256 * KIB + 1024)

static void __attribute__((constructor)) need_rdma(void)
{
	if (access("/sys/module/rdma_rxe", F_OK))
		ksft_exit_skip("the kernel has no soft RoCE\n");
}

static const char *const commands[] = {
	"ip link add tshare-rdma type veth peer name tshare-peer",
	"ip addr add " ADDRESS "/24 dev tshare-rdma",
	"ip link set tshare-rdma up",
	"ip link set tshare-peer up",
	"rdma link add " DEVICE_NAME " type rxe netdev tshare-rdma",
};

/* For all tests. It stays for the programs after this one, which don't look. */
static void __attribute__((constructor)) make_device(void)
{
	size_t i;

	if (!access("/sys/class/infiniband/" DEVICE_NAME, F_OK) ||
	    access("/sys/module/rdma_rxe", F_OK))
		return;
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (system(commands[i]))
			ksft_exit_fail_msg("failed: %s\n", commands[i]);
}

/* One end: a process's region, and its connection to the other. */
struct end {
	int dev;
	int fd;
	char *mem;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	int gid_index;
};

/* What each end has to know of the other. */
struct address {
	union ibv_gid gid;
	__u64 mem;
	__u32 key;
	__u32 qp;
};

static struct ibv_context *open_rdma(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL), **device;
	struct ibv_context *ctx = NULL;

	for (device = devices; devices && *device && !ctx; device++)
		if (!strcmp(ibv_get_device_name(*device), DEVICE_NAME))
			ctx = ibv_open_device(*device);
	ibv_free_device_list(devices);
	return ctx;
}

/* The index of the interface's IPv4 address, which comes some time after it was set. */
static bool find_gid(struct end *end)
{
	struct in_addr address, found;
	int tries, index;

	inet_pton(AF_INET, ADDRESS, &address);
	for (tries = 0; tries < 1000; tries++) {
		for (index = 0; !ibv_query_gid(end->ctx, 1, index, &end->gid); index++) {
			memcpy(&found, end->gid.raw + 12, sizeof(found));
			end->gid_index = index;
			if (found.s_addr == address.s_addr)
				return true;
		}
		usleep(10000);
	}
	return false;
}

static bool make_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	end->cq = ibv_create_cq(end->ctx, 4, NULL, NULL, 0);
	if (!end->cq)
		return false;
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &attr);
	return end->qp && !ibv_modify_qp(end->qp, &init,
					 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS);
}

/* A region that is filled with the pattern of @seed, and nothing registered of it yet. */
static bool open_end(struct end *end, __u64 seed)
{
	*end = (struct end){ .dev = open_device() };
	end->fd = create(end->dev, SIZE, NULL);
	end->mem = map_aligned(end->fd, SIZE, RW);
	if (end->mem == MAP_FAILED)
		return false;
	fill(end->mem, SIZE, seed);
	end->ctx = open_rdma();
	end->pd = end->ctx ? ibv_alloc_pd(end->ctx) : NULL;
	return end->pd && find_gid(end) && make_qp(end);
}

static void close_end(struct end *end)
{
	if (end->qp)
		ibv_destroy_qp(end->qp);
	if (end->cq)
		ibv_destroy_cq(end->cq);
	if (end->mr)
		ibv_dereg_mr(end->mr);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
	if (end->ctx)
		ibv_close_device(end->ctx);
	munmap(end->mem, SIZE);
	close(end->fd);
	close(end->dev);
}

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int register_memory(struct end *end, void *mem, int access)
{
	end->mr = ibv_reg_mr(end->pd, mem, SIZE, access);
	return end->mr ? 0 : -errno;
}

/* Tells the other end where this one is, and connects to it. */
static bool connect_end(struct end *end, int sock)
{
	struct address ours = {
		.gid = end->gid,
		.mem = (uintptr_t)end->mr->addr,
		.key = end->mr->rkey,
		.qp = end->qp->qp_num,
	};
	struct address *theirs = end->qp->qp_context = malloc(sizeof(*theirs));
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .sgid_index = end->gid_index, .hop_limit = 1 },
		},
	};
	/* Emulated processors are slow to answer. */
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (write(sock, &ours, sizeof(ours)) != sizeof(ours) ||
	    read(sock, theirs, sizeof(*theirs)) != sizeof(*theirs))
		return false;
	rtr.dest_qp_num = theirs->qp;
	rtr.ah_attr.grh.dgid = theirs->gid;
	return !ibv_modify_qp(end->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER) &&
	       !ibv_modify_qp(end->qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Moves MOVED bytes between @at of this end's region and @there of the other's. */
static enum ibv_wc_status transfer(struct end *end, enum ibv_wr_opcode opcode, size_t at,
				   size_t there)
{
	const struct address *theirs = end->qp->qp_context;
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->mr->addr + at,
		.length = MOVED,
		.lkey = end->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = theirs->mem + there, .rkey = theirs->key },
	}, *bad;
	struct ibv_wc wc = { .status = IBV_WC_FATAL_ERR };
	int tries;

	if (ibv_post_send(end->qp, &wr, &bad))
		return IBV_WC_GENERAL_ERR;
	for (tries = 0; tries < 60000 && !ibv_poll_cq(end->cq, 1, &wc); tries++)
		usleep(1000);
	return wc.status;
}

/* Are MOVED bytes at @at those of the other's pattern from @there on, and all others its own? */
static bool moved(const char *mem, __u64 seed, size_t at, __u64 other_seed, size_t there)
{
	char *ours = malloc(SIZE), *theirs = malloc(SIZE);
	bool same;

	fill(ours, SIZE, seed);
	fill(theirs, SIZE, other_seed);
	memcpy(ours + at, theirs + there, MOVED);
	same = !memcmp(mem, ours, SIZE);
	free(ours);
	free(theirs);
	return same;
}

FIXTURE(rdma)
{
	struct end end;
	int sock;
	pid_t other;
};

/* The other process: all may be done with its memory. It ends with whether that was written. */
static void be_other(int sock)
{
	struct end end;
	char written;

	if (!open_end(&end, 2) || register_memory(&end, end.mem, ALL_ACCESS) ||
	    !connect_end(&end, sock) || write(sock, "", 1) != 1 || read(sock, &written, 1) != 1)
		_exit(2);
	_exit(!(written ? moved(end.mem, 2, TO, 1, FROM) : filled(end.mem, SIZE, 2)));
}

FIXTURE_SETUP(rdma)
{
	int socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	self->sock = socks[0];
	fflush(NULL);
	self->other = fork();
	if (!self->other) {
		close(socks[0]);
		be_other(socks[1]);
	}
	close(socks[1]);
	ASSERT_TRUE(open_end(&self->end, 1));
}

FIXTURE_TEARDOWN(rdma)
{
	close(self->sock);
	kill(self->other, SIGKILL);
	waitpid(self->other, NULL, 0);
	close_end(&self->end);
}

/* Does the other process find what it should? */
static bool other_agrees(int sock, pid_t other, char written)
{
	int status;

	return write(sock, &written, 1) == 1 && waitpid(other, &status, 0) == other && !status;
}

static bool connect_both(struct end *end, int sock)
{
	char byte;

	return connect_end(end, sock) && read(sock, &byte, 1) == 1;
}

TEST_F(rdma, writes_from_region_to_region)
{
	ASSERT_EQ(0, register_memory(&self->end, self->end.mem, ALL_ACCESS));
	ASSERT_TRUE(connect_both(&self->end, self->sock));
	EXPECT_EQ(IBV_WC_SUCCESS, transfer(&self->end, IBV_WR_RDMA_WRITE, FROM, TO));
	EXPECT_TRUE(filled(self->end.mem, SIZE, 1));
	EXPECT_TRUE(other_agrees(self->sock, self->other, 1));
}

TEST_F(rdma, reads_from_region_to_region)
{
	ASSERT_EQ(0, register_memory(&self->end, self->end.mem, ALL_ACCESS));
	ASSERT_TRUE(connect_both(&self->end, self->sock));
	EXPECT_EQ(IBV_WC_SUCCESS, transfer(&self->end, IBV_WR_RDMA_READ, TO, FROM));
	EXPECT_TRUE(moved(self->end.mem, 1, TO, 2, FROM));
	EXPECT_TRUE(other_agrees(self->sock, self->other, 0));
}

static char *map_read_only(struct end *end)
{
	return map_aligned(open_id(end->dev, id_of(end->dev, end->fd), 0), SIZE, PROT_READ);
}

TEST_F(rdma, read_only_region_is_not_registered_for_writing)
{
	static const int writing[] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		ALL_ACCESS,
	};
	char *mem = map_read_only(&self->end);
	size_t i;

	ASSERT_NE(MAP_FAILED, mem);
	for (i = 0; i < ARRAY_SIZE(writing); i++)
		EXPECT_EQ(-EFAULT, register_memory(&self->end, mem, writing[i]));
}

/* Up to 6.1 soft RoCE wants to write whatever it registers; no file's pages give it that. */
TEST_F(rdma, read_only_region_is_registered_for_reading_from_6_2_on)
{
	char *mem = map_read_only(&self->end);
	int err;

	ASSERT_NE(MAP_FAILED, mem);
	err = register_memory(&self->end, mem, IBV_ACCESS_REMOTE_READ);
	if (kernel_is_before(6, 2)) {
		EXPECT_EQ(-EFAULT, err);
		return;
	}
	ASSERT_EQ(0, err);
	ASSERT_TRUE(connect_both(&self->end, self->sock));
	EXPECT_EQ(IBV_WC_SUCCESS, transfer(&self->end, IBV_WR_RDMA_WRITE, FROM, TO));
	EXPECT_TRUE(other_agrees(self->sock, self->other, 1));
}

/* The device itself checks, too: a registration without LOCAL_WRITE takes nothing in. */
TEST_F(rdma, region_that_is_registered_for_reading_is_not_written)
{
	ASSERT_EQ(0, register_memory(&self->end, self->end.mem, IBV_ACCESS_REMOTE_READ));
	ASSERT_TRUE(connect_both(&self->end, self->sock));
	EXPECT_NE(IBV_WC_SUCCESS, transfer(&self->end, IBV_WR_RDMA_READ, TO, FROM));
	EXPECT_TRUE(filled(self->end.mem, SIZE, 1));
}

TEST_F(rdma, registration_outlives_the_mapping)
{
	ASSERT_EQ(0, register_memory(&self->end, self->end.mem, ALL_ACCESS));
	ASSERT_TRUE(connect_both(&self->end, self->sock));
	munmap(self->end.mem, SIZE);
	close(self->end.fd);
	self->end.fd = -1;
	EXPECT_EQ(IBV_WC_SUCCESS, transfer(&self->end, IBV_WR_RDMA_WRITE, FROM, TO));
	EXPECT_TRUE(other_agrees(self->sock, self->other, 1));
}

/* Soft RoCE has no DMA; a driver of hardware that takes dma-bufs does this. */
TEST_F(rdma, dma_buf_is_refused_by_a_device_without_dma)
{
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->end.pd, 0, SIZE, 0, self->end.fd, ALL_ACCESS));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_HARNESS_MAIN
