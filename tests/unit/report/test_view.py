"""Views: valid from birth."""

import pytest

from sfumato.errors import InputError
from sfumato.report.view import ColumnView, PairView, QueryView


def test_a_view_whose_parts_do_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="column 'age' has 2 labels but 1 counts"):
        ColumnView(name="age", kind="integer", labels=("1", "2"), published=(1.0,))
    with pytest.raises(InputError, match="2 labels but 3 counts"):
        QueryView(labels=("1", "2"), published=(1.0, 2.0), real=(1.0, 2.0, 3.0))
    with pytest.raises(InputError, match=r"pair \('a', 'b'\) has 2 labels but 1 counts"):
        PairView(x="a", y="b", x_labels=("1",), y_labels=("1", "2"), published=((1.0,),))
    with pytest.raises(InputError, match="sigma must be > 0"):
        ColumnView(name="age", kind="integer", labels=("1",), published=(1.0,), sigma=0.0)
