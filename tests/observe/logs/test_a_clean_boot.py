"""The boot of a healthy H100 node asks for nothing, and is one note at most; one weak slot is a fault."""

from __future__ import annotations

ADAPTERS = ("18", "29", "3a", "40", "4d", "5e", "9a", "aa", "ba", "c0", "ce", "dc")
BOOT = (
    "<3>[    0.801010] DMAR: [Firmware Bug]: No firmware reserved region can cover this RMRR [0x0-0x0]",
    "<6>[    1.202001] pci 0000:16:01.0: BAR 13: failed to assign [io  size 0x1000]",
    "<6>[    2.401000] nvme nvme0: Shutdown timeout set to 10 seconds",
    "<4>[   20.100003] nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "<3>[   20.300000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024",
    "<6>[   20.520001] nvidia 0000:1b:00.0: [drm] Cannot find any crtc or sizes",
)


def tell_power(pci: str, at: float) -> str:
    return (
        f"<4>[{at:12.6f}] mlx5_core 0000:{pci}:00.0: mlx5_pcie_event:301:(pid 2133): "
        "Detected insufficient power on the PCIe slot (27W)."
    )


def test_a_clean_boot_is_one_note(tell):
    told = tell(*BOOT, *(tell_power(pci, 4.1 + number / 100) for number, pci in enumerate(ADAPTERS)))
    assert told["not_judged"] == []
    (note,) = told["faults"]
    assert (note["fault"], note["action"], note["severity"]) == ("hca.power", "none", "informational")
    assert (note["count"], note["subject"].count(":00.0")) == (12, 12)
    assert (note["first"], note["last"]) == ("boot+4.100000s", "boot+4.210000s")
    assert "a trait of theirs" in note["because"]


def test_one_weak_slot_asks_for_a_ticket(tell):
    (fault,) = tell(*BOOT, tell_power("18", 4.1))["faults"]
    assert (fault["action"], fault["subject"]) == ("ticket", "0000:18:00.0")


def test_what_all_adapters_say_later_is_one_ticket(tell):
    (fault,) = tell(*(tell_power(pci, 90_000 + number) for number, pci in enumerate(ADAPTERS)))["faults"]
    assert (fault["action"], fault["count"]) == ("ticket", 12)


def test_what_they_say_on_different_days_is_no_one_event(tell):
    assert len(tell(*(tell_power(pci, number * 90_000 + 1000) for number, pci in enumerate(ADAPTERS)))["faults"]) == 12
