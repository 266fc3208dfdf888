"""What each load tool says is read as it is: skipped, waived, not run, refused, killed or unreadable is never a value.

The recordings and their sources are in `tests/recordings/load-tools/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.model.node import Node
from assay.model.reading import ReadingTree, parse_reading
from assay.model.specs.load_parts import LOAD_PARTS
from assay.model.specs.node_settings import NodeSettings
from assay.node.load_tools.dcgm import (
    LEVEL_SECONDS,
    find_plugin,
    make_leaf,
    parse_dcgm_diag,
    parse_dcgm_mndiag,
    parse_dcgmproftester,
    parse_gpu_uuids,
    parse_ubergemm,
)
from assay.node.load_tools.fio import parse_fio_verify, parse_shared_storage
from assay.node.load_tools.network import find_nearest_gpu, parse_ib_write_bw, parse_iperf3
from assay.node.load_tools.nvbandwidth import parse_nvbandwidth
from assay.node.load_tools.registry import find_long_parts_s, run_load
from assay.node.load_tools.site_commands import parse_hpl
from assay.node.load_tools.stress_tools import parse_gpu_fryer, parse_stressapptest
from assay.node.load_tools.tool_call import LoadOrder, SiteSettings, ToolOutput
from assay.node.probe.node_access import NodeRoot
from assay.observe.transports.command import SlurmStepTransport, build_probe_command
from assay.observe.transports.transport_protocol import TransportContext
from tests.support.places import ROOT

RECORDINGS = ROOT / "tests/data/load-tools"
READERS: Mapping[str, Callable[[ToolOutput], ReadingTree]] = {
    "dcgm_diag": parse_dcgm_diag,
    "dcgm_mndiag": partial(parse_dcgm_mndiag, own="n0001.example.org"),
    "nvbandwidth": parse_nvbandwidth,
    "ib_write_bw": parse_ib_write_bw,
    "ubergemm": parse_ubergemm,
    "dcgmproftester": parse_dcgmproftester,
    "gpu_fryer": parse_gpu_fryer,
    "fio_verify": parse_fio_verify,
    "shared_storage": parse_shared_storage,
    "stressapptest": parse_stressapptest,
    "hpl": parse_hpl,
    "front_end": parse_iperf3,
}
CASES: dict[str, list[dict[str, Any]]] = yaml.safe_load((RECORDINGS / "cases.yaml").read_text())
LISTED = [pytest.param(tool, case, id=f"{tool}: {case['name']}") for tool, cases in CASES.items() for case in cases]


def output_of(tool: str, case: Mapping[str, Any]) -> ToolOutput:
    stdout = (RECORDINGS / case["file"]).read_text() if "file" in case else case["stdout"]
    return ToolOutput(tool, case["exit"], stdout, case.get("stderr", ""))


def leaf_at(tree: Any, path: str) -> Any:
    for step in path.split("/") if path else ():
        tree = tree[step]
    return tree


def leaves(tree: Any) -> list[Any]:
    if parse_reading(tree) is not None:
        return [tree]
    return [leaf for branch in tree.values() for leaf in leaves(branch)]


def test_every_reader_has_recordings() -> None:
    assert set(CASES) == set(READERS)


@pytest.mark.parametrize(("tool", "case"), LISTED)
def test_what_a_tool_said_is_what_is_read(tool: str, case: dict[str, Any]) -> None:
    tree = READERS[tool](output_of(tool, case))
    for path, wanted in case["reads"].items():
        leaf, ((kind, content),) = leaf_at(tree, path), wanted.items()
        assert list(leaf) == [kind], f"{path}: {leaf}"
        matches = content in leaf[kind] if isinstance(content, str) and content else leaf[kind] == content
        assert matches, f"{path}: {leaf}"


@pytest.mark.parametrize("tool", READERS)
@pytest.mark.parametrize(
    "said", ["", "ERROR", "unknown platform, skipping", "{}", "[]", '{"error": "x"}', "null", "OK"]
)
def test_exit_code_0_with_no_result_is_no_value(tool: str, said: str) -> None:
    assert not [leaf for leaf in leaves(READERS[tool](ToolOutput(tool, 0, said))) if "value" in leaf]


@pytest.mark.parametrize("part", LOAD_PARTS)
def test_a_tool_that_is_not_installed_gives_no_value(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("proc/driver/nvidia/gpus/0000:1b:00.0", "sys/class/infiniband/mlx5_0", "sys/class/nvme/nvme0/nvme0n1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable:   1024000 kB\n")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("n0001\n")
    (tmp_path / "tmp").mkdir()
    order = LoadOrder(1, site=SiteSettings({}, "/tmp", ("run-hpl",), "127.0.0.1", ("n0001",)))
    branch = run_load(NodeRoot(str(tmp_path)), [part], order)[part]
    found = leaves({name: leaf for name, leaf in branch.items() if name != "started_at"})
    assert found
    assert all(list(leaf) == ["absent"] for leaf in found), found


def test_dcgms_programs_are_found_for_the_newest_cuda(tmp_path: Path) -> None:
    root = NodeRoot(str(tmp_path))
    assert find_plugin(root, "ubergemm") == "ubergemm"
    for cuda in ("cuda9", "cuda12", "cuda13"):
        folder = tmp_path / f"usr/libexec/datacenter-gpu-manager-4/plugins/{cuda}/updated"
        folder.mkdir(parents=True)
        (folder / "ubergemm").touch()
    assert "cuda13" in find_plugin(root, "ubergemm")


def test_an_adapter_writes_from_the_gpu_behind_the_same_bridge(tmp_path: Path) -> None:
    bus = "sys/devices/pci0000:15/0000:15:01.0"
    places = {"0000:1b:00.0": f"{bus}/0000:16:00.0/0000:1b:00.0", "0000:43:00.0": f"{bus}/0000:17:00.0/0000:43:00.0"}
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    for address, place in places.items():
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / "sys/bus/pci/devices" / address).symlink_to(tmp_path / place)
    adapter = tmp_path / f"{bus}/0000:17:00.0/0000:18:00.0"
    adapter.mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to(adapter)
    assert find_nearest_gpu(NodeRoot(str(tmp_path)), "mlx5_0", dict(enumerate(places))) == 1


def test_the_settings_of_load_tools_are_read_or_refused() -> None:
    site = SiteSettings.parse(
        '{"environment": {"NCCL_NVLS_ENABLE": "1"}, "hpl": ["srun", "hpl.sh"], "scratch": "/data"}'
    )
    assert site == SiteSettings({"NCCL_NVLS_ENABLE": "1"}, "/data", ("srun", "hpl.sh"))
    assert SiteSettings.parse("") == SiteSettings()
    for text in ("[]", "{", "7"):
        with pytest.raises(ValueError, match=r"."):
            SiteSettings.parse(text)


JUNK = st.text() | st.text(alphabet='{}[]":,0123456789.eE-+ \nNaINfinitytrlsu\ud800')


@given(tool=st.sampled_from(sorted(READERS)), text=JUNK, code=st.sampled_from([0, 1, 205, 226]))
def test_garbage_is_failed_and_never_raises(tool: str, text: str, code: int) -> None:
    assert all("failed" in leaf for leaf in leaves(READERS[tool](ToolOutput(tool, code, text))))


@given(tool=st.sampled_from(sorted(READERS)), data=st.data())
def test_a_recording_cut_anywhere_never_raises(tool: str, data: st.DataObject) -> None:
    output = output_of(tool, data.draw(st.sampled_from(CASES[tool])))
    cut, junk = data.draw(st.integers(0, len(output.stdout))), data.draw(st.text(max_size=8))
    for text in (output.stdout[:cut], output.stdout[:cut] + junk + output.stdout[cut:]):
        assert leaves(READERS[tool](ToolOutput(tool, output.exit_code, text)))


def test_what_the_inventory_declares_for_load_tools_reaches_the_probe_only_for_a_load() -> None:
    settings = NodeSettings.model_validate(
        {"load_tools": {"environment": {"NCCL_NVLS_ENABLE": "1"}, "hpl": ["hpl.sh"]}}
    )
    node = Node("n1", "a", "s", "r", 1, "S1", "hgx", "managed", settings=settings)
    words, _ = build_probe_command(node, ["--active", "hpl"])
    told = words[words.index("--load-tools") + 1]
    assert SiteSettings.parse(told) == SiteSettings({"NCCL_NVLS_ENABLE": "1"}, hpl=("hpl.sh",))
    assert "--load-tools" not in build_probe_command(node, ["--areas", "host"])[0]


def test_a_part_that_runs_for_hours_has_hours() -> None:
    assert find_long_parts_s(["gpu_burn", "memory", "ubergemm", "no such part"]) == 0
    assert find_long_parts_s(["dcgm_diag_3", "memory"]) > LEVEL_SECONDS[3]
    node = Node("n1", "a", "s", "r", 1, "S1", "hgx", "managed")
    words = SlurmStepTransport(TransportContext(None)).wrap(node, ["python3", "-", "--active", "dcgm_diag_3"])
    (limit,) = (word for word in words if word.startswith("--time="))
    assert int(limit.removeprefix("--time=")) > LEVEL_SECONDS[3] / 60


@pytest.mark.parametrize("where", ["warnings", "info"])
def test_a_pass_beside_which_an_error_is_recorded_is_no_plain_pass(where):
    """NVIDIA/DCGM issue 284: the memory could not be allocated, and the test passes."""
    told = [{"warning": "Error using CUDA API cuMemAlloc: out of memory"}] if where == "warnings" else "Errors: 3"
    leaf = make_leaf({"status": "Pass", where: told})
    assert str(leaf["value"]).startswith("Pass, with a warning: ")
    assert make_leaf({"status": "Pass", "info": "GPU 0 allocated 79 GB"}) == {"value": "Pass"}


@pytest.mark.parametrize(
    ("exit_code", "printed", "uuids"),
    [
        (0, "0, GPU-aa-1\n1, GPU-bb-2\n", {"0": "GPU-aa-1", "1": "GPU-bb-2"}),
        (15, "Unable to determine the device handle for GPU1: GPU is lost.\n2, GPU-cc-3\n", {"2": "GPU-cc-3"}),
    ],
)
def test_gpus_are_known_by_uuid_also_beside_one_that_is_lost(
    exit_code: int, printed: str, uuids: dict[str, str]
) -> None:
    assert parse_gpu_uuids(ToolOutput("nvidia-smi", exit_code, printed, "")) == {"devices": uuids}


def test_without_any_uuid_no_gpu_is_multiplied_on() -> None:
    assert "failed" in parse_gpu_uuids(ToolOutput("nvidia-smi", 9, "NVIDIA-SMI has failed\n", ""))
