"""Progress on a terminal and in a log."""

from __future__ import annotations

import io

from plugins.nonebot_plugin_nianlun.imports.progress import Progress, ProgressLine, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def drive(line: ProgressLine, watch: Watch, seconds: float, step: float) -> None:
    """Report every `step` seconds, a thousand messages a second."""
    for number in range(1, round(seconds / step) + 1):
        watch.now += step
        line(Progress("store", number, round(seconds / step), round(number * step * 1000)))


def test_it_tells_share_rate_and_time_left() -> None:
    assert (
        describe(Progress("check", 25, 100, 500), 1.0) == "检查 25%，500 条，每秒 500 条，还要 3 秒"
    )
    told = describe(Progress("store", 1, 1000, 10), 2.0)
    assert told == "导入 0%，10 条，每秒 5 条，还要 33 分 18 秒"
    assert describe(Progress("store", 1, 100, 10), 0.1) == "导入 1%，10 条"
    assert describe(Progress("store", 0, 0, 0), 9.0) == "导入 100%，0 条"


def test_a_terminal_is_drawn_on_a_few_times_a_second_and_left_clean() -> None:
    screen, watch = Terminal(), Watch()
    line = ProgressLine(screen, watch)
    drive(line, watch, 10, 0.01)
    drawn = screen.getvalue()
    assert 20 <= drawn.count("导入") // 2 <= 41
    assert "\n" not in drawn
    line.end()
    assert screen.getvalue().endswith(" \r")


def test_a_log_gets_a_plain_line_now_and_then() -> None:
    log, watch = io.StringIO(), Watch()
    line = ProgressLine(log, watch)
    drive(line, watch, 21, 0.1)
    line.end()
    lines = log.getvalue().splitlines()
    assert 3 <= len(lines) <= 4
    assert "\r" not in log.getvalue()
    assert "每秒 100" in lines[-1]


def test_a_short_import_draws_nothing() -> None:
    screen, watch = Terminal(), Watch()
    line = ProgressLine(screen, watch)
    drive(line, watch, 0.1, 0.01)
    line.end()
    assert screen.getvalue() == ""


def test_nobody_watching_is_no_reason_to_stop() -> None:
    class Gone(Terminal):
        tries = 0

        def write(self, _: str) -> int:
            self.tries += 1
            raise BrokenPipeError

    screen, watch = Gone(), Watch()
    line = ProgressLine(screen, watch)
    drive(line, watch, 30, 1)
    line.end()
    assert screen.tries == 1
