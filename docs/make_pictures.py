"""Draws the pictures of the documentation that come from code: `make docs` runs it.

The same code gives the same bytes, so that a picture changes only when what it shows does.
"""

from math import exp
from pathlib import Path

import sfumato as sf
from sfumato.charts import Line, bar_rows, line_chart

IMAGES = Path(__file__).parent / "images"
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10)
GUESSES = (0.5, 0.1, 0.01)


def odds() -> str:
    """How sure a reader can become that a row is in the table or not, against epsilon."""

    def after(before: float, epsilon: float) -> float:
        return 100 * before * exp(epsilon) / (1 - before + before * exp(epsilon))

    return line_chart(
        [
            Line(name=f"a guess at {before:.0%}", values=[after(before, e) for e in EPSILONS])
            for before in GUESSES
        ],
        x_labels=[f"{epsilon:g}" for epsilon in EPSILONS],
        x_values=[float(epsilon) for epsilon in EPSILONS],
        log_x=True,
        title="in the table or not: percent, by epsilon",
        width=640,
    )


def finding() -> str:
    """What a notebook shows of an audit."""
    found = sf.audit(sf.Grr(categories=4, epsilon=1), runs=20_000, rng=sf.simulation_rng(0))
    sizes = {"claimed": float(found.claimed), "exact": found.exact, "at least": found.lower_bound}
    return bar_rows(list(sizes), {"epsilon": list(sizes.values())}, title="epsilon", width=480)


def plan() -> str:
    """Predicted errors of the survey in the tutorials."""
    schema = sf.Schema.from_dict(
        {
            "sfumato": 1,
            "dataset": "health-survey",
            "columns": [
                {"name": "age", "kind": "integer", "low": 18, "high": 89, "step": 6},
                {
                    "name": "education",
                    "kind": "ordinal",
                    "values": ["primary", "secondary", "tertiary"],
                    "missing": True,
                },
                {"name": "smoker", "kind": "boolean"},
                {
                    "name": "health",
                    "kind": "ordinal",
                    "values": ["poor", "fair", "good", "very good"],
                },
            ],
        }
    )
    return sf.plan(schema, rows=12_000, epsilon=1).chart()


BOXES = {
    "schema": (0, 0, "public knowledge"),
    "readers": (0, 1, "rows as batches"),
    "counting": (1, 0, "exact counts"),
    "noise": (1, 1, "exact draws"),
    "ledger": (1, 2, "what was paid"),
    "gate": (2, 1, "charge, look, noise"),
    "synthesis": (3, 1, "and recommend"),
    "models": (3, 2, "pure mathematics"),
    "release": (4, 1, "may be published"),
    "evaluation": (4, 0, "internal"),
    "report": (5, 1, "pages"),
    "survey.device": (2, 3, "a person's device"),
    "survey.estimate": (3, 3, "models answers"),
}
ARROWS = (
    ("schema", "counting"),
    ("readers", "counting"),
    ("counting", "gate"),
    ("noise", "gate"),
    ("ledger", "gate"),
    ("gate", "synthesis"),
    ("models", "synthesis"),
    ("models", "survey.estimate"),
    ("synthesis", "release"),
    ("release", "evaluation"),
    ("release", "report"),
    ("evaluation", "report"),
    ("survey.device", "survey.estimate"),
)
TRUSTED = ("counting", "noise", "ledger", "gate")
"""Shaded: what a reviewer reads to believe a central promise."""
WIDE, HIGH, STEP_X, STEP_Y = 118, 40, 150, 70


def house() -> str:
    """The rooms, and what flows from one to the other."""
    gate, plain = 'stroke="#b4573c" stroke-width="2"', 'stroke="#7f9fb5"'
    boxes = "".join(
        f'<g transform="translate({10 + x * STEP_X} {10 + y * STEP_Y})">'
        f'<rect width="{WIDE}" height="{HIGH}" rx="6" '
        f'fill="{"#f3dcd2" if name in TRUSTED else "#eef2f5"}" '
        f"{gate if name == 'gate' else plain}/>"
        f'<text x="{WIDE / 2:g}" y="17" font-weight="600">{name}</text>'
        f'<text x="{WIDE / 2:g}" y="32" fill="#4a4754">{says}</text></g>'
        for name, (x, y, says) in BOXES.items()
    )
    lines = "".join(_arrow(*BOXES[start][:2], *BOXES[end][:2]) for start, end in ARROWS)
    width, height = 10 + 5 * STEP_X + WIDE + 10, 10 + 3 * STEP_Y + HIGH + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="system-ui,sans-serif" font-size="11">'
        "<title>The rooms of sfumato</title><desc>Schema and readers to counting; counting, noise "
        "and ledger to the gate; measurements to synthesis, with models, to release; release to "
        "evaluation and report; answers of devices to estimates.</desc>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#4a4754"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<g stroke="#4a4754" marker-end="url(#tip)">{lines}</g>'
        f'<g text-anchor="middle" fill="#2b2933">{boxes}</g></svg>'
    )


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    """From the edge of a box to the edge of another, to the right, up or down."""
    if x == to_x:
        down = to_y > y
        start = 10 + y * STEP_Y + (HIGH if down else 0)
        stop = 10 + to_y * STEP_Y + (0 if down else HIGH)
        middle = 10 + x * STEP_X + WIDE // 2
        return f'<line x1="{middle}" y1="{start}" x2="{middle}" y2="{stop}"/>'
    left, right = 10 + x * STEP_X + WIDE, 10 + to_x * STEP_X
    start, stop = (10 + row * STEP_Y + HIGH // 2 for row in (y, to_y))
    return f'<line x1="{left}" y1="{start}" x2="{right}" y2="{stop}"/>'


if __name__ == "__main__":
    for draw in (odds, finding, plan, house):
        (IMAGES / f"{draw.__name__}.svg").write_text(draw() + "\n", encoding="utf-8")
