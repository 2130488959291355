"""What every method with a graphical model tells of it: public names of columns, nothing more."""

from collections.abc import Iterable

from sfumato.models.graphical.model import GraphicalModel
from sfumato.schema import Measurement


def structure(model: GraphicalModel, seen: Iterable[Measurement]) -> dict[str, list[list[str]]]:
    """For ``release.json``: the structure that noisy counts chose.

    Returns:
        ``measured``: the marginals of two and more columns that were counted with noise, each
        once, in the order of their first measurement. ``cliques``: the columns of each table of
        the model.
    """
    targets = [one.target for one in seen if one.sigma_counts > 0]
    several = dict.fromkeys(t for t in targets if isinstance(t, tuple) and len(t) > 1)
    return {
        "measured": [list(names) for names in several],
        "cliques": [list(names) for names in model.cliques],
    }
