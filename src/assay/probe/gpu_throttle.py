"""What holds a GPU's clocks down, by name."""

from __future__ import annotations

THROTTLE = (  # nvmlClocksEventReason…, by bit
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)


def throttle_names(bits: int) -> list[str]:
    """Return the name of every reason that is set; `bit 11` for one that is newer than this list."""
    return [
        THROTTLE[bit] if bit < len(THROTTLE) else f"bit {bit}" for bit in range(bits.bit_length()) if bits >> bit & 1
    ]
