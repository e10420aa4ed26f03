# SPDX-License-Identifier: MIT
"""Streams that publish and wait, and kernels that use the generation themselves."""

import errno
import time
from pathlib import Path

import driver
from checks import (
    Other,
    address_of,
    check,
    equal,
    host_address,
    nothing_left,
    refused,
    same,
    unused_name,
    words,
)
from imports import COUNT, PATIENCE

# Another process opens a region and does as it is told: "publish N" adds N to all words and
# publishes, "wait SEEN" waits and answers with the generation and the last word.
PARTNER = """
    import sys
    import tshare
    tensor = tshare.open(sys.argv[1])
    region, array = tensor.region, tensor.numpy()
    print("ready", flush=True)
    for line in sys.stdin:
        verb, number = line.split()
        if verb == "publish":
            array += int(number)
            print(region.publish(), flush=True)
        else:
            print(region.wait(int(number), 30), array[-1], flush=True)
"""

# Takes the frames of a stream, and prints of each its number and last word, if it is whole.
TAKER = """
    import sys
    import numpy as np
    import tshare
    stream = tshare.Stream.open(sys.argv[1])
    print("ready", flush=True)
    for frame in stream:
        words = frame["words"].numpy()
        whole = np.array_equal(words, words[0] + np.arange(len(words), dtype=words.dtype))
        print(frame.number, words[-1] if whole else "torn", flush=True)
        del words
"""

# Publishes a frame of 0, 1, 2, ... plus a number when it is told, unless no slot is free.
GIVER = """
    import sys
    import numpy as np
    import tshare
    name, count = sys.argv[1], int(sys.argv[2])
    stream = tshare.Stream.create(name, {"words": (count, "uint32")}, slots=2)
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            with stream.loan(0) as frame:
                frame["words"].numpy()[:] = np.arange(count, dtype="uint32") + int(line)
            print(stream.newest, flush=True)
        except TimeoutError:
            print("full", flush=True)
"""


def ready():
    """Return a stream of a context that is current, and the kernels on it."""
    driver.enter()
    stream = driver.Stream()
    kernels = driver.Kernels(stream.handle)
    kernels.load()
    return stream, kernels


def with_partner(what):
    name = unused_name(what)
    tensor = words(COUNT, name)
    partner = Other(PARTNER, name)
    equal(partner.hear(), "ready", "the other process")
    return tensor, partner


@check
def stream_publishes_what_a_kernel_wrote():
    """Also while a kernel before it is still running."""
    stream, kernels = ready()
    tensor, partner = with_partner("publishes")
    g = tensor.cuda(0)
    flags = driver.Watch()
    kernels.watch(address_of(g), g.nbytes, flags, PATIENCE)
    kernels.fill(address_of(g), COUNT, 7)
    tensor.region.publish_on(stream.handle)
    equal(tensor.region.generation, 0, "the generation before the stream has come to it")
    partner.say("wait 0")
    flags.stop()
    equal(partner.hear(), f"1 {COUNT + 6}", "what the other process finds")
    stream.synchronize()
    partner.end()


@check
def stream_waits_for_another_process():
    stream, kernels = ready()
    tensor, partner = with_partner("waits")
    g = tensor.cuda(0)
    wait = tensor.region.wait_on(stream.handle, 0, 60)
    with driver.Device(64) as total:
        kernels.sum(address_of(g), g.nbytes, total.address)
        time.sleep(0.5)
        assert not stream.idle(), "the stream hasn't waited"
        assert not wait.done, "the wait has ended"
        partner.say("publish 3")
        equal(partner.hear(), "1", "the other process's generation")
        stream.synchronize()
        equal(wait.result(), 1, "the generation that was found")
        equal(total.number(), COUNT * (COUNT - 1) // 2 + 3 * COUNT, "the sum of the new words")
    partner.end()


@check
def turns():
    """Two processes and the GPU, a hundred rounds, without a synchronisation in between."""
    stream, kernels = ready()
    tensor, partner = with_partner("turns")
    region, g = tensor.region, tensor.cuda(0)
    for turn in range(100):
        region.wait_on(stream.handle, 2 * turn, 60)
        kernels.add(address_of(g), (1, COUNT), (0, 4), 1)
        region.publish_on(stream.handle)
        partner.say("publish 1")
        equal(partner.hear(), str(2 * turn + 1), "the generation of the other process")
        partner.say(f"wait {2 * turn + 1}")
        equal(partner.hear(), f"{2 * turn + 2} {COUNT + 1 + 2 * turn}", "what it finds then")
    stream.synchronize()
    partner.end()


@check
def a_wait_that_is_given_up_releases_the_stream():
    import tshare

    stream, kernels = ready()
    tensor = words(COUNT)
    g = tensor.cuda(0)
    timed = tensor.region.wait_on(stream.handle, 0, 0.2)
    kernels.fill(address_of(g), COUNT, 1)
    stream.synchronize()
    try:
        timed.result()
    except TimeoutError:
        pass
    else:
        raise AssertionError("the wait has no timeout")
    equal(tensor.numpy()[0], 1, "the word that was written after the wait")
    cancelled = tensor.region.wait_on(stream.handle, 0)
    cancelled.cancel()
    stream.synchronize()
    name = unused_name("closed")
    region = tshare.Region.create(name, {"a": (4, "uint8")})
    region.wait_on(stream.handle, 0)
    region.close()
    stream.synchronize()


@check
def dead_publisher_releases_the_stream():
    stream, _ = ready()
    tensor, partner = with_partner("dead")
    partner.say("publish 1")
    equal(partner.hear(), "1", "the generation of the other process")
    wait = tensor.region.wait_on(stream.handle, 1)
    time.sleep(0.3)
    assert not wait.done, "the publisher is alive"
    partner.kill()
    stream.synchronize()
    with refused(errno.EOWNERDEAD, "the wait for a dead publisher"):
        wait.result()


@check
def others_captures_stay_whole():
    """A stream is captured into a graph while the library allocates, registers and undoes it."""
    stream, kernels = ready()
    captured = driver.Stream()
    captured_kernels = driver.Kernels(captured.handle)
    captured_kernels.load()
    target, tensor = words(COUNT).cuda(0), words(COUNT)
    with captured.captured():
        captured_kernels.fill(address_of(target), COUNT, 1)
        with tensor.pin():
            copy = tensor.cuda(copy=True, stream=stream.handle)
        tensor.region.wait_on(stream.handle, 0, 60)
        tensor.region.publish()
        tensor.region.publish_on(stream.handle)
        del copy
        words(COUNT).cuda(0)
        captured_kernels.fill(address_of(target), COUNT, 2)
    stream.synchronize()
    equal(tensor.region.generation, 2, "the generation")


@check
def stream_publishes_frames_that_kernels_fill():
    """One pin is for all slots, and nothing is synchronised in between."""
    import tshare

    stream, kernels = ready()
    name = unused_name("fills")
    fields = {"words": (COUNT, "uint32")}
    flags = driver.Watch()
    with tshare.Stream.create(name, fields, slots=4) as frames, frames.region.pin():
        partner = Other(TAKER, name)
        equal(partner.hear(), "ready", "the other process")
        for number in range(1, 101):
            with frames.loan(30) as frame:
                address = address_of(frame["words"].cuda(0))
                if number == 1:
                    kernels.watch(address, 4 * COUNT, flags, PATIENCE)
                kernels.fill(address, COUNT, number)
                frame.publish_on(stream.handle)
                if number == 1:
                    time.sleep(0.3)
                    equal(frame.number, 0, "the number before the stream has come to it")
                    flags.stop()
            equal(partner.hear(), f"{number} {COUNT - 1 + number}", "what the other process finds")
        stream.synchronize()
    partner.end()


@check
def stream_releases_frames_that_it_has_read():
    import tshare

    stream, kernels = ready()
    name = unused_name("reads")
    partner = Other(GIVER, name, COUNT)
    equal(partner.hear(), "ready", "the other process")
    held, flags = words(COUNT).cuda(0), driver.Watch()
    with tshare.Stream.open(name) as frames, driver.Device(4 * COUNT) as copy:
        partner.say("7")
        equal(partner.hear(), "1", "the first frame")
        frame = frames.take(30)
        copy.write(host_address(frame["words"]), stream=stream.handle)
        kernels.watch(address_of(held), held.nbytes, flags, PATIENCE)
        frame.release_on(stream.handle)
        assert frame.closed, "the frame is open"
        partner.say("8")
        equal(partner.hear(), "2", "the second frame")
        partner.say("9")
        equal(partner.hear(), "full", "the stream while the first frame is read")
        flags.stop()
        stream.synchronize()
        partner.say("9")
        equal(partner.hear(), "3", "the frame in the first one's slot")
        with driver.Device(64) as total:
            kernels.sum(copy.address, 4 * COUNT, total.address)
            stream.synchronize()
            equal(total.number(), COUNT * (COUNT - 1) // 2 + 7 * COUNT, "the sum of the copy")
    partner.end()


@check
def exit_with_a_stream_that_waits():
    """A process ends whose stream would wait for ever."""
    other = Other(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        import streams
        stream, kernels = streams.ready()
        tensor = streams.words(1024)
        tensor.region.wait_on(stream.handle, 0)
        kernels.fill(streams.address_of(tensor.cuda(0)), 1024, 1)
        """,
        Path(__file__).parent,
    )
    other.end()


@check
def kernel_waits_and_publishes_by_itself():
    """A kernel that runs sees a publish, and others see what a kernel publishes."""
    stream, kernels = ready()
    tensor, partner = with_partner("kernel")
    region, g = tensor.region, tensor.cuda(0)
    counter = region.cuda_counter(0)
    region.publish()
    result = driver.Host(64)
    last = address_of(g) + 4 * (COUNT - 1)
    kernels.wait(counter, 1, PATIENCE, last, result.device)
    time.sleep(0.3)
    assert not stream.idle(), "the kernel hasn't waited"
    partner.say("publish 5")
    equal(partner.hear(), "2", "the generation of the other process")
    stream.synchronize()
    equal(result.numbers(2), [2, COUNT + 4], "the generation and the word that the kernel found")
    partner.say("wait 2")
    kernels.publish(counter, last, 99)
    equal(partner.hear(), "3 99", "what the other process found, which nobody woke")
    equal(region.generation, 3, "the generation")
    partner.end()


@check
def thousand_waits_and_publishes_leave_nothing():
    stream, _ = ready()
    figures = {}

    def use(times):
        for _ in range(times):
            with words(1024) as tensor:
                region = tensor.region
                wait = region.wait_on(stream.handle, 0, 60)
                region.publish()
                region.publish_on(stream.handle)
                stream.synchronize()
                same([wait.result(), region.generation], [1, 2], "generations")
                region.close()

    use(100)
    with nothing_left(figures):
        use(1000)
    return figures
