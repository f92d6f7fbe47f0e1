"""A user prompt out of several columns: a Jinja2 template, sandboxed.

A name without a value is an error, and so is a null that would be printed: no prompt says "None".
Imported where a template is given; knows one record at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from jinja2 import (
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    meta,
    nodes,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .errors import RecordError

ROW = "row"
"""The name of the whole row, for columns whose names are no identifiers."""
_OTHERWISE = "write {{{{ {} | default('') }}}} where a row may be without"


class WrongTemplate(ValueError):
    """The template cannot be used; `str()` says why, with the line."""


class _NullError(Exception):
    """The template prints a null."""


def _refuse_null(value: object) -> object:
    if value is None:
        raise _NullError
    return value


class _Null(Undefined):
    """A null column: false, none, and an error where it would be part of a text."""

    __slots__ = ()

    def __str__(self) -> str:
        raise UndefinedError(self._undefined_message)

    def __iter__(self) -> NoReturn:
        raise UndefinedError(self._undefined_message)

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _Null)

    __hash__ = Undefined.__hash__


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, finalize=_refuse_null, autoescape=False
)
_ENVIRONMENT.tests["none"] = lambda value: value is None or isinstance(value, _Null)
_ELSEWHERE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


class PromptTemplate:
    """A template that makes the user prompt of a row."""

    def __init__(self, text: str) -> None:
        """Raise WrongTemplate for a text that is no template, or names no column."""
        try:
            tree = _ENVIRONMENT.parse(text)
            elsewhere = next(tree.find_all(_ELSEWHERE), None)
            template = _ENVIRONMENT.from_string(tree)
        except TemplateSyntaxError as error:
            raise WrongTemplate(f"line {error.lineno}: {error.message}") from None
        except (TemplateError, RecursionError) as error:
            raise WrongTemplate(str(error)) from None
        if elsewhere is not None:
            raise WrongTemplate(
                f"line {elsewhere.lineno}: there is no other template to take from; a prompt "
                "template is one text"
            )
        self._render = template.render
        self.names = frozenset(meta.find_undeclared_variables(tree) - {*_ENVIRONMENT.globals})
        """The columns that it names; `row` where it takes the whole row."""
        if not self.names:
            raise WrongTemplate(
                "it names no column, so that all rows would have one prompt; write columns as "
                "{{ question }}"
            )

    def render(self, record: Mapping[str, Any]) -> str:
        """Return the prompt of a row; RecordError says what is wrong with it."""
        values = {ROW: record, **record}
        if None in record.values():
            values |= {name: _null(name) for name in record if record[name] is None}
        try:
            return self._render(values)
        except _NullError:
            raise _wrong("prints a null; " + _OTHERWISE.format("name")) from None
        except UndefinedError as error:
            message = str(error.message)
            name = message.removesuffix(" is undefined").strip("'")
            more = f" in this row; {_OTHERWISE.format(name)}" if name in self.names else ""
            raise _wrong(f"{message}{more}") from None
        except Exception as error:  # noqa: BLE001 - an expression of the user's
            raise _wrong(f"{type(error).__name__}: {error}") from None

    def missing(self, columns: Iterable[str]) -> list[str]:
        """Return the names that no column has."""
        return sorted(self.names - {*columns, ROW})


def _null(name: str) -> _Null:
    return _Null(hint=f"'{name}' is null in this row; {_OTHERWISE.format(name)}", name=name)


def _wrong(what: str) -> RecordError:
    return RecordError(f"the prompt template: {what}")
