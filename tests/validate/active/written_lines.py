"""Lines with numbers, as the supervisor on a node writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Line = dict[str, Any]


class Journal:
    """Lines with numbers, as the supervisor writes them."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, t: float, phase: str, **content: Any) -> Journal:
        self.lines.append({"n": len(self.lines) + 1, "t": t, "p": phase, **content})
        return self

    def burn(self, t: float, phase: str = "heat", oks: Sequence[bool] = (True, True), s: float = 60) -> Journal:
        devices = {str(gpu): {"ok": {"value": ok}, "gflops": {"value": 51_000.0 - gpu}} for gpu, ok in enumerate(oks)}
        return self.add(t, phase, unit="gpu_burn", s=s, result={"devices": devices})

    def watch(self, t: float, phase: str = "heat", **gpu0: float) -> Journal:
        return self.add(t, phase, watch={"gpus": {"gpu0": gpu0}, "dimms": {}})
