"""What a reply takes without a memory: a bot that hands each line that calls it on to the model."""

from __future__ import annotations

import nonebot
from nonebot.adapters.onebot.v11 import Adapter, MessageEvent
from nonebot.matcher import Matcher
from nonebot.rule import to_me
from openai import AsyncOpenAI

nonebot.init()
nonebot.get_driver().register_adapter(Adapter)

client = AsyncOpenAI()
calls = nonebot.on_message(rule=to_me(), priority=10, block=True)


@calls.handle()
async def _(matcher: Matcher, event: MessageEvent) -> None:
    answer = await client.chat.completions.create(
        model="scripted", messages=[{"role": "user", "content": event.get_plaintext()}]
    )
    await matcher.finish(answer.choices[0].message.content)


if __name__ == "__main__":
    nonebot.run()
