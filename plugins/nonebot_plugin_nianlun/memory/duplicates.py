"""When two memories say the same: their keys are equal.

The key of a text is what is left of it when nothing counts that cannot change what it says:
case, full and half width, composition, invisible marks, spaces beside Han and kana and more than
one of them elsewhere, sentence punctuation, `the`, the `that` after a verb of saying, written-out
or contracted English (`don't`, `I'm`), and Chinese or Japanese particles of tone at the end of a
clause. Everything else stays and tells two texts apart: every other word and its place, numbers
with their signs, points and colons, symbols, emoji and question marks, and a pause beside a
negation (「不，是周二」 is not 「不是周二」). So what differs in one detail is never a duplicate.
"""

from __future__ import annotations

from hashlib import sha256
import re
import unicodedata

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF]
)
_DENSE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Han and kana: written without spaces between words."""
_WORD = rf"[^\W{_DENSE}]"
_PIECE = re.compile(
    # A mark between two digits, or an inner one of a word, is part of it: 3.5, 14:30, re-sign.
    rf"(?P<word>(?:(?<!{_WORD})[-+.](?=\d))?{_WORD}+(?:(?:(?<=\d)[^\w\s](?=\d)|[.'\-/:@&+#]){_WORD}+)*)"
    rf"|(?P<dense>[{_DENSE}])"
    r"|(?P<space>\s+)"
    r"|(?P<pause>[-.,;:!…—–~\"'“”‘’「」『』()\[\]{}《》〈〉【】〔〕、。·・]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_CONTRACTED = (
    (re.compile(r"\b(?:can't|cannot)\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"(?<=[a-z])n't\b"), " not"),
    (re.compile(r"(?<=\bi)'m\b"), " am"),
    (re.compile(r"(?<=[a-z])'re\b"), " are"),
    (re.compile(r"(?<=[a-z])'ve\b"), " have"),
    (re.compile(r"(?<=[a-z])'ll\b"), " will"),
    (re.compile(r"\b(said|says|mentioned|promised|thinks) that (?=\w)"), r"\1 "),
    (re.compile(r"\bthe (?=\w)"), ""),
)
_TONE = (
    # Not of a name: 我的猫叫咪啦.
    re.compile(r"(?<=[\u4e00-\u9fff]{2})(?<![叫名姓].)(?<![叫名姓]..)[啊呀哦喔啦哟]+(?=$|[^\w])"),
    re.compile(r"(?<=です|ます|した)(?:よね|よ|ね)(?=$|[^\w])"),
)
_NEGATIONS = frozenset("不没沒無无别別非勿未莫否") | {
    *("no", "not", "never", "none", "nor", "neither", "without", "yes"),
    *("아니", "아니요", "안", "못"),
}
_PAUSE = "|"


def same_key(text: str) -> str:
    """What two texts that say the same have in common: 64 characters, none for a blank text."""
    said = _plain(text)
    for pattern, written_out in _CONTRACTED:
        said = pattern.sub(written_out, said)
    for pattern in _TONE:
        said = pattern.sub("", said)
    # Of punctuation alone nothing would be left.
    content = _without_pauses(said) or said
    return sha256(content.encode("utf-8", "replace")).hexdigest() if content else ""


def _plain(text: str) -> str:
    """Without differences of case, width and composition, and without what cannot be seen."""
    narrow = "".join(
        unicodedata.normalize("NFKC", c) if unicodedata.east_asian_width(c) in "FH" else c
        for c in text
    )
    said = unicodedata.normalize("NFC", narrow).lower().translate(_INVISIBLE)
    return said.replace("’", "'").strip()


def _without_pauses(said: str) -> str:
    kept: list[str] = []
    before = ""
    was_dense = True
    gap = pause = False
    for found in _PIECE.finditer(said):
        kind, piece = found.lastgroup, found[0]
        if kind in ("space", "pause"):
            gap, pause = True, pause or kind == "pause"
            continue
        dense = was_dense or kind == "dense"
        if gap and kept:
            # A space beside Han is as often a comma as not.
            if (pause or dense) and not _NEGATIONS.isdisjoint((before, piece)):
                kept.append(_PAUSE)
            elif not dense:
                kept.append(" ")
        kept.append(piece)
        before, was_dense, gap, pause = piece, kind == "dense", False, False
    return "".join(kept)
