"""What the demo's services ask about: a bot and two tenants, each with prod and dev. It has a yes, a no and one that is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from accessportal.authz import operations
from accessportal.authz.queries import APPROVALS, RELATIONSHIPS, caller_of, read_scope
from accessportal.authz.states import PRESETS, Approval, Relationship, RelationType
from accessportal.demo.requests import ask
from accessportal.kernel.actors import system

_DEMO = caller_of(system("demo"))
_HOUR = 3_600
_BOT = "deploy-bot"
_RELEASES = "https://deploy.example.com/releases"
_PROD, _DEV = "tenant:acme-corp:env:prod", "tenant:acme-corp:env:dev"
_OTHERS_PROD, _OTHERS_DEV = "tenant:widgets-inc:env:prod", "tenant:widgets-inc:env:dev"


def grant_some(*, now: datetime) -> None:
    """Grant the bot a release to Acme's prod, and one to its dev that was over an hour ago; to Widgets' prod it may read alone."""
    operations.set_policy(scope=read_scope("tenant:widgets-inc"), policy=PRESETS["short_lived"], caller=_DEMO, now=now)
    _allow(_DEV, "POST", seconds=_HOUR, now=now - timedelta(hours=2))
    _allow(_PROD, "POST", seconds=30 * 24 * _HOUR, now=now)
    _allow(_OTHERS_PROD, "GET", seconds=24 * _HOUR, now=now)
    _allow(_OTHERS_DEV, "POST", seconds=24 * _HOUR, now=now)
    _relate(_PROD, _BOT, "release-bots", now=now)
    _relate(_PROD, "release-bots", "deployers", now=now)


def ask_for_records(*, now: datetime) -> None:
    """Tom may read Acme's runbook for a while as soon as the worker comes by, and waits to become an editor of it. To be called once the
    demo's rules are in force."""
    target = {"scope": _DEV, "resource": "https://docs.example.com/runbook", "action": "GET"}
    ask("tom", "approval", target, seconds=8 * _HOUR, reason="Read how a release is undone", name="approval", now=now)
    target = {"scope": "tenant:acme-corp", "relation": "editor", "object": "docs/runbook", "relation_type": "role"}
    ask("tom", "relationship", target, seconds=24 * _HOUR, reason="Write down what we learned", name="relationship", now=now)


def _allow(scope: str, action: str, *, seconds: int, now: datetime) -> None:
    wanted = Approval(read_scope(scope), _BOT, _RELEASES, action, _DEMO.actor.name, now)
    operations.grant(APPROVALS, wanted, ttl_seconds=seconds, if_exists=operations.IfExists.REPLACE, caller=_DEMO, now=now)


def _relate(scope: str, subject: str, target: str, *, now: datetime) -> None:
    wanted = Relationship(read_scope(scope), subject, "member", target, RelationType.MEMBERSHIP, _DEMO.actor.name, now)
    operations.grant(RELATIONSHIPS, wanted, ttl_seconds=30 * 24 * _HOUR, if_exists=operations.IfExists.REPLACE, caller=_DEMO, now=now)
