"""Whether what a file holds has the types that a record declares: JSON may carry anything in any place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Record = TypeVar("Record", bound="DataclassInstance")


def check_types(record: Record) -> Record:
    """The same dataclass instance. Raises TypeError that names the first field of another type."""
    hints = get_type_hints(type(record))
    for field in fields(record):
        if not fits(getattr(record, field.name), hints[field.name]):
            raise TypeError(f"{field.name} is {str(getattr(record, field.name))[:60]!r}")
    return record


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type. A float may be written without a point, and is finite; the
    items of a tuple are of one type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(value is word or value == word for word in arguments)
    if origin is tuple:
        alike = arguments[-1] is Ellipsis
        if type(value) is not tuple or not (alike or len(value) == len(arguments)):
            return False
        return all(fits(item, arguments[0]) for item in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items()
        )
    return _is_plain(value, hint)


def _is_plain(value: Any, hint: type) -> bool:
    if hint is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    if hint in (int, bool, str, NoneType):
        return type(value) is hint
    return isinstance(value, hint)
