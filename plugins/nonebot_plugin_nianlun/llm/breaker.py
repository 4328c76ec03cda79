"""Whether an endpoint is asked at all: one that only fails is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable
import time

from ..errors import ModelUnavailable

FAILURES = 5
"""Failed requests in a row after which the endpoint is left alone."""
FIRST_PAUSE = 15.0
LONGEST_PAUSE = 300.0
"""Seconds; each failed probe doubles the pause, up to this."""


class Breaker:
    """Closed it lets every request through, open none, and after its pause a single probe, whose
    outcome closes it or opens it for longer (the circuit breaker of Nygard's "Release It!").
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._pause = 0.0
        self._open_until: float | None = None
        self._probing = False
        self._hurried = False
        self._reason = ""

    @property
    def is_open(self) -> bool:
        return self._open_until is not None

    @property
    def is_resting(self) -> bool:
        """A request would not be let through now."""
        until = self._open_until
        if until is None:
            return False
        return self._probing or (not self._hurried and self._monotonic() < until)

    @property
    def trouble(self) -> str | None:
        """One line for a person; None while the endpoint is asked as usual."""
        if self._open_until is None:
            return None
        left = 0 if self._hurried else self._open_until - self._monotonic()
        seconds = max(0, round(left))
        return f"{self.verdict}，{f'{seconds} 秒后再试' if seconds else '正要再试'}"

    @property
    def verdict(self) -> str:
        """What is wrong with an endpoint that is left alone, whenever one reads it."""
        return f"{self._reason}；已经连续失败 {self._failures} 次"

    def admit(self) -> bool:
        """Let a request through, and say whether it is the probe; its outcome must be told.

        Raises ModelUnavailable at once while the endpoint is left alone.
        """
        if self._open_until is None:
            return False
        if self.is_resting:
            raise ModelUnavailable(self.trouble)
        self._probing = True
        self._hurried = self._monotonic() < self._open_until
        return True

    def end_pause(self) -> None:
        """Somebody asks for a try at once: the next request is the probe, however long the pause
        was to be. One that is under way stays the only one. Should it fail, the pause goes on as
        it was: others are not to wait longer for their having asked."""
        if self.is_open and not self._probing:
            self._hurried = True

    def succeeded(self) -> None:
        """The endpoint answered, whatever it said."""
        self._failures, self._pause, self._open_until = 0, 0.0, None
        self._probing = self._hurried = False

    def failed(self, probe: bool, reason: str, retry_after: float | None = None) -> None:
        """The endpoint did not serve, and asks to be left alone for `retry_after` seconds."""
        if self.is_open and not probe:
            return  # it was sent before the breaker opened, and says nothing new
        self._failures += 1
        self._reason = reason
        hurried = self._hurried
        self._probing = self._hurried = False
        now = self._monotonic()
        if hurried and self._open_until is not None:
            asked = now + min(retry_after or 0, LONGEST_PAUSE)
            self._open_until = max(self._open_until, asked)
        elif self._failures >= FAILURES:
            wanted = max(self._pause * 2 or FIRST_PAUSE, retry_after or 0)
            self._pause = min(wanted, LONGEST_PAUSE)
            self._open_until = now + self._pause

    def abandoned(self, probe: bool) -> None:
        """The request was given up by whoever made it, before it had an outcome."""
        if probe:
            self._probing = False
