"""What a method does, in words for readers who know none of them."""

from collections.abc import Mapping
from typing import Any, Final

_COUNTED: Final = {
    "histogram": "Every combination of values was counted at once, and every count got noise. "
    "Counts that fell below zero were cut, and the rest fitted to the total.",
    "independent": "Every column was counted by itself, and every count got noise. Rows were drawn "
    "column by column, so the table says nothing of how columns go together.",
    "mwem": "The method starts from a table that knows nothing. In each round it looked, with "
    "noise, for the question that this table answers worst, measured the answer, with noise, and "
    "bent the table towards it.",
    "mst": "Every column was counted, with noise. Then the method looked, with noise, for the "
    "pairs of columns that go together most, enough of them to join all columns, counted these "
    "pairs, with noise, and fitted one model to all counts.",
    "cliquetree": "Every column was counted, with noise. Then the method scored all sets of "
    "columns, with noise, by what counting them would teach, counted those worth their noise, and "
    "fitted one model to all counts.",
    "aim": "In each round the method looked, with noise, for the set of columns that its model "
    "knows worst, counted it, with noise, and fitted the model again to all counts so far.",
    "privbayes": "The method chose, with noise, for each column a few others that help to predict "
    "it, and counted each such group, with noise. Rows are drawn column by column along these "
    "predictions.",
    "dp2pub": "The values of each row were replaced by others at random, with known chances that "
    "depend on nothing else. How often each value and pair really occurs was then estimated from "
    "these chances.",
    "survey": "Every person's device drew one column and answered about it, with a value that it "
    "replaced by others at random, with known chances. How often each value really occurs was then "
    "estimated from these chances. Rows were drawn column by column.",
}
_BY_DEVICES: Final = (
    "Every person's device drew one question, or answered about every column, and replaced what it "
    "said by others at random, with known chances. What was said in a first round decided how a "
    "second one asked. A model was fitted to the answers, and the rows were drawn from it."
)


def method_words(method: Mapping[str, Any]) -> str:
    """One paragraph on a method; nothing of one that is not known here.

    >>> method_words({"name": "histogram"}).partition(",")[0]
    'Every combination of values was counted at once'
    """
    name = method.get("name")
    if name == "dp2pub" and method.get("trust") == "nobody":
        return _BY_DEVICES
    return _COUNTED.get(name, "") if isinstance(name, str) else ""
