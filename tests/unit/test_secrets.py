"""Keys, passwords and numbers of people do not get into notes and facts; other numbers do."""

from __future__ import annotations

from datetime import UTC, datetime, time
from time import perf_counter
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
import pytest

from plugins.nonebot_plugin_nianlun.errors import NoteRejected
from plugins.nonebot_plugin_nianlun.memory.calendar import Calendar
from plugins.nonebot_plugin_nianlun.memory.diary import moment_cut, moment_text
from plugins.nonebot_plugin_nianlun.memory.evidence import unsupported
from plugins.nonebot_plugin_nianlun.memory.fact_items import fact_item, read_facts
from plugins.nonebot_plugin_nianlun.memory.notes import check_note
from plugins.nonebot_plugin_nianlun.memory.secrets import mask_secrets
from plugins.nonebot_plugin_nianlun.memory.submissions import TooLong, read_activity
from plugins.nonebot_plugin_nianlun.memory.units import count_units
from plugins.nonebot_plugin_nianlun.types import UNIT_LIMITS, Message

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"

MASKED = [
    ("我的手机是13812345678。", "我的手机是[手机号]。"),
    ("打138 1234 5678", "打[手机号]"),
    ("打138-1234-5678吧", "打[手机号]吧"),
    ("打138-123-45678吧", "打[手机号]吧"),
    ("+8613812345678", "[手机号]"),
    ("+86 138-1234-5678", "[手机号]"),
    ("0086-19912345678", "[手机号]"),
    ("8613812345678", "[手机号]"),
    ("１３８１２３４５６７８", "[手机号]"),
    ("138\u200b1234\u200b5678", "[手机号]"),
    ("tel13812345678", "tel[手机号]"),
    ("vx13812345678可加", "vx[手机号]可加"),
    ("13812345678@163.com", "[手机号]@163.com"),
    ("13812345678，13912345679", "[手机号]，[手机号]"),
    ("13812345678/13912345679", "[手机号]/[手机号]"),
    ("QQ群主的电话13812345678", "QQ群主的电话[手机号]"),
    ("身份证11010519491231002X", "身份证[身份证号]"),
    ("身份证11010519491231002x号", "身份证[身份证号]号"),
    ("440524188001010014", "[身份证号]"),
    ("110105 19491231 002X", "[身份证号]"),
    ("110105-1949-12-31-002X", "[身份证号]"),
    ("１１０１０５１９４９１２３１００２Ｘ", "[身份证号]"),
    ("编号11010519491231002X", "编号[身份证号]"),
    ("卡号4111111111111111", "卡号[银行卡号]"),
    ("卡号 4111 1111 1111 1111 。", "卡号 [银行卡号] 。"),
    ("4111 1111 1111 1111 5 张", "[银行卡号] 5 张"),
    ("4111-1111-1111-1111", "[银行卡号]"),
    ("5555555555554444", "[银行卡号]"),
    ("银联6200000000000005", "银联[银行卡号]"),
    ("6200000000000000000", "[银行卡号]"),
    ("620550 0000000000004", "[银行卡号]"),
    ("3566002020360505", "[银行卡号]"),
    ("２２２３００３１２２００３２２２", "[银行卡号]"),
    ("密码是hunter2，别告诉别人", "密码是[密码]，别告诉别人"),
    ("密码：abcd", "密码：[密码]"),
    ("密码为「Pa$$w0rd」", "密码为「[密码]」"),
    ("密码改成 qwerty!", "密码改成 [密码]!"),
    ("密码改为:1234", "密码改为:[密码]"),
    ("wifi密码12345678", "wifi密码[密码]"),
    ("WiFi 密码 abc12345。", "WiFi 密码 [密码]。"),
    ("口令是 open-sesame", "口令是 [密码]"),
    ("My password is hunter22.", "My password is [密码]."),
    ("password: correcthorse", "password: [密码]"),
    ("pwd=abc123,user=me", "pwd=[密码]"),
    ("密码是13812345678", "密码是[密码]"),
    ("密码是sk-abcDEF1234567890abcd", "密码是[密钥]"),
    ("sk-abcDEF1234567890abcd", "[密钥]"),
    ("用sk-proj-abc_DEF-1234567890好了", "用[密钥]好了"),
    ("AKIAIOSFODNN7EXAMPLE", "[密钥]"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[密钥]"),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[密钥]"),
    ("glpat-abcDEF1234567890abcd", "[密钥]"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstu", "[密钥]"),
    ("xoxb-123456789012-abcdef", "[密钥]"),
    ("LTAI4FoLmvQ9urWXgSRpDvh1", "[密钥]"),
    (f"Authorization: Bearer {JWT}", "Authorization: Bearer [密钥]"),
    (JWT, "[密钥]"),
    (f"贴一下{PEM}完", "贴一下[密钥]完"),
    (PEM[:50], "[密钥]"),
    ("密钥是abcdEFGH12345678ijkl", "密钥是[密钥]"),
    ("密钥abcdEFGH12345678ijkl", "密钥[密钥]"),
    ('api_key="Zx81kd92mfA0pQ7711"', 'api_key="[密钥]"'),
    ('{"access_token": "Zx81kd92mfA0pQ7711"}', '{"access_token": "[密钥]"}'),
    ("token 550e8400-e29b-41d4-a716-446655440000", "token [密钥]"),
    ("令牌：Zx81kd92mfA0pQ77/1+a==", "令牌：[密钥]"),
    ("the secret is a1b2c3d4e5f6a7b8c9", "the secret is [密钥]"),
]

KEPT = [
    "",
    "昨天一起看了电影，很开心。",
    "QQ 13812345678",
    "QQ号是13812345678",
    "群号：13812345678",
    "订单号13812345678",
    "运单号 13812345678",
    "我QQ是1234567890",
    "123456789@qq.com",
    "someone@example.com",
    "消息 1387654321 和 #12",
    "（关键消息：[1,3,12]）",
    "&3 写的",
    "消息id 7012345678901234567",
    "7012345678901234567",
    "1234567890123",
    "1700000000",
    "订单号4111111111111111",
    "流水号6200000000000005",
    "4111111111111112",
    "6200000000000006",
    "1234567812345670",
    "110105194912310021",
    "110105194913310026",
    "2026-11-29 12:30:00",
    "2026年11月29日",
    "12345678901",
    "12812345678",
    "1381234567",
    "138123456789",
    "3.13812345678",
    "13812345678.5",
    "￥1,299.00",
    "价格1388元，第13812页",
    "010-12345678",
    "密码是我的生日",
    "密码忘了",
    "密码错误3次",
    "密码是6-16位",
    "密码 2026-11-29 改过",
    "密码学很有意思",
    "password reset on Friday",
    "the password is wrong",
    "key 很短 abc123",
    "token 数 123456789012345678",
    "token 用了 12345 个",
    "keyboard1234567890abcdef",
    "monkey business as usual indeed",
    "task-management-is-very-long-123",
    "sk-learn",
    "sk-learn-based-classification",
    "https://example.com/a1b2c3d4e5f6a7b8c9",
    "eyJ 开头",
    "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "Python3.11 和 3.14",
    "\u202e\x00\ud800\u2028",
]


@pytest.mark.parametrize(("said", "kept"), MASKED)
def test_a_secret(said: str, kept: str) -> None:
    assert mask_secrets(said) == kept


@pytest.mark.parametrize("said", KEPT)
def test_no_secret(said: str) -> None:
    assert mask_secrets(said) == said


_PIECES = st.one_of(
    st.text(max_size=6),
    st.sampled_from([said for said, _ in MASKED]),
    st.sampled_from([kept for _, kept in MASKED]),
    st.sampled_from(KEPT),
    st.from_regex(r"\A[0-9]{1,22}\Z"),
    st.from_regex(r"\A[A-Za-z0-9_\-.=]{1,40}\Z"),
    st.sampled_from(
        ["密码", "密钥", "[", "]", "是", "：", "key", "token", " ", "\n", "QQ", "1", "x"]
    ),
)


@given(st.lists(_PIECES, max_size=8).map("".join))
def test_masking_again_changes_nothing_and_a_text_only_gets_shorter(text: str) -> None:
    masked = mask_secrets(text)
    assert mask_secrets(masked) == masked
    assert len(masked) <= len(text)


@given(st.text(alphabet=st.characters(min_codepoint=0x80, max_codepoint=0xFEFF)))
def test_what_has_neither_letters_nor_digits_of_ascii_stays(text: str) -> None:
    assert mask_secrets(text) == text


@given(st.integers(10**10, 10**19), st.sampled_from(["QQ", "订单号", "单号：", "群 "]))
def test_what_is_called_an_ordinary_number_stays(number: int, called: str) -> None:
    said = f"{called}{number}"
    masked = mask_secrets(said)
    assert masked in (said, f"{called}[身份证号]")


@pytest.mark.parametrize(
    "text",
    [
        "1" * 50_000,
        "1 " * 25_000,
        "密码" * 20_000,
        "eyJa." * 10_000,
        "key " * 20_000,
        "sk-" * 30_000,
        "password" * 12_000,
    ],
)
def test_a_huge_text_takes_no_time_to_speak_of(text: str) -> None:
    begun = perf_counter()
    assert len(mask_secrets(text)) <= len(text)
    assert perf_counter() - begun < 5  # what is quadratic takes a quarter of a minute


def test_no_way_into_memory_lets_one_through() -> None:
    said, kept = "小明说他的手机是13812345678。", "小明说他的手机是[手机号]。"
    assert check_note("activity", said, ()) == (kept, ())
    assert check_note("year", f"{said}（关键消息：[3]）", {3})[1] == (3,)
    assert moment_text(said) == kept
    assert moment_cut(said) == kept
    assert fact_item("profile", "手机13812345678", said).content == kept
    assert fact_item("profile", "手机13812345678", said).name == "手机[手机号]"
    listed = [{"category": "profile", "name": "手机", "content": said, "from": 1}]
    facts, _ = read_facts(listed, {1})
    assert [fact.content for fact in facts] == [kept]


def test_a_quote_with_a_mask_is_still_one_of_the_message() -> None:
    calendar = Calendar(ZoneInfo("Asia/Shanghai"), time(4))
    said = Message(1, datetime(2026, 11, 29, tzinfo=UTC), "20001", "小明", "我的手机是13812345678")
    assert unsupported("小明说「我的手机是[手机号]」。", [said], calendar) == []
    assert unsupported("小明说「你的手机是[手机号]」。", [said], calendar) != []


def test_a_note_that_masks_make_too_long_can_still_be_cut() -> None:
    numbers = "、".join(["13812345678"] * 60)
    said = f"他们说了{numbers}。"
    assert count_units(said) <= UNIT_LIMITS["activity"] < count_units(mask_secrets(said))
    with pytest.raises(NoteRejected):
        check_note("activity", said, ())
    with pytest.raises(TooLong) as caught:
        read_activity({"action": "add_activity", "memory": said}, (), "2026-11-29")
    note = caught.value.shortened.note
    assert note is not None
    assert "13812345678" not in note.text
    assert count_units(note.text) <= UNIT_LIMITS["activity"]
