"""Which texts say the same, in four languages: wording may differ, no detail may."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.duplicates import same_key

SAME = [
    # zh
    ("我对花生过敏", "我对花生过敏。"),
    ("我对花生过敏", "  我对花生过敏！！ "),
    ("我对花生过敏", "我 对 花生\n过敏"),
    ("我对花生过敏", "我对花生过敏啊"),
    ("截止日期推迟到周二", "截止日期推迟到周二啦！"),
    ("用 Python 写代码", "用python写代码"),
    ("会议在14：30开始", "会议在14:30开始"),
    ("喜欢咖啡，加糖", "喜欢咖啡 加糖"),
    ("喜欢咖啡，加糖", "喜欢咖啡加糖"),
    ("他说“好”", "他说「好」"),
    ("买了苹果、香蕉", "买了苹果,香蕉"),
    ("ＡＢＣ公司的项目", "abc公司的项目"),
    ("价格是１００元", "价格是100元"),
    ("我们去北京——上海", "我们去北京—上海"),
    ("不吃香菜", "不吃香菜。"),
    ("他叫小明，住在上海", "他叫小明。住在上海！"),
    # en
    ("Bob said the deadline moved to Tuesday", "bob said the deadline moved to tuesday."),
    ("Bob said the deadline moved to Tuesday", "Bob said  the deadline   moved to Tuesday!"),
    ("Bob said the deadline moved to Tuesday", "Bob said that the deadline moved to Tuesday"),
    ("Bob said the deadline moved to Tuesday", "Bob said deadline moved to Tuesday"),
    ("I don't like cilantro", "I do not like cilantro"),
    ("I don’t like cilantro", "I don't like cilantro"),
    ("I'm allergic to peanuts", "I am allergic to peanuts"),
    ("We can't meet on Friday", "We cannot meet on Friday."),
    ("Likes tea, coffee and cake", "likes tea coffee and cake"),
    ('He said "yes" to the plan', "He said “yes” to the plan"),
    ("Meet at 3.5 km", "meet at 3.5 km…"),
    ("Café in Zürich", unicodedata.normalize("NFD", "café in zürich")),
    ("Moved to Ber\u200blin", "Moved to Berlin"),
    # ja
    ("締め切りは火曜日です", "締め切りは火曜日です。"),
    ("締め切りは火曜日です", "締め切りは火曜日ですよ！"),
    ("ﾄﾏﾄが好きです", "トマトが好きです"),
    ("ガムが好き", "ｶﾞﾑが好き"),
    ("さくらは猫を飼っている", "さくらは、猫を飼っている"),
    # ko
    ("마감은 화요일이에요", "마감은 화요일이에요."),
    ("마감은 화요일이에요", "마감은  화요일이에요!"),
    ("하늘은 커피를 좋아해요", "하늘은, 커피를 좋아해요"),
    ("하늘", unicodedata.normalize("NFD", "하늘")),
    # other
    ("Ивану нравится чай", "ивану нравится чай."),
]

OTHER = [
    # zh
    ("花生过敏", "甲壳类过敏"),
    ("我对花生过敏", "我对花生不过敏"),
    ("周二截止", "周三截止"),
    ("截止日期是周二", "截止日期是下周二"),
    ("不，是周二", "不是周二"),
    ("没，有事", "没有事"),
    ("没 有事", "没有事"),
    ("小明喜欢小红", "小红喜欢小明"),
    ("小明来了", "小名来了"),
    ("我的狗叫多多", "我的狗叫多多多"),
    ("我的猫叫咪啦", "我的猫叫咪"),
    ("住三楼", "住四楼"),
    ("体重是65公斤", "体重是6.5公斤"),
    ("今天-5度", "今天5度"),
    ("三点见", "3点见"),
    ("走3、5号门", "走35号门"),
    ("走3 5号门", "走35号门"),
    ("周二截止", "周二截止？"),
    ("周二截止吧", "周二截止"),
    ("他吃了", "他吃"),
    ("喜欢👍", "喜欢👎"),
    ("她喜欢猫", "他喜欢猫"),
    ("价格100元", "价格100美元"),
    ("涨了5%", "涨了5"),
    ("面积10²", "面积102"),
    ("想去东京", "不想去东京"),
    ("别告诉Bob", "告诉Bob"),
    # en
    ("Deadline is Tuesday", "Deadline is Thursday"),
    ("Bob likes tea", "Rob likes tea"),
    ("Bob likes Carol", "Carol likes Bob"),
    ("I like cilantro", "I don't like cilantro"),
    ("No, dogs are allowed", "No dogs are allowed"),
    ("Meeting at 14:30", "Meeting at 1430"),
    ("Meeting at 2:30 pm", "Meeting at 2:30 am"),
    ("Version 1.2 is out", "Version 12 is out"),
    ("Temperature is -5", "Temperature is 5"),
    ("She will resign", "She will re-sign"),
    ("Writes C++", "Writes C"),
    ("Writes C#", "Writes C++"),
    ("Price under <5", "Price under >5"),
    ("Takes vitamin A", "Takes vitamin"),
    ("Order 1 000", "Order 1000"),
    ("It is his", "It is hers"),
    ("He can swim", "He can't swim"),
    ("Masse", "Maße"),
    ("Bob moved", "Bob moved?"),
    # ja
    ("締め切りは火曜日です", "締め切りは水曜日です"),
    ("トマトが好き", "トマトが嫌い"),
    ("行きます", "行きません"),
    ("はは", "ばば"),
    # ko
    ("마감은 화요일이에요", "마감은 수요일이에요"),
    ("커피를 좋아해요", "커피를 안 좋아해요"),
    ("아버지가 방에", "아버지 가방에"),
    # other
    ("की मदद", "कीमदद"),
    ("！！", "？？"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert same_key(one) == same_key(other) != ""


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_one_detail_makes_another_memory(one: str, other: str) -> None:
    assert same_key(one) != same_key(other)


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\ufeff"])
def test_nothing_has_no_key(blank: str) -> None:
    assert same_key(blank) == ""


@given(st.text(st.characters(), max_size=60))
def test_any_text_has_a_short_key_that_edges_do_not_change(text: str) -> None:
    key = same_key(text)
    assert len(key) in (0, 64)
    assert same_key(f"  {text}\n") == key


@given(st.lists(st.sampled_from("周二三截止不没，。 3.5-ab:?👍"), max_size=12).map("".join))
def test_a_digit_more_is_always_another(text: str) -> None:
    assert same_key(f"{text}甲7") != same_key(f"{text}甲77")
