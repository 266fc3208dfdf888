"""PCI addresses as drivers, tools and exporters write them are one address."""

from __future__ import annotations

import pytest

from assay.model.text.lists import normalize_pci_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:1b:00.0", "0000:1b:00.0"),
        ("0000:1b:00", "0000:1b:00.0"),
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("1b:00.0:", "0000:1b:00.0"),
        ("0009:01:00.3", "0009:01:00.3"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("gpu3", ""),
        ("", ""),
        ("0000:1b:00.8", ""),
    ],
)
def test_every_spelling_is_written_as_linux_writes_it(text: str, address: str) -> None:
    assert normalize_pci_address(text) == address
