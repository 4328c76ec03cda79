"""How far real tokenizers go beyond a budget that the estimate keeps: the figures of `tokens`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.prompt_builder import SystemPromptBuilder
from plugins.nonebot_plugin_nianlun.memory.recalled import Look, choose
from plugins.nonebot_plugin_nianlun.memory.search import Candidate
from plugins.nonebot_plugin_nianlun.memory.tokenizers import counter_for
from plugins.nonebot_plugin_nianlun.memory.tokens import cut_to_tokens, estimate_tokens

O200K, DEEPSEEK = counter_for("gpt-4o"), counter_for("deepseek-chat")
TOKENIZERS = pytest.mark.parametrize("count", [O200K, DEEPSEEK], ids=["o200k", "deepseek"])
WRITTEN, ANYTHING, SHORT = 1.1, 3, 4
"""Headroom: the most that a tokenizer makes of one estimated token, and how much more than
three times its estimate a short text can cost."""

PASSAGES = {
    "chat": """\
#12 10:32 小鹿: 早呀，昨晚睡得怎么样？
#13 10:33 阿岚: 别提了，楼上装修到十一点，我戴着耳塞都能听见电钻😭
#14 10:33 小鹿: 哈哈哈哈哈心疼你
#15 10:35 老周: @阿岚 你可以找物业，他们规定晚上八点以后不准施工的
#16 10:36 阿岚: 好，我下午打电话问问，谢谢周哥🙏""",
    "simplified": """\
昨晚我和大家聊到很晚，小鹿说她对花生过敏，所以周六爬山的零食由她来挑。老周还是不肯早起，\
最后我们约好九点在地铁口集合。阿岚最近在准备考试，看起来很累，我答应帮她整理错题。""",
    "traditional": """\
昨天晚上我們聊了很久，小鹿說她對花生過敏，所以週六爬山的點心由她來挑。老周還是不願意早起，\
最後大家約好九點在捷運站集合。阿嵐最近在準備考試，看起來很累，我答應幫她整理錯題。""",
    "japanese": """\
昨日の夜はみんなと遅くまで話していた。小鹿さんはピーナッツのアレルギーがあるので、土曜日の\
おやつは自分で選ぶと言っていた。試験で疲れているようだったから、私もノートを手伝うことにした。""",
    "korean": """\
어젯밤에는 다 같이 늦게까지 이야기를 나눴다. 작은 사슴은 땅콩 알레르기가 있어서 토요일에 \
먹을 간식은 직접 고르겠다고 했다. 요즘 시험 준비로 피곤해 보여서 내가 도와주기로 했다.""",
    "english": """\
We talked until late last night. Deer told everyone she is allergic to peanuts, so she will \
pick the snacks for Saturday's hike herself. Zhou still refuses to get up early; in the end \
we agreed to meet at the station at nine.""",
    "russian": """\
Вчера вечером мы разговаривали допоздна. Оленёнок рассказала, что у неё аллергия на арахис, \
поэтому еду для субботнего похода она выберет сама. Встречаемся у метро в девять утра.""",
    "arabic": """\
تحدثنا مساء أمس حتى وقت متأخر. قالت الغزالة إنها تعاني من حساسية تجاه الفول السوداني، \
ولذلك ستختار بنفسها الطعام لرحلة يوم السبت. سنلتقي عند المحطة في الساعة التاسعة صباحا.""",
    "hindi": """\
कल रात हम सबने देर तक बातें कीं। हिरणी ने बताया कि उसे मूंगफली से एलर्जी है, इसलिए \
शनिवार की यात्रा के लिए नाश्ता वह खुद चुनेगी। हम सुबह नौ बजे स्टेशन पर मिलेंगे।""",
    "thai": """\
เมื่อคืนเราคุยกันจนดึก กวางน้อยบอกว่าเธอแพ้ถั่วลิสง เธอจึงจะเลือกขนมสำหรับวันเสาร์เอง \
สุดท้ายเราตกลงกันว่าจะเจอกันที่สถานีตอนเก้าโมงเช้า""",
    "greek": """\
Χθες το βράδυ μιλούσαμε μέχρι αργά. Η Ελαφίνα είπε ότι έχει αλλεργία στα φιστίκια, γι' αυτό \
θα διαλέξει η ίδια τα σνακ για το Σάββατο. Θα βρεθούμε στον σταθμό στις εννέα.""",
    "hebrew": """\
אתמול בערב דיברנו עד שעה מאוחרת. איילה סיפרה שהיא אלרגית לבוטנים, ולכן היא תבחר בעצמה את \
החטיפים לטיול של יום שבת. בסוף קבענו להיפגש בתחנה בתשע בבוקר.""",
    "german": """\
Gestern Abend haben wir lange geredet. Reh hat erzählt, dass sie gegen Erdnüsse allergisch \
ist, darum sucht sie den Proviant für die Wanderung am Samstag selbst aus.""",
    "vietnamese": """\
Tối qua chúng tôi nói chuyện đến khuya. Nai kể rằng cô ấy bị dị ứng với đậu phộng, vì vậy \
cô ấy sẽ tự chọn đồ ăn cho chuyến leo núi. Chúng tôi hẹn gặp ở nhà ga lúc chín giờ sáng.""",
}  # fmt: skip
ALPHABETS = [
    "今天我们去爬山吧好的", "龘鱻麤𠮷", "さくらカメラ", "하늘이파랗다뷁", "abcdefghij ",
    "QWxyz09+/", "Привет ", "مرحبا ", "नमस्ते ", "สวัสดี", "བོད་", "😀👨\u200d👩👍🏽", "，。！？…",
    "0123456789", "\n \t", "é\u0301\u0302",
]  # fmt: skip
TEXTS = st.lists(
    st.text(max_size=40) | st.one_of([st.text(st.sampled_from(a), max_size=40) for a in ALPHABETS]),
    max_size=8,
).map("".join)


def built(texts: Sequence[str], budget: int) -> str:
    builder = SystemPromptBuilder()
    builder.add_memory_layer(texts)
    return builder.build(budget)


def recalled(texts: Sequence[str], budget: int) -> str:
    at = datetime(2026, 3, 5, 2, 32, tzinfo=UTC)
    found = [
        Candidate("message", seq, 1.0, at, line, "20001", "小鹿")
        for seq, line in enumerate((line for text in texts for line in text.splitlines()), 1)
    ]
    look = Look(Calendar(ZoneInfo("Asia/Shanghai"), time(4)), {}, "小忆", None)
    return "\n".join(item.text for item in choose(found, {}, look, len(found), budget).items)


@TOKENIZERS
@pytest.mark.parametrize("text", PASSAGES.values(), ids=PASSAGES)
def test_what_people_write_costs_no_more_than_a_tenth_above_its_estimate(
    text: str, count: Callable[[str], int]
) -> None:
    assert count(text) <= WRITTEN * estimate_tokens(text)


@TOKENIZERS
@pytest.mark.parametrize("budget", [60, 150, 400])
def test_a_block_of_what_people_write_is_within_the_budget(
    budget: int, count: Callable[[str], int]
) -> None:
    names = list(PASSAGES)
    for first in range(len(names)):
        texts = [PASSAGES[name] for name in names[first:] + names[:first]]
        for block in (built(texts, budget), recalled(texts, budget)):
            assert block
            assert count(block) <= WRITTEN * budget


@TOKENIZERS
@given(text=TEXTS, budget=st.integers(min_value=0, max_value=200))
def test_a_block_of_anything_is_within_the_budget_with_its_headroom(
    text: str, budget: int, count: Callable[[str], int]
) -> None:
    texts = [text, text]
    for block in (cut_to_tokens(text, budget), built(texts, budget), recalled(texts, budget)):
        assert estimate_tokens(block) <= budget
        assert count(block) <= ANYTHING * estimate_tokens(block) + SHORT
