"""A scripted OpenAI-compatible server on a real socket, for this process and for others.

with ModelServer() as server:
    server.script(["你好", (429, {"Retry-After": "1"}, "slow down"), Delay(5, "好")])
    ...  # point a client at server.base_url
    assert server.requests[0]["model"] == "…"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json
import re
import threading
from types import TracebackType
from typing import Any, Self, TypeAlias


@dataclass(frozen=True)
class Delay:
    """The same reply, later."""

    seconds: float
    reply: Reply


@dataclass(frozen=True)
class Disconnect:
    """Close the connection without an answer."""


Reply: TypeAlias = "str | dict[str, Any] | tuple[int, Mapping[str, str], str] | Delay | Disconnect"
"""Text of a completion, a whole JSON body, (status, headers, body), or one of the above."""
Responder: TypeAlias = "Callable[[dict[str, Any]], Reply]"
"""Makes the reply to a request from its parsed body."""


def completion(content: object, **choice: object) -> dict[str, Any]:
    """The JSON of a chat completion; `choice` overrides fields of its only choice."""
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
        },
    }


SKILL_NAME = "update_short_term_memory"


def calling(
    *arguments: object, name: str = SKILL_NAME, text: str | None = None, **choice: object
) -> dict[str, Any]:
    """A completion that calls a tool, the skill by default, once for each of these; text stays
    as it is."""
    calls = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else _dump(given),
            },
        }
        for number, given in enumerate(arguments)
    ]
    made = completion(text, finish_reason="tool_calls")
    made["choices"][0]["message"]["tool_calls"] = calls
    made["choices"][0] |= choice
    return made


HTML: Reply = (200, {"Content-Type": "text/html"}, "<html><body>Welcome</body></html>")


def events(*chunks: object, end: str = "data: [DONE]\n\n") -> Reply:
    """Server-sent events with these chunks as JSON."""
    body = "".join(f"data: {_dump(chunk)}\n\n" for chunk in chunks)
    return 200, {"Content-Type": "text/event-stream"}, body + end


def delta(finish: str | None = None, **fields: object) -> dict[str, Any]:
    """A chunk of a streamed completion."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}


def embeddings(vectors: Sequence[object], **fields: object) -> dict[str, Any]:
    """The JSON of an answer with these vectors; `fields` overrides what stands beside them."""
    items = [
        {"object": "embedding", "index": number, "embedding": vector}
        for number, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 10 * len(items), "total_tokens": 10 * len(items)}
    return {"object": "list", "model": "scripted", "data": items, "usage": usage, **fields}


class ModelServer:
    """Speaks `POST /v1/chat/completions`, and `/v1/embeddings` when it is scripted for that;
    without a script it answers helpfully."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """Parsed body of every request, in order of arrival."""
        self.authorizations: list[str] = []
        self._respond: Responder = helpful_responder
        self._replies: list[Reply | Responder] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        # Joined on close, so that no thread or socket outlives the server.
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, script: Responder | Iterable[Reply | Responder]) -> None:
        """Answer with a responder from now on, or with these replies one by one; after the last
        of them the former responder serves again.
        """
        with self._lock:
            if callable(script):
                self._respond = script
            else:
                self._replies = list(script)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _reply_to(self, body: dict[str, Any], authorization: str) -> Reply:
        with self._lock:
            self.requests.append(body)
            self.authorizations.append(authorization)
            reply = self._replies.pop(0) if self._replies else self._respond
        return reply(body) if callable(reply) else reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model_server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # whoever asked was killed meanwhile
                if self.path not in ("/v1/chat/completions", "/v1/embeddings"):
                    self._send(404, {}, '{"error": {"message": "no such route"}}')
                    return
                authorization = self.headers.get("Authorization", "")
                self._answer(model_server._reply_to(json.loads(body), authorization))

            def _answer(self, reply: Reply) -> None:
                if isinstance(reply, Delay):
                    if not model_server._stopping.wait(reply.seconds):
                        self._answer(reply.reply)
                elif isinstance(reply, str):
                    self._answer(completion(reply))
                elif isinstance(reply, dict):
                    self._send(200, {}, json.dumps(reply))
                elif isinstance(reply, tuple):
                    self._send(*reply)

            def _send(self, status: int, headers: Mapping[str, str], body: str) -> None:
                data = body.encode()
                head = {"Content-Type": "application/json", "Content-Length": str(len(data))}
                try:
                    self.send_response(status)
                    for name, value in (head | dict(headers)).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except ConnectionError:
                    pass  # the client gave up first, which some tests want

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def helpful(*markers: str) -> Responder:
    """A model that does what it is asked: valid notes that keep those of the markers which
    their sources contain, citing the first messages it was shown; else a short line of chat.
    With the skill as its tool it works through that, call by call; others it leaves alone.
    """

    def respond(body: dict[str, Any]) -> Reply:
        if any(tool["function"]["name"] == SKILL_NAME for tool in body.get("tools", ())):
            return _next_call(body, markers)
        asked = _first_user_text(body)
        if (messages := _block(asked, "聊天记录")) is not None:
            return _dump(_activity(messages, markers))
        if (batch := _block(asked, "任务")) is not None:
            return _dump({"actions": [_update(t, markers) for t in json.loads(batch)["tasks"]]})
        return "好呀，我记着呢。"

    return respond


helpful_responder: Responder = helpful()


def _next_call(body: dict[str, Any], markers: tuple[str, ...]) -> Reply:
    last = body["messages"][-1]
    answer: dict[str, Any] = {"has_next_tasks": True}
    if last["role"] == "tool":
        answer = json.loads(last["content"])
    if answer.get("action") == "add_activity":
        messages = _block(answer["prompt"], "聊天记录")
        return calling(_activity(messages or "", markers))
    if tasks := answer.get("tasks"):
        return calling({"actions": [_update(task, markers) for task in tasks]})
    if answer.get("has_next_tasks"):
        return calling({"action": "get_tasks"})
    return "都写好了。"


def _dump(answer: object) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _first_user_text(body: dict[str, Any]) -> str:
    texts = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    return texts[0] if texts and isinstance(texts[0], str) else ""


def _block(asked: str, title: str) -> str | None:
    found = re.search(rf"【{title} (\w+)】\n(.*?)\n【{title}完 \1】", asked, re.DOTALL)
    return found[2] if found else None


def _found(markers: tuple[str, ...], text: str) -> str:
    return "、".join(marker for marker in markers if marker in text) or "一些小事"


def _activity(messages: str, markers: tuple[str, ...]) -> dict[str, Any]:
    ids = [int(number) for number in re.findall(r"^#(\d+) ", messages, re.MULTILINE)]
    first = ids[:3]
    fact = {
        "category": "event",
        "name": "聊过的事",
        "content": f"聊到了{_found(markers, messages)}",
        "from": first[0],
    }
    memory = f"今天大家聊到了{_found(markers, messages)}，我在旁边听着，心里很高兴。"
    return {"action": "add_activity", "memory": f"{memory}（关键消息：{first}）", "facts": [fact]}


def _update(task: dict[str, Any], markers: tuple[str, ...]) -> dict[str, Any]:
    text = task["source"]["memory"] + task["target"]["memory"]
    cited = re.findall(r"关键消息[：:]\s*\[([\d,，\s]+)\]", text)
    ids = list(dict.fromkeys(int(n) for part in cited for n in re.findall(r"\d+", part)))
    mark = f"（关键消息：{ids[:3]}）" if ids else ""
    return {
        "action": "update_memory",
        "task_id": task["task_id"],
        "kind": task["target"]["kind"],
        "date": task["target"]["date"],
        "memory": f"这段日子里，我记得最清楚的是{_found(markers, text)}，想起来心里很暖。{mark}",
    }
