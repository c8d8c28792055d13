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
def histogram(
    samples: npt.NDArray[Any],
    edges: npt.NDArray[Any],
    weights: npt.NDArray[Any] | None,
    output: npt.NDArray[Any],
    asked: int,
) -> None: ...
def bincount(
    values: npt.NDArray[Any], weights: npt.NDArray[Any] | None, output: npt.NDArray[Any], asked: int
) -> None: ...
def transpose(
    array: npt.NDArray[Any], output: npt.NDArray[Any], batch: int, rows: int, columns: int, asked: int
) -> None: ...
def plane(
    nx: int, problem: dict[str, Any], how: dict[str, Any], output: npt.NDArray[Any]
) -> dict[str, Any]: ...
def fill(
    nx: int,
    values: npt.NDArray[Any],
    known: npt.NDArray[Any] | None,
    how: dict[str, Any],
    output: npt.NDArray[Any],
) -> dict[str, Any]: ...
def line(left: float, right: float, how: dict[str, Any], output: npt.NDArray[Any]) -> dict[str, Any]: ...
