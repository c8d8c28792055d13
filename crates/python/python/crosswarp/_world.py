"""Worlds of PEs: symmetric arrays, one-sided verbs, collectives."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Iterator
from typing import Any, Callable, TypeVar

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import Array, as_array, is_bf16
from ._errors import DtypeError, InputError, WorldError

__all__ = ["init", "spmd", "Pe", "Team"]

R = TypeVar("R")


class _Members:
    """The collectives of a set of PEs, which number them from 0."""

    _members: _native.Handle | _native.Part

    @property
    def my_pe(self) -> int:
        """This PE's number, from 0."""
        return self._members.my_pe

    @property
    def n_pes(self) -> int:
        """The number of PEs."""
        return self._members.n_pes

    def sync(self) -> None:
        """Waits for all PEs of the team; puts may still be under way. Collective."""
        self._members.sync()

    def broadcast(self, dest: Array, source: Array, root: int) -> None:
        """`root`'s `source` into every PE's `dest`, both symmetric. Collective."""
        self._members.broadcast(_bytes(dest), _bytes(source), root)

    def fcollect(self, dest: Array, source: Array) -> None:
        """All PEs' `source` one after the other into every PE's `dest`, both symmetric. Collective."""
        self._members.fcollect(_bytes(dest), _bytes(source))

    def alltoall(self, dest: Array, source: Array) -> None:
        """Block j of PE i's `source` to block i of PE j's `dest`, both symmetric, cut into n_pes blocks. Collective."""
        self._members.alltoall(_elements(dest), _elements(source))

    def reduce(self, dest: Array, source: Array, op: str = "sum") -> None:
        """All PEs' `source`, element by element, into every PE's `dest`, both symmetric; it may be `source`.

        `op`: "sum", "prod", "min", "max", and of integers "and", "or", "xor". Floats are taken in the order of the PEs,
        so the bits depend on their number. Collective.
        """
        self._members.reduce(_elements(dest), _elements(source), op)

    def split_strided(self, start: int, stride: int, size: int) -> Team | None:
        """The team of the PEs `start`, `start + stride`, …, `size` of them, as numbered here; `None` on PEs not in it.

        The stride may be negative. Collective.
        """
        part = self._members.split_strided(start, stride, size)
        return None if part is None else Team(part)

    def split_2d(self, row: int) -> tuple[Team, Team]:
        """The PEs in rows of `row` PEs (the last may be shorter): the team of this PE's row, and of its column.

        Collective.
        """
        rows, columns = self._members.split_2d(row)
        return Team(rows), Team(columns)


class Team(_Members):
    """Some of a world's PEs, with collectives of their own: of `split_strided` or `split_2d`, of a `Pe` or a team.

    >>> def f(pe):
    ...     mine, sums = pe.full(1, pe.my_pe, np.int64), pe.zeros(1, np.int64)
    ...     row, column = pe.split_2d(2)
    ...     column.reduce(sums, mine)
    ...     return row.my_pe, int(sums[0])
    >>> cw.spmd(4, f)
    [(0, 2), (1, 4), (0, 2), (1, 4)]
    """

    def __init__(self, part: _native.Part) -> None:
        self._part = self._members = part

    def __repr__(self) -> str:
        return f"<PE {self.my_pe} of a team of {self.n_pes}>"

    def world_pe(self, pe: int) -> int:
        """The number in the world of the team's PE `pe`, for `put` and so on."""
        return self._part.world_pe(pe)

    def destroy(self) -> None:
        """Ends the team; a PE can be in a limited number of teams at a time. Collective."""
        self._part.destroy()


class Pe(_Members):
    """A PE (processing element) of a world: who it is, its symmetric arrays, and the verbs over them.

    Made by `init` (a process is a PE) or `spmd` (a thread is). Names and meanings are those of OpenSHMEM 1.5.

    Symmetric arrays come from `empty`, `zeros` and `full`, which all PEs call alike. Such an array, or a contiguous
    slice of it, is a NumPy array over this PE's memory, and names the same part of every PE's. The rules of safety:

    1. Other PEs write into it with `put`, atomics and collectives while NumPy reads and writes it. As between threads,
       what a race leaves is unspecified: order accesses with `barrier`, `put_signal` and `wait_until`.
    2. After `free`, which all PEs call, the memory may be handed out again: no array of it may be used any more.
    3. The memory stays mapped while an array of it or the PE's handle exists; nothing can crash by being kept.
    4. A fork of a PE is no PE: every verb in it is a `WorldError`.

    Waits end with a `WorldError` when a PE fails or leaves, with a `TimeoutError` after `CROSSWARP_WAIT_TIMEOUT`.
    """

    def __init__(self, handle: _native.Handle) -> None:
        self._handle = self._members = handle

    def __repr__(self) -> str:
        return f"<PE {self.my_pe} of {self.n_pes}>"

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
        """A symmetric array of zeros. Collective: every PE calls it, with the same shape and type."""
        kind: np.dtype[Any] = np.dtype(dtype)
        as_array(np.empty(0, kind), "zeros")
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if any(size < 0 for size in sizes):
            raise InputError(f"a shape of {shape}")
        count = math.prod(sizes)
        block: Array = np.asarray(self._handle.allocate(count * kind.itemsize))
        return block.view(kind).reshape(sizes) if count else np.empty(sizes, kind)

    def full(
        self, shape: int | tuple[int, ...], value: npt.ArrayLike, dtype: npt.DTypeLike = np.float64
    ) -> Array:
        """A symmetric array of a value, the PE's own. Collective; no PE returns before all have it filled."""
        array = self.zeros(shape, dtype)
        array[...] = value
        self.barrier()
        return array

    def free(self, array: Array) -> None:
        """Gives a symmetric array back, whole. Collective."""
        if array.size:
            self._handle.free(_bytes(array))

    def put(self, dest: Array, source: npt.ArrayLike, pe: int) -> None:
        """Writes `source` into `pe`'s `dest`. It may arrive later: `quiet`, `barrier` and `fence` order it."""
        self._handle.put(_bytes(dest), _like(dest, source), pe)

    def get(self, source: Array, pe: int, out: Array | None = None) -> Array:
        """What is in `pe`'s `source`, in a new array or in `out`."""
        if out is None:
            out = np.empty(source.shape, source.dtype)
        elif out.dtype != source.dtype or out.shape != source.shape:
            raise InputError("out has another shape or type than the source")
        self._handle.get(_bytes(out), _bytes(source), pe)
        return out

    def put_signal(
        self, dest: Array, source: npt.ArrayLike, signal: Array, value: int, pe: int, op: str = "set"
    ) -> None:
        """A `put`, after which `pe`'s `signal` (one uint64) is set to `value`, or with op="add" grows by it.

        The signal is never seen before the data.
        """
        self._handle.put_signal(_bytes(dest), _like(dest, source), _word(signal), value, op, pe)

    def wait_until(self, word: Array, comparison: str, value: int) -> int:
        """Waits until this PE's `word` (one int32, int64, uint32 or uint64) compares so; returns what it then is."""
        return self._handle.wait_until(_word(word), comparison, int(value))

    def test(self, word: Array, comparison: str, value: int) -> bool:
        """Whether this PE's `word` compares so now."""
        return self._handle.test(_word(word), comparison, int(value))

    def atomic_fetch(self, word: Array, pe: int) -> int:
        """Reads `pe`'s `word` (one int32, int64, uint32 or uint64) atomically."""
        return self._handle.atomic("fetch", _word(word), 0, 0, pe)

    def atomic_set(self, word: Array, value: int, pe: int) -> None:
        """Writes `pe`'s `word` atomically."""
        self._handle.atomic("set", _word(word), int(value), 0, pe)

    def atomic_swap(self, word: Array, value: int, pe: int) -> int:
        """Writes `pe`'s `word` atomically; returns what it was."""
        return self._handle.atomic("swap", _word(word), int(value), 0, pe)

    def atomic_compare_swap(self, word: Array, expected: int, value: int, pe: int) -> int:
        """Writes `pe`'s `word` if it is `expected`; returns what it was."""
        return self._handle.atomic("compare_swap", _word(word), int(value), int(expected), pe)

    def atomic_add(self, word: Array, value: int, pe: int) -> int:
        """Adds to `pe`'s `word`; returns what it was. (OpenSHMEM: `atomic_fetch_add`.)"""
        return self._handle.atomic("add", _word(word), int(value), 0, pe)

    def atomic_and(self, word: Array, value: int, pe: int) -> int:
        """Bitwise and with `pe`'s `word`; returns what it was."""
        return self._handle.atomic("and", _word(word), int(value), 0, pe)

    def atomic_or(self, word: Array, value: int, pe: int) -> int:
        """Bitwise or with `pe`'s `word`; returns what it was."""
        return self._handle.atomic("or", _word(word), int(value), 0, pe)

    def atomic_xor(self, word: Array, value: int, pe: int) -> int:
        """Bitwise exclusive or with `pe`'s `word`; returns what it was."""
        return self._handle.atomic("xor", _word(word), int(value), 0, pe)

    def fence(self) -> None:
        """Puts to a PE before it arrive before those after it."""
        self._handle.fence()

    def quiet(self) -> None:
        """All this PE's puts so far have arrived when it returns."""
        self._handle.quiet()

    def barrier(self) -> None:
        """Waits for all PEs; all puts so far have arrived. Collective."""
        self._handle.barrier()

def init(comm: Any = None) -> Pe:
    """Joins the world that `crosswarp run`, or another launcher, has made; without one, a world of one PE.

    Once a process, early. `crosswarp run -n 4 -- python script.py` starts four.

    `comm`: a communicator of mpi4py, for processes that `mpiexec` has started and that use MPI, too: they meet over it,
    and leave the launcher to MPI. All of its processes call, and have the same numbers as PEs. Over several hosts
    `CROSSWARP_SECRET_FILE` must name a file with a secret, the same on all.

    >>> pe = cw.init()
    >>> pe.my_pe, pe.n_pes
    (0, 1)
    """
    if comm is None:
        return Pe(_native.init())
    with _meeting(comm):
        return Pe(_native.init())


@contextlib.contextmanager
def _meeting(comm: Any) -> Iterator[None]:
    """Says, by the variables that launchers set, who is who and where rank 0 listens."""
    rank, size = int(comm.Get_rank()), int(comm.Get_size())
    host = socket.gethostname()
    hosts = comm.allgather(host)
    alone = len(set(hosts)) == 1
    address, reason = None, None
    if rank == 0:
        try:
            # A host's name may stand for a loopback address there.
            at = "127.0.0.1" if alone else _native.address_of_this_host()
            with socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET) as free:
                free.bind((at, 0))
                port = free.getsockname()[1]
            address = f"[{at}]:{port}" if ":" in at else f"{at}:{port}"
        except (OSError, WorldError) as error:
            reason = f"rank 0 finds no address at which the others reach it ({host}: {error})"
    # All ranks end with the reason, or none.
    address, reason = comm.bcast((address, reason), 0)
    if address is None:
        raise WorldError(reason)
    said = {
        "CROSSWARP_BOOTSTRAP": address, "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": hosts[:rank].count(host),
        "LOCAL_WORLD_SIZE": hosts.count(host),
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in said}
    os.environ.update({name: str(value) for name, value in said.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def spmd(n: int, f: Callable[[Pe], R], *, heap_bytes: int | None = None) -> list[R]:
    """Calls `f(pe)` on each of `n` PEs that are threads of this process; what they returned, by PE.

    Threads take turns with the interpreter, but for calls that compute or wait; so it is for trying things out, and for
    calls like these. What the first PE to fail raises is raised here; the others' waits end.
    `heap_bytes`: of symmetric memory each, else `CROSSWARP_HEAP`.

    >>> def f(pe):
    ...     counter = pe.zeros(1, np.int64)
    ...     for other in range(pe.n_pes):
    ...         pe.atomic_add(counter, pe.my_pe, other)
    ...     pe.barrier()
    ...     return int(counter[0])
    >>> cw.spmd(4, f)
    [6, 6, 6, 6]
    """
    if n < 1:
        raise InputError(f"a world needs at least 1 PE, not {n}")
    return _native.spmd(n, lambda handle: f(Pe(handle)), heap_bytes)


def _elements(array: Array) -> Array:
    if not isinstance(array, np.ndarray):
        raise DtypeError(f"an array is needed, not {type(array).__name__}")
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        raise InputError("the array must be C-contiguous, aligned and of native byte order")
    as_array(array, "a world")
    return array.view(np.uint16) if is_bf16(array.dtype) else array


def _bytes(array: Array) -> Array:
    return _elements(array).reshape(-1).view(np.uint8)


def _word(array: Array) -> Array:
    return _elements(array).reshape(-1)


def _like(dest: Array, source: npt.ArrayLike) -> Array:
    """The source in the destination's shape and type."""
    values = np.asarray(source, dest.dtype)
    if values.shape != dest.shape:
        try:
            values = np.broadcast_to(values, dest.shape)
        except ValueError:
            raise InputError(f"a source of shape {values.shape} for a destination of {dest.shape}") from None
    return _bytes(np.ascontiguousarray(values))
