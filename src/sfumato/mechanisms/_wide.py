"""The high half of a 64 by 64 bit product: one machine instruction that numba has no name for."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _multiply_high(typing: Any, a: Any, b: Any) -> Any:
    """``(a * b) >> 64`` of two uint64, inside compiled code only."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


multiply_high: Any = intrinsic(_multiply_high)
