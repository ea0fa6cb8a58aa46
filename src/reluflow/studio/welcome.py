"""What a front end has to know before it asks for anything."""

from __future__ import annotations

import re
from typing import Any

from reluflow.network.init import KINDS
from reluflow.problem.datasets import REGISTRY
from reluflow.report.glossary import GLOSSARY
from reluflow.studio.settings import MOST_NEURONS, MOST_POINTS, MOST_TEXT


def welcome(data: str | None) -> dict[str, Any]:
    """The first message to a front end.

    Parameters
    ----------
    data : str, optional
        Settings (JSON) to begin with, unless the front end has some.
    """
    return {
        "type": "welcome",
        "datasets": [
            {"name": d.name, "about": re.sub(r"\[(\w+)\]_", r"\1", d.description)}
            for d in REGISTRY.values()
        ],
        "kinds": list(KINDS),
        "glossary": GLOSSARY,
        "limits": {"neurons": MOST_NEURONS, "points": MOST_POINTS, "bytes": MOST_TEXT},
        "data": data,
    }
