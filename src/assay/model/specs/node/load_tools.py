"""What a site declares for the loads of its nodes: how `assay-load` gets there, its tools, and its own training.

The load tool is in a folder on the node, or in a container image by digest. A visit never pulls an image: somebody puts
it on the nodes before. The probe builds the command from this declaration on the node itself.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.spec_document import StrictModel

LoadWay = Literal["path", "apptainer", "podman", "docker", "pyxis", "kubernetes"]
DEFAULT_PATH = "/opt/assay-load"
IMAGE = re.compile(r"[a-z0-9][a-z0-9._:-]*(/[a-z0-9._-]+)+(:\w[\w.-]*)?@sha256:[0-9a-f]{64}")

WAYS_OF_SCHEDULERS: dict[str, tuple[LoadWay, ...]] = {
    "none": ("path", "apptainer", "podman", "docker"),
    "slurm": ("path", "apptainer", "podman", "docker", "pyxis"),
    "kubernetes": ("path", "kubernetes"),
}
"""The ways that work for nodes of each scheduler that assay knows. A pod cannot start containers of its own."""


def _require_digest(image: str) -> str:
    if IMAGE.fullmatch(image):
        return image
    message = f"image: {image!r} is not an image by digest: its tag can name another image tomorrow"
    fix = "write registry/name@sha256:… with the digest that `podman image inspect --format '{{.Digest}}'` prints"
    raise ConflictError(FieldConflict("ASY0282", (), message, fix))


ImageByDigest = Annotated[str, AfterValidator(_require_digest)]
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\s:,]*$")]
Mount = Annotated[str, Field(pattern=r"^/[^\s:,]*:/[^\s:,]*(:ro|:rw)?$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableText = Annotated[str, Field(pattern=r"^[^\x00-\x1f]*$")]


class LoadDelivery(StrictModel):
    """How `assay-load` gets to a node.

    - `path`: a folder on the node, such as a virtual environment, whose `bin/assay-load` runs.
    - `podman`, `docker`: the container runtime of the node runs `image`, which the node must have.
    - `apptainer`: it runs the file `file` (`.sif`). `pyxis`: Slurm's plug-in runs the file `file` (`.sqsh`). Both are
      made from `image`, and can be on shared storage.
    - `kubernetes`: the pod for spare time runs `image`, which the node must have.

    `way`: one of these. `path`: the folder of the way `path`. `image`: the image by digest. `file`: the image as a file
    on the node. `environment`: variables for the tool, such as those of NCCL for this site. `mounts`: folders of the
    node that the container sees, as `/on/node:/in/container` with `:ro` for reading only.
    """

    way: LoadWay
    path: AbsolutePath = DEFAULT_PATH
    image: ImageByDigest | None = None
    file: AbsolutePath | None = None
    environment: dict[VariableName, VariableText] = Field(default={})
    mounts: list[Mount] = Field(default=[])

    @model_validator(mode="after")
    def _fields_fit_the_way(self) -> LoadDelivery:
        conflicts = [FieldConflict("ASY0004", (name,), message, fix) for name, message, fix in self._list_misfits()]
        if conflicts:
            raise ConflictError(*conflicts)
        return self

    def _list_misfits(self) -> list[tuple[str, str, str]]:
        is_container, needs_file = self.way != "path", self.way in ("apptainer", "pyxis")
        misfits = []
        if is_container and self.image is None:
            misfits.append(("image", f"the way {self.way} needs an image", "write image: registry/name@sha256:…"))
        if needs_file and self.file is None:
            misfits.append(("file", f"the way {self.way} needs the image as a file", "write file: /shared/assay-load…"))
        for name, is_used in (("image", is_container), ("mounts", is_container), ("file", needs_file)):
            if getattr(self, name) and not is_used:
                misfits.append((name, f"the way {self.way} does not use {name}", f"leave {name} out"))
        if is_container and "path" in self.model_fields_set:
            misfits.append(("path", f"the way {self.way} does not use path", "leave path out"))
        return misfits

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON data, as the probe takes it."""
        return self.model_dump(mode="json", exclude_none=True)


CommandWord = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]
JsonPath = Annotated[str, Field(pattern=r"^[^.\s]+(\.[^.\s]+)*$")]


class LineField(StrictModel):
    """Where a line of the output tells one thing: `json` in a JSON line, or `pattern` in any other.

    `pattern`: a regular expression with one group.
    """

    json_path: JsonPath | None = Field(
        default=None, alias="json", description="Names joined by dots, such as `metrics.loss`."
    )
    pattern: str | None = Field(default=None, max_length=500)

    @model_validator(mode="after")
    def _is_one_of_two(self) -> LineField:
        if (self.json_path is None) == (self.pattern is None):
            raise ValueError("give json or pattern, and not both")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groups
            except re.error as error:
                raise ValueError(f"pattern: {error}") from None
            if groups != 1:
                raise ValueError(f"pattern: it has {groups} groups; put one pair of parentheses around what is read")
        return self


class SiteTraining(StrictModel):
    """A training workload of the site, such as a few steps of Megatron or TorchTitan in the site's image.

    `command`: its words, which are found in the node's PATH and run without a shell. `container`: the container in
    which they run, declared as for `load`; without one, on the node itself. `deadline_s`: after so many seconds it is
    ended. `least_steps`: with fewer steps it has not ended well. `step`, `loss`, `tokens_per_s`, `step_ms` and
    `digest`: where its lines tell them; a line without a step tells nothing.
    """

    command: list[CommandWord] = Field(min_length=1)
    container: LoadDelivery | None = None
    deadline_s: int = Field(ge=1, le=14_400)
    least_steps: int = Field(default=1, ge=1)
    step: LineField
    loss: LineField
    tokens_per_s: LineField | None = None
    step_ms: LineField | None = None
    digest: LineField | None = None

    @model_validator(mode="after")
    def _container_is_one(self) -> SiteTraining:
        if self.container and self.container.way in ("path", "kubernetes"):
            fix = "write way: podman, docker, apptainer or pyxis; without a container, leave `container` out"
            message = f"container: the way {self.container.way} starts none"
            raise ConflictError(FieldConflict("ASY0004", ("container", "way"), message, fix))
        return self


Word = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$")]
HostAddress = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")]


class LoadToolSettings(StrictModel):
    """Settings of the load tools on a node. A part that needs a setting which is not given does not run, and says so.

    `environment`: variables for the tools, such as those of NCCL for this site. They see no others but PATH and the
    like. `scratch`: a folder on the node's own drives, in which `fio_verify` writes. `storage`: a folder on the storage
    that the nodes share, in which `shared_storage` writes. `hpl`: the words of the command
    that runs HPL. `iperf3_server`: the host that `front_end` sends to. `rack_hosts`: the nodes of the rack, for
    `dcgm_mndiag`. `training`: a training workload of the site, for `site_training`.
    """

    environment: dict[VariableName, VariableText] = Field(default={})
    scratch: AbsolutePath = "/var/tmp"  # noqa: S108 — a folder of each test's own is made in it
    storage: AbsolutePath | None = None
    hpl: list[Word] = Field(default=[])
    iperf3_server: HostAddress | None = None
    rack_hosts: list[HostAddress] = Field(default=[])
    training: SiteTraining | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON data, as the probe takes it."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True, by_alias=True)
