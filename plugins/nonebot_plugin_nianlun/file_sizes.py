"""How the size of a file reads, wherever one is told."""

from __future__ import annotations

_STEP = 1024
_UNITS = ("字节", "kB", "MB", "GB", "TB")
_TENTHS_BELOW = 100


def file_size(size: int) -> str:
    """`512 字节`, `38.2 kB`, `64 MB`, `71.3 GB`: in the unit that needs the fewest digits."""
    power = 0
    while _rounded(size, power) >= _STEP and power < len(_UNITS) - 1:
        power += 1
    return f"{_rounded(size, power):g} {_UNITS[power]}"


def _rounded(size: int, power: int) -> float:
    amount = size / _STEP**power
    return round(amount, 1 if amount < _TENTHS_BELOW else 0)
