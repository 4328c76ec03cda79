"""The mood that the words of a day's notes tell of, and what a day adds to a chat's growth."""

from __future__ import annotations

from dataclasses import dataclass
import re

_WARM = (
    "开心|高兴|快乐|幸福|喜欢|哈哈|好笑|大笑|笑了|笑成|笑着|笑出|欢呼|叫好|庆祝|恭喜|祝贺|惊喜|兴奋|激动|期待|感动"
    "|温暖|暖和|满足|骄傲|得意|热闹|好玩|有趣|可爱|轻松|安心|放心|谢谢|感谢|和好|团圆|顺利|成功|太棒|太好了|圆满"
    "|升职|录取|考上|得奖|冠军|结婚|生日"
)
_COLD = (
    "难过|伤心|悲伤|流泪|眼泪|哭了|想哭|大哭|痛苦|委屈|孤单|孤独|寂寞|失落|失望|绝望|沮丧|郁闷|生气|愤怒|吵架|吵了"
    "|争吵|冷战|误会|害怕|担心|焦虑|紧张|着急|疲惫|崩溃|累坏|烦躁|心烦|无聊|后悔|遗憾|抱歉|道歉|对不起|舍不得"
    "|想家|再见|告别|离开|分手|去世|生病|发烧|住院|失眠|失败|落榜|裁员|走丢"
)
_FIRST = "".join(sorted({word[0] for word in f"{_WARM}|{_COLD}".split("|")}))
# What is denied or told to somebody who feels otherwise says nothing sure of the mood. The look at
# the first character alone spares most places the many others: a picture reads years of text.
_WORDS = re.compile(f"(?=[{_FIRST}])(?<![不没别无])(?:({_WARM})|({_COLD}))")
_SHY = 2
"""Words that a mood has to outweigh: a single one colours a day only a little."""


@dataclass(frozen=True, slots=True)
class DayGrowth:
    """What one logical day added to a chat."""

    messages: int = 0
    activities: int = 0
    mood: float = 0.0
    """See `mood_of`."""

    @property
    def amount(self) -> int:
        """How much happened; imported notes may have no messages."""
        return self.messages + self.activities


def mood_of(text: str) -> float:
    """From -1, sad, to 1, merry, by the words for it; 0 where they are missing or balance."""
    found = [bool(warm) for warm, _ in _WORDS.findall(text)]
    warm = sum(found)
    return (2 * warm - len(found)) / (len(found) + _SHY)
