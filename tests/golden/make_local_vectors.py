"""Makes local_vectors.json: what the device in Python does, for the device in JavaScript to do too.

``PYTHONPATH=tests python -m golden.make_local_vectors`` writes it, after a deliberate change of
messages or mechanisms. Random words come from seeded generators, so the same file comes out
everywhere; both devices are tested against it.
"""

import base64
import copy
import json
from fractions import Fraction
from pathlib import Path

from golden.local_cases import (
    COLUMNS,
    EPSILONS,
    FLOATS,
    SIZES,
    TEXTS,
    VALUES,
    WRITTEN,
    changed_columns,
    changed_plans,
)
from sfumato.errors import BudgetError, InputError
from sfumato.local.frequency.grr import Grr
from sfumato.local.frequency.hadamard import HadamardResponse
from sfumato.local.frequency.local_hashing import FastOlh
from sfumato.local.probabilities import exp_below
from sfumato.randomness import simulation_rng
from sfumato.schema import Schema
from sfumato.schema.files import column_to_dict
from sfumato.schema.values import code_of
from sfumato.survey.device.device import Client
from sfumato.survey.dp2pub import faithful_rounds, grouped_rounds
from sfumato.survey.protocol.announcements import Announcement
from sfumato.survey.protocol.envelopes import Envelope, Signer, canonical
from sfumato.survey.protocol.rounds import Agreement, ColumnsQuestion, read_question

FILE = Path(__file__).with_name("local_vectors.json")

PROTOCOLS = {"grr": Grr, "hadamard": HadamardResponse, "fast-olh": FastOlh}


def schema() -> Schema:
    return Schema.from_dict({"sfumato": 1, "columns": list(COLUMNS)})


def small(variant: str, epsilon: str = "2") -> Agreement:
    """A survey of columns with few codes and many: all protocols occur."""
    listed = [COLUMNS[0], COLUMNS[3], COLUMNS[4], COLUMNS[5], COLUMNS[11]]
    columns = Schema.from_dict({"sfumato": 1, "columns": listed})
    return Agreement(schema=columns, epsilon=Fraction(epsilon), variant=variant)


def words(seed: int, n: int) -> list[str]:
    """The first words of a seeded generator, in hexadecimal."""
    return [f"{word:x}" for word in simulation_rng(seed).words(n).tolist()]


def odds() -> list:
    found = {text: exp_below(Fraction(text)) for text in EPSILONS}
    return [[text, str(each.numerator), str(each.denominator)] for text, each in found.items()]


def thresholds() -> list:
    """For each epsilon some sizes, for each size some epsilons, all protocols: exact integers."""
    found = []
    usable = [text for text in EPSILONS if Fraction(1, 10_000) <= Fraction(text) <= 32]
    for place, text in enumerate(usable):
        sizes = SIZES if place < 8 else [SIZES[(place * step) % len(SIZES)] for step in (1, 5)]
        for size in dict.fromkeys(sizes):
            for name, kind in PROTOCOLS.items():
                found.append(
                    [name, text, size, _integers(kind(categories=size, epsilon=Fraction(text)))]
                )
    return found


def _integers(mechanism) -> list[str]:
    if isinstance(mechanism, Grr):
        numbers = mechanism.weights.keep, mechanism.weights.share
    elif isinstance(mechanism, HadamardResponse):
        numbers = mechanism.keep, mechanism.index_bits
    else:
        response = mechanism.response
        numbers = response.truth, response.value_bits, mechanism.seed_bits
    truth = mechanism.p
    return [*map(str, numbers), f"{truth.numerator}/{truth.denominator}"]


def below() -> list:
    bounds = [1, 2, 3, 5, 8, 9, 1000, 2**32, 2**32 + 1, 2**61 + 1, 2**62]
    drawn = [int(simulation_rng(seed).below(bound, 1)[0]) for seed, bound in enumerate(bounds)]
    return [
        {"bound": str(bound), "words": words(seed, 40), "drawn": str(drawn[seed])}
        for seed, bound in enumerate(bounds)
    ]


def single_answers() -> list:
    """For each protocol, a few codes and words: the answer."""
    found = []
    for seed in range(60):
        name = list(PROTOCOLS)[seed % 3]
        size = SIZES[seed % 14]
        epsilon = ["1/10", "1", "3", "8"][seed % 4]
        code = [0, size - 1, size // 2][seed % 5 % 3]
        mechanism = PROTOCOLS[name](categories=size, epsilon=Fraction(epsilon))
        rng = simulation_rng(seed)
        answers = [int(mechanism.answer(code, rng=rng)) for _ in range(6)]
        found.append([name, epsilon, size, code, words(seed, 6), answers])
    return found


def column_codes() -> list:
    found = []
    entries = [*COLUMNS, *WRITTEN]
    columns = Schema.from_dict({"sfumato": 1, "columns": entries})
    for column, entry in zip(columns, entries, strict=True):
        cases = [[value, _code(column, value)] for value in VALUES[entry["name"]]]
        text = canonical(column_to_dict(column) | _edges(column))
        found.append({"column": text, "size": column.size, "cases": cases})
    return found


def _edges(column) -> dict:
    """Edges as an agreement spells them."""
    return {"edges": list(map(float, column.edges))} if column.kind == "number" else {}


def _code(column, value) -> int | None:
    try:
        return code_of(column, value)
    except InputError:
        return None


def canonicals() -> list[str]:
    return [canonical({"t": text, "f": number}) for text in TEXTS for number in FLOATS[:1]] + [
        canonical(
            {"a": list(FLOATS), "é": None, "z": True, "𝒳": [], "\uffff": {}, "10": 1, "9": 2**70}
        )
    ]


def surveys() -> list:
    """Agreements, their plans, and what some clients answer in each round."""
    found = []
    for variant in ("single", "grouped", "faithful"):
        for epsilon in ("2", "7/2"):
            agreed = small(variant, epsilon)
            plans = _plans(agreed)
            clients = [_client(agreed, plans, seed) for seed in range(16)]
            found.append(
                {
                    "agreement": canonical(agreed.manifest()),
                    "id": agreed.id,
                    "plans": [canonical(plan.to_dict()) for plan in plans],
                    "ids": [plan.id for plan in plans],
                    "clients": clients,
                }
            )
    return found


def _plans(agreed: Agreement) -> list:
    if agreed.variant == "single":
        return [grouped_rounds.one_column_question(agreed)]
    if agreed.variant == "faithful":
        first = faithful_rounds.first_question(agreed)
        shares = {name: budget / 2 for name, budget in first.budgets.items()}
        shares[agreed.columns[-1]] *= 3
        return [first, ColumnsQuestion(survey=agreed.id, round=2, budgets=shares)]
    first = grouped_rounds.first_question(agreed)
    text = canonical(first.to_dict() | {"round": 2}).replace("fast-olh", "hadamard")
    return [first, read_question(json.loads(text), agreed)]


def _client(agreed: Agreement, plans: list, seed: int) -> dict:
    rng = simulation_rng(1_000 + seed)
    codes = {column.name: (seed * 7) % column.size for column in agreed.schema}
    client = Client(codes, agreed=agreed.manifest(), rng=rng, coded=True)
    answers = [client.answer(plan.to_dict()) for plan in plans]
    return {
        "codes": codes,
        "words": words(1_000 + seed, 50),
        "answers": [None if answer is None else answer.value for answer in answers],
        "state": _unmarked(client.to_dict()),
    }


def _unmarked(state: dict) -> dict:
    """A state as a device with real randomness has it: nothing says that it was simulated."""
    plain = copy.deepcopy(state)
    held = plain.get("answers") or {"": plain.get("answer")}
    for answer in held.values():
        if answer is not None:
            answer.pop("simulated")
    return plain


def refusals() -> list:
    """Texts of agreements and plans that a device refuses, and how."""
    found = []
    for variant in ("grouped", "faithful"):
        agreed = small(variant)
        plan = _plans(agreed)[0].to_dict()
        cases = [
            [canonical(changed), _refusal(changed, agreed)]
            for changed in changed_plans(plan, variant)
        ]
        found.append({"agreement": canonical(agreed.manifest()), "cases": cases})
    return found


def _refusal(message: dict, agreed: Agreement) -> str | None:
    try:
        read_question(message, agreed)
    except BudgetError:
        return "budget"
    except InputError:
        return "input"
    return None


def ledgers() -> list:
    """Plans in an order, and what a client does with each: answers, nothing, or a refusal."""
    agreed = small("grouped")
    first, second = (plan.to_dict() for plan in _plans(agreed))
    other = first | {"parts": first["parts"][:-1]}
    other = read_question(other | {"bins": _used(other)}, agreed).to_dict()
    both = small("faithful")
    one, two = (plan.to_dict() for plan in _plans(both))
    more = two | {"budgets": dict.fromkeys(two["budgets"], "1/2")}
    again = two | {"budgets": dict.fromkeys(two["budgets"], "1/8")}
    return [
        _ledgers(agreed, [first, second, other], [[0, 0, 1], [1, 0], [0, 2], [1, 1, 2]]),
        _ledgers(both, [one, two, more, again], [[0, 0, 1, 1], [1, 0], [0, 2], [0, 1, 3]]),
    ]


def _used(plan: dict) -> list:
    used = {place for part in plan["parts"] for place in part["bins"] if place is not None}
    return [cut for place, cut in enumerate(plan["bins"]) if place in used]


def _ledgers(agreed: Agreement, plans: list[dict], orders: list[list[int]]) -> dict:
    runs = [
        {"words": words(seed, 60), "steps": _steps(agreed, [(i, plans[i]) for i in order], seed)}
        for order in orders
        for seed in range(4)
    ]
    texts = [canonical(plan) for plan in plans]
    return {"agreement": canonical(agreed.manifest()), "plans": texts, "runs": runs}


def _steps(agreed: Agreement, order: list[tuple[int, dict]], seed: int) -> list:
    """What a client says to each plan, and the state that it is in afterwards."""
    codes = {column.name: 0 for column in agreed.schema}
    client = Client(codes, agreed=agreed.manifest(), rng=simulation_rng(seed), coded=True)
    steps = []
    for place, plan in order:
        try:
            answer = client.answer(plan)
            outcome = None if answer is None else answer.value
        except BudgetError:
            outcome = "budget"
        steps.append([place, outcome, _unmarked(client.to_dict())])
    return steps


def signatures() -> list:
    """A signed announcement; the same with each part changed."""
    signer, other = Signer(bytes(range(32))), Signer(bytes(32))
    agreed = Agreement(schema=schema(), epsilon=Fraction(2), variant="grouped")
    announcement = Announcement(
        task="0123456789abcdef" * 2,
        title="نظرسنجی 綠🟢",
        agreement=agreed,
        first_question=grouped_rounds.first_question(agreed).id,
        text="Two\nlines",
        questions={"smoker": "آیا سیگار می کشید؟", "age": "How old are you?"},
        minimum=10**12,
        closes="2026-12-31T18:00Z",
        page="ab" * 32,
    )
    good = signer.sign(announcement.to_dict())
    flipped = base64.b64encode(bytes([1]) + base64.b64decode(good.signature)[1:]).decode()
    cases = [
        (good, signer.key),
        (good, other.key),
        (
            Envelope(payload=good.payload.replace("How old", "How odd"), signature=good.signature),
            signer.key,
        ),
        (Envelope(payload=good.payload + " ", signature=good.signature), signer.key),
        (Envelope(payload=good.payload, signature=flipped), signer.key),
        (Envelope(payload=good.payload, signature=good.signature[:-4]), signer.key),
        (good, signer.key[:-4]),
        (good, "not base64"),
    ]
    digest = good.digest
    return [[each.to_dict(), key, _opens(each, key), digest] for each, key in cases]


def _opens(envelope: Envelope, key: str) -> bool:
    try:
        Announcement.from_dict(envelope.opened(key))
    except InputError:
        return False
    return True


def announcements() -> list:
    """Signed or not, an announcement that is not as this program writes it is refused."""
    agreed = small("single")
    plan = grouped_rounds.one_column_question(agreed).id
    said = Announcement(task="0" * 32, title="T", agreement=agreed, first_question=plan).to_dict()
    manifest = said["agreement"]
    columns = manifest["columns"]
    changes = [
        *({name: None} for name in said if name not in ("closes", "page")),
        *({"title": text} for text in ("", " ", "x" * 201, "a\x07b", "a\u202eb")),
        *({"questions": given} for given in ([], {"nobody": "?"}, {"age": ""}, {"age": 1})),
        *({"minimum": given} for given in (0, 1.0, "1", True)),
        *({"closes": given} for given in ("2026-12-31T18:00Z", "tomorrow", "2026-12-31")),
        *({"page": given} for given in ("", "AB" * 32, "ab" * 31)),
        *({"first_plan": given} for given in ("", "AB" * 16, "ab" * 15, 0, [])),
        {"extra": 1},
        {"survey": "0" * 32},
        *({"agreement": manifest | {"epsilon": given}} for given in ("3", "1/20000", "33", "0", 2)),
        *({"agreement": manifest | {"variant": given}} for given in ("grouped", "other", None)),
        *({"agreement": manifest | {"shares": given}} for given in (["1/1"], [], ["1/2", "1/2"])),
        *({"agreement": manifest | {"columns": given}} for given in changed_columns(columns)),
    ]
    found = [said, *({**said, **change} for change in changes)]
    found.append({name: said[name] for name in said if name != "first_plan"})
    return [[canonical(message), _reads(message)] for message in found]


def _reads(message: dict) -> bool:
    try:
        Announcement.from_dict(message)
    except InputError:
        return False
    return True


def vectors() -> dict:
    """All sections."""
    return {
        "odds": odds(),
        "thresholds": thresholds(),
        "below": below(),
        "answers": single_answers(),
        "codes": column_codes(),
        "canonical": canonicals(),
        "surveys": surveys(),
        "refusals": refusals(),
        "ledgers": ledgers(),
        "signatures": signatures(),
        "announcements": announcements(),
    }


def text() -> str:
    """The file: a line for each vector."""
    sections = []
    for name, rows in vectors().items():
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        sections.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(sections) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="ascii")
