"""A command from what was typed to its arguments, and what is told of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from nonebot.adapters.onebot.v11 import Message, MessageSegment
from nonebot_plugin_alconna import Args, MultiVar, Option
import pytest

from plugins.nonebot_plugin_nianlun.commands.command import Asked, Command, rest_of_line
from plugins.nonebot_plugin_nianlun.commands.gate import SEPARATORS
from plugins.nonebot_plugin_nianlun.commands.tree import Tree, command_head
from plugins.nonebot_plugin_nianlun.commands.typed import says_something, take_apart, typed_text


async def serve(asked: Asked) -> str:
    raise NotImplementedError


COMMANDS = (
    Command("帮助", "read", "说明", serve, (Args["指令;?", str],)),
    Command("今天", "read", "今天的事", serve, group="看"),
    Command("日期", "read", "那一天", serve, (Args["日期", MultiVar(str)],), usage="2026-01-05"),
    Command(
        "搜索",
        "read",
        "找",
        serve,
        (Args["词", str]["说话人;?", str]["时间;?", str],),
        example="爬山 小鹿",
        usage="词 [说话人] [时间]",
    ),
    Command(
        "改", "govern", "改写", serve, (Args["日期", str], rest_of_line("新文")), usage="日期 新文"
    ),
    Command("还原", "govern", "还", serve, (Args["日期", str]["版本", int],), usage="日期 版本号"),
    Command("对比", "govern", "比", serve, (Args["日期", str]["旧版;?", int]["新版;?", int],)),
    Command("预览", "govern", "看", serve, (rest_of_line("话", optional=True),), usage="[话]"),
    Command("忘", "own", "忘", serve, (Args["码;?", "re:[0-9]{6}"],), (Option("-a"),)),
    Command("关", "owner", "关", serve),
)


TREE = Tree(COMMANDS, {"/"})


@pytest.fixture
def tree() -> Tree:
    return TREE


@pytest.mark.parametrize(
    ("typed", "verb", "arguments"),
    [
        ("", "帮助", {}),
        ("帮助 搜索", "帮助", {"指令": "搜索"}),
        ("今天", "今天", {}),
        ("今天 爬山", "今天", None),
        ('今天 ""', "今天", None),
        ("今天 '", "今天", None),
        ("搜索", "搜索", None),
        ("搜索 爬山 今天", "搜索", {"词": "爬山", "说话人": "今天"}),
        ("搜索 帮助 今天 搜索", "搜索", {"词": "帮助", "说话人": "今天", "时间": "搜索"}),
        ("搜索 \"爬 山\" '小 鹿'", "搜索", {"词": "爬 山", "说话人": "小 鹿"}),
        ('搜索 "爬山 小鹿', "搜索", {"词": '"爬山', "说话人": "小鹿"}),
        ("搜索 “爬 山” ‘小 鹿’", "搜索", {"词": "爬 山", "说话人": "小 鹿"}),
        ("搜索 「爬 山」 『小 鹿』", "搜索", {"词": "爬 山", "说话人": "小 鹿"}),
        ("搜索 ”它's 山“ “小鹿”", "搜索", {"词": "它's 山", "说话人": "小鹿"}),
        ("搜索 他说“爬 山”", "搜索", {"词": "他说“爬", "说话人": "山”"}),
        ("搜索 “爬 山", "搜索", {"词": "“爬", "说话人": "山"}),
        ("搜索 “”", "搜索", None),
        ("改 2026 “新 文” ‘", "改", {"日期": "2026", "新文": "“新 文” ‘"}),
        ("搜索 1 2 3 4", "搜索", None),
        ("搜索 豆包 前天 上午", "搜索", {"词": "豆包", "说话人": "前天上午"}),
        (
            "搜索 豆包 小鹿 11 月 28 日",
            "搜索",
            {"词": "豆包", "说话人": "小鹿", "时间": "11月 28日"},
        ),
        ("搜索 前天 上午", "搜索", {"词": "前天上午"}),
        ("搜索 豆包 last week", "搜索", {"词": "豆包", "说话人": "last week"}),
        ('搜索 "豆包 前天 上午" 小鹿', "搜索", {"词": "豆包 前天 上午", "说话人": "小鹿"}),
        ("搜索 “前天 上午” 小鹿", "搜索", {"词": "前天 上午", "说话人": "小鹿"}),
        ("搜索 的 昨天", "搜索", {"词": "的", "说话人": "昨天"}),
        ("改 前天 上午 火锅", "改", {"日期": "前天", "新文": "上午 火锅"}),
        ("改 2026-01-05 上午 火锅", "改", {"日期": "2026-01-05", "新文": "上午 火锅"}),
        ("改 今年 三月 搬家", "改", {"日期": "今年", "新文": "三月 搬家"}),
        ("改 去年 夏天 很热", "改", {"日期": "去年", "新文": "夏天 很热"}),
        ("改 今天 的 事情很多", "改", {"日期": "今天", "新文": "的 事情很多"}),
        ("改 昨天 那 件事", "改", {"日期": "昨天", "新文": "那 件事"}),
        ("改 11 月 28 日 上午 火锅", "改", {"日期": "11月 28日", "新文": "上午 火锅"}),
        ("改 11 月 28 日 的 事", "改", {"日期": "11月 28日", "新文": "的 事"}),
        ("改 １１ 月 28 日 周六 火锅", "改", {"日期": "11月 28日", "新文": "周六 火锅"}),
        ("改 11 月 28 人去爬山", "改", {"日期": "11月", "新文": "28 人去爬山"}),
        ("改 2026 年 11 月 很忙", "改", {"日期": "2026年 11月", "新文": "很忙"}),
        ("改 2026 年11月 很忙", "改", {"日期": "2026年11月", "新文": "很忙"}),
        ("改 ２０２６ 年 11 月 很忙", "改", {"日期": "2026年 11月", "新文": "很忙"}),
        ("改 2026 年 夏天 很热", "改", {"日期": "2026年", "新文": "夏天 很热"}),
        ("改 2026 年底 很忙", "改", {"日期": "2026", "新文": "年底 很忙"}),
        ("改 上 个 月 很忙", "改", {"日期": "上个月", "新文": "很忙"}),
        ("改 11月 28日 火锅", "改", {"日期": "11月 28日", "新文": "火锅"}),
        ("改 2026年 11月 28日 火锅", "改", {"日期": "2026年 11月 28日", "新文": "火锅"}),
        ("改 去年 11 月 28 日 火锅", "改", {"日期": "去年 11月 28日", "新文": "火锅"}),
        ("改 11 月 28 日晚上 火锅", "改", {"日期": "11", "新文": "月 28 日晚上 火锅"}),
        ("改 2026年 夏天 很热", "改", {"日期": "2026年", "新文": "夏天 很热"}),
        ("还原 上 个 月 2", "还原", {"日期": "上个月", "版本": 2}),
        ("还原 去年 十一月 2", "还原", {"日期": "去年十一月", "版本": 2}),
        ("还原 11 月 2", "还原", None),
        ("还原 11 月 ２８", "还原", None),
        ("还原 去年 11 月 2", "还原", None),
        ("还原 2026 年 11", "还原", None),
        ("还原 11月 2", "还原", {"日期": "11月", "版本": 2}),
        ("还原 11 月 28 日 2", "还原", {"日期": "11月 28日", "版本": 2}),
        ("对比 11 月 1 2", "对比", None),
        ("对比 2026 年 11 月 2", "对比", None),
        ("对比 11 月", "对比", {"日期": "11月"}),
        ("改 昨天 上午大家去爬山", "改", {"日期": "昨天", "新文": "上午大家去爬山"}),
        ("改 昨天\n上午 去爬山", "改", {"日期": "昨天", "新文": "上午 去爬山"}),
        ("改 2026-01-05 28 人去爬山", "改", {"日期": "2026-01-05", "新文": "28 人去爬山"}),
        ("改 11 月 28 日 新  文", "改", {"日期": "11月 28日", "新文": "新  文"}),
        ("改 “11 月 28 日” “新 文”", "改", {"日期": "11 月 28 日", "新文": "“新 文”"}),
        ('改 "昨天 上午" 新文', "改", {"日期": "昨天 上午", "新文": "新文"}),
        ("改 \u2028昨天 上午 火锅", "改", {"日期": "昨天", "新文": "上午 火锅"}),
        ("改 昨天 上午", "改", None),
        ("改 今年 十一月", "改", None),
        ("改 11 月 28 日 上午", "改", None),
        ("搜索　爬山\n小鹿\u00a0昨天", "搜索", {"词": "爬山", "说话人": "小鹿", "时间": "昨天"}),
        ("改 2026-01-05", "改", None),
        (
            "改 2026-01-05  a  \"b\nc ' d\\\\ ",
            "改",
            {"日期": "2026-01-05", "新文": "a  \"b\nc ' d\\\\"},
        ),
        ("预览", "预览", {}),
        ("预览 --help", "预览", {"话": "--help"}),
        ("忘 -a 123456", "忘", {"a": True, "码": "123456"}),
        ("忘 123456 -a", "忘", {"a": True, "码": "123456"}),
        ("忘 １２３４５６", "忘", None),
        ("忘 --shortcut x 今天", "忘", None),
        ("help", "帮助", {}),
        ("-h", "帮助", {}),
        ("HELP 搜索", "帮助", {"指令": "搜索"}),
        ("搜索 help", "搜索", {"词": "help"}),
        ("\u200b", "帮助", {}),
        ("今天 \u200b", "今天", {}),
        ("搜索 \u3164", "搜索", None),
        ('搜索 ""', "搜索", None),
        ('搜索 爬山 "\u200b"', "搜索", None),
        ("改 2026 \u200b\u2060", "改", None),
        ("预览 \u200b", "预览", {}),
        ("预览 \u200b 好", "预览", {"话": "\u200b 好"}),
        ("2026-01-05", "日期", {"日期": ("2026-01-05",)}),
        ("去年 7月21日", "日期", {"日期": ("去年", "7月21日")}),
        ("-- x", "日期", {"日期": ("--", "x")}),
    ],
)
def test_what_is_typed_is_read(
    tree: Tree, typed: str, verb: str, arguments: dict[str, object] | None
) -> None:
    request = tree.read(f"/记忆 {typed}")
    assert (request.command.verb, request.arguments) == (verb, arguments)
    assert request.about == ()


@pytest.mark.parametrize(
    ("whole", "verb"),
    [
        ("/记忆今天", "今天"),
        ("/NianLun今天", "今天"),
        ("／nianlun HELP", "帮助"),
        ("/nianlun", "帮助"),
        ("／记忆", "帮助"),
    ],
)
def test_a_head_is_read_however_it_is_written(tree: Tree, whole: str, verb: str) -> None:
    request = tree.read(whole)
    assert (request.command.verb, request.arguments) == (verb, {})


def test_a_verb_with_something_stuck_to_it_is_not_taken_for_a_bare_head(tree: Tree) -> None:
    request = tree.read("/记忆今天[表情]")
    assert (request.command.verb, request.arguments) == ("日期", {"日期": ("/记忆今天[表情]",)})


def test_a_time_and_what_is_asked_of_help_may_follow_the_head_at_once(tree: Tree) -> None:
    assert tree.read("/记忆去年 7月21日").arguments == {"日期": ("去年", "7月21日")}
    assert tree.read("/记忆help 搜索").arguments == {"指令": "搜索"}


@pytest.mark.parametrize(
    ("typed", "verb", "about"),
    [
        ("今天 -g 123", "今天", (("group", "123"),)),
        ("-u 20001 今天", "今天", (("private", "20001"),)),
        ("搜索 -g 10001/group:5 爬山", "搜索", (("group", "10001/group:5"),)),
        ("-g 123 改 -u 5 2026 文 -g 7", "改", (("group", "7"), ("group", "123"), ("private", "5"))),
        ("改 2026 文 -g 7 字", "改", ()),
        ("-g", "日期", ()),
        ("-g 5", "帮助", (("group", "5"),)),
    ],
)
def test_another_chat_is_named_anywhere(
    tree: Tree, typed: str, verb: str, about: tuple[tuple[str, str], ...]
) -> None:
    request = tree.read(f"/记忆 {typed}")
    assert (request.command.verb, request.about) == (verb, about)


@settings(max_examples=60)
@given(text=st.text(min_size=1), spaces=st.text(alphabet=SEPARATORS, min_size=1, max_size=3))
def test_free_text_loses_nothing(text: str, spaces: str) -> None:
    body = text.strip(SEPARATORS)
    words = body.split()
    typed = take_apart(f"{spaces}说{spaces}{text}{spaces}", {"说": 0})
    if not says_something(body):
        assert (typed.words, typed.rest) == (("说",), "")
    elif not {"-g", "-u"} & set(words):
        assert (typed.words, typed.rest, typed.about) == (("说",), body, ())


@settings(max_examples=60)
@given(
    st.sampled_from(["", *TREE.commands]),
    st.text(alphabet="搜索改今天-gua\"'“”「」 \n\\\u3000{}$1２", max_size=60),
)
def test_nothing_that_is_typed_breaks_the_reading(verb: str, text: str) -> None:
    request = TREE.read(f"/记忆 {verb} {text}")
    assert request.command in COMMANDS


def test_what_is_no_text_is_told_in_words() -> None:
    message = Message("/记忆 说 ") + MessageSegment.at(20001) + MessageSegment.image("a.jpg")
    message += MessageSegment.text("a\0b\ud800") + MessageSegment.at(10001)
    assert typed_text(message, "10001") == "/记忆 说  @20001 [图片]ab\ufffd"


def test_the_help_names_every_command_and_marks_what_not_all_may(tree: Tree) -> None:
    lines = tree.help_text({"read", "own"}).splitlines()
    assert lines[:-1] == [
        "/记忆 帮助  说明",
        "【看】",
        "/记忆 今天  今天的事",
        "/记忆 2026-01-05  那一天",
        "/记忆 搜索 词 [说话人] [时间]  找",
        "/记忆 改 日期 新文  改写〔管理〕",
        "/记忆 还原 日期 版本号  还〔管理〕",
        "/记忆 对比  比〔管理〕",
        "/记忆 预览 [话]  看〔管理〕",
        "/记忆 忘  忘",
        "/记忆 关  关〔主人〕",
    ]
    assert "〔大家〕" in tree.help_text({"own"})
    assert "〔" not in tree.help_text({"read", "own", "govern", "owner"}).splitlines()[-3]


def test_the_help_breaks_a_long_line_before_the_meaning() -> None:
    long = Command("版本", "govern", "一天、一月、一年的记忆改过几版", serve, usage="日期 [版本号]")
    tree = Tree([long], {"/"})
    lines = ["/记忆 版本 日期 [版本号]", "　一天、一月、一年的记忆改过几版〔管理〕"]
    assert tree.help_text({"own"}).splitlines()[:2] == lines
    assert tree.help_on(long).splitlines() == lines


def test_wrong_usage_shows_the_right_one(tree: Tree) -> None:
    assert tree.wrong_usage(tree.commands["搜索"]).splitlines() == [
        "没看懂这条指令，可以这样写：",
        "/记忆 搜索 词 [说话人] [时间]",
        "例如：/记忆 搜索 爬山 小鹿",
    ]
    assert "/记忆 搜索" in tree.unknown("搜所")


@pytest.mark.parametrize(
    ("starts", "head"), [({"/"}, "/记忆"), ({"", "/"}, "/记忆"), ({"!"}, "!记忆"), (set(), "记忆")]
)
def test_a_command_begins_as_it_is_shown(starts: set[str], head: str) -> None:
    assert command_head(starts) == head
