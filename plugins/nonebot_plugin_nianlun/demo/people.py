"""Who is in the sample group."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from ..types import ME


@dataclass(frozen=True, slots=True)
class Person:
    """A member: what the scripts call them, their number, and their group cards over time."""

    name: str
    user_id: str
    cards: tuple[tuple[date, str], ...] = ()
    """Other cards than `name`, each with the day on which it was given up; ascending."""

    def card(self, day: date) -> str:
        return next((card for until, card in self.cards if day < until), self.name)


PEOPLE: dict[str, Person] = {
    person.name: person
    for person in (
        Person("阿禾", "20001"),
        Person("川子", "20002", ((date(2025, 2, 13), "林川-后端"),)),
        Person("蔓蔓", "20003"),
        Person("老周", "20004"),
        Person("小满", "20005"),
        Person("陈默", "20006"),
        Person("阿宁", "20007"),
        Person("年轮", ME),
    )
}
