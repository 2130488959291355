"""The device in JavaScript, without a browser: the same vectors, the same odds, its refusals."""

import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.stats import chisquare

from sfumato.randomness import simulation_rng
from sfumato.schema import Schema
from sfumato.server.pages.build import SOURCE
from sfumato.survey.dp2pub import grouped_rounds
from sfumato.survey.protocol.envelopes import canonical
from sfumato.survey.protocol.rounds import PROTOCOLS, Agreement, mechanism_of

HERE = Path(__file__).parent
VECTORS = HERE.parent / "golden" / "local_vectors.json"
SECTIONS = list(json.loads(VECTORS.read_text()))
DRAWS = 20_000
ALARM = 1e-6
"""A right device fails a comparison in so many of all seeds; these seeds are fixed."""


def run(node: str, *arguments: str | Path, **options) -> bytes:
    done = subprocess.run([node, *arguments], capture_output=True, timeout=120, **options)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("section", SECTIONS)
def test_the_device_in_javascript_does_what_the_vectors_of_python_say(node, section):
    held = run(node, HERE / "js" / "vectors.mjs", SOURCE, VECTORS, section)
    assert int(held) == len(json.loads(VECTORS.read_text())[section])


def test_the_device_keeps_to_what_was_agreed_whatever_the_server_does(node):
    places = {"SFUMATO_SOURCE": str(SOURCE), "SFUMATO_VECTORS": str(VECTORS)}
    said = run(node, "--test", HERE / "js" / "device.test.mjs", env=os.environ | places).decode()
    assert "fail 0" in said
    assert said.count("\nok ") >= 20


def drawn(node: str, seed: int, words: int, **task) -> dict[str, int]:
    """How often each answer came, for random words of a seed."""
    head = json.dumps(task | {"draws": DRAWS}).encode() + b"\n"
    stream = simulation_rng(seed).words(words).tobytes()
    return json.loads(run(node, HERE / "js" / "draws.mjs", SOURCE, input=head + stream))


def p_value(counts: dict[str, int], expected: dict[str, float]) -> float:
    """Of Pearson's chi-square test; an answer that can't be is an error."""
    assert set(counts) <= set(expected)
    seen = [counts.get(answer, 0) for answer in expected]
    return float(chisquare(seen, [DRAWS * share for share in expected.values()]).pvalue)


def shares(protocol: str, categories: int, epsilon: str, code: int) -> dict[str, float]:
    found = mechanism_of(protocol, categories, Fraction(epsilon)).transition()
    row = found.probabilities()[code]
    return {str(answer): share for answer, share in zip(found.answers, row, strict=True) if share}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_are_as_likely_as_the_transition_matrix_says(node, protocol):
    counts = drawn(node, 1, DRAWS, protocol=protocol, epsilon="1", categories=5, code=3)
    assert p_value(counts, shares(protocol, 5, "1", 3)) > ALARM


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_that_comparison_rejects_an_epsilon_that_is_a_third_larger(node, protocol):
    counts = drawn(node, 1, DRAWS, protocol=protocol, epsilon="4/3", categories=5, code=3)
    assert p_value(counts, shares(protocol, 5, "1", 3)) < ALARM


def small_survey() -> tuple[Agreement, dict[str, int]]:
    columns = [
        {"name": "smoker", "kind": "boolean"},
        {"name": "health", "kind": "ordinal", "values": ["poor", "fair", "good"]},
        {"name": "age", "kind": "integer", "low": 0, "high": 9},
    ]
    schema = Schema.from_dict({"sfumato": 1, "columns": columns})
    agreed = Agreement(schema=schema, epsilon=Fraction(1), variant="single")
    return agreed, {"smoker": 1, "health": 0, "age": 7}


def joint_shares(agreed: Agreement, codes: dict[str, int]) -> dict[str, float]:
    """Of every pair of a part and an answer, by the weights and the transition matrices."""
    plan, found = grouped_rounds.one_column_question(agreed), {}
    for place, (part, weight) in enumerate(zip(plan.parts, plan.weights, strict=True)):
        made = part.made(agreed.schema, plan.epsilon)
        own = shares(part.protocol, made.mechanism.inputs, "1", made.cell(codes))
        asked = weight / sum(plan.weights)
        found |= {f"{place},{answer}": asked * share for answer, share in own.items()}
    return found


def test_whole_devices_draw_parts_and_answers_as_the_plan_says(node):
    agreed, codes = small_survey()
    plan = canonical(grouped_rounds.one_column_question(agreed).to_dict())
    task = {"agreement": canonical(agreed.manifest()), "plan": plan}
    counts = drawn(node, 2, 25 * DRAWS, codes=codes, **task)
    assert p_value(counts, joint_shares(agreed, codes)) > ALARM
    assert p_value(counts, joint_shares(agreed, codes | {"health": 2})) < ALARM
