"""Answers as Arrow arrays and back, without a copy: for files, engines and Spark."""

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError
from sfumato.local.layout import Answers, IntegerLayout, Layout


def arrow_type(layout: Layout) -> pa.DataType:
    """An unsigned integer, or binary of a fixed size."""
    if isinstance(layout, IntegerLayout):
        return pa.from_numpy_dtype(layout.dtype)
    return pa.binary(layout.width)


def to_arrow(layout: Layout, answers: Answers) -> pa.Array:
    """Answers as one Arrow array."""
    if isinstance(layout, IntegerLayout):
        return pa.array(answers)
    packed = pa.py_buffer(np.ascontiguousarray(answers))
    return pa.FixedSizeBinaryArray.from_buffers(arrow_type(layout), len(answers), [None, packed])


def from_arrow(layout: Layout, values: pa.Array) -> Answers:
    """Checked answers from an Arrow array; another type or a missing one is refused."""
    if values.type != arrow_type(layout) or values.null_count:
        raise InputError(
            f"answers are {arrow_type(layout)} without gaps, got {values.type} with "
            f"{values.null_count} missing."
        )
    if isinstance(layout, IntegerLayout):
        return layout.checked_many(np.from_dlpack(values))
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint8)
    start = values.offset * layout.width
    flat = raw[start : start + len(values) * layout.width]
    return layout.checked_many(flat.reshape(-1, layout.width))
