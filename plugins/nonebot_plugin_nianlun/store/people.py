"""Whom somebody means."""

from __future__ import annotations

import re
from typing import cast

from ..errors import SpeakerError
from ..memory.render import display_names, one_line, safe_name
from ..memory.units import shortened
from ..types import ME
from . import speakers
from .models import Speaker

_LONGEST = 40
"""Characters of a name that is told back."""
_WITH_TAIL = re.compile(r"(.+?)(?:（尾号)?([0-9]+)）?", re.DOTALL)


async def person(chat_id: int, typed: str, character: str) -> str:
    """The user id of whom somebody means by an @, a number, a name, or a name with the last digits
    of a number behind it: 小鹿02, or 小鹿（尾号0102） as people of one name are shown. A name may
    also be typed as it is shown where its signs could forge something: ″小鹿″.

    Raises SpeakerError when nobody is called so, or several people are.
    """
    typed = typed.removeprefix("@").strip()
    if typed == character:
        return ME
    try:
        return await speakers.resolve(chat_id, typed)
    except SpeakerError as error:
        several = error.user_ids or tuple(sorted(await _shown_as(chat_id, typed)))
        if len(several) == 1:
            return several[0]
        if several:
            shown = "、".join(display_names(dict.fromkeys(several, typed)).values())
            raise SpeakerError(
                f"叫 {shortened(one_line(typed), _LONGEST)} 的不止一人，请写清是哪一个：{shown}",
                several,
            ) from error
        if (split := _WITH_TAIL.fullmatch(typed)) is not None:
            bearers = await speakers.bearers(chat_id, [split[1]])
            bearers = bearers or await _shown_as(chat_id, split[1])
            meant = [user_id for user_id in bearers if user_id.endswith(split[2])]
            if len(meant) == 1:
                return meant[0]
        raise SpeakerError(f"这里没有叫 {shortened(one_line(typed), _LONGEST)} 的人") from error


async def _shown_as(chat_id: int, name: str) -> dict[str, str]:
    """Those who are shown by this name now, by user id, and what they are really called."""
    names = await Speaker.filter(chat_id=chat_id).values_list("user_id", "name")
    people = dict(cast("list[tuple[str, str]]", names))
    return {user_id: called for user_id, called in people.items() if safe_name(called) == name}
