"""The demo: people, groups, a small cloud and rules. Made once; what somebody changed afterwards stays as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model

from accessportal.catalog import operations as catalog
from accessportal.catalog import queries as catalog_queries
from accessportal.demo.accounts import SIZES, ask_for_accounts, fill_account_pool, make_account_counts
from accessportal.demo.directory import COLLEAGUES, GROUPS, PEOPLE, ensure_directory
from accessportal.demo.env import HOME, PROVIDER_PATH, kept_secret
from accessportal.demo.history import PastClock
from accessportal.demo.past import change_outside, live_through
from accessportal.demo.records import ask_for_records, grant_some
from accessportal.demo.requests import ask_for_memberships, ask_for_sandbox
from accessportal.demo.sandboxes import SANDBOXES, lend_some, make_counts
from accessportal.identity.operations import ensure_demo_user
from accessportal.kernel.actors import system
from accessportal.kernel.clock import Clock
from accessportal.kernel.errors import NotAllowed, Unavailable
from accessportal.leases import operations as leases
from accessportal.leases import queries as lease_queries
from accessportal.rules import operations as rules
from accessportal.rules import queries as rule_queries
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries as pool
from accessportal.twin import world
from accessportal.twin.provider_world import seed_sandboxes
from accessportal.upstream import client as upstream

_ACTOR = system("demo")
_PASSWORD_FILE = HOME / "demo-password"
_RULES_FILE = Path(__file__).parent / "rules.yaml"
_PASSWORD_LENGTH = 12


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What the demo now holds. ``rules_loaded`` is false when rules were in force already: they are left alone."""

    password: str
    accounts: int
    permission_sets: int
    people: int
    groups: int
    rules_loaded: bool


def load_demo(
    *, accounts: int = 60, permission_sets: int = 12, past_days: int = 0, clock: Clock, progress: world.Progress | None = None
) -> DemoReport:
    """Let demo people sign in, fill the twin and have the portal know it, and put some rules in force. It may be repeated: what is missing
    is added. The first time the company is founded ``past_days`` ago, and some requests of these days are made up. ``progress`` is told of
    each thing of the cloud."""
    former, password = _password()
    is_new = not rule_queries.current_set().version
    founding = PastClock(clock.now() - timedelta(days=past_days)) if is_new else clock
    ensure_directory(founding)
    _ensure_sign_ins(password, is_new=password != former)
    made = world.seed_world(accounts=accounts, permission_sets=permission_sets, people=(*PEOPLE, *COLLEAGUES), progress=progress)
    lent = world.seed_lent(list(SIZES))
    freshness = catalog_queries.freshness()
    # A later start need not wait for what the worker does every ten minutes.
    is_known = all(catalog_queries.find_account(account=account_id) for account_id in lent.accounts.values())
    if freshness.synced_at is None or any(dataclasses.astuple(made)) or not is_known:
        freshness = catalog.sync_catalog(now=clock.now(), clock=clock)
    _fill_pool_once(clock, progress or _unwatched)
    _fill_account_pool_once(lent.accounts, clock)
    return DemoReport(
        password=password,
        accounts=freshness.accounts,
        permission_sets=freshness.permission_sets,
        people=len(PEOPLE) + len(COLLEAGUES),
        groups=len(GROUPS),
        rules_loaded=_load_rules_once(clock, founding, past_days),
    )


def load_sandboxes(*, count: int, clock: Clock, progress: world.Progress) -> int:
    """Give the twin's provider at least ``count`` sandboxes, have the pool know them, and return how many are new to it. :raises
    NotAllowed: when another provider is set: nobody else's gets made-up sandboxes."""
    url = upstream.current_url()
    if not url.endswith(PROVIDER_PATH):
        raise NotAllowed("The sandbox provider is not the local twin's; the demo makes none there.", code="provider_is_real")
    try:
        seed_sandboxes(provider_url=url, count=count, progress=progress)
    except OSError as error:
        raise Unavailable(f"The twin's sandbox provider does not answer: {error}", code="twin_unavailable") from error
    return len(sandboxes.sync(provider=upstream.provider(), apply=True, clock=clock).new)


def sign_in_lines(report: DemoReport) -> list[str]:
    """Who can sign in, with which password, to do what."""
    lines = [f"Sign in with the password {report.password} as"]
    return lines + [f"  {one.email:<20} {one.part}" for one in PEOPLE]


def _ensure_sign_ins(password: str, *, is_new: bool) -> None:
    """Only when something is new: a password that is set ends sessions."""
    known = set() if is_new else set(get_user_model().objects.values_list("username", flat=True))
    for one in PEOPLE:
        if one.email not in known:
            ensure_demo_user(email=one.email, name=one.name, password=password)


def _fill_pool_once(clock: Clock, progress: world.Progress) -> None:
    """A pool of the twin's sandboxes, some of them lent. One that has any stays as it is, and so does another provider's."""
    counted = pool.stats()
    if not upstream.current_url().endswith(PROVIDER_PATH) or (counted is not None and counted.total):
        return
    make_counts(now=clock.now())
    load_sandboxes(count=SANDBOXES, clock=clock, progress=progress)
    lend_some(now=clock.now())
    sandboxes.count(clock=clock)


def _fill_account_pool_once(ids: Mapping[str, str], clock: Clock) -> None:
    """A pool that has any accounts stays as it is."""
    if lease_queries.list_pools():
        return
    make_account_counts(now=clock.now())
    fill_account_pool(ids, now=clock.now())
    leases.count_accounts(clock=clock)


def _unwatched(_name: str, _done: int, _total: int) -> None:
    """Nobody looks on."""


def _load_rules_once(clock: Clock, founding: Clock, past_days: int) -> bool:
    """The first rules, what people ask for by them, and what the demo's services ask about."""
    if rule_queries.current_set().version:
        return False
    rules.apply_rules(text=_RULES_FILE.read_text(), actor=_ACTOR, now=founding.now())
    if past_days:
        live_through(now=clock.now())
        change_outside()
    ask_for_memberships(now=clock.now())
    grant_some(now=clock.now())
    ask_for_records(now=clock.now())
    ask_for_accounts(now=clock.now())
    if upstream.is_set():
        ask_for_sandbox(now=clock.now())
    return True


def _password() -> tuple[str, str]:
    """Return the password of the last start (empty: none), and the one from now on, given by ``PORTAL_DEMO_PASSWORD`` or made at the first
    start."""
    given = settings.DEMO_PASSWORD
    _PASSWORD_FILE.parent.mkdir(mode=0o700, exist_ok=True)
    former = _PASSWORD_FILE.read_text().strip() if _PASSWORD_FILE.exists() else ""
    if given and given != former:
        _PASSWORD_FILE.unlink(missing_ok=True)
    return former, kept_secret(_PASSWORD_FILE, length=_PASSWORD_LENGTH, value=given)
