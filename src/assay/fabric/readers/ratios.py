"""Bit error ratios as the registers of adapters and switches hold them."""

from __future__ import annotations

NO_ERRORS = 1e-250
"""At and below this a ratio stands for no error at all: 15E-255 is the smallest that the registers can hold."""
LARGEST_EXPONENT = 255


def settled(ratio: float) -> float:
    """Return a ratio, 0 for one that stands for no error."""
    return 0.0 if ratio <= NO_ERRORS else ratio


def of_register(mantissa: int, exponent: int) -> float | None:
    """Return mantissa × 10^-exponent, None where the two are no ratio: a register that nothing was written to."""
    if not (mantissa or exponent) or exponent > LARGEST_EXPONENT:
        return None
    ratio = mantissa * 10.0**-exponent
    return settled(ratio) if ratio <= 1 else None
