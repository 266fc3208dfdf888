"""A virtual node is derived from its name and spec, and its files from its state, touching only what changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay.lab.node.virtual_node import node_files, render_node, write_file_tree
from assay.lab.virtual_node_state import VirtualNodeState

Healthy = Callable[[str], VirtualNodeState]


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_same_node_is_the_same_each_time_and_no_two_are_alike(healthy: Healthy) -> None:
    assert healthy("n0001") == healthy("n0001")
    serials = [gpu["serial"] for name in ("n0001", "n0002") for gpu in healthy(name)["gpus"]]
    assert len(set(serials)) == 16


def test_a_healthy_node_carries_the_bundle_and_the_inventorys_guids(healthy: Healthy) -> None:
    state = healthy("n0001")
    assert state["firmware"]["HGX_FW_GPU_SXM_8"] == "96.00.BC.00.01"
    assert state["hcas"][3]["guid"] == "0xb83fd20300030000"
    assert state["serial"] == "SN-n0001"


def test_a_state_is_plain_json(healthy: Healthy) -> None:
    state = healthy("n0001")
    assert json.loads(json.dumps(state)) == state


def test_a_node_is_rendered_for_little_more_than_its_files_cost_to_write(healthy: Healthy, tmp_path: Path) -> None:
    """By turns, in CPU time: what a file costs to make differs a lot between machines and moments."""
    rendering, writing = 0.0, 0.0
    for number in range(8):
        state, folder = healthy(f"n{number:04}"), tmp_path / f"n{number}"
        begun = time.process_time()
        render_node(state, folder)
        rendering += time.process_time() - begun
        begun = time.process_time()
        write_plainly(node_files(state), tmp_path / f"plain{number}")
        writing += time.process_time() - begun
    assert rendering < 3 * writing


def write_plainly(files: Mapping[str, str], folder: Path) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode("utf-8", "surrogateescape"))


def test_only_files_whose_content_changed_are_written(healthy: Healthy, tmp_path: Path) -> None:
    state = healthy("n0001")
    render_node(state, tmp_path)
    before = stamps(tmp_path / "root")
    state["hcas"][2]["link_downed"] = 3
    render_node(state, tmp_path)
    after = stamps(tmp_path / "root")
    changed = [path for path in after if after[path] != before[path]]
    assert changed == [tmp_path / "root/sys/class/infiniband/mlx5_2/ports/1/counters/link_downed"]


def test_what_is_gone_leaves_no_empty_folder_behind(healthy: Healthy, tmp_path: Path) -> None:
    state = healthy("n0001")
    render_node(state, tmp_path)
    state["nvme"][5]["present"] = False
    render_node(state, tmp_path)
    assert sorted(path.name for path in (tmp_path / "root/sys/class/nvme").iterdir()) == [
        f"nvme{slot}" for slot in (0, 1, 2, 3, 4, 6, 7)
    ]
    state["nvme"][5]["present"] = True
    render_node(state, tmp_path)
    assert (tmp_path / "root/sys/class/nvme/nvme5/serial").exists()


def test_files_that_others_put_there_stay(tmp_path: Path) -> None:
    root, record = tmp_path / "root", tmp_path / "record.json"
    write_file_tree(root, {"a/one": "1", "a/two": "2"}, record)
    os.mkfifo(root / "a/pipe")
    write_file_tree(root, {"a/one": "1"}, record)
    assert sorted(path.name for path in (root / "a").iterdir()) == ["one", "pipe"]


def test_the_kernel_log_counts_from_the_boot(healthy: Healthy) -> None:
    state: dict[str, Any] = healthy("n0001")
    state["kernel_log"] = [{"at": state["boot"]["ready_at"], "text": "hello"}]
    last = node_files(state)["dev/kmsg"].splitlines()[-1]
    assert last == f"3,3,{state['timing']['boot_s'] * 1_000_000},-;hello"
