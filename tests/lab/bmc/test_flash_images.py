"""Which images a node accepts; a refusal is a failed task with a reason, and nothing is written."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests_toolbelt import MultipartEncoder

from assay.lab.bmc.authentication import RedfishErrorResponse
from assay.lab.bmc.firmware_flash import (
    ComponentBusy,
    ImageRefused,
    find_needed_reset,
    read_image,
    start_flash,
    start_refused_flash,
)
from assay.lab.bmc.image_upload import parse_multipart_form
from assay.lab.bmc.power_transitions import apply_elapsed_time
from tests.support.example_images import IMAGES, make_image

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


def an_image(component: str, version: str = "new", inventory: list[str] | None = None) -> Any:
    return read_image(make_image(component, version, inventory or IMAGES[component][1]))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF\x00\x01",
        b"{}\n",
        b'["gpu"]\n',
        b"\xff\xfe\n",
        b'{"component": "gpu"}\n',
        b'{"component": "gpu", "version": "1", "inventory": []}\n',
        b'{"component": "gpu", "version": "1", "inventory": "BMC"}\n',
    ],
)
def test_what_is_no_image_is_refused(content: bytes) -> None:
    with pytest.raises(ImageRefused, match="image"):
        read_image(content)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_an_image(content: bytes) -> None:
    with suppress(ImageRefused):
        assert read_image(content).inventory


def test_the_reset_that_firmware_needs_agrees_with_the_bundle(fleet: Any) -> None:
    for component in fleet.bundle_of("n0003").components:
        assert find_needed_reset(component.inventory) == component.reset, component.name


def test_an_update_counts_as_a_flash_with_its_digest(healthy: dict[str, Any]) -> None:
    taken = an_image("bios")
    state = start_flash(healthy, taken, (), START)
    assert state["flashes"] == [{"component": "bios", "image_sha256": taken.sha256, "at": START.isoformat()}]
    assert (state["tasks"][-1]["state"], state["tasks"][-1]["fails"]) == ("Running", False)


def test_an_image_for_what_the_node_lacks_is_refused(healthy: dict[str, Any]) -> None:
    with pytest.raises(ImageRefused, match="HGX_FW_GPU_SXM_9"):
        start_flash(healthy, an_image("gpu", inventory=["HGX_FW_GPU_SXM_9"]), (), START)


def test_an_image_that_does_not_fit_its_target_is_refused(healthy: dict[str, Any]) -> None:
    with pytest.raises(ImageRefused, match="does not fit the target BIOS"):
        start_flash(healthy, an_image("gpu"), ["BIOS"], START)


def test_targets_narrow_what_is_written(healthy: dict[str, Any]) -> None:
    state = apply_elapsed_time(
        start_flash(healthy, an_image("gpu"), ["HGX_FW_GPU_SXM_2"], START), START + timedelta(seconds=90)
    )
    assert list(state["staged"]) == ["HGX_FW_GPU_SXM_2"]


def test_one_component_is_written_once_at_a_time_and_others_meanwhile(healthy: dict[str, Any]) -> None:
    state = start_flash(healthy, an_image("gpu"), (), START)
    with pytest.raises(ComponentBusy, match="task 1 is writing gpu"):
        start_flash(state, an_image("gpu", "newer"), ["HGX_FW_GPU_SXM_4"], START)
    assert len(start_flash(state, an_image("bios"), (), START)["tasks"]) == 2
    later = apply_elapsed_time(state, START + timedelta(seconds=90))
    assert start_flash(later, an_image("gpu", "newer"), (), START + timedelta(seconds=90))["tasks"][-1]["id"] == "2"


def test_a_refusal_is_a_task_in_exception_and_no_flash(healthy: dict[str, Any]) -> None:
    state = start_refused_flash(healthy, "", "no readable header", START)
    assert (state["tasks"][0]["state"], state["flashes"]) == ("Exception", [])
    assert apply_elapsed_time(state, START + timedelta(days=1))["firmware"] == healthy["firmware"]
    assert state["events"][-1]["severity"] == "Warning"


@given(st.binary(max_size=400))
def test_a_multipart_form_keeps_every_byte(content: bytes) -> None:
    fields = {
        "UpdateParameters": (None, "{}", "application/json"),
        "UpdateFile": ("gpu.bin", content, "application/octet-stream"),
    }
    encoder = MultipartEncoder(fields, boundary="a7f3b0c4-no-such-bytes")
    assert parse_multipart_form(encoder.content_type, encoder.to_string()) == {
        "UpdateParameters": b"{}",
        "UpdateFile": content,
    }


@pytest.mark.parametrize(
    ("content_type", "content", "status"),
    [
        ("application/json", b"{}", 415),
        ("", b"", 415),
        ("multipart/form-data", b"--x\r\n", 400),
        ("multipart/form-data; boundary=x", b"nothing of the kind", 400),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nhalf', 400),
    ],
)
def test_a_broken_form_is_an_error_and_not_an_empty_update(content_type: str, content: bytes, status: int) -> None:
    with pytest.raises(RedfishErrorResponse) as caught:
        parse_multipart_form(content_type, content)
    assert caught.value.status == status
