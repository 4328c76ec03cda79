"""The body of an endpoint's answer, as far as it is one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..errors import BadAnswer

if TYPE_CHECKING:
    import openai

_PIECE = 65_536


async def whole_body(
    answer: AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]], most: int, model: str
) -> str:
    """The body of an answer of no more than `most` bytes.

    Read piece by piece: it may go on for ever, or unpack into more than there is room for. Raises
    the SDK's errors, and BadAnswer for one that is longer.
    """
    import httpx2
    import openai

    came = bytearray()
    async with answer as response:
        try:
            async for piece in response.iter_bytes(_PIECE):
                came += piece
                if len(came) > most:
                    raise BadAnswer(f"模型 {model} 的回答长得不正常，没有读完")
        except httpx2.HTTPError as error:
            raise openai.APIConnectionError(request=response.http_request) from error
    # Whatever the headers say: JSON is UTF-8.
    return came.decode("utf-8-sig", "replace")
