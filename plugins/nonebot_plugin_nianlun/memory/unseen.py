"""Characters that show nothing, or turn the direction of what follows them."""

from __future__ import annotations

import re

_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Controls without white space, Unicode's Default_Ignorable_Code_Point, and the blank Braille."""
_FORMS = "[\ufe00-\ufe02\U000e0100-\U000e01ef]"
"""What chooses among the forms of a Han character."""
_VARIANT = re.compile(_FORMS)
_HIDDEN = re.compile(
    # Kept is what shows: it joins or colours pictures, makes a keycap, or shapes a script.
    "([\u00a9\u00ae\u203c\u2049\u2100-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
    "[\u200d\ufe0e\ufe0f\U000e0020-\U000e007f]+"
    "|[#*0-9]\ufe0f\u20e3"
    # More than one behind a character only hide something.
    f"|[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{_FORMS}"
    "|[\u0600-\u061b\u061d-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af][\u180b-\u180f\u200c\u200d]+)"
    f"|[{_UNSEEN}]"
)


def without_unseen(text: str) -> str:
    """`text` without what nobody sees in it; emoji and scripts keep what gives them their shape."""
    return _HIDDEN.sub(r"\1", text)


def without_variants(text: str) -> str:
    """The same with Han characters in the form that everybody types: for what is compared."""
    return _VARIANT.sub("", without_unseen(text))
