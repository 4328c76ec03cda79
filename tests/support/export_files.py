"""Chat exports of any size for tests, as qq-chat-exporter writes them."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
import random
from typing import Any

WORDS = ("今天", "明天", "去上海", "吃火锅", "好的", "哈哈哈", "为什么", "下雨了", "收到", "？")
BEGINS = 1_700_000_000


def qce_messages(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Ordinary messages of a few people, some in one second, some equal, some replies."""
    dice = random.Random(seed)
    second = BEGINS
    for number in range(1, count + 1):
        second += dice.choice([0, 0, 1, 7, 40, 40, 300 if number % 20 else 9000])
        uin = str(20_000 + dice.randint(1, 9))
        words = "".join(dice.choices(WORDS, k=dice.randint(1, 5)))
        elements = [{"type": "text", "data": {"text": words}}]
        if number > 9 and dice.random() < 0.1:
            quoted = {"messageId": str(7_000_000 + number - dice.randint(1, 9)), "content": "…"}
            elements.insert(0, {"type": "reply", "data": quoted})
        yield {
            "id": str(7_000_000 + number),
            "seq": str(number),
            "timestamp": second * 1000,
            "sender": {
                "uid": f"u_{uin}",
                "uin": uin,
                "name": f"人{uin}{'甲乙'[number % 500 == 0]}",
            },
            "type": "text",
            "content": {"text": words, "elements": elements, "resources": [], "mentions": []},
            "recalled": dice.random() < 0.005,
            "system": False,
        }


def write_qce(
    path: Path, messages: Iterator[dict[str, Any]], *, group: int = 123, self_id: int = 10001
) -> Path:
    """A single JSON file of them."""
    chat = {"name": "摸鱼研究所", "type": "group", "selfUin": str(self_id), "peerUin": str(group)}
    with path.open("w", encoding="utf-8") as file:
        file.write('{"metadata":{"name":"QQChatExporter","version":"6.2.7"},\n')
        file.write(f'"chatInfo":{json.dumps(chat, ensure_ascii=False)},\n"messages":[\n')
        lines = (json.dumps(one, ensure_ascii=False) for one in messages)
        file.write(f"{next(lines)}")
        file.writelines(f",\n{line}" for line in lines)
        file.write("\n]}\n")
    return path
