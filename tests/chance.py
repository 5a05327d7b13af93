"""The product's own random choices, all decided one way: ``PORTAL_TESTS_CHANCE=low`` or ``high``.

A test that passes both ways does not hang on which sandbox was lent or whose id came first.

Hypothesis draws some values from the constants of the modules that are loaded by then, which hangs on the tests before. Here it draws from
those of the whole product, so that its fixed examples are the same in every run, of one test or of all.
"""

from __future__ import annotations

import itertools
import os
import types
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants, constants_from_module

import accessportal
from accessportal.kernel import ids
from accessportal.sandboxes.operations import taking
from accessportal.sandboxes.states import KeyRecord, Sandbox
from accessportal.sandboxes.store import free_list

_CHANCE = os.environ.get("PORTAL_TESTS_CHANCE", "")
_QUICK = taking._quick


@cache
def _constants_of_the_product() -> Constants:
    found = Constants()
    for path in sorted(Path(accessportal.__path__[0]).rglob("*.py")):
        module = types.ModuleType(path.stem)
        module.__file__ = str(path)
        found |= constants_from_module(module)
    return providers._local_constants | found


def pytest_configure() -> None:
    """For the rest of this process."""
    vars(providers)["_get_local_constants"] = _constants_of_the_product


@pytest.fixture(scope="session", autouse=True)
def _chance() -> Iterator[None]:
    if not _CHANCE:
        yield
        return
    is_high = {"low": False, "high": True}[_CHANCE]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taking, "_quick", partial(_by_name, is_high=is_high))
        patch.setattr(ids, "os", types.SimpleNamespace(urandom=_counting(is_high=is_high)))
        yield


@pytest.fixture
def quick_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the quick look itself, whatever it chooses."""
    monkeypatch.setattr(taking, "_quick", _QUICK)


def _by_name(asked: taking.Asked, record: KeyRecord | None, *, is_high: bool) -> Sandbox | None:
    """The free sandbox whose name comes first, or last, instead of one near a random place."""
    lists = (free_list.every_entry(shard, past=taking._pass_over) for shard in free_list.shards())
    entries = sorted(itertools.chain.from_iterable(lists), key=lambda entry: (entry.name, entry.sandbox_id), reverse=is_high)
    return taking._first_lent(entries, asked, record)


def _counting(*, is_high: bool) -> Callable[[int], bytes]:
    """Ids of one millisecond rise, or fall, in the order in which they are made."""
    numbers = itertools.count(2**60, -1) if is_high else itertools.count(2**32)
    return lambda size: next(numbers).to_bytes(size, "big")
