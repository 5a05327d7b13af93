"""Length before work: no pattern and no normalisation in the product takes more than a text's length is worth."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, TypeAdapter

import accessportal
from accessportal.access_requests import policy as requests
from accessportal.access_requests.kind import KINDS
from accessportal.access_requests.queries import ApproverBook
from accessportal.api import schemas
from accessportal.catalog import policy as catalog
from accessportal.conf import Conf
from accessportal.directory.policy import words
from accessportal.kernel import durations, texts
from accessportal.kernel.actors import fold_email, person
from accessportal.kernel.errors import InvalidRequest
from accessportal.observe.logs import hide_secrets
from accessportal.portal.requests.forms import RequestForm, target_fields
from accessportal.sandboxes import policy as sandboxes
from accessportal.store import cursors
from accessportal.tokens import policy as tokens
from accessportal.tokens.states import TokenRefused
from accessportal.web.addresses import KeyConverter
from tests.depth import IS_DEEP

ROOT = Path(accessportal.__file__).parent
SMALL, LARGE = 4_000, 16_000
# What is faster is not worth comparing: one hiccup of the machine is longer.
NOTHING_SECONDS = 0.005
# Linear work takes 4 times as long, quadratic 16 times.
MOST_TIMES = 9
BODY_LIMIT = Conf.model_fields["most_body_bytes"].default
# Linear work takes some hundredths of it, quadratic hours.
MOST_SECONDS = 1.5

# Patterns that are made at run time, each with its reason.
NEVER_IMPORTED = {("wsgi.py", "accessportal.wsgi"), ("twin/__main__.py", "accessportal.twin.__main__")}
MADE_LATER = {
    ("twin/protocol.py", "str(limits['pattern'])"): "the twin's, from botocore's own models, for the calls that the portal makes",
}


@functools.cache
def _sources() -> list[tuple[str, str, str]]:
    """Where each module is, what it is called, and its text."""
    places = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "migrations"]
    dotted = [".".join(["accessportal", *place.with_suffix("").parts]).removesuffix(".__init__") for place in places]
    return [(place.as_posix(), name, (ROOT / place).read_text()) for place, name in zip(places, dotted, strict=True)]


@functools.cache
def _modules(*, told: str = "") -> list[tuple[str, str, ast.Module]]:
    """Those whose text the pattern ``told`` is found in, parsed."""
    return [(place, name, ast.parse(text)) for place, name, text in _sources() if re.search(told, text)]


def _is_of_re(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
            return True
    return False


def _patterns() -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """Every call of a function of ``re`` in the source, with what its pattern is in its module, and how it is used there."""
    for place, dotted, tree in _modules(told=r"\bre\."):
        names = {} if (place, dotted) in NEVER_IMPORTED else vars(importlib.import_module(dotted))
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and _is_of_re(node)) or (place, ast.unparse(node.args[0])) in MADE_LATER:
                continue
            pattern, *rest = (eval(compile(ast.Expression(given), place, "eval"), names) for given in _pattern_and_flags(node))
            for method in _uses(tree, node):
                yield place, pattern, getattr(re.compile(pattern, *rest), method)


def _pattern_and_flags(call: ast.Call) -> list[ast.expr]:
    named = [word.value for word in call.keywords if word.arg == "flags"]
    # The other functions have the text in the second place.
    return (call.args if ast.unparse(call.func) == "re.compile" else call.args[:1]) + named


def _uses(tree: ast.Module, call: ast.Call) -> set[str]:
    """``search``, ``match`` or ``fullmatch``: how far a pattern may begin from a text's beginning decides what it costs."""
    assert isinstance(call.func, ast.Attribute)
    used = {call.func.attr}
    if used == {"compile"}:
        (name,) = (ast.unparse(one.targets[0]) for one in ast.walk(tree) if isinstance(one, ast.Assign) and one.value is call)
        used = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute) and ast.unparse(one.value) == name}
    assert used, f"{ast.unparse(call)} is used nowhere in its module"
    return {method if method in {"match", "fullmatch"} else "search" for method in used}


PATTERNS = list(_patterns())


def _parts(pattern: str) -> list[str]:
    """Pieces that ``pattern`` is made of: its literal words, and one or two members of each class of characters."""
    found = re.findall(r"[A-Za-z0-9]{2,}", pattern)
    candidates = ["a", "Z", "0", "_", "-", " ", "\t", "=", ":", "/", ".", "@", "'", ",", "P", "T", "d", "é", "\u0301", "\n"]
    return [*dict.fromkeys([*found[: 12 if IS_DEEP else 3], *candidates])]


def _hostile(pattern: str, length: int) -> Iterator[str]:
    """Repetitions of each piece, of each two, and of one behind the other, all with an end that nothing takes."""
    parts = _parts(pattern)
    for one in parts:
        yield (one * length)[:length] + "\0"
        for other in parts:
            if one != other:
                yield ((one + other) * length)[:length] + "\0"
                yield (one * length)[: length // 2] + (other * length)[: length // 2] + "\0"


def _seconds(work: Callable[[], object], *, tries: int = 3) -> float:
    """CPU time, so that a busy machine counts for nothing."""
    taken = []
    for _ in range(tries):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def _grows_faster_than_its_text(work: Callable[[str], object], small: str, large: str) -> bool:
    if _seconds(lambda: work(large), tries=1) < NOTHING_SECONDS:
        return False
    return _seconds(lambda: work(large)) > MOST_TIMES * _seconds(lambda: work(small)) + NOTHING_SECONDS


def test_the_measure_knows_what_grows_faster() -> None:
    """Otherwise the tests below would say nothing. The pattern once stood in the logs; its work grows with the third power."""
    cubic = re.compile(r"(?:[\w-]*(?:password|token)[\w-]*)['\"]?\s*[=:]")

    assert _grows_faster_than_its_text(cubic.search, "token" * 25, "token" * 100)
    assert _grows_faster_than_its_text(re.compile(r"\w*[=:]").search, "a" * 1_000, "a" * 8_000)
    assert not _grows_faster_than_its_text(re.compile(r"token=").search, "token" * 1_000, "token" * 4_000)


@pytest.mark.deep
@pytest.mark.parametrize(("text", "method"), [pytest.param(text, method, id=f"{at}:{text[:30]}") for at, text, method in PATTERNS])
def test_no_pattern_takes_longer_than_its_text(text: str, method: Callable[[str], object]) -> None:
    for small, large in zip(_hostile(text, SMALL), _hostile(text, LARGE), strict=True):
        assert not _grows_faster_than_its_text(method, small, large), large[:20]


def test_every_pattern_is_looked_at() -> None:
    """A pattern reaches the test above by its place in the source, so nobody has ``re``'s functions under another name."""
    bare = [place for place, _, tree in _modules() for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "re"]
    named = [one for _, _, tree in _modules() for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]

    assert bare == []
    assert [one.asname for one in named if one.name == "re" and one.asname] == []
    assert [one.name for one in named if one.name in {"regex", "re2"}] == []
    assert len(PATTERNS) >= 15


def test_patterns_of_the_api_never_go_back() -> None:
    """They are compiled by pydantic's own engine, which takes one step for each letter; another one can be asked for by name."""
    assert [place for place in ROOT.rglob("*.py") if "python-re" in place.read_text()] == []

    for text in (schemas.HEADER_TEXT, schemas.REASON, schemas._ID):
        check: TypeAdapter[str] = TypeAdapter(Annotated[str, Field(pattern=text)])
        for piece in ("! ", "!", " ", "a\n"):
            assert not _grows_faster_than_its_text(_refusing(check.validate_python), piece * SMALL + "\0", piece * LARGE + "\0")


def test_texts_are_normalised_in_one_place() -> None:
    """Sorting marks takes the square of their number, so the place must judge the length, and the marks in a row, before."""
    used = [(place, node.attr) for place, _, tree in _modules() for node in ast.walk(tree) if isinstance(node, ast.Attribute)]

    assert {place for place, name in used if name in {"normalize", "is_normalized", "normalize_username"}} == {"kernel/texts.py"}


def _refusing(work: Callable[[str], object]) -> Callable[[str], object]:
    """Being refused is an answer."""

    def answer(text: str) -> object:
        try:
            return work(text)
        except (InvalidRequest, TokenRefused, ValueError) as error:
            return error

    return answer


def _form(text: str) -> object:
    """All of its text fields."""
    target = target_fields(KINDS["group"], person("alice@example.com"), ApproverBook(now=datetime(2026, 3, 2, tzinfo=UTC)))
    return RequestForm(dict.fromkeys([*target, *RequestForm.base_fields], text), target=target).is_valid()


def _clean(text: str) -> object:
    return texts.clean_text(text, field="reason", name="Why", longest=2_000, newlines=True)


FROM_STRANGERS: dict[str, Callable[[str], object]] = {
    "a log line": lambda text: hide_secrets(None, "info", {"request": text, "user_agent": text, "inside": [{"page": text}]}),
    "text": _clean,
    "text that is kept as it is": lambda text: texts.check_text(text, field="reason", name="Why", longest=2_000),
    "a form": _form,
    "a ticket": requests.clean_ticket,
    "a duration": durations.parse_duration,
    "an address": words.clean_email,
    "a key": words.key_of,
    "a folded address": fold_email,
    "a group": words.clean_group_id,
    "a name": words.clean_name,
    "a description": words.clean_description,
    "a search": catalog.words_of,
    "a token": tokens.parts_of,
    "a token's name": tokens.check_name,
    "a sandbox's reason": sandboxes.check_reason,
    "a track": sandboxes.check_programs_track,
    "a cursor": lambda text: cursors.read_cursor("p", text),
    # No server takes an address of that length; gunicorn's limit is 4,094.
    "a key in an address": lambda text: KeyConverter().to_python(text[:100_000]),
}
# Each is repeated up to the limit of a body.
PIECES = (
    *("token", "token ", "token=", "a=", 'token"', "a\u0301", "\u0301\u0323", "\u1100\u1161\u11a8", "é", " ", "\r\n"),
    *("/a", "a.", "a@", "1d", "%7E", "\0", "~", "-"),
)


@pytest.mark.parametrize("work", [pytest.param(work, id=name) for name, work in FROM_STRANGERS.items()])
def test_what_strangers_send_takes_milliseconds_up_to_the_limit_of_a_body(work: Callable[[str], object]) -> None:
    for piece in PIECES:
        text = ("a" + piece * BODY_LIMIT)[:BODY_LIMIT]

        assert _seconds(partial(_refusing(work), text), tries=1) < MOST_SECONDS, piece
