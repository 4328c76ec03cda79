"""The errors of Nianlun.

NianlunError
├── ConfigError          a setting is wrong; the message names it and says what to write
├── StoreError           the database cannot serve
│   ├── StoreUnavailable     cannot be opened, is not a database, or is full
│   ├── StoreTooNew          was written by a newer Nianlun
│   ├── StoreLocked          another process held the write lock for the whole busy timeout
│   └── Overtaken            what a note was written from has changed meanwhile; nothing is stored
├── ChatError            a chat was named that does not exist, or that fits several
│   ├── NotAChat             what names it is not written as a chat is
│   └── SpeakerError         so was a person of a chat
├── ModelError           the model gave nothing that can be used
│   ├── ModelUnavailable     network, time limit, rate limit or server error: try later
│   ├── ModelRefused         the provider refused the content
│   └── BadAnswer            an answer came, but not one that can be used
├── MemoryRequestError   a call of the memory interface asks for what cannot be; nothing is changed
│   └── MemoryNotFound       it names a speaker or a memory that the store does not have
├── ImportFileError      a chat export cannot be read; nothing of it is stored
├── CorrectionError      what is to be corrected is not there, or cannot be; nothing is changed
├── NotRecorded          somebody may not be recorded, or a chat is not: nothing is stored
├── NoteRejected         a note breaks a writing rule; the text is meant for the model
└── PromptTooSmall       the fixed part of a prompt is larger than the whole budget
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .types import Usage


class NianlunError(Exception):
    """Base of everything raised on purpose. Its text is one line for a person."""


class ConfigError(NianlunError):
    """A setting is wrong."""


class StoreError(NianlunError):
    """The database cannot serve."""


class StoreUnavailable(StoreError):
    """The database cannot be opened, is not a database, or has no room."""


class StoreDamaged(StoreUnavailable):
    """The database lacks a table or a column, or has pages that cannot be read."""


class StoreTooNew(StoreError):
    """The database was written by a newer version of Nianlun."""


class StoreLocked(StoreError):
    """Another process held the write lock for the whole busy timeout."""


class Overtaken(StoreError):
    """What a note was written from has changed meanwhile; nothing was stored."""


class ChatError(NianlunError):
    """A chat was named that does not exist, or that fits several bot accounts."""


class NotAChat(ChatError):
    """What is given as a chat is not written as one."""


class SpeakerError(ChatError):
    """A person was named whom the chat does not know, or by a name that several people share."""

    def __init__(self, message: str, user_ids: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.user_ids = user_ids
        """Who share the name; empty when nobody has it."""


class MemoryRequestError(NianlunError):
    """A call of the memory interface asks for what cannot be; nothing was changed.

    Programs read these errors, so their texts are English; what to branch on is `status` and
    `details`, never the text.
    """

    status: ClassVar[int] = 400
    """As an HTTP status."""
    type: ClassVar[str] = "invalid_request_error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        """The fields that the error is about, such as `speaker` or `speaker_limit`."""

    def as_dict(self) -> dict[str, Any]:
        """The error as it is answered over HTTP."""
        error = {"type": self.type, "message": self.message, **self.details}
        return {"type": "error", "error": error}


class MemoryNotFound(MemoryRequestError):
    """It names a speaker or a memory that the store does not have."""

    status = 404
    type = "not_found_error"


class ModelError(NianlunError):
    """The model gave nothing that can be used."""

    usage: Usage | None = None
    """What the answer cost all the same, where it said so."""


class ModelUnavailable(ModelError):
    """Network, time limit, rate limit or server error; worth another try later."""


class ModelRefused(ModelError):
    """The provider refused the content of the request."""


class BadAnswer(ModelError):
    """An answer came, but it is empty, not text, or not the JSON that was asked for."""


class ImportFileError(NianlunError):
    """A chat export cannot be read; the message says where and why."""


class CorrectionError(NianlunError):
    """What somebody wants corrected is not there, or cannot be; nothing was changed."""


class NotRecorded(NianlunError):
    """What was to be kept is about somebody who may not be recorded; nothing was stored."""


class NoteRejected(NianlunError):
    """A note breaks a writing rule. The message tells the model what to change."""


class PromptTooSmall(NianlunError):
    """The fixed part of a prompt alone is larger than the budget."""
