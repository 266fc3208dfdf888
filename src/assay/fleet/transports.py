"""What an inventory may say of the way to a node's readings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.spec import Strict

Transport = Literal["ssh", "local", "slurm", "kubernetes", "push", "prometheus"]


class SlurmStep(Strict):
    """How Slurm runs the probe on the node.

    `node` is its name there where that is another. `join`: overlap the job that runs there, if any. `options` are more
    of srun's, such as a partition or an account.
    """

    node: str = ""
    join: bool = False
    options: list[str] = Field(default_factory=list)


class KubernetesExec(Strict):
    """Which pod sees the node: one of `namespace` with the labels `pods`, on the cluster's `node` of that name."""

    context: str = ""
    namespace: str = Field(default="assay", min_length=1)
    pods: str = Field(default="app.kubernetes.io/name=assay-agent", min_length=1)
    container: str = ""
    node: str = ""
