"""What an ordinary message costs without Nianlun: a bot with one `on_message` matcher.

Every `STEP` messages it writes into the file `handled` how many it has seen.
"""

from __future__ import annotations

from pathlib import Path

import nonebot
from nonebot.adapters.onebot.v11 import Adapter

STEP = 500

nonebot.init()
nonebot.get_driver().register_adapter(Adapter)

matcher = nonebot.on_message(priority=1, block=False)
handled = 0


def report() -> None:
    Path("handled").write_text(str(handled), encoding="ascii")


@matcher.handle()
async def _() -> None:
    global handled
    handled += 1
    if handled % STEP == 0:
        report()


if __name__ == "__main__":
    nonebot.run()
