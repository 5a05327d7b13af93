"""Whole lists as files: CSV that is safe in spreadsheets, and JSON. Read and sent page by page; what breaks off never looks whole."""

from __future__ import annotations

import csv
import enum
import io
import json
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, Protocol

from django.conf import settings
from django.http import StreamingHttpResponse

from accessportal.kernel.errors import InvalidRequest, NotFound, Unavailable
from accessportal.kernel.pages import Page
from accessportal.kernel.texts import cut, words_on_unknown
from accessportal.web.frame import reference

ROWS_AT_ONCE = 200
EXPORTS_BUSY = "exports_busy"
# Spreadsheets calculate what begins so, in full width too; some throw away the blanks and quotes before it. Those that separate cells by
# another sign see a cell begin within a text.
_UNSEEN = r"""[ "'\u00a0\u2000-\u200f\u2028\u2029\u2060\u3000\ufeff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*+"""
_FORMULA = re.compile(rf"(^|[;\t\r\n])(?={_UNSEEN}[=+\-@＝＋－＠])")
# What the address of a page may have besides; a file is the same with and without.
_OF_PAGES = frozenset({"zone", "cursor", "was", "shown", "mark"})
_CELL_ENDS = ("\t", "\r", "\n")
# A file is sent for as long as its list is read, and the pages of others come first.
_LANES = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))


@dataclass(frozen=True, slots=True)
class Exported:
    """A column of a file. ``name`` is never changed: programs read it."""

    name: str
    read: Callable[[Any], Any]


def exported(*columns: str | tuple[str, str | Callable[[Any], Any]]) -> tuple[Exported, ...]:
    """Each by the attribute of the record that it has its name from; or by name and attribute, or name and function."""
    named = [(one, one) if isinstance(one, str) else one for one in columns]
    return tuple(Exported(name, attrgetter(read) if isinstance(read, str) else read) for name, read in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A list as it is exported: ``fetch`` takes a cursor, ``asked`` is what narrows it. ``name`` is the file's."""

    name: str
    columns: tuple[Exported, ...]
    fetch: Callable[[str | None], Page[Any]]
    asked: Mapping[str, str]
    now: datetime

    def values(self, record: object) -> Iterator[Any]:
        return (plain(column.read(record)) for column in self.columns)


class _Form(Protocol):
    media_type: str

    def __init__(self, listed: Listed) -> None: ...
    def head(self) -> str: ...
    def rows(self, records: Iterable[object]) -> str: ...
    def end(self, rows: int, remarks: Iterable[str]) -> str: ...
    def broken(self, rows: int) -> str: ...


class _Csv:
    """After the rows a mark of one cell, which a file that broke off lacks. The sign in front tells Excel that it is UTF-8."""

    media_type = "text/csv; charset=utf-8"

    def __init__(self, listed: Listed) -> None:
        self._listed = listed

    def head(self) -> str:
        return "\ufeff" + _lines([[column.name for column in self._listed.columns]])

    def rows(self, records: Iterable[object]) -> str:
        return _lines([cell(value) for value in self._listed.values(record)] for record in records)

    def end(self, rows: int, remarks: Iterable[str]) -> str:
        return _lines([*([f"# {one}"] for one in remarks), [f"# End of list: {rows} rows"]])

    def broken(self, rows: int) -> str:
        told = f"# NOT WHOLE: the list could not be read on after {rows} rows. Export it again. Reference: {reference()}"
        return _lines([[told]])


class _Json:
    """One object, a row of the list on each line. What broke off can't be parsed."""

    media_type = "application/json"

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self._before = "\n"

    def head(self) -> str:
        told = {"list": self._listed.name, "asked": self._listed.asked, "made_at": self._listed.now}
        return f'{_json(told)[:-1]}, "rows": ['

    def rows(self, records: Iterable[object]) -> str:
        names = [column.name for column in self._listed.columns]
        text = ",\n".join(_json(dict(zip(names, self._listed.values(record), strict=True))) for record in records)
        before, self._before = self._before, ",\n" if text else self._before
        return f"{before}{text}" if text else ""

    def end(self, rows: int, remarks: Iterable[str]) -> str:
        return f"\n], {_json({'remarks': [*remarks], 'row_count': rows})[1:]}\n"

    def broken(self, rows: int) -> str:
        return "\n"


FORMS: dict[str, type[_Form]] = {"csv": _Csv, "json": _Json}


def require_inputs(given: Iterable[str], known: Sequence[str]) -> None:
    """A file of everything must not look like the part that a misspelt input asks for. :raises InvalidRequest: naming it."""
    for name in given:
        if name not in {*known, *_OF_PAGES}:
            words = f"The parameter {cut(name)} can't be used: {words_on_unknown(name, known)}."
            raise InvalidRequest(words, code="input_unknown", field=cut(name))


def send(listed: Listed, form: str) -> StreamingHttpResponse:
    """The list as a file, from its first page to its last. What can't be read at first raises; later the connection breaks off.

    :raises NotFound: for a form that there is not. :raises Unavailable: also while too many are being sent.
    """
    if form not in FORMS:
        raise NotFound(f"Lists are exported as {' or '.join(FORMS)}.", code="no_such_form")
    if not _LANES.acquire(blocking=False):
        raise Unavailable("Other lists are being exported. Try again in a minute.", code=EXPORTS_BUSY)
    try:
        sent = _Sent(listed, FORMS[form](listed), listed.fetch(None))
    except BaseException:
        _LANES.release()
        raise
    response = StreamingHttpResponse(sent, content_type=FORMS[form].media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="accessportal-{listed.name}-{listed.now:%Y-%m-%d}.{form}"'
    return response


class _Sent:
    """What is sent, and the lane that it takes until the server closes it, also when nothing of it was asked for."""

    def __init__(self, listed: Listed, form: _Form, first: Page[Any]) -> None:
        self._texts = _texts(listed, form, first)
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        # What is no letter can't be encoded; it is told by its number.
        return (text.encode(errors="backslashreplace") for text in self._texts)

    def close(self) -> None:
        self._texts.close()
        if not self._is_closed:
            self._is_closed = True
            _LANES.release()


def _texts(listed: Listed, form: _Form, page: Page[Any]) -> Generator[str]:
    rows, remarks = len(page.items), _remarks(page)
    yield form.head() + form.rows(page.items)
    try:
        while page.next_cursor is not None:
            page = listed.fetch(page.next_cursor)
            text = form.rows(page.items)
            rows += len(page.items)
            remarks |= _remarks(page)
            yield text
    except Exception:
        yield form.broken(rows)
        # The server closes the connection in the middle of the answer, which browsers and programs tell from its end.
        raise
    yield form.end(rows, remarks)


def _remarks(page: Page[Any]) -> dict[str, None]:
    """In order, and each once."""
    return dict.fromkeys((*page.remarks, *map(str, page.unreadable)))


def plain(value: object) -> Any:
    """As JSON has it; moments in ISO 8601 and UTC."""
    match value:
        case enum.Enum():
            return value.value
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Mapping():
            return {str(name): plain(one) for name, one in value.items()}
        case frozenset() | set():
            return sorted(map(plain, value))
        case tuple() | list():
            return [plain(one) for one in value]
        case _:
            return str(value)


def cell(value: Any) -> str:
    """A plain value as one cell of a spreadsheet, which never takes a text for a formula: such ones have a quote in front."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list():
            return _harmless("; ".join(one if isinstance(one, str) else _json(one) for one in value))
        case str():
            return _harmless(value)
        case _:
            return _harmless(_json(value))


def _harmless(text: str) -> str:
    safe = _FORMULA.sub(r"\1'", text)
    return f"'{safe}" if safe.startswith(_CELL_ENDS) else safe


def _lines(rows: Iterable[Sequence[str]]) -> str:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return written.getvalue()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=plain)
