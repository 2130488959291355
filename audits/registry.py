"""Every whole run that is audited, by its name."""

from typing import Final

from audits import publishing, recommending, scout, surveys
from sfumato.auditing.cases import CASES, Cases

WHOLE_RUNS: Final[Cases] = {
    **scout.CASES,
    **surveys.CASES,
    **publishing.CASES,
    **recommending.CASES,
}
"""Builders of cases, which can be pickled. The multiples of the budget that they plant are their
own, whatever multiple of epsilon is asked for."""

EVERY_CASE: Final[Cases] = {**CASES, **WHOLE_RUNS}
"""Those of ``sfumato audit``, then whole runs."""

EXPLAINED: Final = """\
- **Ask**, **Answers** and **Survey** rows are whole messages of devices, **Publish**, **Dp2Pub**
  and **Recommend** rows whole releases: every row, noisy count, number of the model, word of
  `release.json` and answer of the gate, from small neighboring inputs through the code of the
  command. No such output comes twice, so the attack learns from pilot runs which facts tell, and
  how much; neighbors, facts and threshold are searched, the bound is of fresh runs. Noise that is
  spread over many steps shows little of itself in some hundred runs.
- Therefore **Publish**, **Dp2Pub** and **Recommend** runs are also followed in step: a run is
  overheard, then its neighbor is run and told the same noisy answers. All that it then asks and
  publishes must be the same, word for word: else something went around the noise. And the loss of
  all steps is added up exactly, from what each would tell without noise and the noise that hides
  it; the largest sum is **exact**, for a claim of (epsilon, delta) in the rho that it pays for.
  Every pair of neighbors is followed both ways. This is not sampled: it has no false alarms and
  sees twice the budget, or one exact number, in a single pair of runs.
"""
"""What the page of audits says about rows of whole runs."""
