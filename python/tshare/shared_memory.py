# SPDX-License-Identifier: MIT
"""multiprocessing.shared_memory, with tshare's memory behind it::

    from tshare.shared_memory import ShareableList, SharedMemory

The classes derive from the standard ones and behave like them, with these
exceptions:

- A name is removed when the process that made it ends or is killed. With
  track=False it stays until it is unlinked. There is no resource tracker:
  attaching never removes another program's memory, and no warning is printed.
  The standard module keeps a name until all processes of the program have
  ended. A child process that makes memory for others and ends before them
  therefore needs track=False here, or tshare.managers.SharedMemoryManager.
- Names are tshare's: tshare.open() opens a SharedMemory as a tensor of bytes,
  and SharedMemory opens any tensor that is alone in its region. The standard
  module sees neither.
- Memory is allocated when it is made: if there is too little, that is an
  OSError with ENOMEM, not a SIGBUS later.
- An array made by np.ndarray(buffer=shm.buf) stays valid after close().
- ShareableList has room for the bytes of a str in UTF-8, where the standard class
  counts its characters and cuts the rest off, and keeps null characters at the
  end of str and bytes, which the standard class drops.
"""

from __future__ import annotations

import errno
import operator
import os
import secrets
import struct
import sys
import types
import weakref
from collections.abc import Callable
from multiprocessing import shared_memory as _std
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeVar

from . import _tshare

__all__ = ["ShareableList", "SharedMemory"]

_SLT = TypeVar("_SLT", int, float, bool, str, bytes, None)

# The standard module has these names, too: programs and tests read and replace them.
_USE_POSIX = True
_O_CREX = os.O_CREAT | os.O_EXCL
_SHM_NAME_PREFIX = "/psm_"

# The largest size for the library, which counts bits: more than any machine has.
_SIZE_MAX = (1 << 60) - 1

# TSHARE_NAME_MAX of <tshare.h>; shm_open() takes 255.
_NAME_MAX = 127


def _make_filename() -> str:
    """Return a random name, which may be taken: the caller then tries another."""
    return _SHM_NAME_PREFIX + secrets.token_hex(4)


def _error(number: int, name: str, text: str | None = None) -> OSError:
    return OSError(number, text or os.strerror(number), name)


def _region_name(name: str) -> str:
    """Return the region's name for a name of shm_open(); refuse names that it refuses."""
    region = name.lstrip("/")
    if "\0" in region:
        raise ValueError("embedded null character")
    if not region or "/" in region or region in (".", ".."):
        raise _error(errno.EINVAL, name)
    if len(region.encode()) > _NAME_MAX:
        raise _error(errno.ENAMETOOLONG, name)
    return region


def _bytes_of(tensor: _tshare.Tensor) -> memoryview:
    """Return the memory of any tensor as bytes."""
    if not tensor.nbytes:
        raise ValueError("name: the tensor has no bytes to map")
    if tensor.dtype == "uint8" and tensor.strides == (1,):
        return memoryview(tensor)
    try:
        return PickleBuffer(tensor).raw()
    except BufferError as error:
        raise ValueError(f"name: {tensor!r} can't be mapped as bytes ({error})") from error


class SharedMemory(_std.SharedMemory):
    """A block of shared memory, which is created, or attached to by its name.

    A subclass of multiprocessing.shared_memory.SharedMemory with the same parameters:

    :param name: Name of the memory; None, with create, for a new random one.
    :param create: Create the memory instead of attaching to it.
    :param size: Bytes of memory to create.
    :param track: True: a name created here is removed when this process ends. False: it
        stays until it is unlinked.

    The memory is freed when its last user has closed it. For read-only memory use
    tshare.open(name, readonly=True).
    """

    _name: str | None
    _buf: memoryview | None
    _flags: int
    _mode: int
    _prepend_leading_slash: bool

    _track = True
    _draft = False
    _tensor: _tshare.Tensor | None = None

    def __init__(
        self,
        name: str | None = None,
        create: bool = False,
        size: int = 0,
        *,
        track: bool = True,
    ) -> None:
        if create:
            self._flags = _O_CREX | os.O_RDWR
        new = self._flags & os.O_EXCL
        if not size >= 0:
            raise ValueError("'size' must be a positive integer")
        if new and size == 0:
            raise ValueError("'size' must be a positive number different from zero")
        if name is None and not new:
            raise ValueError("'name' can only be None if create=True")

        self._track = track
        if name is None:
            name, tensor = self._create_somewhere(size)
        else:
            name = "/" + name if self._prepend_leading_slash else name
            tensor = self._create(name, size) if new else self._open(name)
        buf = _bytes_of(tensor)
        self._name, self._tensor, self._buf, self._size = name, tensor, buf, buf.nbytes

    def _create(self, name: str, size: int) -> _tshare.Tensor:
        region = _region_name(name)
        size = operator.index(size)
        if size > sys.maxsize:
            raise OverflowError("Python int too large to convert to C long")
        if size > _SIZE_MAX:
            raise _error(errno.ENOMEM, name)
        try:
            lifetime = "maker" if self._track else "persist"
            return _tshare.create(
                region, size, mode=self._mode, lifetime=lifetime, draft=self._draft
            )
        except FileExistsError as error:
            raise _error(errno.EEXIST, name) from error
        except OSError as error:
            # The text says more, such as how much room there is.
            raise _error(error.errno or 0, name, error.strerror) from error

    def _create_somewhere(self, size: int) -> tuple[str, _tshare.Tensor]:
        while True:
            name = _make_filename()
            try:
                return name, self._create(name, size)
            except FileExistsError:
                continue

    def _open(self, name: str) -> _tshare.Tensor:
        readonly = self._flags & os.O_ACCMODE == os.O_RDONLY
        region = _region_name(name)
        try:
            return _tshare.open(region, readonly=readonly)
        except OSError as error:
            raise _error(error.errno or 0, name) from error

    def __del__(self) -> None:
        # The last reference to the tensor frees the memory. Closing it here, as the
        # standard class does, could only fail while a view exists.
        pass

    def close(self) -> None:
        """Drop this object's reference to the memory, which stays for its other users.

        :raises BufferError: There are views of the memory, such as slices of buf.
        """
        if self._buf is not None:
            self._buf.release()
            if self._tensor is not None:
                # NumPy's ndarray(buffer=buf) holds a reference to buf, but no
                # buffer. A tensor that has given its address away stays mapped
                # until it is collected; the finalizer keeps it as long as buf.
                self._tensor.__array_interface__  # noqa: B018
                weakref.finalize(self._buf, _keep_until_then, self._tensor).atexit = False
            self._buf = None
        if self._tensor is not None:
            try:
                self._tensor.close()
            except BufferError:
                raise BufferError("cannot close exported pointers exist") from None
            self._tensor = None

    def unlink(self) -> None:
        """Remove the name. The memory stays for its users."""
        if self._name:
            region = _region_name(self._name)
            try:
                _tshare.unlink(region)
            except OSError as error:
                raise _error(error.errno or 0, self._name) from error


def _keep_until_then(tensor: _tshare.Tensor) -> None:
    """Do nothing: the finalizer exists for the reference that it holds."""


class _Text(str):
    """A str whose length makes the standard class leave room for its bytes.

    The standard class leaves at least one byte more than the length, in multiples of 8.
    """

    __slots__ = ()

    def __len__(self) -> int:
        return max(super().__len__(), len(self.encode()) - 1)


def _ends_with_null(value: object) -> bool:
    return (isinstance(value, str) and value.endswith("\0")) or (
        isinstance(value, bytes) and value.endswith(b"\0")
    )


def _list_init(memory: Callable[..., _std.SharedMemory]) -> Callable[..., None]:
    """Return the standard ShareableList.__init__() with memory() in place of SharedMemory().

    The layout is the standard one, with each Python version's corrections. But strings have room
    for their bytes, and null characters at an end are kept.
    """
    init: Any = _std.ShareableList.__init__
    names = {**init.__globals__, "SharedMemory": memory}
    function = types.FunctionType(
        init.__code__, names, init.__name__, init.__defaults__, init.__closure__
    )
    function.__kwdefaults__ = init.__kwdefaults__

    def fill(made: Any, sequence: Any = None, *, name: str | None = None) -> None:
        if sequence:
            sequence = [_Text(item) if type(item) is str else item for item in sequence]
        function(made, sequence, name=name)
        for place, item in enumerate(sequence or ()):
            if _ends_with_null(item):
                made[place] = item

    return fill


def _unfinished(name: str | None, create: bool = False, size: int = 0) -> SharedMemory:
    """Return SharedMemory that, if new, is a draft."""
    memory = SharedMemory.__new__(SharedMemory)
    memory._draft = create
    memory.__init__(name, create, size)  # type: ignore[misc]
    return memory


class ShareableList(_std.ShareableList[_SLT]):
    """A list of fixed length in a SharedMemory of tshare's.

    A subclass of multiprocessing.shared_memory.ShareableList.
    """

    if not TYPE_CHECKING:
        _types_mapping = {**_std.ShareableList._types_mapping, _Text: "%ds"}

        # For standard codes the format has the room; nulls at the end of a value are padding. For
        # codes 4 and 5 it has the exact length, as the value ends with a null.
        _back_transforms_mapping = {
            **_std.ShareableList._back_transforms_mapping,
            4: bytes.decode,
            5: bytes,
        }

        @staticmethod
        def _extract_recreation_code(value):
            if _ends_with_null(value):
                return 4 if isinstance(value, str) else 5
            return _std.ShareableList._extract_recreation_code(value)

        _fill = _list_init(_unfinished)

        def __init__(self, sequence=None, *, name=None):
            """Open the list of that name or, with a sequence, make it of that.

            Nobody can open it before it is complete.
            """
            try:
                self._fill(sequence, name=name)
                if self.shm._draft:
                    self.shm._tensor.finish()
            except BaseException:
                if hasattr(self, "shm") and self.shm._draft:
                    self.shm._tensor.unlink()
                raise

        def __setitem__(self, position, value):
            position = position if position >= 0 else position + self._list_len
            try:
                self._get_packing_format(position)
                start, end = self._allocated_offsets[position : position + 2]
            except (IndexError, ValueError):
                raise IndexError("assignment index out of range") from None
            if isinstance(value, (str, bytes)):
                packed = value.encode() if isinstance(value, str) else value
                if len(packed) > end - start:
                    raise ValueError("bytes/str item exceeds available storage")
                length = len(packed) if _ends_with_null(value) else end - start
                format_ = self._types_mapping[str] % length
            else:
                packed = value
                format_ = self._types_mapping[type(value)]
            self._set_packing_format_and_transform(position, format_, value)
            struct.pack_into(format_, self.shm.buf, self._offset_data_start + start, packed)
