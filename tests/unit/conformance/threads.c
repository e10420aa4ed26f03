// SPDX-License-Identifier: MIT
/* Threads that share a context or a region, one of which may be cancelled. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../partner.h"

static void *attach_repeatedly(void *name)
{
	struct tshare_tensor *tensor;
	int i, times = rounds(200);

	for (i = 0; i < times; i++) {
		if (tshare_tensor_open(ctx, name, NULL, &tensor))
			return name;
		++*(volatile char *)tshare_tensor_get_data(tensor);
		tshare_tensor_unref(tensor);
	}
	return NULL;
}

TEST(threads_may_share_a_context)
{
	const int64_t shape[] = { 3 << 20 };
	const char *name = unique("threads");
	struct tshare_tensor *tensor = new_tensor(name, TSHARE_UINT8, 1, shape);
	pthread_t threads[4];
	void *failed;
	int i;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, attach_repeatedly,
				      (void *)(uintptr_t)name));
	for (i = 0; i < 4; i++) {
		CHECK(!pthread_join(threads[i], &failed));
		CHECK(!failed);
	}
	tshare_tensor_unref(tensor);
}

static void *fail_in_thread(void *failed)
{
	struct tshare_region *region;

	tshare_region_open(ctx, "no/such", NULL, &region);
	*(bool *)failed = !strstr(tshare_error_get(), "no/such");
	return NULL;
}

TEST(each_thread_has_an_error_of_its_own)
{
	struct tshare_region *region;
	bool failed = true;
	pthread_t thread;

	tshare_region_open(ctx, "here/", NULL, &region);
	CHECK(!pthread_create(&thread, NULL, fail_in_thread, &failed));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!failed);
	CHECK(error_says("here/"));
}

struct crowd {
	struct tshare_region *region;
	pthread_barrier_t *together;
	int times;
};

static void *publish_together(void *data)
{
	struct crowd *crowd = data;
	int i;

	pthread_barrier_wait(crowd->together);
	for (i = 0; i < crowd->times; i++)
		if (tshare_region_publish(crowd->region, NULL))
			return data;
	return NULL;
}

TEST(threads_may_publish_to_one_region_at_the_same_time)
{
	enum { THREADS = 4, ROUNDS = 50, TIMES = 50 };
	pthread_barrier_t together;
	struct crowd crowd = { .together = &together, .times = TIMES };
	pthread_t threads[THREADS];
	size_t before = open_descriptors();
	void *failed;
	int round, i;

	CHECK(!pthread_barrier_init(&together, NULL, THREADS));
	for (round = 0; round < ROUNDS; round++) {
		crowd.region = new_region(NULL);
		for (i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&threads[i], NULL, publish_together, &crowd));
		for (i = 0; i < THREADS; i++) {
			CHECK(!pthread_join(threads[i], &failed));
			CHECK(!failed);
		}
		CHECK(generation_of(crowd.region) == THREADS * TIMES);
		tshare_region_unref(crowd.region);
	}
	CHECK(open_descriptors() == before);
	pthread_barrier_destroy(&together);
}

static void *wait_together(void *data)
{
	struct crowd *crowd = data;
	uint64_t seen = 0;

	pthread_barrier_wait(crowd->together);
	while (seen < (uint64_t)crowd->times)
		if (tshare_region_wait(crowd->region, seen, LONG, 0, &seen))
			return data;
	return NULL;
}

TEST(threads_may_wait_with_one_region_at_the_same_time)
{
	enum { THREADS = 4, TIMES = 200 };
	struct tshare_region *region = new_region(NULL);
	pthread_barrier_t together;
	struct crowd crowd = { another(region, TSHARE_READONLY), &together, TIMES };
	pthread_t threads[THREADS];
	void *failed;
	int i;

	CHECK(!pthread_barrier_init(&together, NULL, THREADS + 1));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, wait_together, &crowd));
	pthread_barrier_wait(&together);
	for (i = 0; i < TIMES; i++)
		publish(region);
	for (i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(threads[i], &failed));
		CHECK(!failed);
	}
	pthread_barrier_destroy(&together);
	tshare_region_unref(crowd.region);
	tshare_region_unref(region);
}

TEST(a_thread_may_fork_while_another_publishes_for_the_first_time)
{
	pthread_barrier_t together;
	struct crowd crowd = { .together = &together, .times = 1 };
	struct partner partner = { 0 };
	pthread_t thread;
	void *failed;
	pid_t pid;
	int i, times = rounds(100);

	CHECK(!pthread_barrier_init(&together, NULL, 2));
	for (i = 0; i < times; i++) {
		crowd.region = new_region(NULL);
		partner.region = crowd.region;
		CHECK(!pthread_create(&thread, NULL, publish_together, &crowd));
		pthread_barrier_wait(&together);
		pid = start_partner(publish_later, &partner);
		CHECK(!pthread_join(thread, &failed));
		CHECK(!failed);
		CHECK(!end_of(pid));
		CHECK(generation_of(crowd.region) == 2);
		tshare_region_unref(crowd.region);
	}
	pthread_barrier_destroy(&together);
}

static void *publish_cancelled(void *region)
{
	pthread_cancel(pthread_self());
	tshare_region_publish(region, NULL);
	return NULL;
}

static int publish_after_a_cancelled_thread(void *unused)
{
	struct tshare_region *region, *other;
	pthread_t thread;

	(void)unused;
	alarm(HANG_SECONDS);
	return tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region) ||
	       pthread_create(&thread, NULL, publish_cancelled, region) ||
	       pthread_join(thread, NULL) || tshare_region_publish(region, NULL) ||
	       tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &other);
}

TEST(a_thread_cancelled_in_publish_holds_up_no_other)
{
	CHECK(!in_child(publish_after_a_cancelled_thread, NULL));
}

int main(void)
{
	return tap_main(open_context, close_context);
}
