"""Links between facts: which they are, and where they lead."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.links import (
    MOST_LINKS,
    Link,
    parse_links,
    resolve,
    wanted,
)
from plugins.nonebot_plugin_nianlun.memory.search import Candidate, SearchKind

AT = datetime(2026, 11, 29, tzinfo=UTC)


def fact(
    ref: int, name: str, text: str = "", owner: str | None = "20001", kind: SearchKind = "fact"
) -> Candidate:
    return Candidate(kind, ref, 1.0, AT, text, owner, name, "profile")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("见 [[profile:工作]]。", [Link("profile", "工作")]),
        ("[[profile: 工 \n 作 ]]", [Link("profile", "工 作")]),
        ("[[a:1]] [[b:2]] [[a:1]]", [Link("a", "1"), Link("b", "2")]),
        ("[[[a:1]]]", [Link("a", "1")]),
        ("[[Profile:工作]] [[a:b:c]] [[a:]] [[:b]] [[a]] [a:b] [[a:b|c]] [[a:#]] [[a:b]", []),
        ("[[a:" + "长" * 81 + "]]", []),
        ("[[a:1]]" * 3 + "[[" * 9, [Link("a", "1")]),
        ("", []),
    ],
)
def test_links_in_a_text(text: str, found: list[Link]) -> None:
    assert list(parse_links(text)) == found


def test_only_so_many_links_of_a_text_are_followed() -> None:
    text = "".join(f"[[a:{n}]]" for n in range(MOST_LINKS + 5))
    assert len(parse_links(text)) == MOST_LINKS


@given(st.text(alphabet="[]:|#ab工 \n", max_size=80))
def test_no_text_breaks_it(text: str) -> None:
    for link in parse_links(text):
        assert list(parse_links(f"[[{link}]]")) == [link]


def test_hostile_text_ends_quickly() -> None:
    assert parse_links("[[a:" * 50_000) == ()
    assert parse_links("[" * 200_000) == ()


def test_only_facts_link() -> None:
    hits = [fact(1, "x", "[[profile:甲]]"), fact(2, "y", "[[profile:乙]]", kind="message")]
    assert wanted(hits) == (Link("profile", "甲"),)


def test_the_same_owner_comes_first_then_the_chat() -> None:
    hit = fact(1, "家", "[[profile:猫]]", owner="20001")
    theirs, chats, others = fact(2, "猫"), fact(3, "猫", owner=None), fact(4, "猫", owner="20002")
    assert resolve([hit], [others, chats, theirs]).by_fact == {1: (theirs,)}
    assert resolve([hit], [others, chats]).by_fact == {1: (chats,)}
    assert resolve([hit], [others]).by_fact == {1: (others,)}


def test_several_owners_and_none_of_them_near_is_unresolved() -> None:
    hit = fact(1, "家", "[[profile:猫]] [[profile:狗]]")
    found = resolve([hit], [fact(4, "猫", owner="20002"), fact(5, "猫", owner="me")])
    assert found.by_fact == {}
    assert found.unresolved == ("profile:猫", "profile:狗")


def test_one_hop_in_the_order_of_the_text_and_never_to_itself() -> None:
    hit = fact(1, "家", "[[profile:狗]] [[profile:家]] [[profile:猫]] [[profile:无]]")
    again = fact(9, "院", "[[profile:无]]")
    cat, dog = fact(2, "猫", "[[profile:院]]"), fact(3, "狗")
    found = resolve([hit, again], [cat, dog, hit])
    assert found.by_fact == {1: (dog, cat)}
    assert found.unresolved == ("profile:无",)
