"""What must not be kept in a note or a fact: keys, passwords, and numbers that identify people.

Each is replaced by what it was, in brackets: `[密钥]`, `[密码]`, `[手机号]`, `[身份证号]`,
`[银行卡号]`. This is done where notes, facts and diary moments are checked, whoever wrote them.
Messages stay as they were said: they are the record, and leave it by being withdrawn or forgotten.

- A number counts by its form and check digit, not by its length alone: QQ numbers, message ids,
  dates, prices and order numbers stay, and so does what is called one of these where it stands.
- E-mail addresses stay: they are given in order to be written to.
- A password counts when it is called one and is written in ASCII; 密码是我生日 gives none away.
- A key of no known form counts when it is called a key and mixes letters and digits.
"""

from __future__ import annotations

from collections.abc import Callable
import re
from typing import NamedTuple

_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: " "}
"""Full-width signs as ASCII, one for one, so that places in the text stay the same."""
_T = r"[A-Za-z0-9_\-]"
_NOT_IN_A_WORD = r"(?<![A-Za-z0-9_])"
_KNOWN_KEY = re.compile(
    r"(?P<secret>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
    rf"|{_NOT_IN_A_WORD}(?:eyJ{_T}{{8,500}}\.{_T}{{8,}}(?:\.{_T}*)?"
    rf"|sk-(?=[A-Za-z_\-]{{0,64}}[0-9]){_T}{{16,}}|gh[oprsu]_[A-Za-z0-9]{{20,}}"
    rf"|github_pat_[A-Za-z0-9_]{{20,}}|glpat-{_T}{{16,}}|AIza{_T}{{30,}}|xox[a-z]-{_T}{{10,}}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|(?:LTAI|AKID)[A-Za-z0-9]{12,}))",
    re.DOTALL,
)
_OPENING = r"\"'“”‘’「『`(【\["
_CALLED_KEY = re.compile(
    r"(?:密钥|秘钥|私钥|令牌|(?:token|secret|key|authorization|bearer)(?![A-Za-z0-9_\-]))"
    rf"(?:[\s是为:={_OPENING}]|is\b|bearer\b){{0,12}}"
    r"(?P<secret>(?=[A-Za-z_\-+/]{0,64}[0-9])(?=[0-9_\-+/]{0,64}[A-Za-z])[A-Za-z0-9_\-+/]{16,}={0,2})",
    re.IGNORECASE,
)
_PASSWORD = r"(?:密码|口令|password|passwd|passcode|pwd)"
_LAST_OF_IT = r"[!-~](?<![,.;:!?\"'`()\[\]{}<>])"
_PASSWORD_IS = re.compile(
    rf"{_PASSWORD}\s*(?:[是为:=]|[改设][成为]){{1,3}}\s*[{_OPENING}]*"
    rf"(?![0-9]{{1,2}}[-~][0-9]{{1,2}}[位个])(?P<secret>[!-~]{{3,}}{_LAST_OF_IT})",
    re.IGNORECASE,
)
_PASSWORD_BESIDE = re.compile(
    rf"{_PASSWORD}\s*(?:is\b\s*)?[{_OPENING}]*(?![0-9]{{4}}[-/.][0-9]{{1,2}}[-/.])"
    rf"(?P<secret>(?=[!-/:-~]{{0,64}}[0-9])[A-Za-z0-9][!-~]{{4,}}{_LAST_OF_IT})",
    re.IGNORECASE,
)
_GAP = r"[ \-–\u200b-\u200d\u2060]?"
_BEFORE = r"(?<![0-9A-Za-z_#&])(?<![0-9]\.)"
_BEHIND = r"(?![0-9A-Za-z_]|\.[0-9])"
_PHONE = re.compile(
    rf"(?:{_BEFORE}|(?<=tel)|(?<=phone)|(?<=mobile)|(?<=vx)|(?<=wx))"
    rf"(?P<secret>(?:(?:\+|00)?86{_GAP})?1[3-9][0-9]"
    rf"(?:{_GAP}[0-9]{{4}}{_GAP}[0-9]{{4}}|{_GAP}[0-9]{{3}}{_GAP}[0-9]{{5}})){_BEHIND}",
    re.IGNORECASE,
)
_ID_NUMBER = re.compile(
    rf"{_BEFORE}(?P<secret>[1-9][0-9]{{5}}{_GAP}(?:18|19|20)[0-9]{{2}}{_GAP}"
    rf"(?:0[1-9]|1[0-2]){_GAP}(?:0[1-9]|[12][0-9]|3[01]){_GAP}[0-9]{{3}}[0-9Xx]){_BEHIND}"
)
_FOURS = rf"[0-9]{{4}}(?:{_GAP}[0-9]{{4}}){{3}}"
_CARDS = (
    re.compile(
        rf"{_BEFORE}(?P<secret>{_FOURS}{_GAP}[0-9]{{1,3}}|[0-9]{{6}}{_GAP}[0-9]{{10,13}}){_BEHIND}"
    ),
    re.compile(rf"{_BEFORE}(?P<secret>{_FOURS}){_BEHIND}"),
)
_ISSUED = re.compile("4|5[1-5]|62|2[2-7]|35|6011|81")
"""How the numbers of the card networks begin."""
_CALLED_OTHERWISE = re.compile(
    r"(?:qq|扣扣|企鹅|群|单|流水|编|订单|uid|(?:message|msg|消息)[_ ]?id)[号码是为:#\s]*$",
    re.IGNORECASE,
)
_LOOK_BACK = 16


def _any(match: re.Match[str]) -> bool:
    return True


def _called_nothing_else(match: re.Match[str]) -> bool:
    begin = match.start("secret")
    return not _CALLED_OTHERWISE.search(match.string[max(0, begin - _LOOK_BACK) : begin])


def _is_id_number(match: re.Match[str]) -> bool:
    """Whether the check sign is right (GB 11643, which is ISO 7064 MOD 11-2)."""
    signs = [sign for sign in match["secret"].upper() if sign in "0123456789X"]
    values = (10 if sign == "X" else int(sign) for sign in signs)
    return sum(value << (17 - place) for place, value in enumerate(values)) % 11 == 1


def _is_card(match: re.Match[str]) -> bool:
    """Whether a network gives out such numbers and the check digit is right (ISO/IEC 7812)."""
    digits = [int(sign) for sign in match["secret"] if sign.isdecimal()]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    issued = _ISSUED.match("".join(map(str, digits))) is not None
    return issued and (sum(digits[-1::-2]) + doubled) % 10 == 0 and _called_nothing_else(match)


class _Rule(NamedTuple):
    mask: str
    pattern: re.Pattern[str]
    """Its group `secret` is what is replaced."""
    counts: Callable[[re.Match[str]], bool] = _any


_RULES = (
    _Rule("[密钥]", _KNOWN_KEY),
    _Rule("[密钥]", _CALLED_KEY),
    _Rule("[密码]", _PASSWORD_IS),
    _Rule("[密码]", _PASSWORD_BESIDE),
    _Rule("[身份证号]", _ID_NUMBER, _is_id_number),
    *(_Rule("[银行卡号]", pattern, _is_card) for pattern in _CARDS),
    _Rule("[手机号]", _PHONE, _called_nothing_else),
)


def mask_secrets(text: str) -> str:
    """`text` with each secret replaced by what it was. Never longer; the same again is the same.

    Any text is safe.
    """
    while (masked := _masked(text)) != text:  # each round leaves fewer ASCII signs
        text = masked
    return text


def _masked(text: str) -> str:
    for rule in _RULES:
        pieces, at = [], 0
        for match in rule.pattern.finditer(text.translate(_NARROW)):
            if rule.counts(match):
                pieces += [text[at : match.start("secret")], rule.mask]
                at = match.end("secret")
        text = "".join([*pieces, text[at:]]) if pieces else text
    return text
