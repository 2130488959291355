"""A measurement: noisy counts that may be published. The exact ones never leave the curator."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.schema.coarse import Coarse
from sfumato.schema.workload import Target


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """What was asked, the noisy answer, and the standard deviation of its noise."""

    target: Target
    values: NDArray[np.float64]
    """Counts in the shape of the marginal; a single number for a range or a total."""
    sigma_counts: float
    """Standard deviation of the noise on each value, in counts; 0 where the value is public."""
    merged: Coarse | None = None
    """The codes that were counted together, if some were; ``values`` has their shape."""

    def to_dict(self) -> dict[str, Any]:
        """For ``release.json``: the target and its noise (values are in the model's file)."""
        named = str(self.target) if not isinstance(self.target, tuple) else list(self.target)
        return {"target": named, "sigma_counts": self.sigma_counts}
