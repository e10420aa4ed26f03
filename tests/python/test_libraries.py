# SPDX-License-Identifier: MIT
"""Tensors of tshare in other libraries, and theirs in tshare.

A fixture of the module imports each library, so that files which the import keeps
open are no leak of a test. For libraries that are too large to install there are
stand-ins in test_asarray.py; Documentation/python.rst has the results of trying them.
"""

import enum

import pytest

import tshare
from support import need
from test_asarray import Producer, Refuses

np = need("numpy")


def library(name, use=lambda module: None, fixture_name=None):
    @pytest.fixture(scope="module", name=fixture_name or name.rpartition(".")[2])
    def fixture():
        module = need(name)
        use(module)
        return module

    return fixture


h5py = library("h5py")
joblib = library("joblib")
mpi = library("mpi4py.MPI")
onnxruntime = library("onnxruntime")
pandas = library("pandas")
polars = library("polars")
pyarrow = library("pyarrow")
sklearn = library("sklearn.preprocessing")
tvm_ffi = library("tvm_ffi")
safetensors_numpy = library("safetensors.numpy", fixture_name="safetensors_numpy")
xarray = library("xarray", lambda xarray: repr(xarray.DataArray([1])))
zarr = library("zarr", lambda zarr: zarr.array(np.ones(1), store=zarr.storage.MemoryStore()))


@pytest.fixture
def t():
    return tshare.asarray(np.arange(24, dtype="float32").reshape(4, 6))


@pytest.fixture
def line():
    return tshare.asarray(np.arange(6, dtype="float32"))


def shares(tensor, get):
    """Whether what was made of the tensor sees what is written to its first element."""
    tensor.numpy()[(0,) * tensor.ndim] = 99
    return float(get()) == 99


def is_same(tensor, x):
    """Whether x is taken for the tensor's own memory."""
    back = tshare.asarray(x, copy=False)
    there = back.__array_interface__["data"][0]
    return (there, back.shape) == (tensor.__array_interface__["data"][0], tensor.shape)


def is_copied(x, values):
    with pytest.raises(BufferError, match="copy"):
        tshare.asarray(x, copy=False)
    return np.asarray(tshare.asarray(x)).tolist() == values


# PyArrow


def test_pyarrow_takes_a_tensor_as_a_buffer(pyarrow, line):
    buffer = pyarrow.py_buffer(line)
    array = pyarrow.Array.from_buffers(pyarrow.float32(), 6, [None, buffer])
    assert shares(line, lambda: array[0].as_py())
    assert is_same(line, array)


def test_pyarrow_takes_the_array_of_a_tensor(pyarrow, line, t):
    array, matrix = pyarrow.array(line.numpy()), pyarrow.Tensor.from_numpy(t.numpy())
    assert shares(line, lambda: array[0].as_py())
    assert shares(t, lambda: matrix.to_numpy()[0, 0])


def test_tables_are_regions_of_their_columns(pandas, pyarrow, polars):
    columns = {"a": [1, 2, 3], "b": [1.5, 2.5, 3.5]}
    for make in (pandas.DataFrame, pyarrow.table, polars.DataFrame):
        region = tshare.Region.create(None, make(columns))
        assert {key: t.numpy().tolist() for key, t in region.items()} == columns
        assert region["a"].dtype == "int64"


def test_arrays_of_pyarrow_are_taken(pyarrow):
    assert is_copied(pyarrow.array([1, 2, 3]), [1, 2, 3])
    assert is_copied(pyarrow.chunked_array([[1, 2], [3]]), [1, 2, 3])


# polars, pandas, xarray


def test_polars_takes_the_array_of_a_tensor(polars, line):
    series = polars.Series(line.numpy())
    assert shares(line, lambda: series[0])


def test_series_and_frames_of_polars_are_taken(polars):
    assert np.asarray(tshare.asarray(polars.Series([1, 2]))).tolist() == [1, 2]
    assert np.asarray(tshare.asarray(polars.DataFrame({"a": [1], "b": [2]}))).tolist() == [[1, 2]]


def test_pandas_takes_a_tensor_as_a_series(pandas, line):
    series = pandas.Series(line)
    assert (series.shape, series.dtype) == ((6,), np.float32)
    assert shares(line, lambda: series[0])


def test_pandas_takes_the_array_of_a_tensor_as_a_frame(pandas, t):
    assert pandas.DataFrame(t).shape == (4, 6)
    frame = pandas.DataFrame(t.numpy(), copy=False)
    assert shares(t, lambda: frame.iloc[0, 0])


def test_series_and_frames_of_pandas_are_taken(pandas):
    assert np.asarray(tshare.asarray(pandas.Series([1, 2]))).tolist() == [1, 2]
    assert np.asarray(tshare.asarray(pandas.DataFrame({"a": [1], "b": [2]}))).tolist() == [[1, 2]]


def test_xarray_takes_a_tensor(xarray, t):
    array = xarray.DataArray(t, dims=("y", "x"))
    assert shares(t, lambda: array[0, 0])


def test_arrays_of_xarray_are_taken(xarray):
    assert np.asarray(tshare.asarray(xarray.DataArray([1, 2]))).tolist() == [1, 2]


# Scientific libraries and storage


def test_scikit_learn_takes_a_tensor(preprocessing, t):
    scaled = preprocessing.StandardScaler().fit_transform(t)
    assert scaled.shape == (4, 6)


def test_scikit_learn_splits_the_array_of_a_tensor(preprocessing, t):
    model_selection = need("sklearn.model_selection")
    train, test = model_selection.train_test_split(t.numpy(), test_size=1)
    assert (train.shape, test.shape) == ((3, 6), (1, 6))
    with pytest.raises(TypeError, match=r"t\.numpy\(\)"):
        model_selection.train_test_split(t)


def test_h5py_writes_a_tensor(h5py, t):
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        assert (file.create_dataset("a", data=t)[:] == t.numpy()).all()
        file["a"][...] = t
        file["a"][0] = 7
        file["a"].read_direct(t.numpy())
        assert t.numpy()[0].tolist() == [7] * 6
        assert is_copied(file["a"][0], [7] * 6)
        assert np.asarray(tshare.asarray(file["a"])).shape == (4, 6)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_writes_a_tensor(zarr, t, zarr_format):
    stored = zarr.array(t, store=zarr.storage.MemoryStore(), zarr_format=zarr_format)
    assert (stored[:] == t.numpy()).all()
    stored[1] = t[0]
    assert (stored[1] == t.numpy()[0]).all()
    stored[0] = 7
    t.numpy()[:] = stored[:]
    assert t.numpy()[0].tolist() == [7] * 6
    assert np.asarray(tshare.asarray(stored)).shape == (4, 6)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool", "int64"])
def test_safetensors_saves_a_tensor_as_numpy_s(safetensors_numpy, dtype):
    t = tshare.create(None, (2, 3), dtype)
    t[:] = [[1, 0, 1], [0, 0, 1]]
    found = safetensors_numpy.load(safetensors_numpy.save({"t": t}))["t"]
    assert found.dtype == t.dtype
    assert found.tolist() == t.numpy().tolist()


def test_attributes_of_numpy_s_are_absent_where_numpy_can_t_have_the_memory():
    t = tshare.create(None, 4, "int4")
    assert not any(hasattr(t, name) for name in ("astype", "ctypes", "ravel"))
    t.close()
    with pytest.raises(ValueError, match="closed"):
        t.ravel()


# Processes and threads


def test_mpi_sends_from_a_tensor_into_a_tensor(MPI, t):  # noqa: N803
    to = tshare.create(None, (4, 6), "float32")
    MPI.COMM_SELF.Sendrecv(t, 0, recvbuf=to)
    assert (to.numpy() == t.numpy()).all()
    assert tshare.asarray(MPI.buffer.allocate(10)).shape == (10,)


def test_joblib_passes_a_tensor_to_threads(joblib, t):
    shapes = joblib.Parallel(2, prefer="threads")(joblib.delayed(np.shape)(t) for _ in range(2))
    assert shapes == [(4, 6)] * 2


# Inference


def test_onnxruntime_takes_a_tensor(onnxruntime, t):
    value = onnxruntime.OrtValue.from_dlpack(t)
    assert shares(t, lambda: value.numpy()[0, 0])
    assert is_same(t, value)


def test_onnxruntime_takes_the_array_of_a_tensor(onnxruntime, t):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(t.numpy())
    assert shares(t, lambda: value.numpy()[0, 0])


def test_values_of_onnxruntime_are_taken(onnxruntime):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(np.array([1, 2]))
    assert is_copied(value, [1, 2])
    assert np.asarray(tshare.from_dlpack(value)).tolist() == [1, 2]


def test_tvm_ffi_takes_a_tensor(tvm_ffi, t):
    tensor = tvm_ffi.from_dlpack(t)
    assert shares(t, lambda: np.from_dlpack(tensor)[0, 0])
    assert is_same(t, tensor)
    assert is_same(t, tvm_ffi.get_global_func("testing.echo")(t))


def test_tensors_of_tvm_ffi_are_taken(tvm_ffi):
    assert is_copied(tvm_ffi.from_dlpack(np.array([1, 2])), [1, 2])


# Stand-ins for what is too large


class Paddle(Producer):
    """paddle.Tensor: the device is an enum's member and None, the capsule is versioned."""

    class Device(enum.IntEnum):
        CPU = 1

    def __dlpack_device__(self):
        return (self.Device.CPU, None)


@pytest.mark.parametrize("kind", [Paddle, Refuses], ids=["paddle", "tensorflow"])
def test_producer_is_taken(kind):
    for take in (tshare.asarray, tshare.from_dlpack):
        assert np.asarray(take(kind())).tolist() == [[0, 1, 2], [3, 4, 5]]
    with tshare.Region.create(None, {"x": kind()}) as region:
        assert region["x"].shape == (2, 3)
    t = tshare.create(None, (2, 3), "int32")
    t.copy_from(kind())
    assert t.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
