"""A story as data: what hands and hardware do to the virtual fleet, and what must come of it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from assay.model.errors import Trouble
from assay.model.spec import Spec, Strict


class Inject(Strict):
    """A fault of `assay lab inject`, on one node, with its arguments."""

    fault: str
    node: str
    arguments: dict[str, int | float | str] = Field(default={}, alias="with")


class Swap(Strict):
    """Two rail cables whose node ends change places: `n0005/mlx5_3`. Swapping again repairs."""

    a: str
    b: str


class Job(Strict):
    """A customer's job that starts on a node and ends by itself."""

    node: str
    name: str
    hours: float


class Certify(Strict):
    """A person's word that a node is inspected and cabled."""

    node: str
    reason: str


class Reconcile(Strict):
    """`assay reconcile --once`. `kill_in_flash` names a node: SIGKILL as soon as its BMC works on an image."""

    nodes: list[str] = Field(default=[])
    settle: bool = False
    kill_in_flash: str = ""


class TicketExpected(Strict):
    """A ticket, by words that its text must hold; `open` says whether it still is, `count` how many there are."""

    mentions: list[str] = Field(min_length=1)
    open: bool = True
    count: int = 1


class Expect(Strict):
    """What the ledger, the tickets and the hardware must say now. Every key is checked that is given."""

    state: dict[str, str] = Field(default={})
    path: dict[str, list[str]] = Field(default={}, description="the states a node went through, in order")
    waiting: dict[str, str] = Field(default={}, description="node → the job that its pending transition waits for")
    faults: dict[str, str] = Field(default={}, description="node → a fault class that its history holds")
    unanswered: dict[str, list[str]] = Field(default={}, description="node → channels that did not answer")
    effects: dict[str, dict[str, int]] = Field(default={}, description="node → action → intents, each verified")
    flashes: dict[str, dict[str, int]] = Field(default={}, description="node → component → images its BMC accepted")
    tickets: list[TicketExpected] = Field(default=[])


class Step(Strict):
    """One thing that happens. Exactly one key."""

    inject: Inject | None = None
    swap: Swap | None = None
    job: Job | None = None
    certify: Certify | None = None
    advance_hours: float | None = None
    reconcile: Reconcile | None = None
    this_machine: bool | None = None
    expect: Expect | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Step:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"a step does exactly one thing; this one has {sorted(self.model_fields_set) or 'none'}")
        return self

    @property
    def does(self) -> str:
        """The one thing that the step does."""
        return next(iter(self.model_fields_set))


class Chapter(Strict):
    """One story, told by its title."""

    title: str
    steps: list[Step]


class Scenario(Spec):
    """What is planted before the lab starts, then the chapters in order."""

    start: str
    rate: float = Field(gt=0, description="lab seconds in a real second")
    plant: list[Inject] = Field(default=[])
    chapters: list[Chapter] = Field(default=[])

    @property
    def starts_at(self) -> datetime:
        """The lab's time when it starts."""
        return datetime.fromisoformat(self.start)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises Trouble that names the file and the place in it."""
    try:
        plain: Any = yaml.safe_load(path.read_bytes())
        return Scenario.model_validate(plain)
    except OSError as error:
        raise Trouble(error.strerror or "cannot be read", where=str(path)) from error
    except yaml.YAMLError as error:
        raise Trouble(str(error), where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise Trouble(
            f"{place}: {first['msg']}", where=str(path), fix="see scenarios/the-loop.yaml for the form"
        ) from error
