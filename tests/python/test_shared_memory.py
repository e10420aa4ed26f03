# SPDX-License-Identifier: MIT
"""tshare.shared_memory against the standard module; see test_stdlib.py for CPython's own tests."""

import errno
import gc
import inspect
import os
import pickle
import signal
import subprocess
from multiprocessing import resource_tracker
from multiprocessing import shared_memory as standard

import numpy as np
import pytest

import tshare
from support import mapped, run, run_in_silence, spawn
from tshare import shared_memory
from tshare.shared_memory import ShareableList, SharedMemory

MAKER = """
    import sys
    from tshare.shared_memory import ShareableList, SharedMemory

    name, track = sys.argv[1], sys.argv[2] == "track"
    shm = SharedMemory(name, create=True, size=8, track=track)
    shm.buf[0] = 42
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module", autouse=True)
def tracker():
    # The standard class starts the tracker, which uses a descriptor.
    resource_tracker.ensure_running()


def made(name, track):
    process = spawn(MAKER, name, track, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "made\n"
    return process


def end(process):
    """Wait for a process to end, and return its errors."""
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0
    return errors


def end_by(process, number):
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == -number
    return errors


def parameters(function):
    """Return the parameters of a function, without annotations."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def error_of(function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*args)
    return type(caught.value), str(caught.value), getattr(caught.value, "filename", None)


def test_import_of_the_package_leaves_multiprocessing_memory_alone():
    code = """
        import sys, tshare
        names = "tshare.shared_memory", "tshare.managers", "multiprocessing.shared_memory"
        print([name for name in names if name in sys.modules])
    """
    assert run(code) == "[]"


def test_parameters_are_the_standard_ones():
    ours, theirs = parameters(SharedMemory), parameters(standard.SharedMemory)
    # The standard class has track from 3.13 on.
    assert ours[: len(theirs)] == theirs
    assert [name for name, _, _ in ours] == ["name", "create", "size", "track"]
    assert parameters(ShareableList) == parameters(standard.ShareableList)


def test_classes_are_the_standard_ones():
    assert issubclass(SharedMemory, standard.SharedMemory)
    assert issubclass(ShareableList, standard.ShareableList)
    assert set(standard.__all__) == set(shared_memory.__all__)


@pytest.mark.parametrize(
    "args",
    [
        (),
        (None,),
        (5,),
        (b"bytes",),
        ("",),
        ("/",),
        (".",),
        ("..",),
        ("a/b",),
        ("no-such-name",),
        ("/no-such-name",),
        ("\udc80",),
        (None, True),
        (None, True, 0),
        (None, True, -1),
        (None, True, "size"),
        ("name", True, 0),
        ("name", False, -1),
        ("a/b", True, 1),
    ],
)
def test_error_is_the_standard_one(args):
    ours, theirs = error_of(SharedMemory, *args), error_of(standard.SharedMemory, *args)
    if ours[0] is UnicodeEncodeError:
        assert theirs[0] is UnicodeEncodeError
    else:
        assert ours == theirs


# As of the standard class, which is not asked: it leaves the name behind then.
@pytest.mark.parametrize(
    ("size", "error", "text"),
    [
        (1.5, TypeError, "'float' object cannot be interpreted as an integer"),
        (float("inf"), TypeError, "'float' object cannot be interpreted as an integer"),
        (1 << 63, OverflowError, "Python int too large to convert to C long"),
        (1 << 70, OverflowError, "Python int too large to convert to C long"),
    ],
)
def test_size_of_no_c_type_is_refused(size, error, text):
    assert error_of(SharedMemory, None, True, size) == (error, text, None)


def test_name_too_long_is_refused():
    with pytest.raises(OSError, match="too long"):
        SharedMemory("x" * 128, create=True, size=1)


def test_name_with_a_null_character_is_refused(name):
    shm = SharedMemory(name, create=True, size=1)
    with pytest.raises(ValueError, match="null character"):
        SharedMemory(name + "\0a")
    shm._name += "\0a"
    with pytest.raises(ValueError, match="null character"):
        shm.unlink()


def test_taken_name_is_refused_as_by_the_standard_class(name):
    shm = SharedMemory(name, create=True, size=1)
    theirs = standard.SharedMemory(name, create=True, size=1)
    try:
        args = name, True, 1
        assert error_of(SharedMemory, *args) == error_of(standard.SharedMemory, *args)
    finally:
        theirs.close()
        theirs.unlink()
    assert shm.size == 1


def test_more_memory_than_there_is_is_refused_at_once(name):
    with pytest.raises(OSError):  # noqa: PT011
        SharedMemory(name, create=True, size=1 << 50)
    with pytest.raises(FileNotFoundError):
        tshare.open(name)


@pytest.mark.parametrize("size", [1 << 60, (1 << 61) - 1, 1 << 62, (1 << 63) - 1])
def test_size_beyond_any_memory_is_refused_as_by_the_standard_class(name, size):
    ours, theirs = (
        error_of(SharedMemory, name, True, size),
        error_of(standard.SharedMemory, name, True, size),
    )
    assert ours[0] is theirs[0] is OSError
    with pytest.raises(OSError, match="Cannot allocate") as caught:
        SharedMemory(name, True, size)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOMEM, "/" + name)


def test_error_says_what_limits_the_size(name):
    with pytest.raises(OSError, match=r"size: .* \d+ bytes|size: \d+ bytes exceed") as caught:
        SharedMemory(name, create=True, size=1 << 45)
    assert caught.value.errno in (errno.ENOMEM, errno.EDQUOT)
    assert caught.value.filename == "/" + name


def test_size_is_the_one_asked_for(name):
    shm = SharedMemory(name, create=True, size=4099)
    assert (shm.size, shm.buf.nbytes, SharedMemory(name).size) == (4099, 4099, 4099)


def test_memory_is_zeroed_bytes(name):
    buf = SharedMemory(name, create=True, size=5).buf
    assert (buf.format, buf.ndim, buf.readonly) == ("B", 1, False)
    assert bytes(buf) == bytes(5)


def test_memory_is_a_tensor_of_bytes(name):
    shm = SharedMemory(name, create=True, size=10)
    tensor = tshare.open(name)
    assert (tensor.shape, tensor.dtype) == ((10,), "uint8")
    shm.buf[3] = 7
    assert memoryview(tensor)[3] == 7


def test_memory_can_be_opened_readonly(name):
    shm = SharedMemory(name, create=True, size=10)
    view = memoryview(tshare.open(name, readonly=True))
    shm.buf[0] = 1
    assert view.readonly
    assert view[0] == 1


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "bool", "complex64"])
def test_any_tensor_is_attached_to_as_bytes(name, dtype):
    tensor = tshare.create(name, (2, 3), dtype)
    shm = SharedMemory(name)
    assert shm.size == tensor.nbytes
    assert (shm.buf.format, shm.buf.shape) == ("B", (tensor.nbytes,))
    shm.buf[:] = bytes(range(tensor.nbytes))
    assert memoryview(tensor).tobytes() == bytes(range(tensor.nbytes))


def test_tensor_in_fortran_order_is_attached_to_as_it_lies(name):
    region = tshare.Region.create(name, {"a": ((2, 2), "uint8", (1, 2))})
    SharedMemory(name).buf[:] = b"abcd"
    assert np.asarray(region["a"]).tolist() == [[97, 99], [98, 100]]


def test_tensor_that_can_not_be_mapped_as_bytes_is_refused(new_name):
    other, none, gaps, two = new_name(), new_name(), new_name(), new_name()
    keep = [
        tshare.create(other, 4, "bfloat16"),
        tshare.create(none, 0),
        tshare.Region.create(gaps, {"a": (2, "uint8", (2,))}),
        tshare.Region.create(two, {"a": (1, "uint8"), "b": (1, "uint8")}),
    ]
    for name in other, none, gaps, two:
        with pytest.raises(ValueError):  # noqa: PT011
            SharedMemory(name)
    del keep


def test_array_takes_the_memory(name):
    shm = SharedMemory(name, create=True, size=24)
    array = np.ndarray((2, 3), dtype="float32", buffer=shm.buf)
    array[1, 2] = 2.5
    again = SharedMemory(name)
    assert np.frombuffer(again.buf, "float32")[5] == 2.5


def test_name_is_written_as_the_standard_class_does(name):
    theirs = standard.SharedMemory("/" + name, create=True, size=3)
    try:
        ours = SharedMemory("/" + name, create=True, size=3)
        assert (ours.name, ours._name, repr(ours)) == (theirs.name, theirs._name, repr(theirs))
    finally:
        theirs.close()
        theirs.unlink()
    assert SharedMemory(name).size == 3


def test_name_is_made_up_as_the_standard_class_does():
    shm = SharedMemory(create=True, size=1)
    shm.unlink()
    assert shm.name.startswith("psm_")
    assert shm._name == "/" + shm.name
    assert len(shm.name) == len(standard._make_filename()) - 1


def test_random_name_that_is_taken_is_replaced_by_another(monkeypatch, new_name):
    first, second = new_name(), new_name()
    names = ["/" + first, "/" + first, "/" + second]
    monkeypatch.setattr(shared_memory, "_make_filename", lambda: names.pop(0))
    keep = SharedMemory(create=True, size=1)
    assert (keep.name, SharedMemory(create=True, size=1).name) == (first, second)


def test_prefix_of_made_up_names_can_be_changed(monkeypatch, name):
    monkeypatch.setattr(shared_memory, "_SHM_NAME_PREFIX", f"/{name}-")
    shm = SharedMemory(create=True, size=1)
    shm.unlink()
    assert shm.name.startswith(f"{name}-")


def test_mode_of_a_subclass_is_used(name):
    class Readable(SharedMemory):
        _mode = 0o640

    shm = Readable(name, create=True, size=1)
    assert tshare.open(shm.name).region.info().mode == 0o640


def test_flags_of_a_subclass_are_used(new_name):
    class Readonly(SharedMemory):
        _flags = os.O_RDONLY

    class New(SharedMemory):
        _flags = os.O_CREAT | os.O_EXCL | os.O_RDWR

    shm = New(new_name(), size=2)
    with pytest.raises(FileExistsError):
        New(shm.name, size=2)
    assert Readonly(shm.name).buf.readonly


def test_closing_releases_the_memory(name):
    shm = SharedMemory(name, create=True, size=1)
    buf = shm.buf
    place = np.frombuffer(buf, "uint8").ctypes.data
    shm.close()
    assert shm.buf is None
    with pytest.raises(ValueError, match="released"):
        buf[0]
    del buf
    assert not mapped(place)
    shm.close()
    assert (shm.name, shm.size) == (name, 1)


def test_closing_fails_while_there_are_views(name):
    shm = SharedMemory(name, create=True, size=4)
    view = shm.buf[1:]
    for _ in range(2):
        with pytest.raises(BufferError, match="cannot close exported pointers exist"):
            shm.close()
        assert shm.buf is None
    view[0] = 1
    view.release()
    shm.close()
    assert SharedMemory(name).buf[1] == 1


def test_closing_leaves_what_numpy_has_no_buffer_of(name):
    shm = SharedMemory(name, create=True, size=4)
    array = np.ndarray(4, "uint8", buffer=shm.buf)
    place = array.ctypes.data
    shm.close()
    array[0] = 1
    assert SharedMemory(name).buf[0] == 1
    del array
    gc.collect()
    assert not mapped(place)


def test_memory_goes_with_its_last_view(name):
    shm = SharedMemory(name, create=True, size=4)
    view = shm.buf[1:]
    place = np.frombuffer(view, "uint8").ctypes.data
    shm.unlink()
    del shm
    gc.collect()
    view[0] = 1
    assert mapped(place)
    del view
    gc.collect()
    assert not mapped(place)


def test_views_at_exit_cause_no_complaints(name):
    code = """
        import sys
        import numpy as np
        from tshare.shared_memory import ShareableList, SharedMemory

        shm = SharedMemory(sys.argv[1], create=True, size=8)
        array, view, part = np.frombuffer(shm.buf, "uint8"), memoryview(shm.buf), shm.buf[1:]
        sl = ShareableList([1, 2])
        del shm
        array[0] = 1
    """
    run_in_silence(code, name)


def test_unlinked_name_is_gone_and_memory_stays(name):
    shm = SharedMemory(name, create=True, size=4)
    other = SharedMemory(name)
    other.unlink()
    with pytest.raises(FileNotFoundError):
        shm.unlink()
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)
    shm.buf[0] = 1
    assert other.buf[0] == 1
    assert SharedMemory(name, create=True, size=2).size == 2


def test_closed_memory_can_be_unlinked(name):
    shm = SharedMemory(name, create=True, size=4)
    shm.close()
    shm.unlink()
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)


def test_pickle_goes_by_the_name(name):
    shm = SharedMemory(name, create=True, size=4)
    again = pickle.loads(pickle.dumps(shm))
    again.buf[0] = 1
    assert (type(again), again.name, again.size, shm.buf[0]) == (SharedMemory, name, 4, 1)
    shm.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(shm))


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_tracked_name_goes_with_its_maker_in_silence(name, number):
    maker = made(name, "track")
    shm = SharedMemory(name)
    assert (end_by(maker, number) if number else end(maker)) == ""
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)
    assert shm.buf[0] == 42


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_untracked_name_stays_until_it_is_unlinked(name, number):
    maker = made(name, "leave")
    assert (end_by(maker, number) if number else end(maker)) == ""
    shm = SharedMemory(name)
    assert shm.buf[0] == 42
    shm.unlink()
    with pytest.raises(FileNotFoundError):
        SharedMemory(name)


@pytest.mark.parametrize("track", [True, False])
def test_name_stays_when_a_process_that_attached_ends(name, track):
    shm = SharedMemory(name, create=True, size=8)
    code = """
        import sys
        from tshare.shared_memory import SharedMemory

        SharedMemory(sys.argv[1], track=sys.argv[2] == "True").buf[0] = 1
    """
    run_in_silence(code, name, track)
    assert SharedMemory(name).buf[0] == 1
    assert shm.buf[0] == 1


def test_no_tracker_is_started(new_name):
    code = """
        import sys
        from multiprocessing import resource_tracker
        from tshare.shared_memory import ShareableList, SharedMemory

        shm = SharedMemory(sys.argv[1], create=True, size=8)
        SharedMemory(shm.name).close()
        ShareableList([1, 2], name=sys.argv[2])
        shm.close()
        shm.unlink()
        print(resource_tracker._resource_tracker._fd)
    """
    assert run_in_silence(code, new_name(), new_name()) == "None"


def test_list_is_in_tshare_memory(name):
    sl = ShareableList([1, "two", None], name=name)
    assert type(sl.shm) is SharedMemory
    assert tshare.open(name).nbytes == sl.shm.size
    assert ShareableList[int].__origin__ is ShareableList


def test_list_is_shared_by_name_and_by_pickle(name):
    sl = ShareableList([1, 2.5, "text", b"bytes", None, True], name=name)
    for again in ShareableList(name=name), pickle.loads(pickle.dumps(sl)):
        assert type(again) is ShareableList
        assert list(again)[1:] == [2.5, "text", b"bytes", None, True]
        again[0] += 1
    assert sl[0] == 3
    assert repr(sl) == f"ShareableList([3, 2.5, 'text', b'bytes', None, True], name='{name}')"


def test_list_has_the_standard_layout(name):
    items = [1, -2.5, "täxt", b"bytes", None, False]
    theirs = standard.ShareableList(items)
    try:
        assert bytes(ShareableList(items, name=name).shm.buf) == bytes(theirs.shm.buf)
    finally:
        theirs.shm.close()
        theirs.shm.unlink()


TEXTS = [
    "ä" * 8,
    "漢字" * 9,
    "\0",
    "a\0",
    "ä\0\0",
    "\0a",
    "",
    "x" * 7,
    "x" * 8,
    "\N{GRINNING FACE}" * 2,
]


def test_list_keeps_every_character(name):
    items = [*TEXTS, *(text.encode() for text in TEXTS)]
    sl = ShareableList(items, name=name)
    assert list(sl) == items
    assert list(ShareableList(name=name)) == items
    assert [sl.index(item) for item in items] == list(range(len(items)))


def test_list_keeps_every_character_that_is_assigned(name):
    sl = ShareableList(["x" * 64] * 2, name=name)
    for value in (*TEXTS, *(text.encode() for text in TEXTS), "long again " * 5):
        sl[1] = value
        assert ShareableList(name=name)[1] == value
    assert sl[0] == "x" * 64


def test_list_refuses_what_exceeds_its_place_and_keeps_what_is_there(name):
    sl = ShareableList(["a\0", 1], name=name)
    with pytest.raises(ValueError, match="exceeds available storage"):
        sl[0] = "ä" * 5
    assert list(sl) == ["a\0", 1]
    for place in (2, -3):
        with pytest.raises(IndexError, match="assignment index out of range"):
            sl[place] = 1
    sl[-1] = "eight\0ch"
    assert sl[1] == "eight\0ch"
