"""CollectiveWorkload: the commands that run a collective on one node, on two, and on many, through a launcher."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.load_parts import NodePart
from assay.model.specs.spec_document import SpecDocument, StrictModel

CommandWord = Annotated[str, Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class ExpectedSpeed(StrictModel):
    """A bus bandwidth in GB/s below which a collective is slow, and where the figure comes from.

    `bus_bandwidth`: the usual figure in GB/s; a run is slow below `slow_below` of it. `source`: who measured it, or
    where it is written.
    """

    bus_bandwidth: float = Field(gt=0)
    source: str = Field(min_length=1)


class CollectiveCommand(StrictModel):
    """How one collective is started: words without a shell, and the seconds until it counts as hung.

    `command`: the words. assay replaces `{a}` and `{b}` (the nodes of a pair), `{node}` (a node alone), `{nodes}` and
    `{count}` (many), `{gpus}` (how many GPUs each has), `{rail}`, `{adapter}`, `{round}`, `{deadline}`, `{python}` (the
    Python that runs assay), and `{out}`, a new file for nccl-tests' `-J`. `deadline_seconds`: after so long, assay
    kills the command. `expected`: the speed, if it is known.
    """

    command: list[CommandWord] = Field(min_length=1)
    deadline_seconds: float = Field(gt=0, le=7200)
    expected: ExpectedSpeed | None = None


class CollectiveWorkload(SpecDocument):
    """What `assay collectives` runs on free nodes: through srun, mpirun or kubectl, with results checked.

    `pair`: on two nodes. `alone`: on one node, over its NVLink. `together`: on many nodes. `slow_below`: slow is below
    this share of the usual speed. `adapters`: what `{adapter}` becomes on each rail. `environment`: variables of the
    commands. `taken`: texts in the output that say that a customer took the nodes: such a run is no result.
    `scratch`: a folder for `{out}` that the nodes and the controller share. `needs`: what a node must have for it, as
    in a CheckCatalog: NCCL's tests are for NVIDIA's GPUs.
    """

    kind: Literal["CollectiveWorkload"]
    sources: list[str] = Field(min_length=1)
    pair: CollectiveCommand
    alone: CollectiveCommand | None = None
    together: CollectiveCommand | None = None
    slow_below: float = Field(default=0.93, ge=0.1, le=1)
    adapters: list[CommandWord] = Field(default=[])
    environment: dict[VariableName, str] = Field(default={}, json_schema_extra={"additionalProperties": False})
    taken: list[CommandWord] = Field(default=[])
    scratch: str = ""
    needs: list[NodePart] = Field(default=[])

    @model_validator(mode="after")
    def _says_where(self) -> CollectiveWorkload:
        needed = {"pair": ("{a}", "{b}"), "alone": ("{node}",), "together": ("{nodes}",)}
        for name, placeholders in needed.items():
            command: CollectiveCommand | None = getattr(self, name)
            text = " ".join(command.command) if command else ""
            missing = next((placeholder for placeholder in placeholders if command and placeholder not in text), "")
            if missing:
                raise ValueError(f"{name}: the command does not say where {missing} goes")
        if "{adapter}" in " ".join(self.pair.command) and not self.adapters:
            raise ValueError("pair: the command has {adapter}, and adapters is empty")
        return self
