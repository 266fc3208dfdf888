"""Areas that read what the caller names: without names they are known at once, and their readers stay unloaded."""

from __future__ import annotations

import subprocess
import sys

from assay.model.reading import absent
from assay.node.probe.named_settings import ask_adapter_settings, ask_files, ask_unit_settings
from assay.node.probe.node_access import NodeRoot

UNLOADED = ("chosen_files", "unit_settings", "devices.adapter_settings", "devices.drive_wipe")


def test_without_names_there_is_nothing_to_read() -> None:
    assert ask_files(NodeRoot(), []) == absent("the caller names no file")
    assert ask_unit_settings([]) == absent("the caller names no setting of a unit")
    assert ask_adapter_settings(NodeRoot(), "") == absent("the caller names no adapter")


def test_what_few_probes_need_is_loaded_where_it_is_needed() -> None:
    said = "import sys, assay.node.probe.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.split()
    assert "assay.node.probe.named_settings" in loaded
    assert [name for name in UNLOADED if f"assay.node.probe.{name}" in loaded] == []
