# SPDX-License-Identifier: MIT
import multiprocessing
from multiprocessing import resource_sharer

import pytest

import tshare
from support import address, need, run

torch = need("torch")
torch_data = need("torch.utils.data")
torch_multiprocessing = need("torch.multiprocessing")

pytestmark = pytest.mark.usefixtures("helper_processes")


# A process that imports PyTorch anew takes half a minute to do so in a virtual
# machine, where the ways to start one are tested with smaller modules.
START_METHODS = ["fork", pytest.param("spawn", marks=pytest.mark.imports_torch)]


@pytest.fixture(params=START_METHODS)
def context(request):
    yield torch_multiprocessing.get_context(request.param)
    resource_sharer.stop()


class Rows(torch_data.Dataset):
    """A data set over one tensor in shared memory."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, index):
        rows = torch.from_dlpack(self.tensor)
        rows[index, 1] += 1
        return rows[index, 0].clone()


def double(tensors, done):
    torch.from_dlpack(tensors.get(timeout=300)).mul_(2)
    done.put(True)


def add(tensor, value):
    tensor += value


def add_from(tensors, done):
    tensor = tensors.get(timeout=300)
    tensor += 1
    done.put(tensor)
    # The sender must still run when the answer is received.
    tensors.get(timeout=300)


class Marked(torch.Tensor):
    """A subclass of torch.Tensor."""


def mark(tensor):
    marked = tensor.as_subclass(Marked)
    # PyTorch 1.13 can't unpickle one without attributes.
    marked.mark = 1
    return marked


class Lines(torch_data.Dataset):
    """A data set over a torch.Tensor that lies in shared memory."""

    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        self.lines[index, 1] += 1
        return self.lines[index]


def in_place(tensor):
    """The address of the region's memory that a torch.Tensor lies in; or an error."""
    return address(tshare.from_dlpack(tensor.detach(), copy=False))


def scale(region):
    torch.from_dlpack(region["weight"]).mul_(torch.from_dlpack(region["factor"]))


@pytest.mark.parametrize("start", START_METHODS)
def test_data_loader_s_workers_share_one_data_set(start):
    rows = tshare.create(None, (8, 2), "int64")
    mine = torch.from_dlpack(rows)
    mine[:, 0] = torch.arange(8)
    loader = torch_data.DataLoader(
        Rows(rows),
        batch_size=4,
        num_workers=2,
        multiprocessing_context=multiprocessing.get_context(start),
    )
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    # The workers' writes are visible here, so they had no copy.
    assert mine[:, 1].tolist() == [1] * 8
    del loader
    resource_sharer.stop()


def test_tensor_is_sent_through_torch_s_queue(context):
    t = tshare.create(None, 3, "float32")
    mine = torch.from_dlpack(t)
    mine += 1
    tensors, done = context.Queue(), context.Queue()
    process = context.Process(target=double, args=(tensors, done))
    process.start()
    tensors.put(t)
    assert done.get(timeout=300)
    process.join(300)
    assert process.exitcode == 0
    process.close()
    assert mine.tolist() == [2, 2, 2]
    assert address(t) == mine.data_ptr()
    for queue in (tensors, done):
        queue.close()
        queue.join_thread()


def test_workers_share_one_set_of_weights(context):
    region = tshare.Region.create(
        None, {"weight": torch.ones(2, 3), "factor": torch.tensor(5.0), "bias": torch.zeros(3)}
    )
    process = context.Process(target=scale, args=(region,))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    process.close()
    assert torch.from_dlpack(region["weight"]).tolist() == [[5] * 3] * 2


def test_view_as_an_argument_is_no_copy(context):
    t = tshare.create(None, 4, "float32")
    mine = torch.from_dlpack(t)
    process = context.Process(target=add, args=(mine[1:], 7))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    process.close()
    assert memoryview(t).tolist() == [0, 7, 7, 7]
    assert mine.data_ptr() == address(t)


def test_view_through_torch_s_queue_is_no_copy(context):
    t = tshare.create(None, 3, "int64")
    mine = torch.from_dlpack(t)
    tensors, done = context.Queue(), context.Queue()
    process = context.Process(target=add_from, args=(tensors, done))
    process.start()
    tensors.put(mine)
    answer = done.get(timeout=300)
    answer += 1
    assert memoryview(t).tolist() == [2, 2, 2]
    assert mine.data_ptr() == address(t)
    in_place(answer)
    tensors.put(None)
    process.join(300)
    assert process.exitcode == 0
    process.close()
    for queue in (tensors, done):
        queue.close()
        queue.join_thread()


@pytest.mark.parametrize("start", START_METHODS)
def test_data_loader_s_workers_share_a_view(start):
    lines = torch.from_dlpack(tshare.create(None, (8, 2), "int64"))
    lines[:, 0] = torch.arange(8)
    loader = torch_data.DataLoader(
        Lines(lines),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=multiprocessing.get_context(start),
    )
    for line in loader:
        line[1] += 10
    assert lines.tolist() == [[number, 11] for number in range(8)]
    in_place(lines)
    del loader
    resource_sharer.stop()


VIEWS = {
    "whole": lambda whole: whole,
    "slice": lambda whole: whole[1:3, 2:],
    "steps": lambda whole: whole[::2, ::3],
    "transposed": lambda whole: whole.T,
    "expanded": lambda whole: whole[:1].expand(5, 6),
    "scalar": lambda whole: whole[2, 3],
    "other type": lambda whole: whole.view(torch.uint8),
    "empty": lambda whole: whole[2:2],
    "parameter": lambda whole: torch.nn.Parameter(whole),
    "frozen parameter": lambda whole: torch.nn.Parameter(whole, requires_grad=False),
    "with gradient": lambda whole: whole.detach().requires_grad_(),
    "subclass": mark,
}


@pytest.mark.parametrize("kind", list(VIEWS))
def test_view_arrives_as_what_it_was(travel, kind):
    t = tshare.create(None, (4, 6), "float32")
    whole = torch.from_dlpack(t)
    sent = VIEWS[kind](whole)
    came = travel(sent)
    assert type(came) is type(sent)
    assert (came.dtype, came.shape, came.stride()) == (sent.dtype, sent.shape, sent.stride())
    assert came.storage_offset() == sent.storage_offset()
    assert came.requires_grad == sent.requires_grad
    # The sender's tensor has not moved, and the receiver sees its memory.
    assert whole.data_ptr() == address(t)
    whole[:] = 3
    assert came.detach().tolist() == sent.detach().tolist()
    if came.numel():
        assert in_place(came) != in_place(sent)


def test_tensor_over_numpy_s_array_is_no_copy(travel):
    numpy = need("numpy")
    t = tshare.create(None, 4, "int32")
    mine = torch.from_numpy(numpy.asarray(t)[1:])
    came = travel(mine)
    came += 1
    assert memoryview(t).tolist() == [0, 1, 1, 1]
    assert mine.data_ptr() == address(t) + 4


def test_storage_is_sent_without_moving(travel):
    t = tshare.create(None, 4)
    mine = torch.from_dlpack(t)
    storage = mine.untyped_storage() if hasattr(mine, "untyped_storage") else mine.storage()
    came = travel(storage)
    came[1] = 5
    assert bytes(t) == b"\0\5\0\0"
    assert mine.data_ptr() == address(t)


def test_module_s_weights_stay_where_they_are(travel):
    region = tshare.Region.create(None, torch.nn.Linear(3, 2).state_dict())
    module = torch.nn.Linear(3, 2)
    for name, parameter in module.named_parameters():
        parameter.data = torch.from_dlpack(region[name])
    came = travel(module)
    with torch.no_grad():
        came.bias.fill_(4)
    assert memoryview(region["bias"]).tolist() == [4, 4]
    assert module.weight.data_ptr() == address(region["weight"])


def test_readonly_memory_arrives_where_it_can_t_be_written(travel, name):
    keep = tshare.create(name, 4)
    t = tshare.open(name, readonly=True)
    try:
        mine = torch.from_dlpack(t)
    except BufferError:
        mine = torch.frombuffer(t, dtype=torch.uint8)
    came = travel(mine)
    memoryview(keep)[2] = 6
    assert came.tolist() == [0, 0, 6, 0]
    place = tshare._tshare.bytes_at(came.data_ptr(), 4)
    assert place.region.readonly


def test_sharing_by_the_file_system_leaves_a_view_where_it_is(travel):
    strategy = torch_multiprocessing.get_sharing_strategy()
    torch_multiprocessing.set_sharing_strategy("file_system")
    try:
        t = tshare.create(None, 4)
        mine = torch.from_dlpack(t)
        travel(mine)[0] = 1
    finally:
        torch_multiprocessing.set_sharing_strategy(strategy)
    assert bytes(t) == b"\1\0\0\0"
    assert mine.data_ptr() == address(t)


def test_tensor_outside_a_region_is_sent_as_before(travel):
    keep = torch.from_dlpack(tshare.create(None, 4))
    for tensor in (torch.arange(4), keep.clone(), torch.empty(0, 3)):
        came = travel(tensor)
        assert came.tolist() == tensor.tolist()
        assert tensor.is_shared() or not tensor.numel()


@pytest.mark.imports_torch
@pytest.mark.parametrize("order", ["tshare, torch", "torch, tshare"])
def test_torch_may_be_imported_at_any_time(order):
    code = f"""
        import {order}
        import pickle
        from multiprocessing import reduction

        t = tshare.create(None, 4)
        mine = torch.from_dlpack(t)
        pickle.loads(reduction.ForkingPickler.dumps(mine))[1] = 7
        print(bytes(t)[1], mine.data_ptr() == t.__array_interface__["data"][0])
    """
    assert run(code) == "7 True"
