"""An object that holds exact data lives once, in one process.

A copy, or the other half of a fork, would share what was paid and answer afresh with new noise:
two answers for one charge.
"""

import os
from typing import Any, NoReturn

from sfumato.errors import BudgetError


class OnlyOne:
    """Refuses to be copied or pickled, and to go on in another process."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise BudgetError(
                f"this {type(self).__name__} belongs to another process: after a fork both halves "
                "would answer for one charge. Nothing was looked at. Make one in this process."
            )

    def __copy__(self) -> NoReturn:
        raise self._no_copy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise self._no_copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise self._no_copy()

    def _no_copy(self) -> TypeError:
        return TypeError(
            f"a {type(self).__name__} is not copied or pickled: the copy would answer again for "
            "what was paid once"
        )
