# SPDX-License-Identifier: MIT
"""Batches of PyTorch's DataLoader in shared slots, by tshare.torch.collate()."""

import collections
import contextlib
import copy
import ctypes
import errno
import gc
import mmap
import os
import pickle
import signal
import time
import types
import warnings
from multiprocessing import resource_sharer
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import tshare
from support import need, readonly_torch, run, spawn

torch = need("torch")
torch_data = need("torch.utils.data")
tshare_torch = need("tshare.torch")

pytestmark = pytest.mark.usefixtures("new_torch", "helper_processes")

# Those that start other processes import PyTorch anew.
START_METHODS = [
    "fork",
    pytest.param("forkserver", marks=pytest.mark.imports_torch),
    pytest.param("spawn", marks=pytest.mark.imports_torch),
]

Pair = collections.namedtuple("Pair", "number weight")


@pytest.fixture
def new_torch():
    readonly_torch()
    yield
    # A loader's queues and processes are in reference cycles.
    gc.collect()
    resource_sharer.stop()


@pytest.fixture
def as_worker(monkeypatch):
    """Let this process be a worker: those of a failed loader take 5 seconds to end."""
    info = types.SimpleNamespace(id=0, num_workers=1)
    monkeypatch.setattr(torch_data._utils.worker, "_worker_info", info)


class Rows(torch_data.Dataset):
    """Rows of the number of each."""

    def __init__(self, count, size=6, dtype=torch.int64):
        self.count, self.size, self.dtype = count, size, dtype

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.full((self.size,), i).to(self.dtype)


class Nested(Rows):
    """All that default_collate() takes."""

    def __getitem__(self, i):
        return {
            "x": torch.full((3, 5), i).T,
            "pair": Pair(i, i / 4),
            "list": [np.full(3, i, "i2"), np.float32(i), bool(i % 2)],
            "text": (f"sample {i}", b"%d" % i),
            "half": torch.full((2,), i, dtype=torch.bfloat16),
            "none": torch.zeros(0, 3),
        }


class Faulty(Rows):
    """Every third sample raises an exception, and every fifth doesn't fit the others."""

    def __getitem__(self, i):
        if i % 3 == 0:
            raise ValueError(f"sample {i} is broken")
        return torch.zeros(4 if i % 5 == 0 else 3)


class Long(Rows):
    """Sample i has i + 1 elements."""

    def __getitem__(self, i):
        return torch.full((i + 1,), i)


class Deadly(Rows):
    """The worker that gets the given sample kills itself, if it is the first to do so."""

    def __init__(self, count, size, deadly, flag):
        super().__init__(count, size)
        self.deadly, self.flag = deadly, str(flag)

    def __getitem__(self, i):
        if i == self.deadly and not os.path.exists(self.flag):
            open(self.flag, "w").close()
            # What this worker has sent is on its way before.
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


class Marked(torch.Tensor):
    """A subclass of torch.Tensor."""


class Scaled(collections.namedtuple("Scaled", "x scale")):
    """A tuple that computes with its parts."""

    def __new__(cls, x, scale):
        return super().__new__(cls, x.float(), scale)


class Kind:
    """What only a function that was registered collates."""

    def __init__(self, number):
        self.number = number


class Kinds(Rows):
    def __getitem__(self, i):
        return Kind(i)


def collate_kinds(batch, *, collate_fn_map=None):
    return torch.tensor([kind.number for kind in batch])


def load(data, batch_size=2, workers=1, collate=None, **options):
    if collate is None:
        collate = tshare_torch.collate()
    return torch_data.DataLoader(
        data, batch_size, num_workers=workers, collate_fn=collate, **options
    )


def flat(batch):
    """Yield all that a batch consists of, in order."""
    if isinstance(batch, dict):
        batch = list(batch.items())
    if isinstance(batch, (list, tuple)):
        yield type(batch)
        for part in batch:
            yield from flat(part)
    else:
        yield batch


def assert_same(batch, expected):
    for ours, theirs in zip(flat(batch), flat(expected), strict=True):
        if isinstance(theirs, torch.Tensor):
            assert (ours.dtype, ours.shape, ours.stride()) == (
                theirs.dtype,
                theirs.shape,
                theirs.stride(),
            )
            assert torch.equal(ours, theirs)
        else:
            assert ours == theirs


def memory_of(batch):
    """Return the tensor of tshare that a tensor lies in, or raise BufferError."""
    return tshare.from_dlpack(batch, copy=False)


def pool_of(batch):
    name = memory_of(batch).region.info().name
    assert name.startswith(f"torch-{os.getpid()}-")
    return tshare.Pool.open(name)


def names():
    """The names of loaders of this process."""
    return [info.name for info in tshare.list() if info.name.startswith(f"torch-{os.getpid()}-")]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("start", START_METHODS)
def test_batches_are_those_of_default_collate(start, persistent):
    data = Nested(10)
    loader = load(data, 4, 2, multiprocessing_context=start, persistent_workers=persistent)
    expected = list(torch_data.DataLoader(data, 4))
    # Few enough slots that they are used again.
    for _ in range(3):
        batches = 0
        for batch, other in zip(loader, expected, strict=True):
            assert_same(batch, other)
            batches += 1
        assert batches == 3
    pool_of(batch["x"]).close()
    memory_of(batch["pair"].number)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int16", "uint32", "float16", "bfloat16", "float8_e4m3fn", "complex64"],
)
def test_all_types(dtype):
    data = Rows(5, dtype=getattr(torch, dtype))
    for batch, expected in zip(load(data), torch_data.DataLoader(data, 2), strict=True):
        assert (batch.dtype, batch.shape) == (expected.dtype, expected.shape)
        assert torch.equal(batch.view(torch.uint8), expected.view(torch.uint8))
        memory_of(batch.view(torch.uint8))


def test_samples_are_stacked_in_the_slot(monkeypatch):
    monkeypatch.setattr(torch_data._utils.collate, "collate_tensor_fn", None)
    for batch in load(Rows(4)):
        memory_of(batch)


def test_slots_are_used_again():
    seen = set()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for batch in load(Rows(100), collate=tshare_torch.collate(4)):
            seen.add(batch.data_ptr())
    assert len(seen) <= 4


def test_slot_returns_with_the_last_view():
    loader = load(Rows(60), collate=tshare_torch.collate(5))
    batches = iter(loader)
    view = next(batches)[1:, ::2]
    pool = pool_of(view)
    held = pool.info().held_slots
    assert [int(batch[0, 0]) for batch in batches] == list(range(2, 60, 2))
    assert view.tolist() == [[1, 1, 1]]
    del loader, batches
    gc.collect()
    # The worker's part has ended.
    assert pool.info().held_slots == 1 <= held
    del view
    assert pool.info().held_slots == 0
    pool.close()


def test_batch_may_be_written():
    for i, batch in enumerate(load(Rows(20))):
        batch.mul_(2)
        assert batch.tolist() == [[4 * i] * 6, [4 * i + 2] * 6]


def test_each_tensor_has_a_storage_of_its_own():
    (batch,) = load(Nested(2))
    assert batch["x"].untyped_storage().nbytes() == batch["x"].numel() * 8
    assert batch["half"].untyped_storage().nbytes() == 8


def test_large_tensors_begin_on_a_cache_line():
    (batch,) = load(Nested(2))
    assert [batch[key].data_ptr() % 64 for key in ("x", "half")] == [0, 0]


def test_consumer_that_keeps_all_batches_gets_memory_and_one_warning():
    loader = load(Rows(40), workers=2, collate=tshare_torch.collate(3))
    with pytest.warns(UserWarning, match=r"^slots: .*raise slots") as warned:
        batches = list(loader)
    # PyTorch warns of two workers on one CPU.
    assert len([warning for warning in warned if "slots" in str(warning.message)]) == 1
    assert torch.cat(batches)[:, 0].tolist() == list(range(40))
    regions = {memory_of(batch).region.id for batch in batches}
    # Three at most have slots, in one region.
    assert len(regions) >= 20 - 3 + 1


def test_batch_stays_until_the_consumer_takes_it(as_worker):
    collate = tshare_torch.collate(2)
    sent = [ForkingPickler.dumps(collate([torch.full((3,), i)])) for i in range(4)]
    with pytest.warns(UserWarning, match="slots: none was free"):
        batches = [pickle.loads(pickled) for pickled in sent]
    assert [batch.tolist() for batch in batches] == [[[i] * 3] for i in range(4)]
    collate._begin()


def test_iterator_outlives_its_loader():
    batches = iter(load(Rows(20)))
    gc.collect()
    assert [int(batch[0, 0]) for batch in batches] == list(range(0, 20, 2))


def test_batches_outlive_the_loader():
    first, *_ = load(Rows(20), collate=tshare_torch.collate(12))
    gc.collect()
    assert first.tolist() == [[0] * 6, [1] * 6]
    first += 1
    assert first.tolist() == [[1] * 6, [2] * 6]


def test_names_go_with_the_loader():
    loader = load(Rows(20), workers=2)
    batch = next(iter(loader))
    assert names()
    del loader, batch
    gc.collect()
    assert not names()


def test_epochs_share_the_slots():
    loader = load(Rows(6), collate=tshare_torch.collate(5))
    regions = set()
    for _ in range(3):
        for batch in loader:
            regions.add(memory_of(batch).region.id)
    assert len(regions) == 1


def test_iterator_that_is_dropped_leaves_no_slot_in_use():
    loader = load(Rows(60), workers=2, collate=tshare_torch.collate(8), persistent_workers=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for _ in range(5):
            for batch in loader:
                if batch[0, 0] == 6:
                    break
            assert [int(batch[0, 0]) for batch in loader] == list(range(0, 60, 2))


def test_copied_loader_is_the_same_one():
    loader = load(Rows(6))
    other = copy.deepcopy(loader)
    assert other.collate_fn is loader.collate_fn
    assert [int(batch[0, 0]) for batch in other] == [0, 2, 4]
    del other
    gc.collect()
    assert [int(batch[0, 0]) for batch in loader] == [0, 2, 4]


def test_without_workers_it_is_default_collate():
    for batch in load(Rows(4), workers=0):
        with pytest.raises(BufferError):
            memory_of(batch)
        assert batch.shape == (2, 6)


def test_a_batch_without_tensors():
    class Text(Rows):
        def __getitem__(self, i):
            return str(i)

    assert list(load(Text(3))) == [["0", "1"], ["2"]]
    assert not names()


def test_a_batch_of_empty_tensors():
    (batch,) = load(Rows(2, 0))
    assert (batch.shape, batch.dtype) == ((2, 0), torch.int64)


def test_registered_functions_are_used(monkeypatch):
    known = torch_data._utils.collate.default_collate_fn_map
    monkeypatch.setitem(known, Kind, collate_kinds)
    (batch,) = load(Kinds(3), 3)
    assert batch.tolist() == [0, 1, 2]
    memory_of(batch)


def test_only_the_first_batch_is_collated_twice(monkeypatch, as_worker):
    calls = []

    def collate_and_count(batch, *, collate_fn_map=None):
        calls.append(len(batch))
        return collate_kinds(batch)

    known = torch_data._utils.collate.default_collate_fn_map
    monkeypatch.setitem(known, Kind, collate_and_count)
    collate = tshare_torch.collate()
    for _ in range(3):
        collate([Kind(1), Kind(2)])
    # The first time without memory, for the size of the slots.
    assert calls == [2] * (2 + 1 + 1)
    collate._begin()


def test_registered_functions_may_stack_tensors(monkeypatch, as_worker):
    def collate_numbers(batch, *, collate_fn_map=None):
        numbers = [torch.tensor(kind.number) for kind in batch]
        return torch_data._utils.collate.collate(numbers, collate_fn_map=collate_fn_map)

    known = torch_data._utils.collate.default_collate_fn_map
    monkeypatch.setitem(known, Kind, collate_numbers)
    # There is no room for a copy.
    collate = tshare_torch.collate(1, slot_bytes=mmap.PAGESIZE)
    batch = collate([Kind(i) for i in range(mmap.PAGESIZE // 8)])
    assert batch.tolist() == list(range(mmap.PAGESIZE // 8))
    memory_of(batch)
    collate._begin()


def test_function_of_one_s_own_may_end_with_it():
    shared = tshare_torch.collate()

    def padded(samples):
        return shared([torch.nn.functional.pad(x, (0, 3 - len(x))) for x in samples])

    (batch,) = load(Long(3), 3, collate=padded)
    assert batch.tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 2]]
    memory_of(batch)


def test_function_of_one_s_own_may_use_the_batch():
    shared = tshare_torch.collate(5)

    def scaled(samples):
        batch = shared(samples)
        batch += 1
        return {"batch": batch, "view": batch[:, ::2], "half": batch / 2}

    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for i, got in enumerate(load(Rows(40), collate=scaled)):
            assert got["batch"].tolist() == [[2 * i + 1] * 6, [2 * i + 2] * 6]
            assert got["view"].tolist() == [[2 * i + 1] * 3, [2 * i + 2] * 3]
            assert got["half"].tolist() == [[i + 0.5] * 6, [i + 1.0] * 6]
            # The slot is sent once.
            assert got["view"].data_ptr() == got["batch"].data_ptr()
            memory_of(got["view"])


def test_function_of_one_s_own_may_return_a_batch_again():
    shared, kept = tshare_torch.collate(6), []

    def with_earlier_ones(samples):
        kept.append(shared(samples))
        return [kept[0], kept[max(len(kept) - 2, 0)], kept[-1]]

    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for i, got in enumerate(load(Rows(12), collate=with_earlier_ones)):
            assert [int(batch[0, 0]) for batch in got] == [0, max(2 * i - 2, 0), 2 * i]
            for batch in got:
                memory_of(batch)


def test_types_may_compute_with_their_parts():
    class Other(Rows):
        def __getitem__(self, i):
            return Scaled(super().__getitem__(i), i)

    for batch, expected in zip(load(Other(6)), torch_data.DataLoader(Other(6), 2), strict=True):
        assert_same(batch, expected)
        memory_of(batch.scale)


def test_batch_that_is_not_sent_frees_its_slot():
    shared = tshare_torch.collate(4)

    def faulty(samples):
        batch = shared(samples)
        if batch[0, 0] % 4:
            raise ValueError("too late")
        return batch

    batches, came = iter(load(Rows(80), collate=faulty)), []
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for i in range(0, 80, 2):
            with contextlib.ExitStack() as stack:
                if i % 4:
                    stack.enter_context(pytest.raises(ValueError, match="too late"))
                came.append(int(next(batches)[0, 0]))
    assert came == list(range(0, 80, 4))


def test_batches_may_be_taken_in_any_order(as_worker):
    collate = tshare_torch.collate(3)
    sent = [ForkingPickler.dumps(collate([torch.full((3,), i)])) for i in range(3)]
    assert pickle.loads(sent[1]).tolist() == [[1] * 3]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        last = pickle.loads(ForkingPickler.dumps(collate([torch.full((3,), 3)])))
    assert last.tolist() == [[3] * 3]
    assert [pickle.loads(sent[i]).tolist() for i in (0, 2)] == [[[0] * 3], [[2] * 3]]
    collate._begin()


def test_loaders_may_share_the_slots():
    shared = tshare_torch.collate(20, slot_bytes=2 * 600 * 8)
    loaders = load(Rows(20), collate=shared), load(Rows(20, 600), collate=shared)
    for i, (small, large) in enumerate(zip(*loaders, strict=True)):
        assert small.tolist() == [[2 * i] * 6, [2 * i + 1] * 6]
        assert large.tolist() == [[2 * i] * 600, [2 * i + 1] * 600]
        assert memory_of(small).region.id == memory_of(large).region.id


def test_name_that_another_user_took_is_refused(as_worker):
    if os.geteuid():
        pytest.skip("only root becomes another user")
    collate = tshare_torch.collate()
    code = """
        import os, sys, tshare
        # Opens the session while it may.
        tshare.limits()
        os.setuid(64001)
        pool = tshare.Pool.create(sys.argv[1], 1 << 20, 16, mode=0o666)
        print("made", flush=True)
        sys.stdin.readline()
    """
    process = spawn(code, collate._name)
    assert process.stdout.readline() == "made\n"
    for call, argument in ((collate, [torch.zeros(3)]), (collate._take, b"key")):
        with pytest.raises(PermissionError, match="collate: its name was taken by user 64001"):
            call(argument)
    process.communicate("\n", timeout=300)
    collate._begin()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.to(torch.float32).requires_grad_(),
        lambda x: x.to_sparse(),
        # PyTorch imports its compiler for these.
        pytest.param(
            lambda x: torch.nested.nested_tensor([x], layout=torch.jagged),
            marks=pytest.mark.slow_in_guests,
        ),
        lambda x: torch.nested.nested_tensor([x], layout=torch.strided),
        lambda x: torch.quantize_per_tensor(x.to(torch.float32), 1.0, 0, torch.qint8),
    ],
    ids=["gradient", "sparse", "jagged", "nested", "quantized"],
)
# Nested tensors of this layout are a prototype, and quantized ones are deprecated.
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested", "ignore:torch.quantize_per_tensor")
def test_what_pytorch_refuses_is_refused(as_worker, change):
    texts = set()
    for collate in (torch_data.default_collate, tshare_torch.collate()):
        with pytest.raises(RuntimeError) as error:
            collate([change(row) for row in (Rows(2)[0], Rows(2)[1])])
        texts.add(str(error.value))
    assert len(texts) == 1


def test_subclass_of_tensor_is_collated_by_pytorch():
    class Other(Rows):
        def __getitem__(self, i):
            return super().__getitem__(i).as_subclass(Marked)

    (batch,) = load(Other(2))
    assert batch.tolist() == [[0] * 6, [1] * 6]
    with pytest.raises(BufferError):
        memory_of(batch)


def test_exception_in_a_worker_frees_its_slot():
    loader = load(Faulty(60), collate=tshare_torch.collate(3), persistent_workers=True)
    batches, came, errors = iter(loader), [], set()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        for _ in range(30):
            try:
                came.append(next(batches).tolist())
            except (ValueError, RuntimeError) as error:
                errors |= {text for text in ("is broken", "equal size") if text in str(error)}
    # Pairs whose numbers are no multiples of 3, and neither of them is one of 5.
    fine = [i for i in range(0, 60, 2) if i % 3 == 1 and i % 5 and (i + 1) % 5]
    assert len(came) == len(fine) > 3
    assert errors == {"is broken", "equal size"}
    assert next(batches, None) is None


def test_killed_worker_is_an_error_and_its_slots_come_back(tmp_path):
    # Two of the worker, and what was kept, what is being used, and the next one.
    loader = load(Deadly(40, 6, 20, tmp_path / "flag"), collate=tshare_torch.collate(5))
    batches = iter(loader)
    kept = next(batches)
    with pytest.raises(RuntimeError, match=r"exited unexpectedly|has died"):
        collections.deque(batches, 0)
    del batches
    gc.collect()
    # What came before is whole.
    assert kept.tolist() == [[0] * 6, [1] * 6]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "slots")
        assert [int(batch[0, 0]) for batch in loader] == list(range(0, 40, 2))
    assert kept.tolist() == [[0] * 6, [1] * 6]


def test_child_of_the_consumer_uses_the_loader_itself():
    loader = load(Rows(20), collate=tshare_torch.collate(8))
    kept = next(iter(loader))
    pid = os.fork()
    if not pid:
        status = 1
        try:
            numbers = [int(batch[0, 0]) for batch in loader]
            del kept
            gc.collect()
            status = numbers != list(range(0, 20, 2))
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    collections.deque(loader, 0)
    assert kept.tolist() == [[0] * 6, [1] * 6]


KILLED = """
import os, signal, sys
import torch
import tshare.torch

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, i):
        return torch.full((6,), i)

loader = torch.utils.data.DataLoader(
    Rows(), 2, num_workers=2, collate_fn=tshare.torch.collate()
)
batches = iter(loader)
# One of each worker: whoever starts when its parent is dead already never ends.
batch = next(batches), next(batches)
print(tshare.from_dlpack(batch[0], copy=False).region.info().name, flush=True)
sys.stdin.readline()
"""


def is_there(name, folder):
    if tshare.backend() == "kmod":
        return name in {info.name for info in tshare.list()}
    return any(folder.iterdir())


@pytest.mark.imports_torch
def test_names_go_with_a_consumer_that_was_killed(tmp_path):
    # A folder of its own: any other process that makes a region would remove the files.
    process = spawn(KILLED, env={**os.environ, "TSHARE_SHM_DIR": str(tmp_path)})
    name = process.stdout.readline().strip()

    def is_left():
        return is_there(name, tmp_path)

    assert is_left()
    process.kill()
    process.communicate()
    # Its workers end by themselves: they look for it every 5 seconds.
    until = time.monotonic() + 60
    while is_left() and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_left()


@pytest.mark.imports_torch
def test_names_of_a_group_that_was_killed_go_with_the_next_program(tmp_path):
    environment = {**os.environ, "TSHARE_SHM_DIR": str(tmp_path)}
    process = spawn(KILLED, env=environment, start_new_session=True)
    name = process.stdout.readline().strip()
    assert is_there(name, tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    # The workers have the pipe, too, which they may close before other files.
    process.communicate()
    until = time.monotonic() + 60
    while is_there(name, tmp_path) and time.monotonic() < until:
        run("import tshare; tshare.create(None, 1)", env=environment)
    assert not is_there(name, tmp_path)


def test_batch_may_take_several_slots():
    lengths = range(0, 4000, 500)
    loader = load(
        torch_data.Subset(Long(4000), lengths), 1, collate=tshare_torch.collate(80, slot_bytes=1)
    )
    assert [batch.tolist() for batch in loader] == [[[i] * (i + 1)] for i in lengths]


def test_batch_may_take_all_slots(as_worker):
    collate = tshare_torch.collate(2, slot_bytes=mmap.PAGESIZE)
    pools = []
    for size in (8, 2 * mmap.PAGESIZE):
        # The second is begun in one slot, which must be free for both.
        batch = collate([torch.zeros(size, dtype=torch.uint8)])
        assert memory_of(batch).region.info().name == collate._name
        del batch
        pools.append(collate._pool)
    # A larger batch does not open the slots again.
    assert pools[0] is pools[1]
    del pools
    collate._begin()


def test_batch_of_another_device_is_collated_by_pytorch(as_worker):
    batch = tshare_torch.collate()([torch.empty(3, device="meta")] * 2)
    assert (batch.device.type, batch.shape) == ("meta", (2, 3))


def test_batch_may_be_pickled_twice(as_worker):
    collate = tshare_torch.collate()
    batch = collate([torch.ones(3)])
    first, _ = ForkingPickler.dumps(batch), ForkingPickler.dumps(batch)
    assert pickle.loads(first).tolist() == [[1] * 3]
    collate._begin()


def test_batch_larger_than_all_slots_is_an_error():
    loader = load(Rows(4, 4096), collate=tshare_torch.collate(2, slot_bytes=4096))
    with pytest.raises(ValueError, match=r"slot_bytes: a batch of 65536 bytes exceeds all slots"):
        next(iter(loader))


def test_too_large_slots_are_an_error_and_leave_nothing(as_worker):
    with pytest.raises(OSError, match=r"slots: 1000 of 17592186044416 bytes can't be shared"):
        tshare_torch.collate(1000, slot_bytes=1 << 44)([torch.zeros(3)])
    assert not names()


def test_other_errors_are_passed_on(as_worker):
    class Pool:
        """A pool that can't make entries."""

        def make(self, *arguments):
            raise OSError(errno.EMFILE, "too many files")

    collate = tshare_torch.collate()
    collate._pool, collate._slot = Pool(), 64
    with pytest.raises(OSError, match="too many files"):
        collate([torch.zeros(3)])


def test_default_number_of_slots(as_worker):
    collate = tshare_torch.collate()
    batch = collate([torch.zeros(3)])
    assert collate._pool.info().slots == 2 * 1 + 4
    del batch
    collate._begin()


@pytest.mark.parametrize("name", ["slots", "slot_bytes"])
def test_arguments_are_checked(name):
    with pytest.raises(ValueError, match=f"^{name}: must be 1 or more, not 0"):
        tshare_torch.collate(**{name: 0})
    with pytest.raises(TypeError):
        tshare_torch.collate(**{name: 1.5})


def test_batch_comes_though_a_stopped_process_keeps_its_key():
    class Pool(dict):
        """A pool of which a process that was stopped keeps others."""

        def __delitem__(self, key):
            raise TimeoutError

    collate = tshare_torch.collate()
    collate._pool = Pool({b"a": {"batch": 5}})
    assert collate._take(b"a") == 5


def test_batch_of_a_worker_that_died_is_an_error():
    collate = tshare_torch.collate()
    for pool in (None, {}):
        collate._pool = pool
        with pytest.raises(RuntimeError, match="the worker that made the batch has died"):
            collate._take(b"key")


def test_batch_is_refused_where_the_loader_is_not():
    with pytest.raises(RuntimeError, match="hasn't the DataLoader"):
        need("tshare._torch_collate")._arrive("torch-none", b"key")


def test_pins_the_slots(stub):
    loader = load(Rows(8), collate=tshare_torch.collate(pin=True))
    # The workers of the second turn are forked while the memory is pinned.
    for _ in range(2):
        for batch in loader:
            memory = memory_of(batch)
            start = batch.data_ptr() - memory._spec[4]
            assert stub.stub_is_registered(ctypes.c_void_p(start), memory.region.size)
    assert stub.stub_registrations() == 1
    del loader
    gc.collect()
    assert stub.stub_registrations() == 0
    assert batch.tolist() == [[6] * 6, [7] * 6]


@pytest.mark.imports_torch
def test_lack_of_shared_memory_is_an_error_where_it_is_called(monkeypatch):
    monkeypatch.setenv("TSHARE_BACKEND", "shm")
    monkeypatch.setenv("TSHARE_SHM_DIR", "/nonexistent")
    code = """
        import tshare.torch
        try:
            tshare.torch.collate()
        except OSError as error:
            print(error.strerror)
    """
    assert run(code) == "/nonexistent: no such directory"
