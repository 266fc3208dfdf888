"""The probe reads the options of modules where the kernel or NVIDIA's driver shows them, and says why it cannot."""

from __future__ import annotations

from pathlib import Path

from assay.node.probe.named_settings import read_module_options
from assay.node.probe.node_access import NodeRoot, resolve_lazy

FILES = {
    "sys/module/nvidia_uvm/parameters/uvm_disable_hmm": "Y\n",
    "sys/module/mlx5_core/parameters/prof_sel": "2\n",
    "proc/driver/nvidia/params": 'EnableStreamMemOPs: 0\nRmProfilingAdminOnly: 1\nRegistryDwords: "a=1"\n',
}
SEEN = {
    "nvidia_uvm.uvm_disable_hmm": {"value": "1"},
    "mlx5_core.prof_sel": {"value": "2"},
    "nvidia.NVreg_EnableStreamMemOPs": {"value": "0"},
    "nvidia.NVreg_RestrictProfilingToAdminUsers": {"value": "1"},
    "nvidia.NVreg_RegistryDwords": {"value": "a=1"},
    "nvidia.NVreg_Other": {"unsupported": "/proc/driver/nvidia/params does not show Other"},
    "mlx5_core.hidden": {"unsupported": "mlx5_core has no option hidden, or does not show it in /sys/module"},
    "nvme.io_timeout": {"absent": "nvme is not loaded"},
}


def test_each_named_option_has_its_value_or_a_reason(tmp_path: Path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    tree = resolve_lazy(read_module_options(NodeRoot(str(tmp_path)), list(SEEN)))
    assert {f"{module}.{name}": leaf for module, leaves in tree.items() for name, leaf in leaves.items()} == SEEN


def test_without_the_driver_its_options_are_absent(tmp_path: Path):
    tree = resolve_lazy(read_module_options(NodeRoot(str(tmp_path)), ["nvidia.NVreg_A"]))
    assert list(tree["nvidia"]["NVreg_A"]) == ["absent"]
    assert read_module_options(NodeRoot(str(tmp_path)), []) == {"absent": "the caller names no module option"}
