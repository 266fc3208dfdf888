"""LifecyclePolicy."""

from __future__ import annotations

from typing import Literal

from assay.model.spec import Spec


class LifecyclePolicy(Spec):
    """LifecyclePolicy."""

    kind: Literal["LifecyclePolicy"]
