# SPDX-License-Identifier: MIT
import ctypes
import gc
import threading
import weakref

import pytest

import tshare
from support import address, mapped


@pytest.fixture
def tensor():
    return tshare.create(None, (2, 3, 4), "float32")


def test_attributes_follow_numpy_s_conventions(tensor):
    assert tensor.shape == (2, 3, 4)
    assert tensor.strides == (48, 16, 4)
    assert tensor.ndim == 3
    assert tensor.itemsize == 4
    assert tensor.nbytes == 96
    assert len(tensor) == 2
    assert tensor.device == "cpu"
    assert tensor.readonly is False
    assert tensor.closed is False


def test_shape_and_strides_are_tuples_of_ints(tensor):
    for values in (tensor.shape, tensor.strides):
        assert type(values) is tuple
        assert {type(value) for value in values} == {int}


@pytest.mark.parametrize("name", ["shape", "dtype", "name", "closed", "new"])
def test_attributes_can_not_be_set(tensor, name):
    with pytest.raises(AttributeError):
        setattr(tensor, name, None)


def test_len_of_a_scalar_is_a_type_error():
    with pytest.raises(TypeError, match="len"):
        len(tshare.create(None, ()))


def test_tensor_is_made_only_by_functions():
    for kind in (tshare.Tensor, tshare.Region):
        with pytest.raises(TypeError):
            kind()


def test_repr_has_name_shape_dtype_and_access(name):
    with tshare.create(name, (2, 3), "int16") as t:
        assert repr(t) == f"<tshare.Tensor name='{name}' shape=(2, 3) dtype=int16>"
        assert repr(tshare.open(name, readonly=True)).endswith(" readonly>")
    assert "closed" in repr(t)


def test_packed_elements_have_no_strides_in_bytes():
    t = tshare.create(None, (4, 3), "float4_e2m1fn")
    assert t.strides is None
    assert (t.itemsize, t.nbytes) == (1, 6)


def test_region_is_the_one_it_lies_in(tensor):
    assert isinstance(tensor.region, tshare.Region)
    assert tensor.region.fileno() == tensor.fileno()
    assert tensor.region[""].shape == (2, 3, 4)


def test_close_unmaps_the_memory():
    t = tshare.create(None, 1 << 20)
    with memoryview(t) as view:
        where = ctypes.addressof(ctypes.c_char.from_buffer(view))
    assert mapped(where)
    gc.collect()
    t.close()
    assert t.closed
    assert not mapped(where)


def test_close_twice_is_fine(tensor):
    tensor.close()
    tensor.close()


def test_leaving_the_context_closes(tensor):
    with tensor as same:
        assert same is tensor
    assert tensor.closed


def test_closed_tensor_is_not_entered(tensor):
    tensor.close()
    with pytest.raises(ValueError, match="tensor is closed"), tensor:
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.shape,
        lambda t: t.strides,
        lambda t: t.dtype,
        lambda t: t.ndim,
        lambda t: t.itemsize,
        lambda t: t.nbytes,
        lambda t: t.byte_offset,
        lambda t: t.readonly,
        lambda t: t.name,
        lambda t: t.device,
        lambda t: t.region,
        lambda t: t.fileno(),
        lambda t: t.unlink(),
        lambda t: len(t),
        lambda t: t.size,
        lambda t: t.T,
        lambda t: t.item(),
        lambda t: bool(t),
        lambda t: int(t),
        lambda t: t.copy_from(1),
        lambda t: t.__setitem__(0, 1),
        lambda t: memoryview(t),
        lambda t: t.__array_interface__,
        lambda t: t.__array__(),
        lambda t: t.__dlpack__(),
        lambda t: t.__dlpack__(copy=True),
        lambda t: t.__dlpack_device__(),
        lambda t: tshare.from_dlpack(t),
    ],
)
def test_closed_tensor_raises_value_error(tensor, use):
    tensor.close()
    with pytest.raises(ValueError, match="tensor is closed"):
        use(tensor)


def test_close_waits_for_views(tensor):
    view = memoryview(tensor)
    with pytest.raises(BufferError, match="views"):
        tensor.close()
    view[0, 0, 0] = 1.5
    view.release()
    tensor.close()


def test_leaving_with_closes_also_what_has_views():
    with tshare.create(None, 4) as t:
        view = memoryview(t)
    assert t.closed
    view[0] = 1
    with pytest.raises(ValueError, match="tensor is closed"):
        memoryview(t)
    t.close()
    assert bytes(view) == b"\1\0\0\0"


def test_leaving_with_keeps_the_block_s_own_exception():
    views = []

    def fail():
        with tshare.create(None, 4) as t:
            views.append(memoryview(t))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(views[0]) == 4


@pytest.mark.parametrize("close", [lambda t: None, tshare.Tensor.close])
def test_last_view_after_with_frees_the_memory(close):
    with tshare.create(None, 1 << 20) as t:
        views = [memoryview(t), memoryview(t)]
        place = ctypes.addressof(ctypes.c_char.from_buffer(t))
    close(t)
    views.pop().release()
    assert mapped(place)
    views.pop().release()
    assert not mapped(place)
    close(t)


def test_leaving_with_a_region_leaves_its_tensors():
    with tshare.Region.create(None, {"a": (4, "uint8")}) as region:
        view = memoryview(region["a"])
    assert region.closed
    view[3] = 1


def test_close_keeps_the_memory_of_other_tensors_of_the_region(tensor):
    other = tensor.region[""]
    memoryview(tensor).cast("B")[0] = 9
    tensor.close()
    assert memoryview(other).cast("B")[0] == 9


def test_memory_stays_mapped_while_its_address_is_in_use():
    tensor = tshare.create(None, 1 << 20)
    where = address(tensor)
    tensor.close()
    assert mapped(where)
    del tensor
    gc.collect()
    assert not mapped(where)


def test_tensor_takes_weak_references():
    tensor = tshare.create(None, 1)
    reference = weakref.ref(tensor)
    assert reference() is tensor
    del tensor
    gc.collect()
    assert reference() is None


def test_threads_open_and_close_at_the_same_time(name):
    made = tshare.create(name, 1000)
    errors = []

    def work():
        try:
            for _ in range(50):
                with tshare.open(name) as t, memoryview(t) as view:
                    view[0] = 1
                tshare.create(None, 10).region.info()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert bytes(made)[0] == 1
