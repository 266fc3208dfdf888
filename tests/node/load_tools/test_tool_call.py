"""A load tool gets what it needs and no more, ends by its deadline, and is believed only where it ended by itself."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from assay.model.reading import value
from assay.node.load_tools.tool_call import LoadOrder, ToolOutput, call_tool


def quote(output: ToolOutput) -> dict[str, object]:
    return value([output.exit_code, output.stdout, output.stderr])


def call(script: str, *, seconds: int = 5, env: dict[str, str] | None = None) -> dict[str, object]:
    return call_tool(["sh", "-c", script], LoadOrder(seconds, env or {}), quote, grace_s=0)


def test_exit_code_output_and_errors_are_told_apart() -> None:
    assert call("echo fine; echo oh >&2; exit 226") == {"value": [226, "fine\n", "oh\n"]}


def test_a_tool_sees_no_secret_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BMC_PASSWORD", "ASSAY_LEDGER", "AWS_SECRET_ACCESS_KEY", "NCCL_DEBUG", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "a-secret")
    (_, printed, _) = call("env")["value"]  # type: ignore[misc]
    assert "a-secret" not in printed
    assert f"PATH={os.environ['PATH']}" in printed
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in printed


def test_a_tool_sees_the_variables_that_the_site_declares_for_it() -> None:
    (_, printed, _) = call("env", env={"NCCL_NVLS_ENABLE": "1", "LD_LIBRARY_PATH": "/opt/nccl"})["value"]  # type: ignore[misc]
    assert "NCCL_NVLS_ENABLE=1" in printed
    assert "LD_LIBRARY_PATH=/opt/nccl\n" in printed


def test_a_tool_that_is_killed_is_no_result_whatever_it_printed() -> None:
    assert call("echo Status: PASS; kill -9 $$") == {"failed": "sh was killed (SIGKILL); it ended with 'Status: PASS'"}


def test_a_tool_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    leaf = call(f"(sleep 600 & echo $! > {mark}; wait) & echo begun; wait", seconds=3)
    assert leaf == {"failed": "sh did not end within 3 s; it ended with 'begun'"}
    child, until = int(mark.read_text()), time.monotonic() + 60
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_a_tool_that_prints_without_end_is_no_result() -> None:
    leaf = call("head -c 34000000 /dev/zero", seconds=120)
    assert leaf == {"failed": "sh printed more than 32 MiB"}


def test_a_tool_that_is_not_there_is_absent_and_one_that_cannot_start_failed(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("no program")
    order = LoadOrder(1)
    assert call_tool(["no-such-tool"], order, quote) == {"absent": "no-such-tool is not installed"}
    assert "could not be started" in call_tool([str(tmp_path / "tool")], order, quote)["failed"]
