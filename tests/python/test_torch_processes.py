# SPDX-License-Identifier: MIT
import multiprocessing
from multiprocessing import forkserver, resource_sharer, resource_tracker

import pytest

import tshare
from support import address, need

torch = need("torch")
torch_data = need("torch.utils.data")
torch_multiprocessing = need("torch.multiprocessing")


@pytest.fixture(scope="module", autouse=True)
def helpers():
    resource_tracker.ensure_running()
    forkserver.ensure_running()


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
    # What the workers wrote is here, so it was no copy that they had.
    assert mine[:, 1].tolist() == [1] * 8
    del loader
    resource_sharer.stop()


def test_tensor_travels_through_torch_s_queue(context):
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
