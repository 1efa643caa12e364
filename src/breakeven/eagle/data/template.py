"""The target's chat template and tokenizer, through transformers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from breakeven.eagle.data.chats import Message
from breakeven.eagle.extras import require
from breakeven.errors import UsageError

MARKS = re.compile(r"\{%-?\s*generation\s*-?%\}")
"""How a template says where the assistant's own text begins."""
INSTEAD = (
    "write  regenerate = true  under [data] of the recipe with [target] url of a vLLM server, which tells "
    "token ids"
)


class ChatTemplate(Protocol):
    """What masks.py needs of a template and its tokenizer."""

    @property
    def has_marks(self) -> bool:
        """Whether it tells what the assistant wrote."""

    def text(self, messages: Sequence[Message], tools: Sequence[Any], prompt: bool) -> str:
        """Messages as the target reads them; with `prompt` up to where it is to answer."""

    def ids(self, text: str) -> list[int]:
        """Of a text that holds its special tokens already."""

    def marked(self, messages: Sequence[Message], tools: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Ids, and 1 for each that the template marks as the assistant's; else 0."""


class TargetTemplate:
    """That of a folder in the Hugging Face format; no code in the folder is run.

    Raises MissingExtra; UsageError for a tokenizer that cannot be read, or that has no template.
    """

    def __init__(self, folder: Path) -> None:
        require("transformers")
        from transformers import AutoTokenizer

        self._folder = folder
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # the library raises whatever a tokenizer raises
            raise UsageError(
                f"the tokenizer of {folder} cannot be used ({_first_line(error)}): restore its files, or "
                f"{INSTEAD}"
            ) from error
        template = getattr(self._tokenizer, "chat_template", None)
        if not template:
            raise UsageError(
                f"{folder} has no chat template: put the model's chat_template.jinja there, or {INSTEAD}"
            )
        self.has_marks = MARKS.search(template if isinstance(template, str) else "") is not None

    def text(self, messages: Sequence[Message], tools: Sequence[Any], prompt: bool) -> str:
        return str(self._apply(messages, tools, tokenize=False, add_generation_prompt=prompt))

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def marked(self, messages: Sequence[Message], tools: Sequence[Any]) -> tuple[list[int], list[int]]:
        found = self._apply(
            messages, tools, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        return list(found["input_ids"]), list(found["assistant_masks"])

    def _apply(self, messages: Sequence[Message], tools: Sequence[Any], **how: Any) -> Any:
        try:
            return self._tokenizer.apply_chat_template(
                [dict(one) for one in messages], tools=list(tools) or None, **how
            )
        except (
            Exception
        ) as error:  # a template may raise anything, as some do for roles that do not alternate
            raise TemplateRefused(_first_line(error)) from error


class TemplateRefused(Exception):
    """The template cannot say these messages."""


def no_marks(folder: Path) -> UsageError:
    """For conversations of which a template does not tell what the assistant wrote."""
    return UsageError(
        f"the chat template of {folder} has no generation marks, and where the replies begin and end in it "
        f"cannot "
        "be shown otherwise: put  {% generation %} … {% endgeneration %}  around the assistant's text in it, "
        f"or {INSTEAD}"
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
