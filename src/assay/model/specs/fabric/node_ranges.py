"""Finds ranges of node names in a design that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.model.errors import FieldConflict
from assay.model.specs.fabric.design_cables_and_partitions import MAX_DESIGN_NODES, FabricPartition, expand_node_names

FIX = "write a name, or a range as n0001..n0020"


def find_unreadable_ranges(
    nodes: Sequence[str], gaps: Sequence[str], partitions: Sequence[FabricPartition]
) -> Iterator[FieldConflict]:
    """Find names and ranges that are none, and nodes beyond the most that a design may have."""
    for at, partition in enumerate(partitions):
        for number, entry in enumerate(partition.nodes):
            try:
                expand_node_names(entry)
            except ValueError as wrong:
                yield FieldConflict("ASY0084", ("partitions", at, "nodes", number), str(wrong), FIX)
    for number, entry in enumerate(gaps):
        try:
            expand_node_names(entry)
        except ValueError as wrong:
            yield FieldConflict("ASY0084", ("gaps", number), str(wrong), FIX)
    count = 0
    for number, entry in enumerate(nodes):
        try:
            count += len(expand_node_names(entry))
        except ValueError as wrong:
            yield FieldConflict("ASY0084", ("nodes", number), str(wrong), FIX)
        if count > MAX_DESIGN_NODES:
            message = f"more than {MAX_DESIGN_NODES} nodes"
            yield FieldConflict("ASY0084", ("nodes", number), message, "split the fabric, or correct the range")
            return
