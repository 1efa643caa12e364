"""A record of a file → a Chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from breakeven.eagle.data.chats import ASSISTANT, Chat, Ids, Message
from breakeven.eagle.data.turns import assistant, messages_of, user
from breakeven.errors import UsageError
from breakeven.replay.sources.columns import OUTPUT_IDS, OUTPUT_TEXT, PROMPT_IDS, PROMPT_TEXT, TURNS, first_of
from breakeven.replay.sources.ids import ids_of
from breakeven.replay.sources.rows import Row
from breakeven.workload.formats import DEFAULT_CATEGORY

MEDIA = "pictures or sound"
NO_REPLY = "no reply"
NO_PROMPT = "no prompt"


def chat_of(row: Row, replies: bool) -> Chat | str:
    """The chat of a record, or why it is left out.

    With `replies` it ends at the last answer; without, at the last turn that is to be answered. Raises
    UsageError, which names the place, for a record that is none.
    """
    ids = _ids(row)
    turns, reply = _turns(row, replies)
    if turns is None and ids is None:
        raise UsageError(
            f"{row}: no conversation: it needs `messages`, or `prompt` with `response`, or {PROMPT_IDS} with "
            f"{OUTPUT_IDS[0]} (found: {', '.join(map(str, row.columns))[:200] or 'nothing'})"
        )
    if turns == () or (turns is None and not replies):
        return NO_PROMPT
    if replies and reply is None and ids is None:
        return NO_REPLY
    chat = Chat(
        where=str(row),
        category=_category(row),
        asked=turns,
        reply=reply,
        several=True,
        tools=_tools(row),
        ids=ids,
        ended=row.columns.get("finish_reason") != "length",
    )
    return MEDIA if chat.has_media else chat


def _turns(row: Row, replies: bool) -> tuple[tuple[Message, ...] | None, Message | None]:
    """(what was asked, what was answered); None where the record has none."""
    columns = row.columns
    name = first_of(TURNS, columns)
    prompt = columns.get(PROMPT_TEXT)
    if name is not None:
        asked = messages_of(columns[name], row)
    elif isinstance(prompt, str):
        asked = (user(prompt),) if prompt.strip() else ()
    elif prompt is not None:
        asked = messages_of(prompt, row)
    else:
        return None, None
    asked = _system(row, asked) + asked
    answer = first_of(OUTPUT_TEXT, columns)
    if answer is not None:
        return asked, _reply(columns[answer], row, answer)
    return _up_to_the_answer(asked, replies)


def _up_to_the_answer(
    turns: tuple[Message, ...], replies: bool
) -> tuple[tuple[Message, ...], Message | None]:
    """Turns before the last answer, and it; or all but an answer that is last."""
    answers = [number for number, one in enumerate(turns) if one["role"] == ASSISTANT]
    if answers and (replies or answers[-1] == len(turns) - 1):
        reply = turns[answers[-1]]
        return turns[: answers[-1]], reply if _says_something(reply) else None
    return turns, None


def _says_something(reply: Message) -> bool:
    said = (reply["content"], reply.get("reasoning_content", ""), reply.get("tool_calls"))
    return any(one.strip() if isinstance(one, str) else one for one in said)


def _system(row: Row, asked: tuple[Message, ...]) -> tuple[Message, ...]:
    system = row.columns.get("system")
    if system is None or system == "":
        return ()
    if not isinstance(system, str):
        raise UsageError(f"{row}: `system` must be text")
    if asked and asked[0]["role"] in ("system", "developer"):
        raise UsageError(f"{row}: both `system` and a {asked[0]['role']} message: keep one of them")
    return ({"role": "system", "content": system},)


def _reply(said: Any, row: Row, column: str) -> Message | None:
    if not isinstance(said, str):
        raise UsageError(f"{row}: `{column}` is {str(said)[:40]!r}: it must be text")
    return assistant(said) if said.strip() else None


def _ids(row: Row) -> Ids | None:
    """Only where both sides are there: a reply is learned from in its context."""
    column = first_of(OUTPUT_IDS, row.columns)
    if column is None or row.columns.get(PROMPT_IDS) is None:
        return None
    prompt, output = (
        ids_of(row.columns[PROMPT_IDS], row, PROMPT_IDS),
        ids_of(row.columns[column], row, column),
    )
    return Ids(prompt, output) if len(prompt) and len(output) else None


def _tools(row: Row) -> tuple[Any, ...]:
    """A list of definitions, or the same as JSON text."""
    said = row.columns.get("tools")
    if isinstance(said, str) and said.strip():
        try:
            said = orjson.loads(said)
        except orjson.JSONDecodeError as error:
            raise UsageError(
                f"{row}: `tools` is no JSON ({error.msg}): give a list of definitions"
            ) from error
    if not said:
        return ()
    if not isinstance(said, list) or not all(isinstance(one, Mapping) for one in said):
        raise UsageError(f"{row}: `tools` must be a list of definitions")
    return tuple(said)


def _category(row: Row) -> str:
    said = row.columns.get("category")
    return str(said)[:200] if isinstance(said, str | int | float) and said != "" else DEFAULT_CATEGORY
