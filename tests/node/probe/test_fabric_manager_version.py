"""The probe reads the version of the fabric manager that is installed, and takes nothing else for one."""

from __future__ import annotations

import pytest

from assay.node.probe.named_settings import parse_fabric_manager


@pytest.mark.parametrize("text", ["Fabric Manager version is : 570.172.08\n", "Fabric Manager version is: 570.172.08"])
def test_a_version_is_read(text: str):
    assert parse_fabric_manager(text) == {"value": "570.172.08"}


@pytest.mark.parametrize("text", ["", "unrecognized option '--version'\n", "Fabric Manager version is :\n"])
def test_another_text_is_a_failed_reading(text: str):
    assert list(parse_fabric_manager(text)) == ["failed"]
