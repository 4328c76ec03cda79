"""The tour in terminals that are narrow, odd or gone."""

from __future__ import annotations

from collections.abc import Iterator
import fcntl
import os
import pty
import struct
import termios

import pytest

from plugins.nonebot_plugin_nianlun.demo.progress import Progress
from plugins.nonebot_plugin_nianlun.demo.telling import width

LONG = (
    "正在写：645 条活动，403 天，16 个月，2 年；还有 5800 条消息没有读；调用 1066 次，1234567 token"
)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a pseudo terminal."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def read_until(terminal: int, words: str) -> str:
    """What a terminal shows comes in pieces of any size."""
    shown = b""
    while words not in shown.decode(errors="ignore") or not shown.endswith(b"\n"):
        shown += os.read(terminal, 65_536)
    return shown.decode()


@pytest.mark.parametrize("columns", [0, 1, 2, 20, 60, 80, 200])
def test_a_line_that_changes_never_runs_over(terminal: tuple[int, int], columns: int) -> None:
    ours, theirs = terminal
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(os.dup(theirs), "w", encoding="utf-8") as stream:
        progress = Progress(stream)
        progress.step(LONG)
        progress.step("短")
        progress.done("好了")
    drawn = read_until(ours, "好了").split("\r")
    assert all(width(part) < max(3, columns or 80) for part in drawn[:-2])
    assert "".join(drawn).count("\n") == 1
    assert "好了" in drawn[-2]
