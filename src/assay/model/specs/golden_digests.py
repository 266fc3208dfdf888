"""GoldenDigests: the digests that every healthy GPU of one kind gives with one driver and one program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.load_parts import GoldenKind
from assay.model.specs.spec_document import SpecDocument, StrictModel

DigestText = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
FirstSeed = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$")]
DigestRuns = dict[FirstSeed, Annotated[list[DigestText], Field(min_length=1)]]
LEAST_NODES = 2
TRAINING = "train."
"""How the names of training's units begin."""


class GoldenKey(StrictModel):
    """What digests depend on. Digests of another GPU, driver or program are not compared.

    `gpu`: the GPU's part number or name, as the load reports it. `driver`: the version of its driver. `engine`: what
    computed, with its version. `backend`: `cuda`, or `cpu`. `runtime`: the version of CUDA, or of what else computed.
    `program`: the SHA-256 of the battery's version, sizes and flags.
    """

    gpu: str = Field(min_length=1)
    driver: str
    engine: str = Field(min_length=1)
    backend: str = Field(min_length=1)
    runtime: str
    program: str = Field(min_length=1)

    @property
    def differences_shown(self) -> str:
        """The key in one line, for people."""
        driver = f", driver {self.driver}" if self.driver else ""
        runtime = f", {self.runtime}" if self.runtime else ""
        return f"{self.gpu}{driver}, {self.engine} on {self.backend}{runtime}, program {self.program[:8]}"


class GoldenDigests(SpecDocument):
    """The digests of healthy GPUs, by test and seed. `assay specs learn --golden` drafts them from nodes that agree.

    - `digests`: by test, then by the first seed of a run of seeds: the digests of that seed and the next ones. In
      training, a seed is `SEED.STEP`, and the next ones are steps. Quote them: YAML reads `12345678` as a number.
    - `nodes`: the nodes that gave these digests. One node proves nothing, since it may be wrong in all its GPUs.

    `computed_by`: what the digests depend on.
    """

    kind: Literal["GoldenDigests"]
    owner: str = Field(min_length=1)
    sources: list[str] = Field(min_length=1)
    computed_by: GoldenKey
    nodes: list[str] = Field(min_length=LEAST_NODES)
    digests: dict[str, DigestRuns] = Field(min_length=1)

    @model_validator(mode="after")
    def _gives_each_seed_once(self) -> GoldenDigests:
        if len(set(self.nodes)) != len(self.nodes):
            raise ValueError("nodes names a node twice; digests need two nodes that agree")
        for test in self.digests:
            seeds = [unit for unit, _ in self._list_test(test)]
            if len(set(seeds)) != len(seeds):
                raise ValueError(f"digests of {test} give a seed twice")
        return self

    @property
    def of_kind(self) -> GoldenKind:
        """What gave the digests: one program gives those of the battery, or those of training."""
        return "training" if next(iter(self.digests)).startswith(TRAINING) else "battery"

    def list_digests(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield each digest with its test and seed."""
        for test in self.digests:
            yield from self._list_test(test)

    def _list_test(self, test: str) -> Iterator[tuple[tuple[str, str], str]]:
        for first, digests in self.digests[test].items():
            seed, dot, step = first.rpartition(".")
            for number, digest in enumerate(digests, int(step)):
                yield (test, f"{seed}{dot}{number}"), digest
