"""Names: none that stands in a question is overlooked, among however many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plugins.nonebot_plugin_nianlun.memory.people import People, forms
from plugins.nonebot_plugin_nianlun.memory.terms import fold
from plugins.nonebot_plugin_nianlun.types import ME

NAMES = st.text(
    st.sampled_from("小鹿阿川ABab1 -_【】[]()《》ßﬁＡ\n\u200b👍🏻か") | st.characters(codec=None),
    max_size=12,
)


@given(st.lists(NAMES, max_size=12), st.lists(NAMES, max_size=5))
def test_every_name_that_stands_there_is_found(names: list[str], said: list[str]) -> None:
    people = People({name: [str(number)] for number, name in enumerate(names)})
    words = fold("".join([*said, *names[:2]]))
    standing = {
        name
        for name in names
        for form in (forms(name)[0], *forms(name)[1])
        if form and form in words
    }
    assert standing <= people.within(words)


def test_of_many_names_few_are_looked_at() -> None:
    people = People({f"{chr(0x4E00 + number)}同学": [str(number)] for number in range(5_000)})
    people.add("小鹿", ["20001"])
    people.add("【群主】小鹿-上海", ["20001"])
    assert people.within("小鹿养了什么猫") >= {"小鹿", "【群主】小鹿-上海"}
    assert len(people.within("小鹿养了什么猫")) < 10


def test_whoever_bears_a_name_is_added_to_it() -> None:
    people = People({"阿宁": ["4"]})
    people.add("阿宁", ["5"])
    people.add("小忆", [ME])
    assert set(people.names) == {"小忆", "阿宁"}
    assert people.bearers("阿宁") == {"4", "5"}
    assert people.bearers("谁") == set()
    assert (people.user_ids, people.own) == ({"4", "5", ME}, {"小忆"})


def test_those_of_two_chats_together() -> None:
    here, there = People({"阿宁": ["4"], "小忆": [ME]}), People({"阿宁": ["5"], "阿川": ["6"]})
    both = here.joined(there)
    assert both.bearers("阿宁") == {"4", "5"}
    assert both.within("小忆和阿川") == {"小忆", "阿川", "阿宁"}
    assert (both.user_ids, both.own) == ({"4", "5", "6", ME}, {"小忆"})
    there.add("年轮", [ME])
    assert set(both.names) == {"小忆", "年轮", "阿宁", "阿川"}
    assert both.own == {"小忆", "年轮"}
    assert (here.bearers("阿宁"), there.bearers("阿宁")) == ({"4"}, {"5"})
