"""What models imitate from their prompt, and no person would write in a chat."""

from __future__ import annotations

import re

from .keymarks import strip_key_marks

_IMITATED = re.compile(r"^(?:[#&]\d+\s*)?(?:\d{1,2}:\d{2}\s+)?(?:我|assistant)\s*[:：]\s*")
_NUMBERED = re.compile(r"^#\d+\s+\d{1,2}:\d{2}\s+[^\n:：]{1,80}[:：]\s*")
_DAY_LINE = re.compile(r"^—— \d{4}-\d{2}-\d{2} 周. ——$")


def clean_reply(text: str, me: str = "我") -> str:
    """Take off what models imitate from the prompt: ids, times, speaker prefixes, key marks.

    `me` is what the bot's own lines are called there.
    """
    lines = []
    for line in strip_key_marks(text).replace("\x00", "").strip().splitlines():
        if not _DAY_LINE.match(line):
            said = _NUMBERED.sub("", _IMITATED.sub("", line))
            lines.append(re.sub(rf"^{re.escape(me)}\s*[:：]\s*", "", said))
    return "\n".join(lines).strip()
