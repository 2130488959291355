"""A file written like the raw Adult one: no header, a space after each comma, ``?`` for missing.

The people are made up: drawn from seeded randomness, column by column, with a few dependencies.
"""

from collections.abc import Sequence

from sfumato.randomness import Rng, simulation_rng

NAMES = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip

WORKCLASSES = (
    "Private",
    "Self-emp-not-inc",
    "Local-gov",
    "State-gov",
    "Federal-gov",
    "Self-emp-inc",
)
EDUCATIONS = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
MARITAL = ("Married-civ-spouse", "Never-married", "Divorced", "Separated", "Widowed")
OCCUPATIONS = tuple(f"Occupation-{letter}" for letter in "ABCDEFGHIJKLMN")
RELATIONSHIPS = ("Husband", "Not-in-family", "Own-child", "Unmarried", "Wife", "Other-relative")
RACES = ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
COUNTRIES = ("United-States", *(f"Country-{number:02}" for number in range(1, 42)))


def adult_like(rows: int, *, seed: int) -> str:
    """The text of such a file; 42 countries, of which the last ones have a row or two."""
    rng = simulation_rng(seed)
    return "".join(_row(number, rng) for number in range(rows))


def _row(number: int, rng: Rng) -> str:
    part = rng.uniform(16)
    education = int(16 * part[3] ** 0.7)
    gain = int(99_999 * part[10] ** 3) if part[11] < 0.08 else 0
    country = COUNTRIES[number % 42] if number < 42 else COUNTRIES[int(42 * part[13] ** 60)]
    rich = part[14] < 0.1 + 0.03 * education
    fields = (
        17 + int(74 * part[0] ** 1.5),
        _or_missing(_one(WORKCLASSES, part[1] ** 2), part[15]),
        12_285 + int(1_472_420 * part[2] ** 3),
        EDUCATIONS[education],
        education + 1,
        _one(MARITAL, part[5]),
        _or_missing(_one(OCCUPATIONS, part[6]), part[15]),
        _one(RELATIONSHIPS, part[7]),
        _one(RACES, part[8] ** 3),
        "Male" if part[9] < 0.67 else "Female",
        gain,
        int(4_356 * part[12]) if part[12] < 0.05 else 0,
        1 + int(98 * part[4]),
        _or_missing(country, 1 - part[15]),
        ">50K" if rich else "<=50K",
    )
    return ", ".join(map(str, fields)) + "\n"


def _one(texts: Sequence[str], part: float) -> str:
    return texts[int(len(texts) * part)]


def _or_missing(text: str, part: float) -> str:
    return "?" if part < 0.06 else text
