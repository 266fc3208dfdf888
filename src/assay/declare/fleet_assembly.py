"""Makes a Fleet of nodes and specs, whether they were read or fetched. It loads no reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.fleet import Fleet
from assay.model.node import Node

if TYPE_CHECKING:  # loaded where a fleet declares one
    from assay.model.specs.image_spec import Image
    from assay.model.specs.provisioning_spec import Provisioning


@dataclass(frozen=True)
class GroupedSpecs:
    """Specs by Fleet field and name, and the `lines` of a Fleet."""

    by_field: Mapping[str, Mapping[str, Any]]
    lines: Mapping[tuple[str, str], str]


def assemble_fleet(
    root: Path, nodes: Iterable[Node], specs: GroupedSpecs, revision: tuple[str, bool], *, is_lab: bool
) -> Fleet:
    """Return the fleet of these nodes, whose images follow from the specs. `revision`: commit, and whether dirty."""
    of, (commit, dirty) = specs.by_field, revision
    found = {node.name: node for node in _set_images(nodes, of["images"], of["provisionings"])}
    return Fleet(root=root, nodes=found, **of, lines=specs.lines, commit=commit, dirty=dirty, is_lab=is_lab)


def _set_images(
    nodes: Iterable[Node], images: Mapping[str, Image], provisionings: Mapping[str, Provisioning]
) -> Iterable[Node]:
    """Return the nodes, each with the label of the image that it boots; "" for none."""
    if not images:
        return nodes
    labels, boots = {name: image.label for name, image in images.items()}, list(provisionings.values())
    return [replace(node, image=labels.get(_find_image(node, boots), "")) for node in nodes]


def _find_image(node: Node, boots: Sequence[Provisioning]) -> str:
    """Return the name of a node's own image, else of that of its pool."""
    of_pool = next((one.images for one in boots if one.applies_to(node.pool)), {})
    return node.settings.boot_image or of_pool.get(node.spec, "")
