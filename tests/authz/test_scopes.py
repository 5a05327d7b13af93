"""What a scope may be called, and the seed's law of which one reaches which, over all pairs of kinds."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accessportal.authz.policy.scopes import line_of, reaches, read_scope, require_reach
from accessportal.authz.states import ScopeKind, UnauthorizedScopeAccess
from accessportal.kernel.errors import InvalidRequest

_TEXTS = (
    "global",
    "tenant:acme-corp",
    "tenant:acme",
    "env:prod",
    "env:dev",
    "tenant:acme-corp:env:prod",
    "tenant:acme-corp:env:dev",
    "tenant:acme:env:prod",
    "custom:a",
    "custom:a:b",
    "custom:a:b:c",
    "custom:ab",
    # A tenant and an environment that are called like the words of the grammar.
    "tenant:env",
    "tenant:env:env:env",
    "custom:global",
    "custom:tenant:acme-corp",
)
# Beside itself, which each reaches.
_REACHED = {
    "global": set(_TEXTS),
    "tenant:acme-corp": {"tenant:acme-corp:env:prod", "tenant:acme-corp:env:dev"},
    "tenant:acme": {"tenant:acme:env:prod"},
    "tenant:env": {"tenant:env:env:env"},
    "custom:a": {"custom:a:b", "custom:a:b:c"},
    "custom:a:b": {"custom:a:b:c"},
}


@pytest.mark.parametrize("text", _TEXTS)
def test_a_scope_is_the_text_that_it_is_read_from(text: str) -> None:
    assert read_scope(text) == text


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("global", ScopeKind.GLOBAL, ()),
        ("tenant:env", ScopeKind.TENANT, ("env",)),
        ("env:prod", ScopeKind.ENVIRONMENT, ("prod",)),
        ("tenant:env:env:env", ScopeKind.TENANT_ENVIRONMENT, ("env", "env")),
        ("custom:tenant:a", ScopeKind.CUSTOM, ("tenant", "a")),
    ],
)
def test_a_scope_tells_its_kind_and_parts(text: str, kind: ScopeKind, parts: tuple[str, ...]) -> None:
    assert (read_scope(text).kind, read_scope(text).parts) == (kind, parts)


def test_no_two_scopes_encode_alike() -> None:
    assert len({read_scope(text) for text in _TEXTS}) == len(_TEXTS)


@given(st.text(alphabet="ae:*nvtcustomglobal", max_size=30))
def test_whatever_is_read_is_written_the_same(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert read_scope(text) == text


@pytest.mark.parametrize(("caller", "asked"), list(itertools.product(_TEXTS, _TEXTS)))
def test_the_law_of_reach(caller: str, asked: str) -> None:
    expected = caller == asked or asked in _REACHED.get(caller, set())

    assert reaches(read_scope(caller), read_scope(asked)) is expected
    if not expected:
        with pytest.raises(UnauthorizedScopeAccess) as refused:
            require_reach(read_scope(caller), read_scope(asked))
        assert refused.value.code == "UnauthorizedScopeAccess"
        assert asked not in refused.value.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("global", ["global"]),
        ("tenant:acme", ["tenant:acme", "global"]),
        ("env:prod", ["env:prod", "global"]),
        ("tenant:acme:env:prod", ["tenant:acme:env:prod", "tenant:acme", "global"]),
        ("custom:a:b", ["custom:a:b", "custom:a", "global"]),
    ],
)
def test_the_line_of_a_scope_is_all_that_reach_it(text: str, line: list[str]) -> None:
    scope = read_scope(text)

    assert [str(above) for above in line_of(scope)] == line
    assert all(reaches(above, scope) for above in line_of(scope))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "scope_unreadable"),
        ("acme", "scope_unreadable"),
        ("Global", "scope_unreadable"),
        ("tenant", "scope_unreadable"),
        ("custom", "scope_unreadable"),
        ("tenant:a:env", "scope_unreadable"),
        ("tenant:a:env:b:c", "scope_unreadable"),
        ("env:a:b", "scope_unreadable"),
        ("tenant:", "scope_part_unusable"),
        ("tenant::env:prod", "scope_part_unusable"),
        ("custom:a::b", "scope_part_unusable"),
        ("tenant:a b", "scope_part_unusable"),
        ("tenant:a#b", "scope_part_unusable"),
        ("tenant:a/b", "scope_part_unusable"),
        ("tenant:*", "scope_part_unusable"),
        ("tenant:acme\n", "scope_part_unusable"),
        ("tenant:ａcme", "scope_part_unusable"),
        ("tenant:-a", "scope_part_unusable"),
        ("tenant:" + "a" * 65, "scope_part_unusable"),
        ("custom:" + ":".join("abcdefghi"), "scope_too_deep"),
        ("tenant:" + "a" * 10_000, "scope_too_long"),
    ],
)
def test_a_text_that_is_no_scope_is_refused_by_field_and_rule(text: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_scope(text, field="to")

    assert (refused.value.field, refused.value.code) == ("to", code)
