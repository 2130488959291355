"""The style sheet: every text can be read, in the light, in the dark and on paper."""

import re
from itertools import product

import pytest

from sfumato.charts.bars import _DARK_ABOVE, _SHADES
from sfumato.report.page import dress

BACKGROUNDS = ("paper", "card")
TEXTS = ("ink", "soft", "deep")
SHAPES = (
    "accent", "real", "cell", "below", "line-2", "line-3", "line-4", "line-5",
    *(f"group-{number}" for number in range(6)),
)  # fmt: skip
Color = tuple[float, float, float]


def style() -> str:
    return str(dress(private=True, internal=False)["style"])


def colors(mode: str) -> dict[str, Color]:
    """The variables of a mode; what dark pages or paper do not set is as in the light."""
    blocks = re.findall(r":root \{([^}]*)\}", style())
    assert len(blocks) == 3
    chosen = {"light": blocks[:1], "dark": blocks[:2], "print": [blocks[0], blocks[2]]}[mode]
    return {
        name: color(value)
        for block in chosen
        for name, value in re.findall(r"--([\w-]+): (#\w+);", block)
    }


def color(text: str) -> Color:
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue


def luminance(rgb: Color) -> float:
    """Relative luminance of WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    """(L1 + 0.05) / (L2 + 0.05): AA asks 4.5 of text and 3 of what is drawn."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over: Color, under: Color, share: float) -> Color:
    red, green, blue = (share * a + (1 - share) * b for a, b in zip(over, under, strict=True))
    return red, green, blue


def test_the_measure_of_contrast_knows_black_on_white_and_gray_on_gray() -> None:
    assert contrast(color("#000"), color("#fff")) == pytest.approx(21)
    assert contrast(color("#777"), color("#fff")) == pytest.approx(4.48, abs=0.01)  # just too weak


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_every_text_has_the_contrast_of_aa(mode: str) -> None:
    found = colors(mode)
    pairs = [(text, back) for text in TEXTS for back in BACKGROUNDS]
    pairs += [("alarm-ink", "alarm"), ("warn-ink", "warn"), ("alarm", "card")]
    pairs += [("on", f"group-{number}") for number in range(6)]
    if mode == "dark":
        pairs.remove(("alarm", "card"))  # only paper has headings in it
    weak = {pair: contrast(found[pair[0]], found[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_everything_drawn_stands_out_from_its_card(mode: str) -> None:
    found = colors(mode)
    ratios = {name: contrast(found[name], found["card"]) for name in SHAPES}
    assert {name: ratio for name, ratio in ratios.items() if ratio < 3} == {}


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_numbers_can_be_read_on_every_shade_of_a_heat_map(mode: str) -> None:
    found = colors(mode)
    for shade, sign in product(range(_SHADES + 1), ("cell", "below")):
        back = blend(found[sign], found["card"], shade / _SHADES)
        text = found["on" if shade > _DARK_ABOVE else "low"]
        assert contrast(text, back) >= 4.5, (mode, sign, shade)
