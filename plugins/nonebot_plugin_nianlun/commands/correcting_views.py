"""What corrections answer, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..memory.fact_items import FactItem
from ..memory.keymarks import show_key_marks
from ..memory.render import one_line
from ..store.provenance import WHY_MISSING
from ..types import ME, Note
from .subjects import CATEGORY_WORDS, Subject
from .views import SOURCES, WRITERS

if TYPE_CHECKING:
    from ..store.editing import Edited

_LONGEST = 300


def edited_view(subject: Subject, version: int, before: str, text: str, head: str) -> str:
    """`before`: who wrote the text that was replaced."""
    old = f"第 {version - 1} 版（{_writer(before)}）"
    lines = [
        f"改好了：{subject} 现在是第 {version} 版，{old}留着。以后新的事会接在后面，不会盖掉它。",
        _cut(show_key_marks(text)),
    ]
    lines.append(f"要改回去：{head} 还原 {subject.typed} {version - 1}")
    return "\n".join(lines)


def restored_view(subject: Subject, restored: Edited, old: int) -> str:
    """`old`: the version that came back."""
    before = restored.version - 1
    lines = [
        f"{subject} 的第 {old} 版还原成了第 {restored.version} 版，第 {before} 版留着。",
        _cut(show_key_marks(restored.text)),
    ]
    if restored.owed and subject.kind != "activity":
        what = SOURCES[subject.kind]
        lines.append(f"那以后写进来的 {restored.owed} {what}，会再接着写到后面。")
    if restored.left_behind:
        rest = "别的" if restored.owed else ""
        lines.append(f"{rest}后来接着写的不在这一版里，只留在第 {before} 版。")
    return "\n".join(lines)


def rewritten_view(subject: Subject, note: Note | None, *, before: bool) -> str:
    """`before`: there is a text that it had before the rewriting."""
    if note is None and subject.kind == "activity":
        stays = "原来怎样还是怎样" if before else "所以空着"
        return f"{subject} 没有重写：照剩下的话重新看过，没有值得记的，{stays}。"
    if note is None:
        return (
            f"{subject} 现在没有能重写的：没有剩下什么可写，"
            "或者里面还有没写完的活动，先整理一下再来。"
        )
    kept = "，原来的那一版留着" if before else ""
    return (
        f"{subject} 由{_writer(note.writer)}照全部来源重写好了{kept}。\n"
        f"{_cut(show_key_marks(note.text))}"
    )


def rewriting_view(subject: Subject) -> str:
    return f"{subject} 正在重写，要等一会儿，写好了在这里说。"


def deleted_view(
    messages: Sequence[int],
    activities: Sequence[int],
    missing: Sequence[str],
    rewritten: int,
    gone: Sequence[str],
    later: Sequence[str],
    edited: Sequence[str],
) -> str:
    """`later`: memories of which no source is left, but something else in their time."""
    lines: list[str] = []
    if messages:
        named = " ".join(f"#{seq}" for seq in messages)
        lines.append(f"删掉了消息 {named}：原话已经清空，再传来或导入也不会回来。")
    if activities:
        named = " ".join(f"&{number}" for number in activities)
        lines.append(
            f"删掉了活动 {named}：不会再从那些话写出来，再导入也不会回来，从中记下的事实也拿掉了。"
        )
    if rewritten:
        lines.append(f"用到它们的 {rewritten} 篇记忆清空了，会按剩下的重写。")
    if gone:
        lines.append(f"{'、'.join(gone)} 也清空了，现在没有剩下可以写的。")
    if later:
        lines.append(f"{'、'.join(later)} {WHY_MISSING['emptied']}。")
    if edited:
        lines.append(f"其中 {'、'.join(edited)} 是人写过的，也清空了。")
    if missing:
        lines.append(f"没有 {' '.join(missing)}，或者早就删掉了。")
    return "\n".join(lines)


def remembered_view(
    item: FactItem, change: str, owner: str, *, masked: bool, unresolved: Sequence[str]
) -> str:
    """`owner`: whose fact it is, for people."""
    done = {"added": "记住了", "updated": "改好了，原来的写法留着", "same": "本来就是这样记的"}
    lines = [f"{done[change]}，{owner}的 {item.category}:{item.name}：{_cut(item.content)}"]
    if item.due:
        lines.append(f"到期：{item.due}")
    if masked:
        lines.append("像密码、密钥、证件号的部分没有记下。")
    if unresolved:
        lines.append(f"这些链接现在找不到对应的词条：{'、'.join(unresolved)}")
    return "\n".join(lines)


def categories_hint() -> str:
    words = "、".join(f"{slug}（{word}）" for slug, word in CATEGORY_WORDS.items())
    return f"分类请用 {words}，或者自己起一个小写英文的。"


def several_owners_view(
    category: str, name: str, owners: Sequence[str], names: Mapping[str, str], head: str
) -> str:
    """Whose facts of that name there are, for somebody who has to choose."""
    listed = "\n".join(f"· {owner_words(owner, names)}（{owner or '群'}）" for owner in owners)
    return (
        f"有几个人都有 {category}:{name}，请在后面写上是谁的：\n{listed}\n"
        f"例如：{head} 忘掉 {category}:{name} {owners[0] or '群'}"
    )


def owner_words(owner: str, names: Mapping[str, str]) -> str:
    """Whose a fact is, for people; `names` are display names by user id."""
    if owner == "":
        return "这个会话"
    return "我" if owner == ME else one_line(names.get(owner, owner))


def _writer(writer: str) -> str:
    return WRITERS.get(writer, one_line(writer))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
