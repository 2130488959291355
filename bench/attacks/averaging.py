"""Asking again and again: fresh answers add up, remembered ones do not.

Someone who sees many answers of one person to one question takes the most frequent. Fresh answers
tell the truth in the end, at the price of epsilon each time. A memo or a client repeats the first.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import sfumato as sf
from attacks.figures import Figure, guess_allowed, of_share
from sfumato.errors import SfumatoError
from sfumato.randomness import Rng, secure_rng, simulation_rng
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.protocol.rounds import Agreement

VALUES: Final = 4
EPSILON: Final = Fraction(1)
TIMES: Final = 30
COLUMN: Final = sf.Category(name="help", values=("1", "2", "3", "4"))
SCHEMA: Final = sf.Schema.from_dict({"help": VALUES})
Asked = Callable[[int, Rng], list[int]]
"""A person's value to all answers that they gave."""


def fresh(code: int, rng: Rng) -> list[int]:
    """Broken: a new draw each time, each called epsilon."""
    mechanism = sf.Grr(categories=VALUES, epsilon=EPSILON)
    return [int(mechanism.answer(code, rng=rng)) for _ in range(TIMES)]


def remembered(code: int, rng: Rng) -> list[int]:
    """Ours: one question answered again and again with a memo."""
    question = sf.Question(column=COLUMN, epsilon=EPSILON, protocol="grr")
    memo = sf.Memo.fresh(rng=rng)
    value = COLUMN.values[code]
    return [int(question.answer_again(value, memo=memo).value) for _ in range(TIMES)]


def of_client(code: int, rng: Rng) -> list[int]:
    """Ours: a device that a server asks again and again, with the same plan and with new ones."""
    agreed = Agreement(schema=SCHEMA, epsilon=EPSILON, variant="single")
    client = sf.Client({"help": code}, agreed=agreed.manifest(), rng=rng, coded=True)
    plan = grouped_rounds.one_column_question(agreed).to_dict()
    (part,) = plan["parts"]
    others = plan | {"epsilon": "2"}, plan | {"parts": [part | {"protocol": "oue"}]}
    told = []
    for turn in range(TIMES):
        try:
            answer = client.answer((plan, *others)[turn % 3])
        except SfumatoError:  # refused: nothing was sent
            continue
        told.append(int(answer.value[1]))
    return told


def attacked(asked: Asked, people: int, *, rng: Rng) -> int:
    """How many people's most frequent answer is the truth."""
    truths = rng.below(VALUES, people).tolist()
    guesses = (Counter(asked(code, rng)).most_common(1)[0][0] for code in truths)
    return sum(guess == code for guess, code in zip(guesses, truths, strict=True))


def figures(*, quick: bool) -> list[Figure]:
    """Thirty times the same question."""
    people = 300 if quick else 4_000
    told = {
        "attack": "asking again",
        "allowed": guess_allowed(float(EPSILON), VALUES),
    }
    ways = {
        f"{TIMES} fresh answers of Grr, called epsilon 1": (fresh, False),
        f"sfumato Memo, asked {TIMES} times": (remembered, True),
        f"sfumato Client, asked {TIMES} times, some with new questions": (of_client, True),
    }
    return [
        of_share(
            attacked(way, people, rng=secure_rng() if mine else simulation_rng(1)),
            people,
            target=target,
            ours=mine,
            **told,
        )
        for target, (way, mine) in ways.items()
    ]
