"""A bot that is loaded once and started as often as one likes: each start is a fork of it.

Run in a bot's folder. Reads a JSON object a line from standard input:

    {"arguments": ["rollup"], "die": [3, "after"]}

Without arguments the bot runs, else the command line does. With `die` the process kills itself
before or after that many commits. Answers each line with the process's number; when a command
ends by itself, its exit status is in the file `status`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
import signal
import sys
from typing import Any, TextIO
from uuid import uuid4

sys.path.insert(0, str(Path.cwd()))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever the bot prints must not be read as an answer
    import nonebot

    import bot

    bot.initialise()
    nonebot.load_from_toml("pyproject.toml")
    # Ended children vanish at once, as those of a service manager do.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _tell(answers, "ready")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_child(answers, json.loads(line)))
        _tell(answers, str(pid))


def _tell(answers: TextIO, word: str) -> None:
    answers.write(f"{word}\n")
    answers.flush()


def _child(answers: TextIO, order: dict[str, Any]) -> int:
    import nonebot

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    answers.close()
    _know_yourself()
    if order.get("die"):
        _die_at_commit(*order["die"])
    if not order["arguments"]:
        nonebot.run()
        return 0
    from plugins.nonebot_plugin_nianlun.cli import main as command_line

    status = command_line(order["arguments"])
    Path("status").write_text(str(status), "ascii")
    return status


def _know_yourself() -> None:
    """A process notes its own number when the plugin is loaded, and here that was the parent."""
    from plugins.nonebot_plugin_nianlun import nianlun
    from plugins.nonebot_plugin_nianlun.processes import this_process

    nianlun.jobs._holder = f"{uuid4().hex[:12]}@{this_process()}"


def _die_at_commit(number: int, moment: str) -> None:
    from tortoise.backends.sqlite.client import SqliteTransactionWrapper

    commit, left = SqliteTransactionWrapper.commit, [number]

    async def counted(self: SqliteTransactionWrapper) -> None:
        left[0] -= 1
        if left[0] <= 0 and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        await commit(self)
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteTransactionWrapper.commit = counted


if __name__ == "__main__":
    main()
