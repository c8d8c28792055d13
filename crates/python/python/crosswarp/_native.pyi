# The native part; not to be called by users.
from typing import Any

import numpy as np
import numpy.typing as npt

OPS: list[str]

def whole(op: int, array: object, asked: int) -> Any: ...
def whole_dot(x: object, y: object, asked: int) -> Any: ...
def rows(
    op: int, arrays: list[npt.NDArray[Any]], output: npt.NDArray[Any], asked: int, bf16: bool
) -> None: ...
def columns(
    op: int, arrays: list[npt.NDArray[Any]], output: npt.NDArray[Any], columns: int, asked: int, bf16: bool
) -> None: ...
