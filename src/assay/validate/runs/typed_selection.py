"""What a person typed to leave items out: -k, -m and --deselect, as they were before any conftest was loaded."""

from __future__ import annotations

import pytest

from assay.model.facts import frozen


@frozen
class TypedSelection:
    """The expressions of -k and -m ("" for none), and the beginnings of ids that --deselect names."""

    keyword: str = ""
    marks: str = ""
    deselected: tuple[str, ...] = ()

    @classmethod
    def of_session(cls, config: pytest.Config) -> TypedSelection:
        """Return what was typed in a session; where pytest loaded assay too late to keep that, what applies now."""
        option = config.getoption
        now = cls(option("keyword"), option("markexpr"), tuple(option("deselect") or ()))
        return config.stash.get(TYPED_SELECTION_KEY, now)


TYPED_SELECTION_KEY = pytest.StashKey[TypedSelection]()
