"""No name that is not ASCII becomes a key that is: at night over every code point, wherever names become keys."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from accessportal.access_requests.kinds.aws_account.terms import AccountAsked, AccountTargets
from accessportal.aws.cognito import _require_name_kept
from accessportal.aws.errors import Refused
from accessportal.catalog import policy as catalog
from accessportal.catalog import queries
from accessportal.catalog.states import PrincipalType
from accessportal.catalog.store import principal_key
from accessportal.directory.policy.words import clean_email, is_group_id, key_of
from accessportal.kernel.actors import fold_email, person
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.texts import fold_key
from accessportal.mirror.policy import person_of
from tests.catalog.conftest import account, fill, user
from tests.depth import IS_DEEP

# Every code point at night, and else those of scripts that have a case, and of the blocks of letters in another shape.
BLOCKS = (
    [(0x80, sys.maxunicode + 1)]
    if IS_DEEP
    else [(0x80, 0x3400), (0xA000, 0xAC00), (0xF900, 0x11000), (0x1D400, 0x1D800), (0x1F100, 0x1F200)]
)
ODD = [chr(number) for block in BLOCKS for number in range(*block)]
# Folded, composed, wide, or stripped they become ASCII letters, or nothing.
TRICKY = ["\u212a", "\u017f", "\u0130", "\u0131", "\u00df", "\ufb00", "\uff4b", "\u00a0", "\u2003", "\u200b", "\u0345", "\u1e9e"]

KEYS: dict[str, Callable[[str], str | None]] = {
    "any": fold_key,
    "address": fold_email,
    "actor": lambda name: person(name).name,
    "directory": key_of,
    "person in the pool": person_of,
    "user of the Identity Store": lambda name: principal_key(PrincipalType.USER, name),
    "group of the Identity Store": lambda name: principal_key(PrincipalType.GROUP, name),
    "account": catalog.key_of,
}


@pytest.mark.deep
@pytest.mark.parametrize("rule", KEYS)
def test_no_other_letter_becomes_an_ascii_key(rule: str) -> None:
    make = KEYS[rule]
    everything = ODD if rule in ("any", "address", "directory") else TRICKY

    for letter in everything:
        for name in (f"{letter}im@example.com", f"kim@example.com{letter}", f"kim{letter}@example.com"):
            key = make(name)
            assert key is None or not key.isascii(), f"U+{ord(letter):04X}"


def test_ascii_letters_are_one_whatever_their_case() -> None:
    assert fold_email(" Kim@Example.COM\t") == "kim@example.com"
    assert key_of(" Kim@Example.COM ") == "kim@example.com"
    assert fold_key("I") == "i"
    assert catalog.key_of(" Payments  Prod ") == "payments prod"


@pytest.mark.parametrize("letter", TRICKY)
def test_what_is_not_ascii_names_neither_a_person_nor_a_group(letter: str) -> None:
    for name in (f"{letter}im@example.com", f"kim@example.com{letter}"):
        with pytest.raises(InvalidRequest):
            clean_email(name)
    assert not is_group_id(f"/{letter}ms")


@pytest.mark.parametrize("letter", TRICKY)
def test_a_rule_for_an_account_is_not_for_one_that_looks_like_it(letter: str) -> None:
    def admits(name: str) -> bool:
        return AccountTargets(accounts=("KMS-prod",)).has(AccountAsked("111122223333", name, "/"))

    assert admits("kms-PROD")
    assert not admits(f"{letter}ms-prod")
    assert not admits(f"kms-prod{letter}")


def test_a_rule_for_an_account_s_id_is_not_for_one_that_is_named_so() -> None:
    where = AccountTargets(accounts=("111122223333",))

    assert where.has(AccountAsked("111122223333", "444455556666", "/"))
    assert not where.has(AccountAsked("444455556666", "111122223333", "/"))


def test_a_pool_that_finds_somebody_else_under_a_name_is_refused() -> None:
    _require_name_kept("pool", "kim@example.com", given="Kim@example.com")
    with pytest.raises(Refused):
        _require_name_kept("pool", "kim@example.com", given="\u212aim@example.com")


@pytest.mark.django_db
def test_a_grant_for_kim_goes_to_kim_or_to_nobody() -> None:
    stranger = user("user-1", "\u212aim@example.com")
    fill(principals=[stranger], accounts=[account(1, "\u212ams-prod")])

    assert queries.find_user_principal(email="kim@example.com") is None
    assert queries.find_account(account="kms-prod") is None

    fill(principals=[stranger, user("user-2", "Kim@example.com")], accounts=[account(1, "\u212ams-prod"), account(2, "KMS-prod")])
    found, named = queries.find_user_principal(email="kim@example.com"), queries.find_account(account="kms-prod")
    assert found is not None
    assert found.principal_id == "user-2"
    assert named is not None
    assert named.name == "KMS-prod"
