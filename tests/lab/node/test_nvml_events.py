"""An XID in the lab reaches each waiting NVML event set once, with the right GPU, even if others are lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from assay.lab.faults.injection import inject_fault
from assay.lab.node.stub import build_stub

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (package gcc) for the stub NVML")

# Registers every GPU with as many event sets as asked, says so, and prints what each set hears until none hears more.
FOLLOW = """
import sys
import pynvml
pynvml.nvmlInit()
sets = [pynvml.nvmlEventSetCreate() for _ in range(int(sys.argv[1]))]
for index in range(pynvml.nvmlDeviceGetCount()):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    for events in sets:
        pynvml.nvmlDeviceRegisterEvents(gpu, pynvml.nvmlDeviceGetSupportedEventTypes(gpu), events)
print("ready", flush=True)
sys.stdin.readline()
for number, events in enumerate(sets):
    try:
        while True:
            event = pynvml.nvmlEventSetWait_v2(events, 50)
            assert event.eventType == pynvml.nvmlEventTypeXidCriticalError
            try:
                place = pynvml.nvmlDeviceGetPciInfo(event.device).busId
            except pynvml.NVMLError as error:
                place = str(error)
            print(number, place, event.eventData)
    except pynvml.NVMLError as error:
        assert error.value == pynvml.NVML_ERROR_TIMEOUT
    pynvml.nvmlEventSetFree(events)
"""


def heard(node: Any, sets: int, *planted: dict[str, Any]) -> list[list[str]]:
    """Plant XIDs on a node while some event sets wait, and return what each of them heard."""
    library = build_stub(node.world.home / "lib")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "NVML_STUB": str(node.folder / "nvml.json")}
    command = [sys.executable, "-c", FOLLOW, str(sets)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as following:
        assert following.stdout.readline() == "ready\n"
        for arguments in planted:
            inject_fault(node.world, "gpu.xid", node.name, arguments)
        said, _ = following.communicate("go\n", timeout=60)
    lines = [line.split(maxsplit=1) for line in said.splitlines()]
    return [[text for number, text in lines if int(number) == one] for one in range(sets)]


def test_an_xid_comes_once_to_every_set_that_waits(node: Any) -> None:
    first, second = heard(node, 2, {"gpu": 3, "xid": 48}, {"gpu": 5, "xid": 63})
    assert first == second == ["00000000:61:00.0 48", "00000000:C3:00.0 63"]


def test_what_was_before_is_not_told_again(node: Any) -> None:
    inject_fault(node.world, "gpu.xid", node.name, {"gpu": 0, "xid": 31})
    assert heard(node, 1, {"gpu": 0, "xid": 13}) == [["00000000:1B:00.0 13"]]


def test_a_storm_comes_whole_and_in_order(node: Any) -> None:
    (told,) = heard(node, 1, {"gpu": 2, "xid": 45, "times": 60}, {"gpu": 2, "xid": 48})
    assert told == ["00000000:52:00.0 45"] * 60 + ["00000000:52:00.0 48"]


def test_the_xid_of_a_gpu_that_fell_off_the_bus_is_told_before_nothing_more_is(node: Any) -> None:
    (told,) = heard(node, 1, {"gpu": 7, "xid": 79})
    assert told == ["GPU is lost 79"]


def test_the_other_gpus_events_are_told_after_one_is_lost(node: Any) -> None:
    (told,) = heard(node, 1, {"gpu": 1, "xid": 79}, {"gpu": 2, "xid": 74})
    assert told == ["GPU is lost 79", "00000000:52:00.0 74"]
