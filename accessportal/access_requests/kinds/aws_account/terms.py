"""Rules about AWS accounts: which permission sets, in which accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from accessportal.catalog import queries as catalog
from accessportal.catalog.states import Account
from accessportal.kernel.pages import every
from accessportal.kernel.texts import fold_key
from accessportal.rules.terms import Asked, Facts, Finding, Part, Terms, judge_offer, listed
from accessportal.rules.yaml_nodes import Place

_ACCOUNT_ID = re.compile(r"[0-9]{12}")
_OU = re.compile(r"/|(?:/[^/\s](?:[^/]*[^/\s])?)+")
_PERMISSION_SET = re.compile(r"[A-Za-z0-9_+=,.@-]{1,32}")
_PAGE = 500


@dataclass(frozen=True, slots=True)
class AccountAsked(Asked):
    """OU path and tags are ``None`` where they could not be read."""

    kind = "aws_account"
    account_id: str = ""
    account_name: str = ""
    ou_path: str | None = None
    tags: Mapping[str, str] | None = None
    permission_set: str = ""

    @property
    def name(self) -> str:
        return self.account_name or self.account_id

    def words(self) -> str:
        return f"{self.permission_set} on {self.name}"

    def unreadable(self) -> Finding | None:
        if self.ou_path is not None:
            return None
        return Finding(Part.UNREADABLE, f"the place of {self.name} among the OUs could not be read", code="ou_unreadable")


@dataclass(frozen=True, slots=True)
class AccountTargets:
    """``ous`` (each with all below) or ``accounts`` (ids or names; with neither: any account), and an accepted value for every key of
    ``tags``."""

    ous: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has(self, asked: AccountAsked) -> bool:
        """Whether the account is in one of the OUs or accounts, whatever its tags. Twelve digits are an id, whoever's name they are."""
        if not self.ous and not self.accounts:
            return True
        name = "" if _ACCOUNT_ID.fullmatch(asked.account_name) else fold_key(asked.account_name)
        return any(is_at_or_below(asked.ou_path or "", top) for top in self.ous) or any(
            fold_key(account) in (asked.account_id, name) for account in self.accounts
        )


@dataclass(frozen=True, slots=True)
class Catalog:
    """The accounts and permission sets of today."""

    accounts: tuple[AccountAsked, ...]
    permission_sets: frozenset[str]


@dataclass(frozen=True, slots=True)
class AccountTerms(Terms):
    kind = "aws_account"
    targets_class = AccountTargets
    offer_key = "permission_sets"
    inputs = ("permission_set", "account")
    thing = "account"
    elsewhere = "on other accounts"
    targets: AccountTargets = field(default_factory=AccountTargets)
    permission_sets: tuple[str, ...] = ()

    @classmethod
    def read(cls, section: Place, *, is_deny: bool) -> Self:
        return cls(_read_targets(section["targets"]), section["permission_sets"].texts(check_permission_set))

    def judge(self, asked: AccountAsked, *, is_deny: bool) -> Iterator[Finding]:
        yield from self._judge_place(asked)
        yield from judge_offer(asked.permission_set, self.permission_sets, is_deny=is_deny)

    def _judge_place(self, asked: AccountAsked) -> Iterator[Finding]:
        where = self.targets
        remedy = f"Choose an account in {self.place()}."
        if not where.has(asked):
            parts = [f"is in {asked.ou_path}, not below {listed(where.ous)}"] if where.ous else []
            parts += [f"is not {listed(where.accounts)}"] if where.accounts else []
            yield Finding(Part.TARGET, f"{asked.name} {' and '.join(parts)}", remedy)
            return
        if where.tags and asked.tags is None:
            text = f"the tags of {asked.name} could not be read"
            yield Finding(Part.UNREADABLE, text, "Try again when the catalog has been refreshed.", "tags_unreadable")
            return
        for key, values in where.tags.items():
            found = (asked.tags or {}).get(key)
            if found not in values:
                has = f"has no tag {key}" if found is None else f"has {key}={found}"
                yield Finding(Part.TARGET, f"{asked.name} {has}, not {listed(values)}", remedy)

    def offered(self) -> str:
        return listed(self.permission_sets, "and") or "every permission set"

    def place(self) -> str:
        """``/Workloads/Prod``, ``accounts a and b``, ``any account``, each with its tags."""
        where = self.targets
        parts = []
        if where.ous:
            parts.append("every account" if "/" in where.ous else listed(where.ous, "and"))
        if where.accounts:
            parts.append(("account " if len(where.accounts) == 1 else "accounts ") + listed(where.accounts, "and"))
        place = " and ".join(parts) or "any account"
        tags = [f"{key} {listed(values)}" for key, values in where.tags.items()]
        return f"{place} with tag {listed(tags, 'and')}" if tags else place

    def lines(self) -> dict[str, str]:
        """``/Workloads/Prod, payments-dev; env is prod or staging``."""
        where = self.targets
        place = ", ".join((*where.ous, *where.accounts)) or "any account"
        tags = [f"{key} is {' or '.join(values)}" for key, values in sorted(where.tags.items())]
        return {"Where": "; ".join((place, *tags)), "Permission sets": ", ".join(self.permission_sets) or "every one"}

    @classmethod
    def look_up(cls) -> Catalog:
        return Catalog(
            tuple(map(facts_of, every(lambda cursor: catalog.list_accounts(cursor=cursor, limit=_PAGE)))),
            frozenset(found.name for found in every(lambda cursor: catalog.list_permission_sets(cursor=cursor, limit=_PAGE))),
        )

    def places(self, facts: Facts) -> dict[str, str]:
        return {account.account_id: account.account_name for account in _known(facts).accounts if not any(self._judge_place(account))}

    def place_counted(self, facts: Facts) -> str:
        known, where = _known(facts).accounts, self.targets
        unread = sum(1 for account in known if where.tags and account.tags is None and where.has(account))
        # No super(): a dataclass with slots is another class than the one that the method was made in.
        counted = Terms.place_counted(self, facts)
        return f"{counted[:-1]}, and {unread} whose tags can't be read)" if unread else counted

    def unknown(self, facts: Facts, rule_name: str) -> Iterator[str]:
        known, where = _known(facts), self.targets
        if not known.accounts:
            yield "The catalog has no accounts yet: accounts, OUs and permission sets were not checked."
            return
        for top in where.ous:
            if not any(is_at_or_below(account.ou_path or "", top) for account in known.accounts):
                yield f"Rule {rule_name}: there is no account in or below {top}."
        names = {account.account_id for account in known.accounts} | {fold_key(account.account_name) for account in known.accounts}
        yield from (f"Rule {rule_name}: there is no account {name}." for name in where.accounts if fold_key(name) not in names)
        missing = [name for name in self.permission_sets if name not in known.permission_sets]
        yield from (f"Rule {rule_name}: there is no permission set {name}." for name in missing)


def facts_of(account: Account, permission_set: str = "") -> AccountAsked:
    return AccountAsked(account.account_id, account.name, account.ou_path, account.tags, permission_set)


def is_at_or_below(path: str, top: str) -> bool:
    """``/a/b`` is at or below ``/a`` and ``/``; ``/ab`` is not below ``/a``."""
    return top == "/" or path == top or path.startswith(top + "/")


def _known(facts: Facts) -> Catalog:
    known: Catalog = facts.of_kinds[AccountTerms.kind]
    return known


def _read_targets(place: Place) -> AccountTargets:
    section = place.section(optional=("ous", "accounts", "tags"))
    tags = {}
    for key, accepted in section["tags"].entries().items():
        tags[key] = accepted.texts()
        if accepted.is_empty_list:
            accepted.report("A tag without accepted values matches nothing.", "Name values, or remove the tag.")
    if place.is_given and not place.has_items:
        message = "A rule without targets would be about every account."
        place.report(message, "Name ous, accounts or tags; “ous: [/]” means every account.")
    return AccountTargets(section["ous"].texts(_check_ou), section["accounts"].texts(_check_account), tags)


def _check_ou(value: str) -> str:
    return "" if _OU.fullmatch(value) else "is not an OU path: write it like /Workloads/Prod, or / for all, without a slash at the end."


def _check_account(value: str) -> str:
    if value.isascii() and value.isdigit():
        return "" if len(value) == 12 else "is not an account id: write it like 123456789012, 12 digits."
    return "" if len(value) <= 50 else "is not an account name: write it like payments-dev, at most 50 characters."


def check_permission_set(value: str) -> str:
    if _PERMISSION_SET.fullmatch(value):
        return ""
    return "is not a permission set name: write it like ReadOnlyAccess, 1 to 32 letters, digits and _+=,.@- ."
