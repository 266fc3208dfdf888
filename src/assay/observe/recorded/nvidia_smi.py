"""`nvidia-smi -q -x` in a file: the branch `gpu`, as the probe reads it where NVML cannot be asked."""

from __future__ import annotations

from datetime import datetime

from assay.observe.recorded.form import Branches, Form, NotThis
from assay.probe.nvidia_smi import read

ROOT = b"<nvidia_smi_log"


def _shows(content: bytes) -> bool:
    return ROOT in content


def _read(content: bytes, _at: datetime) -> Branches:
    tree = read(content)
    if set(tree) == {"failed"}:
        raise NotThis(str(tree["failed"]))
    return {("probe", "gpu"): tree}


NVIDIA_SMI = Form("nvidia-smi -q -x", _shows, _read)
