"""Reads a lifecycle policy from a single file, in the repository or outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_reader import read_specs
from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@dataclass(frozen=True)
class PolicyFile:
    """A policy, with the file and line of each entry as in `Fleet.lines`."""

    policy: LifecyclePolicy
    lines: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class _PolicyOverlayTree:
    """The policies of a repository, and one more file that may extend them."""

    file: Path
    folder: WorkingFolder

    def files(self, folder: str) -> list[str]:
        own = self.file.resolve()
        others = [path for path in self.folder.files(f"{folder}/lifecycle") if (self.folder.root / path) != own]
        return [str(self.file), *others]

    def read(self, path: str, most: int) -> bytes:
        return self.folder.read(path, most)  # works for the absolute path of `file` too


def read_policy(file: Path, root: Path) -> PolicyFile:
    """Read the policy in `file`. It may extend a policy of the repository at `root`.

    Raises AssayError if there is no such file, or it holds no valid policy.
    """
    if not file.is_file():
        raise AssayError("there is no such file", where=str(file), fix="name the file of a LifecyclePolicy")
    if file.suffix not in (".yaml", ".yml"):
        raise AssayError("a policy is a YAML file", where=str(file), fix="name a file that ends in .yaml")
    specs, refused = read_specs(_PolicyOverlayTree(file.absolute(), WorkingFolder(root.resolve())))
    own = str(file.absolute())
    for refusal in refused:
        for problem in refusal.problems:
            if problem.file == own:
                raise AssayError(problem.message, where=f"{file}:{problem.line}", fix=problem.fix)
    own_spec = next((spec for spec in specs if spec.document.file == own), None)
    if own_spec is None:
        raise AssayError("it cannot be read beside the other policies", where=str(file), fix="`assay check` says why")
    if not isinstance(own_spec.spec, LifecyclePolicy):
        message = f"a {own_spec.spec.kind} is no LifecyclePolicy"
        raise AssayError(message, where=str(file), fix="name the file of a policy")
    lines = {(own_spec.key, path): line.replace(own, str(file)) for path, line in own_spec.lines.items()}
    return PolicyFile(own_spec.spec, lines)
