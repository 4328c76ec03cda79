"""Telling the processes apart that use one database, and whether they still run."""

from __future__ import annotations

import os
import platform
import sys

_LONGEST_NODE = 32


def this_process() -> str:
    """The process's number and its machine: `1234/host`."""
    return f"{os.getpid()}/{_node()}"


def runs(process: str) -> bool | None:
    """Whether a process that `this_process` named still runs; None where nobody can tell.

    Numbers are used again, so another one may pass for it.
    """
    pid, _, node = process.partition("/")
    if node != _node() or not pid.isdecimal():
        return None
    if sys.platform == "win32":
        return None  # there, asking a process for a sign of life would end it
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return None
    return True


def _node() -> str:
    return platform.node()[:_LONGEST_NODE]
