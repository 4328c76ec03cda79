"""How far an import is, drawn on a terminal or told now and then in a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

_REDRAW_SECONDS = 0.25
_PLAIN_SECONDS = 5.0
_STEADY_SECONDS = 0.5
"""Before that nothing can be said about the rate."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an import is: `check` reads the file once, `store` a second time.

    Or where `index` is, which counts messages in place of bytes.
    """

    phase: str
    done: int
    total: int
    """Bytes of the file."""
    messages: int
    """Met in this phase so far."""


_PHASES = {"check": "检查", "store": "导入", "index": "建立检索"}


class ProgressLine:
    """Shows progress on a stream: one line drawn over and over, or a plain one now and then."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that only go forward."""
        self._stream = stream
        self._clock = clock
        self._drawn = stream.isatty()
        self._phase = ""
        self._began = self._shown = clock()
        self._width = 0
        self._gone = False

    def __call__(self, progress: Progress) -> None:
        if self._gone:
            return
        now = self._clock()
        if progress.phase != self._phase:
            self._phase, self._began, self._shown = progress.phase, now, now
        if now - self._shown < (_REDRAW_SECONDS if self._drawn else _PLAIN_SECONDS):
            return
        self._shown = now
        try:
            self._show(progress, now)
        except OSError:
            # Whoever watched has gone, or hears no more; that is no reason to stop importing.
            self._gone = True

    def _show(self, progress: Progress, now: float) -> None:
        line = describe(progress, now - self._began)
        if self._drawn:
            # Wide characters: blanks beyond the old line wipe it, also where each takes two.
            self._stream.write(f"\r{line}{' ' * max(0, self._width - len(line))}\r{line}")
            self._width = 2 * len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def end(self) -> None:
        """Wipe the drawn line, so that what is printed next stands alone."""
        if self._drawn and self._width and not self._gone:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._stream.flush()


def describe(progress: Progress, seconds: float) -> str:
    """The progress of a phase after so many seconds of it."""
    done = min(progress.done, progress.total)
    percent = 100 * done // progress.total if progress.total else 100
    line = f"{_PHASES[progress.phase]} {percent}%，{progress.messages} 条"
    if seconds < _STEADY_SECONDS or not done:
        return line
    left = round(seconds * (progress.total - done) / done)
    return f"{line}，每秒 {round(progress.messages / seconds)} 条，还要 {_duration(left)}"


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} 分 {rest} 秒" if minutes else f"{rest} 秒"
