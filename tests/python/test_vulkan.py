# SPDX-License-Identifier: MIT
"""examples/vulkan.c computes on frames where they lie, by Vulkan.

The driver is lavapipe, which computes in software. tests/runner/setup gets it.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import tshare
from support import need

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/c/examples/vulkan"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
LAVAPIPE = CACHE / "tshare/lavapipe"
LIBRARIES = "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"
DRIVERS = "usr/share/vulkan/icd.d"

TIMEOUT = 300

on_module = tshare.limits().dmabuf
needs_module = pytest.mark.skipif(not on_module, reason="shared memory has no dma-bufs")
IMPORTED = "dma-bufs" if on_module else "host pointers"

pytestmark = pytest.mark.usefixtures("nothing_is_left_in_the_module")


@pytest.fixture(scope="module", autouse=True)
def program():
    assert PROGRAM.exists(), (
        f"{PROGRAM} is missing; 'make lib' builds it where tests/runner/setup build was run before"
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The variables by which a program finds lavapipe."""
    if (LAVAPIPE / ".absent").exists():
        pytest.skip("the mirror has no lavapipe of bookworm-backports")
    if not (LAVAPIPE / ".complete").exists():
        pytest.fail(f"no driver in {LAVAPIPE}: run tests/runner/setup lavapipe")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(str(LAVAPIPE / folder) for folder in LIBRARIES),
        "VK_DRIVER_FILES": str(LAVAPIPE / DRIVERS / "lvp_icd.json"),
        # The first program compiles the shader for the others.
        "MESA_SHADER_CACHE_DIR": str(tmp_path_factory.mktemp("shaders")),
    }


def end(*arguments, status=0, **environment):
    """Run the program to its end, and return what it printed: on standard error if it failed."""
    process = subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert process.returncode == status, process.stderr
    assert (process.stderr == "") == (status == 0)
    return process.stderr if status else process.stdout


@pytest.fixture
def numbers(name):
    """A region with three frames of a page each, and three rows of 20 bytes that share one."""
    np = need("numpy")
    tensors = {"frames": ((3, 32, 32, 4), "uint8"), "rows": ((3, 20), "uint8")}
    with tshare.Region.create(name, tensors=tensors) as region:
        frames, rows = region["frames"].numpy(), region["rows"].numpy()
        frames[:] = np.arange(frames.size, dtype="uint32").reshape(frames.shape) * 7 >> 3
        rows[:] = np.arange(rows.size).reshape(rows.shape)
        yield region
        del frames, rows


def test_frame_is_computed_on_in_place_and_its_neighbours_are_not(numbers, environment, name):
    frames = numbers["frames"].numpy()
    before = frames.copy()
    said = end(name, "frames", 1, **environment)
    assert said.startswith("vulkan: 1024 words on 'llvmpipe")
    assert said.endswith(f", which imports {IMPORTED}\n")
    assert (frames[1] == 255 - before[1]).all()
    assert (frames[::2] == before[::2]).all()


def test_what_shares_a_page_with_the_frame_stays_unchanged(numbers, environment, name):
    rows = numbers["rows"].numpy()
    before = rows.copy()
    end(name, "rows", 1, **environment)
    assert (rows[1] == 255 - before[1]).all()
    assert (rows[::2] == before[::2]).all()


def test_frame_has_more_words_than_the_device_starts_groups_for(environment, name):
    need("numpy")
    # lavapipe starts 65,535 groups, each of 64.
    with tshare.create(name, (65536 * 64 + 99,), "uint32") as tensor:
        tensor.numpy()[-1] = 7
        end(name, **environment)
        assert (tensor.numpy()[:-1] == 0xFFFFFFFF).all()
        assert tensor.numpy()[-1] == 0xFFFFFFFF - 7


@needs_module
def test_frame_larger_than_the_device_takes_is_refused(environment, name):
    # Not in shared memory, of which a container may have 64 MiB.
    with tshare.create(name, (2**27 + 4,), "uint8"):
        said = end(name, status=1, **environment)
    assert f"too large: {2**27 + 4096} bytes, of {2**27} that the device takes" in said


@needs_module
def test_module_s_memory_can_be_imported_by_pointer(numbers, environment, name):
    rows = numbers["rows"].numpy()
    before = rows.copy()
    assert end("-p", name, "rows", **environment).endswith(", which imports host pointers\n")
    assert (rows == 255 - before).all()


@needs_module
def test_camera_s_frame_is_computed_on_where_the_camera_wrote_it(camera, environment, name):
    process = camera()
    with tshare.Stream.open(name) as stream:
        frames = [stream.take() for _ in range(2)]
        before = [frame["image"].numpy().copy() for frame in frames]
        assert before[0].any()
        # The camera writes none of those that are held.
        end(name, "image", frames[0].slot, **environment)
        assert (frames[0]["image"].numpy() == 255 - before[0]).all()
        assert (frames[1]["image"].numpy() == before[1]).all()
        del frames
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def test_read_only_region_is_refused_before_the_driver_would_write(numbers, name):
    assert end("-r", name, "rows", status=1) == (
        "vulkan: the frame is read-only, and the shader writes to it\n"
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "said"),
    [
        ((4,), "float32", "is not of unsigned integers"),
        ((0, 4), "uint8", "has no elements"),
        ((6,), "uint8", "is not of whole 32-bit words: 6 bytes at 0"),
    ],
)
def test_frame_that_the_shader_cannot_take_is_refused(name, shape, dtype, said):
    with tshare.create(name, shape, dtype):
        assert end(name, status=1) == f"vulkan: the frame {said}\n"


def test_frame_with_padded_rows_is_refused(name):
    with tshare.Region.create(name, tensors={"padded": ((2, 4), "uint8", (8, 1))}):
        assert "not contiguous" in end(name, status=1)


@pytest.fixture
def old_driver(environment, tmp_path):
    """The variables for the driver of Debian 12, which can't import dma-bufs."""
    library = LAVAPIPE / "bookworm" / LIBRARIES[1] / "libvulkan_lvp.so"
    driver = {
        "file_format_version": "1.0.0",
        "ICD": {"library_path": str(library), "api_version": "1.3.0"},
    }
    (tmp_path / "old.json").write_text(json.dumps(driver))
    return {**environment, "VK_DRIVER_FILES": str(tmp_path / "old.json")}


@needs_module
def test_driver_that_cannot_import_dma_bufs_is_named(numbers, old_driver, name):
    said = end(name, "rows", status=1, **old_driver)
    assert said.startswith("vulkan: no driver here can import dma-bufs: not that of 'llvmpipe")


@pytest.mark.skipif(on_module, reason="the module has dma-bufs")
def test_such_a_driver_can_import_pointers(numbers, old_driver, name):
    rows = numbers["rows"].numpy()
    before = rows.copy()
    assert "imports host pointers" in end("-p", name, "rows", **old_driver)
    assert (rows == 255 - before).all()


def test_missing_driver_is_an_error(numbers, name):
    assert end(name, "rows", status=1, VK_DRIVER_FILES="/nonexistent") == (
        "vulkan: no Vulkan driver\n"
    )


def test_driver_without_a_device_is_an_error(numbers, environment, name):
    # For a GPU of a virtual machine's that neither the host nor QEMU here gives it.
    driver = str(LAVAPIPE / DRIVERS / "virtio_icd.json")
    said = end(name, "rows", status=1, **{**environment, "VK_DRIVER_FILES": driver})
    assert said.startswith("vulkan: no Vulkan device: ")


def test_frame_that_is_not_there_is_an_error(numbers, name):
    assert "3" in end(name, "frames", 3, status=1)
    assert "'others'" in end(name, "others", status=1)


@pytest.mark.parametrize("arguments", [[], ["a", "b", "-1"], ["a", "b", "c"], ["-x", "a"], "abcd"])
def test_wrong_arguments_are_an_error(arguments):
    assert "usage: vulkan " in end(*arguments, status=2)
