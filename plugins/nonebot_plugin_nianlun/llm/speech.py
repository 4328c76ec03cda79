"""How a line was said, as far as its own words show it: asked, proposed, promised, complained."""

from __future__ import annotations

import re

_ASKED = re.compile("[?？]")
_QUESTION = re.compile(
    r"(?:吗|(?<![什这那多怎要])么|干嘛|(?<!点)什么)[~～。!！…\s]*$"
    r"|(?:[谁什怎哪几][^，。！\s]*|(?:^|[，。！\s])(?:[^，。！\s]*的)?[^，。！\s的了着在才都]{1,3})呢[~～。!！…\s]*$"
    r"|什么时候|为什么|怎么[样办做去]|哪[里儿个天一种家年句段位次]|几点|几号|多少"
    r"|是不是|会不会|能不能|要不要|有没有|好不好|行不行|可不可以"
    r"|谁(?:会|能|去|来|有|要)|(?:^|[，。！\s])谁(?![都也让叫知懂])[^，。！\s]"
)
# A question that is only told of, or that has no answer to wait for.
_INDIRECT = re.compile(
    "不知道|[不无]管|无论|(?<![请想])问(?!题|一下|下|问)|告诉|忘了|记得|没多少|没什么|多少有"
    "|都没|都不|都行|要不就|哪里哪里|哪个都|哪天都"
)
_HYPOTHETICAL = "^(?!.*(?:如果|要是|假如|万一|等[我你他她]|听说|没|别|不是|未必|[会能]不)).*"
_CLAUSE_END = r"(?=$|[，。！!～~\s])"
_CLAUSE_START = r"(?:^|[，。！!～~\s])"
_THINGS_TO_DO = "[订买接送做办写弄搬修洗发画查拿取教付找喂带收拍计数记定约管放排]"
# The first that fits decides, so the surer signs stand first. A word that others say, deny or
# only imagine is no sign.
_ACTS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(
            rf"(?<![说我你他她声个句])对不起(?={_CLAUSE_END}|你|您|大家|各位|让|啊|呀|哈)"
            rf"|(?<![说声不])抱歉|(?<!不)是我(?:不[好对]{_CLAUSE_END}|的错)"
            "|我[^，。！]{0,3}话[^，。！]{0,2}重了|我错了|给[你大][^，。]{0,3}赔不是"
        ),
        ("道歉说", "认错说"),
    ),
    (
        re.compile(
            rf"(?<![说会要该声喊句用得不])(?:谢谢|多谢|谢啦)(?!我|了{_CLAUSE_END})"
            rf"|{_CLAUSE_START}感谢(?!信|我)"
        ),
        ("道谢说",),
    ),
    (
        re.compile(
            rf"(?<![没不未])交给我(?:吧|了|来)?{_CLAUSE_END}|包在我|我答应(?:你|大家|{_CLAUSE_END})"
            "|我保证|说到做到"
        ),
        ("答应", "应下"),
    ),
    (
        re.compile(
            rf"我来(?:{_CLAUSE_END}|(?:帮忙?|{_THINGS_TO_DO})(?![了过]))|(?<!不是)我负责"
            rf"|我帮(?:[你您]|大家)(?![^，。！\s]{{0,6}}[了过])|我去{_THINGS_TO_DO}(?![了过])"
        ),
        ("应下", "揽下"),
    ),
    (re.compile(rf"我请(?={_CLAUSE_END}|客|大家|吃|喝|你们?[吃喝看])"), ("许下",)),
    (
        re.compile(
            "(?<!差点)别忘|(?<![我还都子不没他她它谁只真就人也能会])"
            "记得(?=[带拿给把吃喝关拉交打穿买叫发回多早提换])"
        ),
        ("提醒", "叮嘱"),
    ),
    (
        re.compile("^(?:要不|不如|咱们?|我们|大家)(?!都|是|就是|已经|不是|没)[^？?]{2,}(?:吧|呗)"),
        ("提议", "招呼"),
    ),
    (
        re.compile(
            rf"就这么(?:定|办)|说定了|{_CLAUSE_START}定了{_CLAUSE_END}|拍板"
            "|那就(?=周|下周|[明后]天|去|[吃订买选]|[一二三四五六七八九十0-9]+号)"
        ),
        ("拍板", "拍板说"),
    ),
    (
        re.compile(
            rf"{_HYPOTHETICAL}(?:(?:考上|录取|通过|转正|升职|涨薪|修好|搞定)了(?![再就才吧])"
            rf"|(?<![说吃来去看试做问提错超经用晚走听聊见])过了[！!]|拿到(?:了)?offer)"
        ),
        ("报喜", "带来好消息"),
    ),
    (
        re.compile(
            rf"(?:{_CLAUSE_START}|我)[^，。！他她你\s]{{0,6}}"
            rf"(?:[去来]不了|没空{_CLAUSE_END}|不去了|赶不上|要加班)"
        ),
        ("推辞说",),
    ),
    (
        re.compile("(?<![别不没用])担心|怕是|就怕|有点怕|好慌|(?<![别不没])紧张"),
        ("担心地说", "有些担心地说"),
    ),
    (
        re.compile(
            "(?:烦|累|困|气|热|冷|饿)死(?!人)|受不了|崩溃|(?<!不)离谱|无语|又堵"
            rf"|(?:{_CLAUSE_START}|我|真)服了"
        ),
        ("抱怨", "叫苦说"),
    ),
    (
        re.compile(
            rf"舍不得(?={_CLAUSE_END}|你|大家|走|了)|(?<!不)想你们?(?={_CLAUSE_END}|了)"
            "|想家(?![长里])|想念|怀念|好想(?!知道)"
        ),
        ("念叨",),
    ),
    (
        re.compile(rf"我觉得|我感觉|{_CLAUSE_START}感觉|依我看|{_CLAUSE_START}我看(?=[，是还行])"),
        ("觉得", "说"),
    ),
    (re.compile("估计|说不定|(?<!不)可能是|大概是|八成"), ("猜", "估摸")),
    (re.compile(r"\d|[点号月]|早上|下午|晚上"), ("说", "提到")),
)

_OWN = ("问", "道歉说", "应下", "提醒", "道谢说")


def is_question(text: str) -> bool:
    """Whether the speaker asks; a line that tells what somebody else asked does not."""
    if _ASKED.search(text):
        return True
    return _QUESTION.search(text) is not None and _INDIRECT.search(text) is None


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
