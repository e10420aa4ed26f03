# SPDX-License-Identifier: MIT
#
# The docstrings of the extension stand here, and here alone: python/ext/docstrings.py makes
# macros of them, which the C files use as they are.

import builtins
from collections.abc import (
    Callable,
    Coroutine,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from types import EllipsisType, TracebackType
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    SupportsIndex,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Buffer, CapsuleType

from ._generations import Generations

__version__: str

_T = TypeVar("_T")
_Shape = SupportsIndex | Sequence[SupportsIndex]
_Index = SupportsIndex | slice | EllipsisType | None
_Key = _Index | tuple[_Index, ...]
_CudaDevice = SupportsIndex | str
_CudaPath = Literal["dmabuf", "registered", "pageable"]

class _SupportsFileno(Protocol):
    def fileno(self) -> int: ...

class _SupportsCudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

_CudaStream = SupportsIndex | _SupportsCudaStream

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> CapsuleType: ...

class RegionInfo(NamedTuple):
    """Properties of a region; from Region.info() and tshare.list()."""

    name: str | None
    """Name, or None if the region has no name (any more)."""
    size: int
    """Bytes, a multiple of the page size."""
    mode: int
    """Permission bits."""
    uid: int
    """Owner's user id."""
    gid: int
    """Owner's group id."""
    id: int
    """Number of the region, unique among the backend's existing regions."""
    lifetime: str
    """How long the name stays: "maker", "users" or "persist", as given to create()."""
    draft: bool
    """Whether the region is a draft, which can't be opened before finish()."""
    tensor_count: int
    """Number of tensors."""
    readonly: bool
    """Whether the caller may only read."""
    node: int | None
    """NUMA node, or None if the backend doesn't report it."""
    dma32: bool
    """Whether the region was created with dma32."""
    contiguous: bool
    """Whether the region was created with contiguous."""
    segments: int
    """Physically contiguous segments, or 0 if the backend doesn't report them."""
    phys_addr: int
    """Physical address on kmod for CAP_SYS_RAWIO, else 0."""
    foreign: bool
    """Whether the region consists of another driver's dma-buf."""
    pool: bool
    """Whether the region's memory is from a pool of the module."""

class Limits(NamedTuple):
    """Properties and limits of the backend; from tshare.limits()."""

    abi_version: int
    """Version of the module's ABI, or 0 on shm."""
    page_size: int
    """Bytes of a page. Sizes of regions are multiples of it."""
    huge_page_size: int
    """Bytes of the largest page that regions are mapped with."""
    bytes_limit: int
    """Bytes that all regions together may have."""
    bytes_used: int
    """Bytes that all regions together have."""
    region_bytes_max: int
    """Bytes that one region of this process may have now."""
    contiguous: bool
    """Whether regions are physically contiguous."""
    dmabuf: bool
    """Whether a region's descriptor is a dma-buf."""

@final
class DType(str):
    """The type of a tensor's elements: its name, a str such as "float32".

    It is equal to the name, and to the same type of NumPy, PyTorch, JAX and ml_dtypes and of
    Python, such as np.float32. Its hash is the name's: in a dict whose keys are types of those
    libraries it is not found. DType(x) is made of what create() takes as dtype.
    """

    def __new__(cls, dtype: Any, /) -> DType: ...
    @property
    def name(self) -> str:
        """The name, as a plain str."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element, rounded up."""
    @property
    def byteorder(self) -> str:
        """As NumPy's: "=" for the machine's order, "|" for elements of a byte or less."""
    @property
    def kind(self) -> str:
        """As NumPy's: "b", "i", "u", "f" or "c", or "V" for types that NumPy lacks."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Tensor(Buffer):
    """A tensor in shared memory.

    Made by tshare.create(), open(), from_fd(), asarray() and from_dlpack(), by indexing a
    Tensor, and by looking up a name in a Region. NumPy, PyTorch, JAX and others take it
    without a copy, by the buffer protocol, the array interface or DLPack.

    Once a tensor is closed, its attributes and methods raise ValueError, but for closed and
    close().
    """

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """Bytes from one index to the next along each dimension, as in NumPy.

        None where an element is not a whole number of bytes.
        """
    @property
    def dtype(self) -> DType:
        """Type of the elements: its name, such as "uint8"."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element, rounded up."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def T(self) -> Tensor:  # noqa: N802
        """View with the dimensions in reverse order."""
    @property
    def byte_offset(self) -> int:
        """Bytes from the start of the region to the first element, for Region.export()."""
    @property
    def readonly(self) -> bool:
        """Whether this process may only read the memory."""
    @property
    def name(self) -> str | None:
        """Name of the tensor in its region, or the region's name if it has none there.

        None if neither has a name.
        """
    @property
    def device(self) -> str:
        """Where the memory is: "cpu"."""
    @property
    def region(self) -> Region:
        """Region that the tensor lies in, a new object each time."""
    @property
    def closed(self) -> bool:
        """Whether the tensor was closed."""
    @property
    def astype(self) -> Callable[..., Any]:
        """NumPy's method of t.numpy(), for libraries that take a tensor for NumPy's array."""
    @property
    def ctypes(self) -> Any:
        """NumPy's attribute of t.numpy(), for the same libraries."""
    @property
    def ravel(self) -> Callable[..., Any]:
        """NumPy's method of t.numpy(), for the same libraries."""
    @property
    def _spec(self) -> tuple[Any, ...]: ...
    @property
    def _in_frame(self) -> bool: ...
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3.

        :raises AttributeError: The interface has no type for the elements.
        """
    def close(self) -> None:
        """Drop this object's reference to the memory.

        The memory stays until its last user, in any process, has dropped it. To close a
        closed tensor does nothing.

        :raises BufferError: A memoryview or an array that was made by the buffer protocol is
            in use.
        """
    def fileno(self) -> int:
        """Return the file descriptor of the region, which tshare.from_fd() takes.

        The region owns the descriptor and closes it.
        """
    def finish(self, *, replace: bool = False) -> None:
        """Let others open the region, as Region.finish() does, with the same errors.

        :param replace: Replace a region of this user that has the name.
        """
    def unlink(self) -> None:
        """Remove the region's own name, as Region.unlink() does, with the same errors."""
    def numpy(self) -> Any:
        """Return a NumPy array over the memory, never a copy.

        :raises ValueError: The elements are packed, so that NumPy can only have a copy, by
            np.asarray(t).
        """
    def torch(self) -> Any:
        """Return a torch.Tensor over the memory, never a copy.

        PyTorch ignores that memory is read-only: a write to it ends the process with SIGSEGV, or
        changes it where the region can be written, as an entry of a pool that wasn't opened
        read-only. The first such tensor of a process is a UserWarning.

        :raises BufferError: PyTorch has no such type, or no negative strides, as of t[::-1].
        """
    def copy_from(self, x: Any, /) -> None:
        """Copy the elements of another tensor or array into this one.

        :param x: Anything that asarray() takes, of the same type, and of the same shape or one that
            broadcasts to it. It may lie in the same memory. A number of Python's, or a list or
            tuple of them, takes the tensor's type.
        :raises TypeError: x has another type, or a number that the type doesn't include, such as a
            float for integers; copy_from() never converts, and t[...] = x does.
        :raises OverflowError: A number is out of the type's range.
        :raises ValueError: The shape of x doesn't fit.
        :raises PermissionError: The tensor is read-only.
        """
    def item(self) -> Any:
        """Return the only element as a number of Python's; so do int(), float() and bool().

        :raises ValueError: The tensor has more elements, or none.
        :raises TypeError: NumPy is needed for elements that C lacks, such as bfloat16, and is not
            installed.
        """
    def pin(self, device: _CudaDevice | None = None) -> Pin:
        """Page-lock the whole region of the tensor, as Region.pin() does, with the same errors.

        :param device: Number of a CUDA device, or its name, such as "cuda:0"; None for that of
            the thread's current context, or 0 if it has none.
        """
    def cuda(
        self,
        device: _CudaDevice | None = None,
        *,
        path: _CudaPath | None = None,
        copy: bool = False,
        stream: _CudaStream | None = None,
    ) -> CudaTensor:
        """Return the same memory as a CUDA device sees it, or a copy in the device's own memory.

        In place, the library maps the whole region for the device. It does so once: the mapping
        stays as long as the region is mapped in this process. For an empty tensor it maps
        nothing.

        A copy is put on a stream, and takes memory of the device until the last object that
        was made of it is gone and the stream has made it. It may be written, also if the
        tensor is read-only. The copy has the tensor's strides, and so what lies between its
        elements is copied, too. Pin the region before: a copy of memory that is not pinned may
        have the caller wait. A pinned region stays so as long as the copy.

        :param device: Number of a CUDA device, or its name, such as "cuda:0"; None for that of
            the thread's current context, or 0 if it has none.
        :param path: How the device is to reach the memory: "dmabuf", as external memory;
            "registered", as page-locked memory, which a pinned region is already; "pageable",
            as the processor does, where the device can. None for the first that works.
        :param copy: True for a copy.
        :param stream: The stream that makes the copy: None or 1, the legacy default one; 2, that
            of the thread; a handle, or an object with __cuda_stream__(), which the copy keeps.
        :raises ValueError: There is no such device, path or stream; path and copy were given,
            or stream without copy; device is not the stream's.
        :raises OSError: EOPNOTSUPP: there is no CUDA driver, no path works, the stream is being
            captured, or the process was forked from one that uses CUDA. EBUSY: somebody else has
            registered the memory, or a part of it. ENOMEM: the device or the driver is out of
            memory. EIO: CUDA has failed; the text has its error.
        """
    def __getitem__(self, key: _Key, /) -> Tensor: ...
    def __setitem__(self, key: _Key, x: Any, /) -> None: ...
    def __delitem__(self, key: _Key, /) -> NoReturn: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __eq__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __format__(self, spec: str, /) -> str: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Tensor:
        """Return the tensor itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the tensor, even if there are views of it.

        The memory stays mapped until the last of them is released.
        """
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, view: memoryview, /) -> None: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a NumPy array over the memory.

        It is a copy where dtype or copy demand one, and where elements are packed. Types that
        NumPy lacks come as those of ml_dtypes.

        :raises ValueError: copy is False, and a copy would be needed.
        :raises TypeError: NumPy has no such type, and ml_dtypes is not installed.
        """
    def __jax_array__(self) -> Any:
        """Return a JAX array of the tensor."""
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export as a DLPack capsule.

        :param stream: None, since the memory is the CPU's.
        :param max_version: Newest version that the consumer takes; without it, or below (1, 0),
            the capsule is a legacy one.
        :param dl_device: None or (1, 0), the CPU; or (3, 0), page-locked memory, if the region
            is pinned. It then stays pinned until the consumer deletes what it was given.
        :param copy: True: export a copy. None or False: export the memory itself.
        :raises BufferError: dl_device is another device, or (3, 0) and the region isn't
            pinned or copy is true; the tensor is read-only and the capsule a legacy one; or
            packed elements with strides are to be copied.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and device id, (1, 0): the CPU, also if pinned."""

@final
class CudaTensor:
    """The memory of a Tensor, as a CUDA device sees it, or a tensor in the device's own memory.

    Made by Tensor.cuda(), by create() with a device, by open() of its name, and by indexing a
    CudaTensor. PyTorch, CuPy, JAX, Numba and others
    take it without a copy, by DLPack or the CUDA array interface. The memory stays as
    long as this object or what was made of it is there, even if the Tensor is closed.

    Neither CUDA nor tshare orders what the CPU and the device do with the memory: wait for
    the device's streams before the CPU reads what they write, or writes what they read.
    """

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """Bytes from one index to the next along each dimension, as in NumPy.

        None where an element is not a whole number of bytes.
        """
    @property
    def dtype(self) -> DType:
        """Type of the elements: its name, such as "uint8"."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element, rounded up."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
    @property
    def readonly(self) -> bool:
        """Whether the device may only read the memory: if this process may; never of a copy."""
    @property
    def region(self) -> Region:
        """Region that the tensor lies in, a new object each time.

        Of a device's memory with a name: the small region of that name, which describes it. It has
        the tensor's finish(), unlink() and generation.
        """
    @property
    def tensor(self) -> Tensor:
        """The same tensor for the CPU, a new object each time; of a copy, what was copied.

        :raises AttributeError: The memory is a device's that has a name, and not on the host.
        """
    @property
    def device(self) -> str:
        """Name of the device, such as "cuda:0"."""
    @property
    def path(self) -> _CudaPath | Literal["copy", "device"] | None:
        """How the device reaches the memory: "dmabuf", "registered" or "pageable"; or "copy".

        "device": it is the device's own memory, which has a name.
        None for an empty tensor that is no copy.
        """
    @property
    def failures(self) -> dict[_CudaPath, int]:
        """Paths that were tried and don't work, and why.

        A CUresult where CUDA refused, such as 801 (not supported); a negative errno where CUDA
        wasn't asked.
        """
    @property
    def driver_version(self) -> int:
        """Version of CUDA that the driver is made for, such as 13000 for 13.0."""
    @property
    def context_created(self) -> bool:
        """Whether the device had no primary context, and tshare has created it."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        The stream is the one that makes the copy, or None in place, where there is nothing to
        wait for. A thread's default one is given as the legacy one, which waits for it and is
        the same in each thread.

        :raises AttributeError: The interface has no type for the elements.
        :raises OSError: EOWNERDEAD: the process that has made the memory, which has a name, has
            ended or dropped it. EIO: the memory has gone with its context.
        """
    def __getitem__(self, key: _Key, /) -> CudaTensor: ...
    def __eq__(self, other: object, /) -> Any: ...
    def __ne__(self, other: object, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[CudaTensor]: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refuse to become a NumPy array; g.tensor.numpy() is the CPU's.

        :raises TypeError: Always.
        """
    def __dlpack__(
        self,
        *,
        stream: _CudaStream | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Export as a DLPack capsule.

        :param stream: The stream that the consumer will use: None or 1, the legacy default
            one; 2, that of the thread; a handle, or an object with __cuda_stream__(); or -1 for
            none. It waits for a copy, and has nothing else to wait for.
        :param max_version: Newest version that the consumer takes; without it, or below (1, 0),
            the capsule is a legacy one.
        :param dl_device: None or the device, (2, its number).
        :param copy: None or False.
        :raises BufferError: dl_device is another device, copy is true, or the tensor is
            read-only and the capsule a legacy one.
        :raises ValueError: stream is 0, which may be either default one, or below -1.
        :raises OSError: EOPNOTSUPP: the stream that has to wait for a copy is being captured.
            EIO: CUDA has failed; the text has its error. EOWNERDEAD: the process that has made the
            memory, which has a name, has ended or dropped it.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and device id, (2, the device's number)."""

@final
class Pin:
    """A region whose memory is page-locked for CUDA.

    Made by Region.pin() and Tensor.pin(). A pin keeps the memory mapped, even if the region
    and its tensors are closed. It ends with release(), with its with block, or when the object
    is gone. A region may have several; its memory is registered with CUDA once, and is
    unlocked with the last.

    Once a pin is released, its attributes and methods raise ValueError, but for released and
    release().
    """

    @property
    def region(self) -> Region:
        """The region that is pinned, a new object each time."""
    @property
    def device(self) -> str:
        """Name of the device in whose context the memory is registered, such as "cuda:0".

        Other devices can use it, too.
        """
    @property
    def readonly(self) -> bool:
        """Whether devices may only read the memory."""
    @property
    def piece_bytes(self) -> int:
        """Bytes of each piece that the memory is registered in; the region's size for one.

        A copy between a device and the region can't cross a multiple of it.
        """
    @property
    def driver_version(self) -> int:
        """Version of CUDA that the driver is made for, such as 13000 for 13.0."""
    @property
    def context_created(self) -> bool:
        """Whether the device had no primary context, and tshare has created it."""
    @property
    def released(self) -> bool:
        """Whether the pin was released."""
    def release(self) -> None:
        """Drop this object's pin.

        The last one of a region unlocks the memory, unless a CudaTensor needs it. Wait for
        asynchronous copies first. To release a released pin does nothing.
        """
    def __enter__(self) -> Pin:
        """Return the pin itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Release the pin."""

@final
class StreamWait:
    """A CUDA stream's wait for a generation.

    Made by Region.wait_on(). The stream waits on when the object is gone.
    """

    @property
    def done(self) -> bool:
        """Whether the wait is over, for whatever reason."""
    def result(self) -> int:
        """Return the generation that has ended the wait.

        It is there before the stream goes on. A process that has synchronised with the stream,
        after that, gets no BlockingIOError.

        :raises BlockingIOError: The stream still waits.
        :raises TimeoutError: The timeout has passed.
        :raises ValueError: The region was closed by close().
        :raises OSError: EOWNERDEAD: all other publishers have closed the region or ended.
            ECANCELED: cancel() was called, or Python exits. EOPNOTSUPP: this is a child by
            fork() of the process whose stream waits.
        """
    def cancel(self) -> None:
        """End the wait, so that the stream goes on.

        The result is then an OSError with ECANCELED. A wait that is over stays as it is.
        """

@final
class Watcher:
    """Waits until a name leads to another region.

    Made by watch(). For a reader that has to notice a new region of that name, and the end of
    the one it has, such as a server that was killed before it published anything::

        with tshare.watch("model") as watcher:
            seen = watcher.wait()                    # the id of the first one
            while seen := watcher.wait(seen):
                region = tshare.Region.open("model")

    Can be used in a with block. Only one thread at a time can wait through it; others need their
    own, and so does a child of fork().
    """

    @property
    def name(self) -> str:
        """The name that is watched."""
    @property
    def closed(self) -> bool:
        """Whether close() was called."""
    def wait(self, seen: SupportsIndex | None = None, timeout: float | None = None) -> int | None:
        """Sleep until the name leads elsewhere than seen, and return the region's id.

        None is returned if the name leads to no region, or to a draft. A region that was
        open is still usable then. On shm the call returns up to a second after the process
        that kept the region was killed.

        :param seen: Id of the region that the caller knows, as Region.id is; None for none.
        :param timeout: Seconds. 0: don't sleep. None: no limit.
        :raises TimeoutError: The timeout has passed.
        :raises OSError: ECANCELED: cancel() was called. EBUSY: another thread waits.
            EOPNOTSUPP: this is a child by fork() of the process that made the watcher.
        :raises PermissionError: On shm: the name leads to a region that this process may not
            read.
        :raises ValueError: close() was called meanwhile.
        """
    def wait_async(
        self, seen: SupportsIndex | None = None, timeout: float | None = None
    ) -> Coroutine[Any, Any, int | None]:
        """Wait as wait() does, in asyncio.

        The result is to be awaited. It can be cancelled like any other coroutine. Several tasks
        of a loop may wait.

        :param seen: Id of the region that the caller knows, as Region.id is; None for none.
        :param timeout: Seconds. 0: don't sleep. None: no limit.
        :raises TimeoutError: The timeout has passed.
        :raises OSError: As of wait().
        :raises ValueError: close() was called meanwhile.
        """
    def cancel(self) -> None:
        """End all waits through this watcher, in any thread, for good."""
    def fileno(self) -> int:
        """Return a descriptor that is readable when wait() may return.

        For select and event loops. Nothing is to be read of it: wait() with a timeout of 0
        makes it unreadable. It may be readable without news.
        """
    def close(self) -> None:
        """End all waits, and close the descriptor."""
    def _hold(self) -> object: ...
    def __enter__(self) -> Watcher:
        """Return the watcher itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the watcher."""

@final
class Region(Mapping[str, Tensor], Buffer):
    """A piece of shared memory that holds tensors: a mapping of their names to them.

    Made by Region.create(), Region.open() and Region.from_fd(). memoryview() of a region is
    all its bytes, which can be written if the region can be. Once a region is
    closed, its attributes and methods raise ValueError, but for closed and close(); tensors
    that were taken from it remain usable.

    A long list of tensors is read when a key is first looked up or the keys are first asked
    for. The call raises OSError with EPROTO if another process has damaged the list, which
    the kmod backend rules out.
    """

    __hash__: ClassVar[Any]
    @classmethod
    def create(
        cls,
        name: str | None = None,
        tensors: Mapping[str, Any] | None = None,
        *,
        size: SupportsIndex | None = None,
        dmabuf: int | _SupportsFileno | None = None,
        mode: SupportsIndex = 0o600,
        lifetime: str = "maker",
        draft: bool = False,
        exist_ok: bool = False,
        node: SupportsIndex | None = None,
        dma32: bool = False,
        contiguous: bool = False,
    ) -> Region:
        """Create a region of tensors.

        :param name: Name by which others open it; None for a region that is shared by its
            descriptor alone.
        :param tensors: A mapping, or a table of pandas, PyArrow or polars, whose columns are
            arrays. A value is (shape, dtype, strides=None, offset=None), the
            last two in bytes, for a tensor of zeros; an array, which is copied; or a mapping of
            such, whose keys become "name/key". Arrays that share writable memory share it in
            the region.
        :param size: Bytes; None for as many as the tensors need.
        :param dmabuf: Descriptor of another driver's dma-buf that the region is to consist of,
            instead of new memory. It stays the caller's, needs a name, and keeps what is in it.
            Processes that open the name get this dma-buf, and must be allowed to write if it
            is writable. The region goes with its name.
        :param mode: Permission bits to read and to write, in 0o666. The umask does not apply.
        :param lifetime: How long the name stays: "maker": until this process ends. "users":
            while any process has the region open. "persist": until it is unlinked.
        :param draft: Create a draft, which has the name and can't be opened before finish(). It
            is removed when it is closed or this process ends, with any lifetime.
            multiprocessing passes it to other processes.
        :param exist_ok: Replace, in one step, a region of this user that has the name. The
            old region stays for its users, without a name. A draft replaces it in
            finish().
        :param node: NUMA node that the memory must be on; None for any.
        :param dma32: Demand physical addresses below 4 GiB.
        :param contiguous: Demand physically contiguous memory.
        :raises FileExistsError: The name is taken, by a draft or without exist_ok.
        :raises PermissionError: The region that has the name is another user's.
        :raises ValueError: An argument is malformed, or a tensor exceeds size.
        :raises TypeError: A value is neither a tuple as above nor an array.
        :raises BufferError: An array can't be copied, as when it is on a GPU.
        :raises OSError: ENOMEM: the memory is unavailable. EDQUOT: a limit is reached.
            EOPNOTSUPP: the backend can't fulfil node, dma32 or contiguous, or is shm and has no
            names for a dmabuf.
        """
    @classmethod
    def open(
        cls,
        name: str,
        *,
        readonly: bool = False,
        wait: float = 0.0,
        other_than: Region | Tensor | None = None,
    ) -> Region:
        """Open a named region.

        :param name: Name given to Region.create(), tshare.create() or asarray().
        :param readonly: Map the memory read-only. Writes then fail in any library.
        :param wait: Seconds to wait until a finished region has the name; math.inf for ever.
            Other threads run meanwhile.
        :param other_than: Wait until the name leads to another region than this.
        :raises FileNotFoundError: No region has that name, or the process that was to finish a
            draft has ended.
        :raises BlockingIOError: Without wait: the region is a draft, or the one in other_than.
        :raises TimeoutError: The seconds of wait have passed.
        :raises PermissionError: The region's mode denies the access.
        """
    @classmethod
    def from_fd(cls, fd: int | _SupportsFileno, *, readonly: bool = False) -> Region:
        """Open a region by its file descriptor.

        :param fd: From fileno() of any process; a number or an object that has fileno(). It
            stays the caller's.
        :param readonly: Map the memory read-only. A descriptor that was opened read-only gives a
            read-only region in any case.
        :raises ValueError: fd is not the descriptor of a region.
        :raises OSError: EBADF: fd is not open. EPROTO: the region is damaged, or its sender
            could truncate it.
        """
    @property
    def name(self) -> str | None:
        """Name at the time of create() or open(), or None."""
    @property
    def size(self) -> int:
        """Bytes, a multiple of the page size."""
    @property
    def id(self) -> int:
        """Number of the region, unique among the backend's existing regions."""
    @property
    def readonly(self) -> bool:
        """Whether this process may only read the memory."""
    @property
    def backend(self) -> str:
        """Backend that the descriptor belongs to: "kmod" or "shm"."""
    @property
    def closed(self) -> bool:
        """Whether the region was closed."""
    @property
    def generation(self) -> int:
        """Number of calls of publish() so far, by all processes."""
    def announce(self) -> None:
        """Become a publisher without publishing.

        From now on the wait() of others notices when this process ends or closes the region,
        though it may have published nothing. publish() does so, too.

        :raises PermissionError: As by publish().
        """
    def publish(self) -> int:
        """Add one to the generation, wake all waiters, and return the generation.

        Data written before the call are visible to a process whose wait() returns this
        generation.

        :raises PermissionError: The region is read-only or, on shm, one that this process may
            not open itself.
        """
    def publish_once(self) -> int:
        """Publish as publish() does, without becoming a publisher.

        For a program that publishes and exits: its end ends no wait() of others.

        :raises PermissionError: The region is read-only.
        """
    def has_publishers(self) -> bool:
        """Return whether another object or process is a publisher; False if none ever was.

        :raises OSError: EOWNERDEAD: there were others, and all have closed the region or ended.
        """
    def wait(self, seen: SupportsIndex, timeout: float | None = None, *, spin: float = 0.0) -> int:
        """Sleep until the generation is above seen, and return the generation.

        :param seen: Newest generation that the caller has seen; 0 at first.
        :param timeout: Seconds. 0: don't sleep. None: no limit.
        :param spin: Seconds to poll before sleeping. Polling keeps a processor busy, and saves
            the time that waking up takes.
        :raises TimeoutError: The timeout has passed.
        :raises OSError: EOWNERDEAD: all other publishers have closed the region or ended.
        :raises ValueError: close() was called meanwhile.
        """
    def wait_async(
        self, seen: SupportsIndex, timeout: float | None = None
    ) -> Coroutine[Any, Any, int]:
        """Wait as wait() does, in asyncio.

        The result is to be awaited. It can be cancelled like any other coroutine. Any number
        of tasks may wait for one region, in the loops of any threads.

        :param seen: Newest generation that the caller has seen; 0 at first.
        :param timeout: Seconds. 0: don't sleep. None: no limit.
        :raises TimeoutError: The timeout has passed.
        :raises OSError: EOWNERDEAD: all other publishers have closed the region or ended.
        :raises ValueError: close() was called meanwhile.
        """
    def cuda_counter(self, device: _CudaDevice | None = None) -> int:
        """Return the address of the generation for a CUDA device, for kernels.

        It is a 64-bit number. A kernel reads it by a load with acquire order at system scope
        and, as the only publisher, adds one by a store with release order. The store wakes no
        waiter: see Documentation/cuda.rst. The address is valid as long as the region is mapped.

        :param device: Number of a CUDA device, or its name, such as "cuda:0"; None for that of
            the thread's current context, or 0 if it has none.
        :raises ValueError: There is no such device.
        :raises PermissionError: The region is read-only.
        :raises OSError: EOPNOTSUPP: there is no CUDA driver, or the process was forked from one
            that uses CUDA. EIO: CUDA has failed; the text has its error.
        """
    def publish_on(self, stream: _CudaStream, *, device: _CudaDevice | None = None) -> None:
        """Make a CUDA stream publish after its earlier work.

        When all earlier work of the stream has ended, its writes are visible, and a thread of
        the driver publishes as publish() does. Later work of the stream begins after that.
        The call returns at once. The stream keeps the memory until then, even if the region
        is closed.

        :param stream: The stream: its handle; 1, the legacy default one; 2, that of the thread;
            or an object with __cuda_stream__(), whose handle 0 is the legacy default stream.
        :param device: Number of a CUDA device, or its name, such as "cuda:0", for the default
            streams; None for that of the thread's current context, or 0 if it has none.
        :raises ValueError: The stream is 0, which may be either default one, or negative; there
            is no such device, it isn't the stream's, or has no context yet.
        :raises PermissionError: The region is read-only or, on shm, one that this process may
            not open itself.
        :raises OSError: EOPNOTSUPP: there is no CUDA driver, the stream is being captured, or
            the process was forked from one that uses CUDA. EIO: CUDA has failed; the text has
            its error.
        """
    def wait_on(
        self,
        stream: _CudaStream,
        seen: SupportsIndex,
        timeout: float | None = None,
        *,
        device: _CudaDevice | None = None,
    ) -> StreamWait:
        """Make a CUDA stream wait until the generation is above seen.

        Later work of the stream begins when such a generation is published, and sees the
        writes before it. The call returns at once, and the stream waits whether its result is
        kept or not.

        The wait ends for every reason that ends a wait(), and when the process exits. The
        stream goes on then, too: synchronise with it, and look at the result before what it
        has computed is used.

        :param stream: As for publish_on().
        :param seen: Newest generation that the caller has seen; 0 at first.
        :param timeout: Seconds from this call on. 0: go on at once. None: no limit.
        :param device: As for publish_on().
        :returns: The wait, which ends later.
        :raises ValueError: As by publish_on(), or close() was called meanwhile.
        :raises OSError: As by publish_on(). EOPNOTSUPP also: the device or the driver, which is
            one for CUDA 11.7 or later, can't have a stream wait.
        """
    def generations(self, seen: SupportsIndex | None = None) -> Generations:
        """Return an iterator over the generations that are published, for for and async for.

        Each step waits for a generation above the last one, and returns the newest: a slow
        loop skips generations. The loop ends when all other publishers have
        closed the region or ended, or when this object is closed.

        :param seen: Newest generation that the caller has seen; None for the present one.
        """
    def event_fileno(self) -> int:
        """Return a file descriptor that is readable when there is news, for selectors.

        There is news when a generation was published (also before the first call), when all
        other publishers have exited, and when close() was called. The descriptor is readable
        until os.eventfd_read() has read it, which never blocks. Read it first, then call
        wait(seen, 0). Each call returns the same descriptor. The region owns it and closes
        it: remove it from selectors before close().
        """
    def _dup_async_fd(self) -> int: ...
    def fileno(self) -> int:
        """Return the file descriptor that from_fd() takes in any process.

        The region owns the descriptor and closes it.
        """
    def export(
        self,
        offset: SupportsIndex = 0,
        size: SupportsIndex | None = None,
        *,
        readonly: bool = False,
    ) -> int:
        """Make a file descriptor of the region or of a part of it.

        It can be passed to another process, or to a driver that imports dma-bufs and takes no
        offset, such as a camera's: one frame of a ring. Neither reaches other bytes, nor writes
        through a read-only one. Region.from_fd() of a part is a region of its size, without
        tensors.

        :param offset: Bytes before the part, whole pages.
        :param size: Bytes of the part, whole pages; None for all from offset on.
        :param readonly: Make it read-only.
        :returns: The descriptor, which the caller closes.
        :raises ValueError: The part is not made of whole pages, or not inside the region.
        :raises PermissionError: The region is read-only, and readonly is false.
        :raises OSError: EOPNOTSUPP: the backend is shm, which has no parts, or the region is
            foreign.
        """
    def read(
        self,
        fd: int | _SupportsFileno,
        file_offset: SupportsIndex = 0,
        offset: SupportsIndex = 0,
        length: SupportsIndex | None = None,
        *,
        threads: SupportsIndex | None = None,
        direct: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Read a part of a file into the region, by several threads.

        Other threads of Python run meanwhile. After an error, or Ctrl-C, any part of the place
        may have been written.

        :param fd: The file, open for reading; a number or an object that has fileno(). Its
            position neither matters nor changes.
        :param file_offset: Bytes of the file before the part.
        :param offset: Bytes of the region before the place where the part is to be.
        :param length: Bytes to read; None for all of the region from offset on. The file may
            then end earlier, after the last tensor's bytes or, without tensors, in the region's
            last page.
        :param threads: Threads that read at a time, 1 to 64; None for the library's choice.
        :param direct: Let the disk write into the region (O_DIRECT), so that the page cache
            doesn't grow. Parts that can't be read so go through the page cache, and are dropped
            from it at once; parts that it has already are copied, and stay.
        :param progress: Called now and then with the bytes that were read so far. An exception
            in it ends the call.
        :raises PermissionError: The region is read-only.
        :raises ValueError: The place is not inside the region, or an argument is out of its range.
        :raises OSError: ENODATA: the file is shorter. EBADF, ESPIPE or EISDIR: fd is no file that
            is open for reading. EIO: the disk fails.
        """
    def info(self) -> RegionInfo:
        """Return the present properties of the region."""
    def finish(self, *, replace: bool = False) -> None:
        """Let others open the region, which was created with draft=True.

        The name leads to the region from one moment on. Processes that open it see all data
        written before. After an error the region is still a draft.

        :param replace: Replace a region of this user that has the name. The old region stays
            for its users, without a name. A draft that was created with exist_ok=True always
            does so here.
        :raises ValueError: The region is not a draft.
        :raises FileExistsError: Another region has the name, and replace is not given.
        :raises FileNotFoundError: The name was removed.
        :raises PermissionError: The other region is another user's, or the draft was created
            in another process.
        """
    def unlink(self) -> None:
        """Remove the region's own name, and never that of a region which has taken it over.

        The memory stays for its users.

        :raises ValueError: The region never had a name.
        :raises FileNotFoundError: The region has lost its name.
        :raises PermissionError: The name belongs to another user.
        """
    def pin(self, device: _CudaDevice | None = None) -> Pin:
        """Page-lock the memory where it lies, so that GPUs copy from and to it at full speed.

        Nothing is copied. While the region is pinned, is_pinned() of a torch.Tensor over it is
        true, and copies with non_blocking=True are asynchronous. Other threads run meanwhile.

        :param device: Number of a CUDA device, or its name, such as "cuda:0"; None for that of
            the thread's current context, or 0 if it has none. The memory is page-locked for
            all devices.
        :raises ValueError: There is no such device.
        :raises OSError: EOPNOTSUPP: there is no CUDA driver, the region is read-only and the
            device takes no such memory, or the process was forked from one that uses CUDA.
            EBUSY: somebody else has registered the memory, or a part of it. ENOMEM: the
            memory can't be locked, or the driver is out of memory. EIO: CUDA has failed; the
            text has its error.
        """
    def close(self) -> None:
        """Drop this object's reference to the memory.

        Tensors that were taken from the region keep it, and so do its pins and buffers. Waits
        on this object, of other threads, of tasks and of streams, end with ValueError at once.
        To close a closed region does nothing.
        """
    def __enter__(self) -> Region:
        """Return the region itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the region."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, view: memoryview, /) -> None: ...
    def __getitem__(self, key: str, /) -> Tensor: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __copy__(self) -> NoReturn: ...
    def __deepcopy__(self, memo: Any, /) -> NoReturn: ...
    @overload
    def get(self, key: str, /) -> Tensor | None:
        """Return the tensor of that name, or default if there is none.

        :param key: Name of the tensor in the region.
        :param default: Value to return if there is no such tensor.
        """
    @overload
    def get(self, key: str, /, default: Tensor | _T) -> Tensor | _T: ...
    def keys(self) -> KeysView[str]:
        """Return a view of the tensors' names."""
    def values(self) -> ValuesView[Tensor]:
        """Return a view of the tensors."""
    def items(self) -> ItemsView[str, Tensor]:
        """Return a view of the pairs of name and tensor."""

class FrameLost(LookupError):  # noqa: N818
    """A stream has no frame of that number: not any more, or not yet. From stream[number]."""

class PoolInfo(NamedTuple):
    """How full a pool is; from Pool.info()."""

    slots: int
    """Parts that entries are made of."""
    slot_size: int
    """Bytes of a slot."""
    entries: int
    """Entries, finished or being made."""
    used_slots: int
    """Slots of entries."""
    held_slots: int
    """Slots of entries that processes hold or make: they stay."""
    seat: int
    """This object's seat, 0 to 61, which the text of a TimeoutError names."""

@final
class Entry(Mapping[str, Tensor]):
    """An entry of a pool: a mapping of names to tensors.

    Made by Pool.get() and Pool.put(), whose tensors are read-only, and by Pool.make(), whose
    tensors can be written. PyTorch ignores that: in a process that only gets entries, open the
    pool with readonly=True, so that the memory itself refuses to be written.

    The pool keeps an entry until the object, its tensors and all arrays over them are gone or this
    process ends; then others may need its room. close(), or a with block, drops the object's part
    of that early.

    multiprocessing sends an entry's tensor, and arrays over it, as copies. The entry itself can't
    be pickled: send its key.
    """

    __hash__: ClassVar[Any]
    @property
    def closed(self) -> bool:
        """Whether close() was called. Other methods raise ValueError then."""
    def finish(self) -> None:
        """Let others get the entry, which Pool.make() has made.

        This process must not write to it any more, though arrays over it still let it.

        :raises PermissionError: The entry is finished.
        :raises ValueError: close() was called.
        :raises OSError: EOPNOTSUPP: this is a child by fork() of its maker.
        """
    def finish_on(self, stream: _CudaStream, *, device: _CudaDevice | None = None) -> None:
        """Make a CUDA stream finish the entry after its earlier work, which fills it.

        The call returns at once, and the entry may be closed. Only the device may write to it
        from now on.

        :param stream: As for Region.publish_on().
        :param device: As for Region.publish_on().
        :raises PermissionError: The entry is finished, or was passed to a CUDA stream.
        :raises ValueError: As by Region.publish_on(), or close() was called.
        :raises OSError: As by Region.publish_on(). The entry is still unfinished then.
        """
    def release_on(self, stream: _CudaStream, *, device: _CudaDevice | None = None) -> None:
        """Close the entry now, and let a CUDA stream keep it until its earlier work has ended.

        The call returns at once. The pool keeps the entry until the stream has read it, and the
        last tensor and array over it are gone.

        :param stream: As for Region.publish_on().
        :param device: As for Region.publish_on().
        :raises ValueError: As by Region.publish_on(), or close() was called.
        :raises OSError: As by Region.publish_on(). The entry isn't closed then.
        """
    def close(self) -> None:
        """Drop the entry. An entry that isn't finished is given up, and was never there.

        The room may be used again after the last tensor and array over it.
        """
    def __enter__(self) -> Entry:
        """Return the entry itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Finish an entry that is made, unless the block has raised an exception; close it."""
    def __getitem__(self, key: str, /) -> Tensor: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    @overload
    def get(self, key: str, /) -> Tensor | None:
        """Return the tensor of that name, or default if there is none.

        :param key: Name of the tensor.
        :param default: Value to return if there is no such tensor.
        """
    @overload
    def get(self, key: str, /, default: Tensor | _T) -> Tensor | _T: ...
    def keys(self) -> KeysView[str]:
        """Return a view of the tensors' names."""
    def values(self) -> ValuesView[Tensor]:
        """Return a view of the tensors."""
    def items(self) -> ItemsView[str, Tensor]:
        """Return a view of the pairs of name and tensor."""

@final
class Pool:
    """Tensors under keys, which up to 62 processes make and get in place.

    Made by Pool.create() and Pool.open()::

        pool = tshare.Pool.open("images")
        entry = pool.get(digest)
        if entry is None:
            entry = pool.put(digest, {"pixels": decode(file)})
        look_at(entry["pixels"].numpy())

    An entry that a process holds stays. Others stay until their room is needed: entries that were
    last made or got the longest ago go first. A killed process holds nothing any more, and an entry
    that it had not finished was never there.

    A key is str or bytes, of 1 to 120 bytes in UTF-8. Any number of threads may use one object.
    In a child by fork() methods raise OSError with EOPNOTSUPP: it opens the pool itself. A pickled
    pool is opened by its name where it arrives. Can be used in a with block.
    """

    @classmethod
    def create(
        cls,
        name: str,
        size: SupportsIndex,
        slots: SupportsIndex | None = None,
        *,
        mode: SupportsIndex = 0o600,
        lifetime: Literal["maker", "users", "persist"] = "maker",
        exist_ok: bool = False,
        node: SupportsIndex | None = None,
        dma32: bool = False,
        contiguous: bool = False,
    ) -> Pool:
        """Create a pool, and open it.

        The pool is the region of that name and a second one, NAME.seats, which says who holds what.

        :param name: Name by which others open it, of up to 120 bytes.
        :param size: Bytes for all entries.
        :param slots: Parts of whole pages that entries are made of, up to 1,048,576: an entry needs
            some that are side by side. None for 4,096, or one for each page of a small pool.
        :param mode: Permission bits to read and to write, in 0o666. Users who may write make
            entries, and users who may read get them; on shm users need both to open the pool. The
            umask does not apply.
        :param lifetime: How long the name stays: "maker": until this object is closed; "users":
            while any process has the pool open; "persist": until unlink().
        :param exist_ok: Open the pool of that name, if there is one, as it is. For processes that
            start alike: one creates it, and the others wait until it is there.
        :param node: NUMA node that the memory must be on; None for any.
        :param dma32: Demand physical addresses below 4 GiB.
        :param contiguous: Demand physically contiguous memory.
        :raises FileExistsError: The name is taken.
        :raises ValueError: An argument is malformed; the error names it.
        :raises TypeError: An argument has a wrong type; the error names it.
        :raises OSError: ENOMEM: the memory is unavailable. EDQUOT: a limit is reached.
            EOPNOTSUPP: the backend can't fulfil node, dma32 or contiguous.
        """
    @classmethod
    def open(cls, name: str, *, readonly: bool = False, wait: float = 0.0) -> Pool:
        """Open a pool.

        :param name: Name given to Pool.create().
        :param readonly: Map the entries read-only, and make none.
        :param wait: Seconds to wait until a pool has the name; math.inf for ever. Other threads
            run meanwhile.
        :raises FileNotFoundError: No region has that name.
        :raises BlockingIOError: A process is creating the pool, and wait is 0.
        :raises TimeoutError: The seconds of wait have passed.
        :raises PermissionError: The mode denies the access.
        :raises OSError: EUSERS: 62 others have it open. EPROTO: the region is no pool, or one of an
            incompatible version.
        """
    @property
    def name(self) -> str:
        """Name of the pool."""
    @property
    def region(self) -> Region:
        """Region of that name, a new object each time: to pin the memory of all entries at once."""
    @property
    def closed(self) -> bool:
        """Whether close() was called. Other methods raise ValueError then."""
    def info(self) -> PoolInfo:
        """Return how full the pool is."""
    def __getitem__(self, key: str | bytes, /) -> Entry:
        """Return the entry of a key.

        :param key: The key.
        :raises KeyError: The pool has no finished entry of that key.
        :raises TypeError: The key is neither str nor bytes.
        :raises ValueError: The key has no or more than 120 bytes, or close() was called.
        """
    @overload
    def get(self, key: str | bytes) -> Entry | None:
        """Return the entry of a key, or default if the pool has no finished one.

        :param key: The key.
        :param default: Value to return if there is no such entry.
        :raises TypeError: The key is neither str nor bytes.
        :raises ValueError: The key has no or more than 120 bytes, or close() was called.
        """
    @overload
    def get(self, key: str | bytes, default: _T) -> Entry | _T: ...
    def __contains__(self, key: str | bytes, /) -> bool: ...
    def __delitem__(self, key: str | bytes, /) -> None: ...
    def clear(self) -> None:
        """Remove all finished entries, as del pool[key] does with one.

        Nobody can get them any more. A process that holds an entry keeps it; then its room is free.

        :raises PermissionError: The pool was opened read-only.
        :raises TimeoutError: A stopped process prevents it.
        """
    def put(
        self, key: str | bytes, arrays: Mapping[str, Any], timeout: float | None = None
    ) -> Entry:
        """Return the entry of a key, and make it of copies of arrays if there is none.

        If another process makes it, waits for that, and copies nothing.

        :param key: The key.
        :param arrays: The arrays by their names: of any library, as tensors of Region.create().
        :param timeout: Seconds to wait for room, and for another maker. 0: don't sleep. None: no
            limit.
        :raises TimeoutError: No room became free in time. The text names who holds entries.
        :raises TypeError: An argument has a wrong type; the error names it.
        :raises ValueError: An argument is malformed, or close() was called, maybe meanwhile.
        :raises PermissionError: The pool was opened read-only.
        :raises OSError: EFBIG: the arrays need more than the whole pool. ECANCELED: cancel() was
            called.
        """
    def make(
        self, key: str | bytes, tensors: Mapping[str, Any], timeout: float | None = None
    ) -> Entry:
        """Make room for the entry of a key, and return it to be filled.

        In a with block the entry is finished and closed at the end, also by return and break, and
        given up if the block raises an exception. Otherwise call finish(), and use it. Its tensors
        have the contents of older entries. Nobody gets it before it is finished.

        :param key: The key.
        :param tensors: What the entry consists of: a mapping of names to (shape, dtype), or to an
            array that has both; as tensors of Region.create().
        :param timeout: As for put().
        :raises FileExistsError: The pool has a finished entry of that key.
        :raises TimeoutError: No room became free in time. The text names who holds entries.
        :raises TypeError: An argument has a wrong type; the error names it.
        :raises ValueError: An argument is malformed, or close() was called, maybe meanwhile.
        :raises PermissionError: The pool was opened read-only.
        :raises OSError: EFBIG: the tensors need more than the whole pool. ECANCELED: cancel() was
            called.
        """
    def unlink(self) -> None:
        """Remove the pool's names. Processes that have it open keep it.

        :raises FileNotFoundError: The names are gone, or are another pool's.
        """
    def cancel(self) -> None:
        """End all waits through this object, for good, with OSError and ECANCELED."""
    def close(self) -> None:
        """Close the pool. Entries that this process holds stay while it holds them."""
    def __enter__(self) -> Pool:
        """Return the pool itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the pool."""

class StreamSeat(NamedTuple):
    """A consumer of a stream, as it describes itself; from Stream.seats()."""

    seat: int
    """Number of the seat, which Stream.evict() takes."""
    pid: int
    """Process, in its own PID namespace; 0 until the consumer is ready."""
    held: int
    """Slots that it holds, also for frames that are kept for it and that it hasn't taken yet."""
    keeps_all: bool
    """Whether it has opened the stream with keep_all."""
    evicted: bool
    """Whether its frames were taken away."""
    command: str
    """Name of its program."""

@final
class Frame(Mapping[str, Tensor]):
    """A frame of a stream: a mapping of its fields' names to tensors.

    Made by Stream.loan(), whose frames can be written until they are published, and by take(),
    latest() and stream[number]. A frame that was taken stays as it is, in its slot, until the
    object, its tensors and all arrays over them are gone or this process ends. close(), or a
    with block, drops the object's part of that early.

    multiprocessing sends a frame's tensor, and arrays over it, as copies. The frame itself can't
    be pickled.
    """

    __hash__: ClassVar[Any]
    @property
    def number(self) -> int:
        """Number of the frame, from 1 on; 0 before it is published."""
    @property
    def lost(self) -> int:
        """Frames that were missed between the one taken before in order and this one.

        With follow of Stream.open() it counts within one stream, from its first frame on.
        """
    @property
    def epoch(self) -> int:
        """How many streams the object has moved over from, with follow of Stream.open(); else 0."""
    @property
    def captured(self) -> int | None:
        """When it was captured, in nanoseconds of time.monotonic_ns(); None if not said.

        The producer may set it until it publishes the frame.
        """
    @captured.setter
    def captured(self, value: SupportsIndex | None, /) -> None: ...
    @property
    def published(self) -> int:
        """When it was published, in nanoseconds of time.monotonic_ns(); 0 before that."""
    @property
    def sequence(self) -> int:
        """The device's own number, of 64 bits, if the producer has set it; else 0."""
    @sequence.setter
    def sequence(self, value: SupportsIndex, /) -> None: ...
    @property
    def flags(self) -> int:
        """The producer's own 64 bits, which it may set until it publishes the frame."""
    @flags.setter
    def flags(self, value: SupportsIndex, /) -> None: ...
    @property
    def slot(self) -> int:
        """Number of the slot that the frame is in, from 0 on."""
    @property
    def closed(self) -> bool:
        """Whether close() was called. The attributes can still be read then."""
    def set_shape(self, name: str, shape: _Shape) -> None:
        """Use less than a field's largest shape, before the frame is published.

        Elements keep their places: tensors that are taken from the frame afterwards, here and by
        consumers, have that shape, and strides of the largest one.

        :param name: Name of the field.
        :param shape: Elements along each of its dimensions.
        :raises KeyError: There is no such field.
        :raises ValueError: The shape is larger than the field, or has other dimensions.
        :raises PermissionError: The frame is a consumer's, or was published.
        """
    def publish(self) -> None:
        """Give the frame to the consumers.

        It is the next number, whatever the order of the loans. This process must not write to
        it any more, though arrays over it still let it.

        :raises PermissionError: The frame is a consumer's, or was published.
        :raises ValueError: The frame or its stream is closed.
        :raises OSError: EOPNOTSUPP: this is a child by fork() of the producer.
        """
    def publish_on(self, stream: _CudaStream, *, device: _CudaDevice | None = None) -> None:
        """Make a CUDA stream publish the frame after its earlier work, which fills it.

        The call returns at once, and the frame may be closed. It is the next number when the
        stream comes to it; until then its number is 0, and only the device may write to it.
        Synchronise with the CUDA stream before Stream.close(): frames that are published later
        are lost.

        :param stream: As for Region.publish_on().
        :param device: As for Region.publish_on().
        :raises PermissionError: The frame is a consumer's, or was published or passed to a CUDA
            stream.
        :raises ValueError: As by Region.publish_on(), or the frame or its stream is closed.
        :raises OSError: As by Region.publish_on(). The frame is still loaned then.
        """
    def release_on(self, stream: _CudaStream, *, device: _CudaDevice | None = None) -> None:
        """Close the frame now, and let a CUDA stream keep it until its earlier work has ended.

        The call returns at once. The slot returns when the stream has read it, and the last
        tensor and array over it are gone.

        :param stream: As for Region.publish_on().
        :param device: As for Region.publish_on().
        :raises ValueError: As by Region.publish_on(), or the frame is closed.
        :raises OSError: As by Region.publish_on(). The frame isn't closed then.
        """
    def check(self) -> None:
        """Check that what was read of the frame was whole.

        An observer copies what it needs first, and checks then.

        :raises OSError: ESTALE: the frame may have changed meanwhile: it was overwritten, or
            this consumer was evicted.
        """
    def close(self) -> None:
        """Drop the frame. A frame that was loaned and not published is abandoned.

        The slot returns with the last tensor and array over it.
        """
    def __enter__(self) -> Frame:
        """Return the frame itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Publish a loaned frame, unless the block has raised an exception; close the frame."""
    def __getitem__(self, key: str, /) -> Tensor: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    @overload
    def get(self, key: str, /) -> Tensor | None:
        """Return the tensor of that field, or default if there is none.

        :param key: Name of the field.
        :param default: Value to return if there is no such field.
        """
    @overload
    def get(self, key: str, /, default: Tensor | _T) -> Tensor | _T: ...
    def keys(self) -> KeysView[str]:
        """Return a view of the fields' names."""
    def values(self) -> ValuesView[Tensor]:
        """Return a view of the tensors."""
    def items(self) -> ItemsView[str, Tensor]:
        """Return a view of the pairs of name and tensor."""

@final
class Stream(Iterator[Frame]):
    """Frames from one producer to up to 62 consumers, in place.

    Made by Stream.create() and Stream.open()::

        with tshare.Stream.create("camera", {"image": ((480, 640, 3), "uint8")}) as stream:
            while True:
                with stream.loan() as frame:            # published at the block's end
                    capture(frame["image"].numpy())

        for frame in tshare.Stream.open("camera"):      # in other processes
            look_at(frame["image"].numpy())

    A frame that a consumer has taken stays whole; the producer fills other slots meanwhile. A
    consumer that is too slow misses frames, unless it keeps all. The iteration, also by async
    for, takes one frame after the other, and ends when the producer has closed the stream.

    Any number of threads may use one object; a frame goes to one of them. In a child by fork()
    methods raise OSError with EOPNOTSUPP: it opens the stream itself. Can be used in a with
    block.
    """

    @classmethod
    def create(
        cls,
        name: str,
        fields: Mapping[str, Any],
        slots: SupportsIndex = 8,
        history: SupportsIndex = 1,
        keep_all: bool = False,
        *,
        mode: SupportsIndex = 0o600,
        exist_ok: bool = False,
        node: SupportsIndex | None = None,
        dma32: bool = False,
        contiguous: bool = False,
    ) -> Stream:
        """Create a stream, and become its producer.

        The stream is the region of that name and a second one, NAME.seats, which consumers
        write. Both names go with the producer.

        :param name: Name by which others open it, of up to 120 bytes.
        :param fields: What a frame consists of: a mapping of names to (shape, dtype), the largest
            shape, or to an array that has both; as tensors of Region.create(). 1 to 64 fields;
            their names don't begin with a dot.
        :param slots: Frames that there is memory for, 2 to 256.
        :param history: Newest frames that stay until newer ones replace them, 1 to slots - 1.
            A consumer may begin with them, by history of open().
        :param keep_all: Let consumers keep all frames: the producer then waits for them.
        :param mode: Permission bits to read and to write, in 0o666. Users who may read
            can be consumers; on shm only users who may write can, and others observe. The umask
            does not apply.
        :param exist_ok: Replace a stream of this user that has the name, as a producer does
            that was restarted. A producer that lives goes on, alone with its consumers, and
            whoever opens the name gets the new stream.
        :param node: NUMA node that the memory must be on; None for any.
        :param dma32: Demand physical addresses below 4 GiB.
        :param contiguous: Demand physically contiguous memory.
        :raises FileExistsError: The name is taken, by a draft or without exist_ok.
        :raises PermissionError: The region that has the name is another user's.
        :raises ValueError: An argument is malformed; the error names it.
        :raises TypeError: An argument has a wrong type; the error names it.
        :raises OSError: ENOMEM: the memory is unavailable. EDQUOT: a limit is reached.
            EOPNOTSUPP: the backend can't fulfil node, dma32 or contiguous.
        """
    @classmethod
    def open(
        cls,
        name: str,
        keep_all: bool = False,
        history: SupportsIndex = 0,
        hold: SupportsIndex | None = None,
        *,
        observe: bool = False,
        wait: float = 0.0,
        follow: bool = False,
    ) -> Stream:
        """Open a stream, and become a consumer or observer of it.

        :param name: Name given to Stream.create().
        :param keep_all: Miss no frame: the producer waits until this consumer has taken and
            dropped each.
        :param history: Begin with up to that many frames that were published before; 0: with the
            next one. The producer keeps as many as history of create() says.
        :param hold: Frames that may be held at a time; None for a quarter of the slots, at least 2.
        :param observe: Delay nobody, and need no right to write NAME.seats: frames that are taken
            may be overwritten any time. Copy what you need, then call frame.check().
        :param wait: Seconds to wait until a stream has the name; math.inf for ever. Other threads
            run meanwhile.
        :param follow: Outlive the producer: take() and the like move over to the name's next
            stream, and wait for it when the producer has died. Frames that are left are taken
            first; frame.epoch counts the streams. When the producer has closed the stream that
            is the end, as without follow, unless the name leads to another stream by then.
        :raises FileNotFoundError: No region has that name.
        :raises TimeoutError: The seconds of wait have passed.
        :raises PermissionError: The mode denies the access, or the producer doesn't allow
            keep_all.
        :raises OSError: EUSERS: there are 62 other consumers. EPROTO: the region is no stream, or
            one of an incompatible version.
        """
    @property
    def name(self) -> str:
        """Name of the stream."""
    @property
    def fields(self) -> tuple[str, ...]:
        """Names of a frame's fields."""
    @property
    def role(self) -> Literal["producer", "consumer", "observer"]:
        """What this object is: "producer", "consumer" or "observer"."""
    @property
    def slots(self) -> int:
        """Frames that there is memory for."""
    @property
    def history(self) -> int:
        """Newest frames that stay until newer ones replace them."""
    @property
    def newest(self) -> int:
        """Number of the newest frame; 0 for none yet."""
    @property
    def ended(self) -> bool:
        """Whether the producer has closed the stream. Frames may be left to take."""
    @property
    def seat(self) -> int | None:
        """This consumer's seat; None for the producer and for an observer."""
    @property
    def region(self) -> Region:
        """Region of that name, a new object each time: to pin it, or to export a slot.

        A tensor of it has all slots of a field, and no slot waits for it. Only the producer's
        can be written.
        """
    @property
    def closed(self) -> bool:
        """Whether close() was called. Other methods and attributes raise ValueError then."""
    def loan(self, timeout: float | None = None) -> Frame:
        """Claim a slot for the next frame, as the producer.

        In a with block the frame is published at the end, and abandoned if the block raises an
        exception. Its tensors have the contents of an older frame. Several frames may be loaned
        at a time.

        :param timeout: Seconds to wait for a free slot. 0: don't sleep. None: no limit.
        :raises TimeoutError: No slot became free in time. The text names who holds them.
        :raises PermissionError: The stream was opened, not created.
        :raises ValueError: close() was called, maybe meanwhile.
        :raises OSError: ECANCELED: cancel() was called.
        """
    def take(self, timeout: float | None = None) -> Frame:
        """Take the next frame, in order: the oldest that wasn't taken yet and is still there.

        :param timeout: Seconds to wait for it. 0: don't sleep. None: no limit.
        :raises TimeoutError: No frame came in time.
        :raises EOFError: The producer has closed the stream, and no frame is left.
        :raises PermissionError: This object is the producer.
        :raises ValueError: close() was called, maybe meanwhile.
        :raises OSError: EOWNERDEAD: the producer has died, and no frame is left. ENOBUFS: this
            consumer holds as many frames as it may. ESTALE: the producer has evicted it.
            ECANCELED: cancel() was called. EPROTO: the stream to move over to, with follow of
            open(), has other fields.
        """
    def take_async(self, timeout: float | None = None) -> Coroutine[Any, Any, Frame]:
        """Take the next frame as take() does, in asyncio.

        The result is to be awaited. It can be cancelled like any other coroutine. Several tasks
        may wait; a frame goes to one of them.

        :param timeout: Seconds to wait for it. 0: don't sleep. None: no limit.
        :raises TimeoutError: No frame came in time.
        :raises EOFError: The producer has closed the stream, and no frame is left.
        :raises PermissionError: This object is the producer.
        :raises ValueError: close() was called, maybe meanwhile.
        :raises OSError: As of take().
        """
    def latest(self, timeout: float | None = None) -> Frame:
        """Take the newest frame, and pass over older ones, which count as lost.

        A frame that was published before open() counts as taken already, unless open() was
        called with history.

        :param timeout: Seconds to wait for one that wasn't taken yet. 0: don't sleep. None: no
            limit.
        :raises ValueError: This consumer keeps all frames, or close() was called.
        :raises TimeoutError: No frame came in time.
        :raises EOFError: The producer has closed the stream, and no frame is left.
        :raises PermissionError: This object is the producer.
        :raises OSError: As of take().
        """
    def __getitem__(self, number: SupportsIndex, /) -> Frame:
        """Take the frame of that number, while it is there; take() goes on as before.

        :param number: Number of the frame, from 1 on.
        :raises FrameLost: The frame isn't there any more, or is still to come.
        :raises PermissionError: This object is the producer.
        :raises ValueError: The number is negative, or close() was called.
        :raises OSError: ENOBUFS and ESTALE as of take().
        """
    def __iter__(self) -> Stream: ...
    def __next__(self) -> Frame: ...
    def __aiter__(self) -> Stream: ...
    def __anext__(self) -> Coroutine[Any, Any, Frame]: ...
    def seats(self) -> builtins.list[StreamSeat]:
        """Return the stream's consumers.

        :raises FileNotFoundError: This object is an observer, and the producer has exited before
            the first call.
        """
    def evict(self, seat: SupportsIndex, pid: SupportsIndex | None = None) -> None:
        """Take a consumer's frames away, as the producer: of one that doesn't move any more.

        It may read torn frames from now on. Its next call raises OSError with ESTALE.

        :param seat: The consumer's seat, from seats() or the text of a loan's TimeoutError.
        :param pid: The consumer's process, from there, too, so that nobody else who took the seat
            meanwhile is evicted; None for whoever has it.
        :raises LookupError: Nobody has the seat, or another process.
        :raises PermissionError: This object is not the producer.
        """
    def fileno(self) -> int:
        """Return a descriptor that is readable when take() may not have to wait.

        For select and event loops. Nothing is to be read of it: a take(0) that raises
        TimeoutError makes it unreadable. It may be readable without a frame.

        :raises PermissionError: This object is the producer.
        """
    def _is_ready(self) -> bool: ...
    def _hold(self) -> object: ...
    def cancel(self) -> None:
        """End all waits through this object, in any thread or task, for good."""
    def close(self, drain: float = 0.0) -> None:
        """End the stream, as the producer; leave it, as a consumer or observer.

        Consumers take the frames that are left, and get EOFError then. Waits through this object
        end with ValueError. Frames that were taken stay as they are; a consumer's seat is free
        when they are gone, too. To close a closed stream does nothing.

        The stream ends first, for good. If the wait of drain fails, or Ctrl-C interrupts it, this
        object stays open: loan() raises ValueError, and close() can be called again.

        :param drain: Seconds to wait, as the producer, until consumers hold no frame any more.
        :raises TimeoutError: A consumer still holds frames; the text names it, so that evict()
            can take them away.
        """
    def __enter__(self) -> Stream:
        """Return the stream itself."""
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the stream, whatever the block has raised."""

@overload
def create(
    name: str | None = None,
    shape: _Shape = ...,
    dtype: Any = "uint8",
    *,
    mode: SupportsIndex = 0o600,
    lifetime: str = "maker",
    draft: bool = False,
    exist_ok: bool = False,
    node: SupportsIndex | None = None,
    dma32: bool = False,
    contiguous: bool = False,
) -> Tensor:
    """Create a region that holds one tensor of zeros, and return the tensor.

    :param name: Name by which others open it; None for a tensor that is shared by its
        descriptor alone.
    :param shape: Elements along each dimension: an int or a sequence of ints. It must be given.
    :param dtype: Name of a type, such as "float32", or a type of NumPy, PyTorch, JAX or
        ml_dtypes, or float, int, bool or complex. Without it the elements are bytes, "uint8",
        which keep no fractions.
    :param mode: Permission bits to read and to write, in 0o666. The umask does not apply.
    :param lifetime: How long the name stays: "maker": until this process ends. "users": while
        any process has the region open. "persist": until it is unlinked.
    :param draft: Create a draft, which has the name and can't be opened before finish(). It is
        removed when it is closed or this process ends, with any lifetime. multiprocessing passes
        it to other processes.
    :param exist_ok: Replace, in one step, a region of this user that has the name. The old one
        stays for its users, without a name. A draft replaces it in finish().
    :param node: NUMA node that the memory must be on; None for any.
    :param dma32: Demand physical addresses below 4 GiB.
    :param contiguous: Demand physically contiguous memory.
    :param device: A CUDA device, "cuda:0" or its number: the result is then a CudaTensor in the
        device's own memory, which other processes open by its name. The memory goes with this
        process. All who may read it may write, so the mode is 0o600, 0o660 or 0o666; lifetime,
        node, dma32 and contiguous keep their defaults.
    :raises FileExistsError: The name is taken, by a draft or without exist_ok.
    :raises PermissionError: The region that has the name is another user's.
    :raises ValueError: An argument is malformed; the error names it.
    :raises TypeError: An argument has a wrong type; the error names it.
    :raises OSError: ENOMEM: the memory is unavailable. EDQUOT: a limit is reached.
        EOPNOTSUPP: the backend can't fulfil node, dma32 or contiguous; or there is no CUDA, or
        none that shares memory. EIO: CUDA has failed.
    """
@overload
def create(
    name: str,
    shape: _Shape = ...,
    dtype: Any = "uint8",
    *,
    mode: SupportsIndex = 0o600,
    lifetime: str = "maker",
    draft: bool = False,
    exist_ok: bool = False,
    node: SupportsIndex | None = None,
    dma32: bool = False,
    contiguous: bool = False,
    device: SupportsIndex | str,
) -> CudaTensor: ...
@overload
def create(
    name: str | None = None,
    shape: _Shape = ...,
    dtype: Any = "uint8",
    *,
    mode: SupportsIndex = 0o600,
    lifetime: str = "maker",
    draft: bool = False,
    exist_ok: bool = False,
    node: SupportsIndex | None = None,
    dma32: bool = False,
    contiguous: bool = False,
    device: SupportsIndex | str | None = None,
) -> Tensor | CudaTensor: ...

@overload
def open(
    name: str,
    *,
    readonly: bool = False,
    wait: float = 0.0,
    other_than: Region | Tensor | None = None,
    device: None = None,
) -> Tensor:
    """Open the tensor of a named region.

    The name of create() with a device leads to a CudaTensor. Type checkers know it if device is
    given here, too.

    :param name: Name given to create() or asarray().
    :param readonly: Map the memory read-only. Writes then fail in any library.
    :param wait: Seconds to wait until a finished region has the name; math.inf for ever. Other
        threads run meanwhile.
    :param other_than: Wait until the name leads to another region than this.
    :param device: The CUDA device that the tensor must be on, "cuda:0" or its number; None for
        any, and for the host's memory.
    :raises FileNotFoundError: No region has that name, or the process that was to finish a
        draft has ended.
    :raises BlockingIOError: Without wait: the region is a draft, or the one in other_than.
    :raises TimeoutError: The seconds of wait have passed.
    :raises PermissionError: The region's mode denies the access.
    :raises ValueError: The region holds several tensors, or none; use Region.open(). The tensor
        is not on the device.
    :raises OSError: Of a device's memory: EOWNERDEAD: the process that has made it has ended or
        dropped it. EOPNOTSUPP: it is on a GPU that this process doesn't see, or was to be opened
        read-only. EIO: CUDA has failed.
    """
@overload
def open(
    name: str,
    *,
    readonly: bool = False,
    wait: float = 0.0,
    other_than: Region | Tensor | None = None,
    device: SupportsIndex | str,
) -> CudaTensor: ...

def from_fd(fd: int | _SupportsFileno, *, readonly: bool = False) -> Tensor:
    """Open the tensor of a region by the region's file descriptor.

    It is a CudaTensor if the region names a device's memory, see open().

    :param fd: From fileno() of any process; a number or an object that has fileno(). It stays
        the caller's.
    :param readonly: Map the memory read-only. A descriptor that was opened read-only gives a
        read-only tensor in any case.
    :raises ValueError: fd is not the descriptor of a region, or the region holds several
        tensors, or none.
    :raises OSError: EBADF: fd is not open. EPROTO: the region is damaged, or its sender could
        truncate it.
    """

def from_dlpack(
    x: _SupportsDLPack,
    *,
    device: str | tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Take another library's tensor by DLPack.

    The result is the tensor's own memory where that lies in a region, else a copy in a new
    region without a name.

    :param x: A tensor that has __dlpack__().
    :param device: "cpu" or (1, 0): copy a tensor from another device too, if its library can.
    :param copy: True: always copy. False: never copy. None: copy where needed.
    :raises TypeError: x has no __dlpack__().
    :raises BufferError: x can't be described, is on another device, or would have to be copied.
    :raises ValueError: device is not the CPU.
    """

def asarray(
    x: Any,
    name: str | None = None,
    *,
    copy: bool | None = None,
    mode: SupportsIndex = 0o600,
    lifetime: str = "maker",
    draft: bool = False,
    exist_ok: bool = False,
    node: SupportsIndex | None = None,
    dma32: bool = False,
    contiguous: bool = False,
) -> Tensor:
    """Take a tensor or array of another library, or any object that NumPy converts to one.

    The result is the memory of x where that lies in a region, else a copy in a new region.

    :param x: Anything that has DLPack, a buffer or the array interface; else np.asarray(x) is
        taken.
    :param name: Name of the new region; memory of a region that has this name already is taken
        as it is. The name of a type, such as "float32", is accepted only by keyword, since
        NumPy's asarray() has the type here.
    :param copy: True: always copy. False: never copy. None: copy where needed.
    :param mode: Permission bits to read and to write, in 0o666. The umask does not apply.
    :param lifetime: How long the name stays: "maker": until this process ends. "users": while
        any process has the region open. "persist": until it is unlinked.
    :param draft: Create a draft, which has the name and can't be opened before finish(). It is
        removed when it is closed or this process ends, with any lifetime. multiprocessing passes
        it to other processes.
    :param exist_ok: Replace, in one step, a region of this user that has the name. The old one
        stays for its users, without a name. A draft replaces it in finish().
    :param node: NUMA node that the memory must be on; None for any.
    :param dma32: Demand physical addresses below 4 GiB.
    :param contiguous: Demand physically contiguous memory.
    :raises FileExistsError: The name is taken, by a draft or without exist_ok.
    :raises PermissionError: The region that has the name is another user's.
    :raises BufferError: x can't be described, is on another device, or would have to be copied.
    :raises TypeError: x is not an array, or has a type that tensors lack.
    :raises ValueError: An argument is malformed, or x has a mask.
    :raises OSError: ENOMEM: the memory is unavailable. EDQUOT: a limit is reached.
        EOPNOTSUPP: the backend can't fulfil node, dma32 or contiguous.
    """

def array_interface(x: Any, /) -> dict[str, Any]:
    """Return NumPy's array interface, version 3, of a tensor that has DLPack.

    The address in it is the tensor's own memory: keep x as long as the address is used.

    :param x: A tensor in the CPU's memory.
    :raises AttributeError: x is on another device, or the interface has no type for it.
    """

def unlink(name: str, /) -> None:
    """Remove a region's name.

    The memory stays for its users.

    :param name: Name of the region.
    :raises FileNotFoundError: No region has that name.
    :raises PermissionError: The name belongs to another user.
    """

def watch(name: str, /) -> Watcher:
    """Watch a name: wait until it leads to another region, or to none.

    :param name: Name of a region, which need not be there yet.
    """

def list() -> builtins.list[RegionInfo]:
    """Return the named regions that this process may read, and those of its user."""

def limits() -> Limits:
    """Return the properties and limits of the backend."""

def backend() -> str:
    """Return the backend that this process uses: "kmod" or "shm"."""

def host_id() -> str:
    """Return what tells whose names this process sees.

    Two processes see the same names if they have the same one, and only then. It consists of the
    machine's boot id, the backend, and the IPC namespace or directory of the names. A machine
    that was restored from a snapshot has the boot id of the machine that the snapshot is of.

    :raises OSError: /proc is not mounted, or can't be read.
    """

# For the package's own modules

def raw_interface(tensor: Tensor, /) -> dict[str, Any]: ...
def rebuild(region: Region, spec: tuple[Any, ...], /) -> Tensor: ...
def reducer_override(obj: object, /) -> Any: ...
def bytes_at(address: int, size: int, /) -> Tensor | None: ...
