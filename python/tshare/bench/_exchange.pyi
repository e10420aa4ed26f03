# SPDX-License-Identifier: MIT
from typing import Any

from typing_extensions import CapsuleType

def exchange(table: CapsuleType, tensor: Any, count: int, /) -> float: ...
def describe(table: CapsuleType, tensor: Any, count: int, /) -> float: ...
