"""How a line was said, as far as its own words show it: asked, proposed, promised, complained."""

from __future__ import annotations

import re

_QUESTION = re.compile(
    r"[?？]|[吗呢嘛么][~～。!！…\s]*$|什么时候|为什么|怎么[样办做去]|哪[里儿个天]|几点|几号|多少"
    r"|(?<!不管)谁(?:会|能|去|来|有|要)"
)
# The first that fits decides, so the surer signs stand first.
_ACTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile("对不起|抱歉|是我不[好对]|我的错|话重了|我错了|赔不是"), ("道歉说", "认错说")),
    (re.compile("谢谢|多谢|感谢|谢啦|谢了"), ("道谢说", "谢过说")),
    (
        re.compile(
            "我来[^说看晚迟过了]|我负责|交给我|包在我|我请(?!假)|我帮|我答应|我保证|说到做到|我去[订买接送拿取问]"
        ),
        ("应下", "答应"),
    ),
    (re.compile("别忘|(?<![我你还都子])记得(?![，。！的吗那去我])"), ("提醒", "叮嘱")),
    (re.compile("^(?:要不|不如|咱们?|我们|大家)[^？?]{2,}(?:吧|呗)"), ("提议", "招呼")),
    (re.compile("就这么(?:定|办)|说定了|定了[，。！]?$|那就[^是算]|拍板"), ("拍板", "拍板说")),
    (
        re.compile("考上了|录取了|通过了|过了！|拿到(?:了)?offer|转正了|升职|涨薪|修好了|搞定了"),
        ("报喜", "带来好消息"),
    ),
    (re.compile("去不了|来不了|没空|不去了|赶不上|要加班"), ("为难地说",)),
    (re.compile("担心|会不会|怕是|就怕|有点怕|好慌|紧张"), ("担心", "有些担心")),
    (
        re.compile("烦死|累死|困死|气死|热死|冷死|饿死|受不了|崩溃|离谱|无语|服了|又堵"),
        ("抱怨", "叫苦"),
    ),
    (re.compile("舍不得|想你|想家|想念|怀念|好想"), ("念叨", "惦记着")),
    (re.compile("我觉得|感觉|我看[^到见了]|依我看"), ("觉得", "的看法是")),
    (re.compile("估计|说不定|可能是|大概是|八成"), ("猜", "估摸")),
    (re.compile(r"\d|[点号月]|早上|下午|晚上"), ("说", "提到")),
)

_OWN = ("问", "道歉说", "应下", "提醒", "道谢说")


def is_question(text: str) -> bool:
    return _QUESTION.search(text) is not None


def verb(quote: str, variant: int, *, mine: bool = False) -> str:
    """The verb that leads a quote; every one is borne out by words inside the quote."""
    verbs = act(quote)
    if mine:
        # Of oneself one would not say how it looked from outside.
        return next((v for v in verbs if v in _OWN), "说")
    return verbs[variant % len(verbs)]


def act(quote: str) -> tuple[str, ...]:
    """The verbs that fit what the words of a quote do."""
    if is_question(quote):
        return ("问",)
    return next((verbs for sign, verbs in _ACTS if sign.search(quote)), ("说",))
