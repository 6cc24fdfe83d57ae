"""`llm_service`: asks a language model, through a service of the settings with the chat API of OpenAI.

With a schema, the answer is checked; if it does not fit, the model is told why and asked once more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from ..base.codec import decode_strictly, text
from ..base.masking import mask
from ..base.schemas import check_schema, problems_of
from ..errors import PermanentError
from ..history.effects.record import masked_data
from .access import Access
from .definition import Handler
from .http.outgoing import Outgoing
from .http.request import RETRY
from .http.service import ToService, known_service
from .strict import Strict

PATH = "/chat/completions"
MAX_BYTES = 10_000_000
_SHOWN = 200
_FENCED = re.compile(r"\s*```[A-Za-z]*\n(.*)\n```\s*\Z", re.DOTALL)


class Message(Strict):
    role: Literal["system", "user", "assistant", "developer"]
    content: str


class LlmService(Strict):
    service: str = Field(description="its name in the settings")
    prompt: str | None = Field(None, description="what to ask; `messages` says more")
    messages: list[Message] | None = Field(None, min_length=1, description="a conversation, in place of `prompt`")
    system: str | None = Field(None, description="how to answer, said before the prompt")
    model: str | None = Field(None, description="by default the `model` of the service")
    temperature: float | None = Field(None, ge=0, le=2, description="from 0 to 2; by default that of the model")
    max_tokens: int | None = Field(None, ge=1, description="of the answer")
    schema_: dict[str, Any] | None = Field(
        None, alias="schema", description="a JSON Schema: the answer is data that fits it"
    )
    options: dict[str, Any] = Field({}, description="more fields of the request, as the service wants them")

    @model_validator(mode="after")
    def _asks_one_thing(self) -> LlmService:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("expected either prompt or messages")
        if self.system is not None and self.messages is not None:
            raise ValueError("with messages, say system as the first of them")
        own = {"model", "messages", "temperature", "max_tokens", "stream", "n"} & set(self.options)
        if own:
            raise ValueError(f"options.{min(own)}: this is set by the handler")
        if self.schema_ is not None and (wrong := check_schema(self.schema_)):
            raise ValueError(wrong[0].below("schema"))
        return self

    def conversation(self) -> list[dict[str, str]]:
        if self.messages is not None:
            messages = [{"role": each.role, "content": each.content} for each in self.messages]
        else:
            messages = [{"role": "system", "content": self.system}] if self.system is not None else []
            messages.append({"role": "user", "content": self.prompt or ""})
        if self.schema_ is not None:
            rule = f"Answer with JSON only, and nothing around it, that fits this JSON Schema: {text(self.schema_)}"
            messages.insert(0, {"role": "system", "content": rule})
        return messages


class LlmResponse(Strict):
    result: Any = Field(description="the answer: text, or with `schema` the data")
    model: str = Field(description="the model that answered")
    tokens: dict[str, int] = Field(description="prompt, completion and total, of all that was asked")
    finish_reason: str | None = Field(description="why it stopped, as the service says: stop, length, ...")


def llm_service(access: Access) -> Handler:
    async def ask(ctx: Any, config: LlmService) -> dict[str, Any]:
        return await _LlmCall(ctx, access, config).ask()

    return Handler(
        "llm_service",
        ask,
        LlmService,
        LlmResponse,
        "Ask a language model, by a service that speaks the chat API of OpenAI. Retried as http_request is.",
        {"service": "openai", "prompt": "Summarise in three sentences: {{ fetch.result }}"},
        retry=RETRY,
        side_effects="recordable",
        keeps_secrets=True,
    )


class _ToModel(ToService):
    """A request to a model; the settings of its service say which, unless the config does."""

    def made(self, access: Access, said: Mapping[str, Any]) -> Outgoing:
        service = known_service(access, self.service)
        model = said["json"].get("model") or service.model
        if model is None:
            raise PermanentError(f"llm_service: neither the config nor service {self.service!r} names a model")
        return super().made(access, {**said, "json": {"model": model, **said["json"]}})


class _LlmCall:
    def __init__(self, ctx: Any, access: Access, config: LlmService) -> None:
        self._ctx = ctx
        self._access = access
        self._config = config
        self._tokens = {"prompt": 0, "completion": 0, "total": 0}

    async def ask(self) -> dict[str, Any]:
        conversation = self._config.conversation()
        choice, model = await self._complete(conversation)
        said = _content(choice)
        if self._config.schema_ is None:
            return self._answer(said, model, choice)
        value, wrong = _fitting(said, self._config.schema_)
        if wrong:
            conversation += [
                {"role": "assistant", "content": said},
                {"role": "user", "content": f"This does not fit the schema: {wrong}. Answer again, with JSON only."},
            ]
            choice, model = await self._complete(conversation, again=":again")
            value, wrong = _fitting(_content(choice), self._config.schema_)
        if wrong:
            asked = f"service {self._config.service!r}, model {model}"
            raise PermanentError(f"{asked}: the answer does not fit the schema, nor did the one before: {wrong}")
        return self._answer(value, model, choice)

    async def _complete(self, conversation: list[dict[str, str]], again: str = "") -> tuple[dict[str, Any], str]:
        """What the model chose to say, and the model."""
        config = self._config
        body: dict[str, Any] = {**config.options, "messages": list(conversation)}
        named = (("model", config.model), ("temperature", config.temperature), ("max_tokens", config.max_tokens))
        body |= {name: value for name, value in named if value is not None}
        if config.schema_ is not None:
            body.setdefault("response_format", {"type": "json_object"})
        # The second question is another request, so it has another key.
        to = _ToModel(config.service, PATH, "POST", self._ctx.idempotency_key + again)
        said = {"json": body, "parse": "json", "max_bytes": MAX_BYTES}
        answer = (await to.answered(self._ctx, self._access, said))["result"]
        try:
            choice, model = answer["choices"][0], str(answer.get("model") or config.model or "unknown")
            choice["message"]  # it has to be there
        except (KeyError, IndexError, TypeError, AttributeError):
            shown_text = _short(text(answer))
            raise PermanentError(f"service {config.service!r} gave no chat completion: {shown_text}") from None
        usage = answer.get("usage")
        for name in self._tokens:
            count = usage.get(f"{name}_tokens") if isinstance(usage, dict) else None
            if isinstance(count, int) and not isinstance(count, bool):
                self._tokens[name] += count
        self._ctx.outcome["llm"] = {"model": model, "tokens": dict(self._tokens)}
        return choice, model

    def _answer(self, result: Any, model: str, choice: dict[str, Any]) -> dict[str, Any]:
        reason = choice.get("finish_reason")
        return {
            "result": result,
            "model": model,
            "tokens": self._tokens,
            "finish_reason": reason if isinstance(reason, str) else None,
        }


def _content(choice: dict[str, Any]) -> str:
    """The text of an answer, which may come as a list of parts."""
    message = choice["message"]
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [each.get("text") for each in content if isinstance(each, dict)]
        content = "".join(each for each in parts if isinstance(each, str))
    if not isinstance(content, str):
        refused = message.get("refusal") if isinstance(message, dict) else None
        reason = f"the model refused: {_short(refused)}" if isinstance(refused, str) else "the model said nothing"
        raise PermanentError(f"llm_service: {reason} (finish_reason {choice.get('finish_reason')!r})")
    return mask(content)  # a secret may stand in two of its parts


def _fitting(said: str, schema: dict[str, Any]) -> tuple[Any, str]:
    """The data of an answer, and its problems. Models tend to put a fence around JSON."""
    fenced = _FENCED.match(said)
    try:
        value = masked_data(decode_strictly(fenced[1] if fenced else said))
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as error:
        return None, f"it is no JSON ({error})"
    wrong = problems_of(schema, value)
    return value, "; ".join(map(str, wrong[:5]))


def _short(told: str) -> str:
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]} ..."
