"""Comparing runs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import as_array, is_bf16, prepared
from ._device import host_or_same

__all__ = ["bits", "sha256"]


def bits(x: npt.ArrayLike) -> Any:
    """The bit pattern of a number, as text in hexadecimal with as many digits as the type has.

    It is what `crosswarp reduce` prints. Of an array it is an array of unsigned integers.

    >>> cw.bits(np.float32(1.5))
    '0x3fc00000'
    >>> cw.bits(np.array([1.0, -0.0], np.float16))
    array([15360, 32768], dtype=uint16)
    """
    array = as_array(host_or_same(x), "bits")
    shape, size = array.shape, array.dtype.itemsize
    words: npt.NDArray[Any] = prepared(array).view(np.dtype(f"u{size}")).reshape(shape)
    if shape == ():
        return f"0x{int(words[()]):0{2 * size}x}"
    return words


def sha256(array: npt.ArrayLike) -> str:
    """SHA-256 of the elements in C order, little-endian, without type or shape, as text in hexadecimal.

    It is what `crosswarp solve` prints of a field: two runs with equal hashes have equal bits.

    >>> cw.sha256(np.arange(3.0))[:16]
    'b0c45303f7f11848'
    """
    given = as_array(host_or_same(array), "sha256")
    if is_bf16(given.dtype):
        data = prepared(given)
    else:
        data = np.ascontiguousarray(given, dtype=given.dtype.newbyteorder("<"))
    return hashlib.sha256(data.reshape(-1).view(np.uint8).data if data.size else b"").hexdigest()
