"""Who may decide, from live facts."""

from __future__ import annotations

from datetime import datetime

from accessportal.access_requests.config import current
from accessportal.access_requests.kinds import kind_named
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Approver, Approvers
from accessportal.directory import queries as directory
from accessportal.directory.states import Crowd, GroupRole
from accessportal.kernel.actors import Actor
from accessportal.rules import queries as rules
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Rule

_NOBODY = Approvers(people=(), quorum=0, is_fallback=False, missing_groups=())


class ApproverBook:
    """Approvers and holders of many requests, each fact looked up once. Made for one page or one decision, never kept.

    ``now`` is the moment at which memberships are judged: they can end.
    """

    def __init__(self, *, now: datetime) -> None:
        self._now = now
        self._crowds: dict[tuple[tuple[str, ...], ...], Crowd] = {}
        self._admins: dict[str, Crowd] = {}
        self._groups: dict[str, frozenset[str]] = {}
        self._rules: dict[str, Rule] | None = None

    def of_request(self, request: AccessRequest) -> Approvers:
        """By the rule as it is now; by the request's own copy when the rule is gone or asks for no approval any more."""
        demand = self._demand_now(request) or request.approval
        return self.of_demand(demand, requested_by=request.requested_by, subject_id=request.subject_id)

    def of_demand(self, demand: ApprovalDemand, *, requested_by: str, subject_id: str) -> Approvers:
        """The live, enabled approvers without the requester and without whoever the access would serve.

        Fewer than the quorum (a deleted group, disabled people): the operators stand in, so that no request is undecidable.
        """
        if not demand.required:
            return _NOBODY
        quorum = max(1, demand.quorum)
        crowd = self._admins_of(demand.admins_of) if demand.admins_of else self._crowd(demand.groups, demand.users, demand.groups_only)
        excluded = {requested_by, subject_id} | self._served(subject_id)
        people = _without(crowd, excluded)
        if len(people) >= quorum:
            return Approvers(people=people, quorum=quorum, is_fallback=False, missing_groups=crowd.missing_groups)
        own = {person.email for person in people}
        operators = _without(self._crowd((current().operator_group,)), excluded | own)
        return Approvers(people=people + operators, quorum=quorum, is_fallback=True, missing_groups=crowd.missing_groups)

    def is_holder(self, request: AccessRequest, actor: Actor) -> bool:
        """The subject, or somebody in the subject group."""
        if not request.subject_id.startswith("/"):
            return request.subject_id == actor.name
        if actor.name not in self._groups:
            self._groups[actor.name] = directory.groups_of(email=actor.name, now=self._now)
        return request.subject_id in self._groups[actor.name]

    def _served(self, subject_id: str) -> set[str]:
        return {person.key for person in self._crowd((subject_id,)).people} if subject_id.startswith("/") else set()

    def _crowd(self, groups: tuple[str, ...], users: tuple[str, ...] = (), groups_only: tuple[str, ...] = ()) -> Crowd:
        key = (groups, users, groups_only)
        if key not in self._crowds:
            self._crowds[key] = directory.people_in(groups=groups, groups_only=groups_only, users=users, now=self._now)
        return self._crowds[key]

    def _admins_of(self, group_id: str) -> Crowd:
        if group_id not in self._admins:
            self._admins[group_id] = directory.admins_of(group_id=group_id, now=self._now)
        return self._admins[group_id]

    def _demand_now(self, request: AccessRequest) -> ApprovalDemand | None:
        if self._rules is None:
            self._rules = {rule.name: rule for rule in rules.current_rules()}
        rule = self._rules.get(request.rule_name)
        demands = rule is not None and rule.effect is Effect.ALLOW and rule.approval.required
        return demand_of(rule, group_id=kind_named(request.kind).group_of(request.target)) if rule is not None and demands else None


def demand_of(rule: Rule, *, group_id: str) -> ApprovalDemand:
    """What a rule asks for, as a request keeps it. ``group_id`` is the group that is asked for, if one."""
    approval = rule.approval
    return ApprovalDemand(
        required=approval.required,
        quorum=approval.quorum,
        groups=approval.approvers.groups,
        users=approval.approvers.users,
        admins_of=group_id if rule.asks_admins else "",
        groups_only=approval.approvers.groups_only,
    )


def standing_of(request: AccessRequest, actor: Actor, *, now: datetime, book: ApproverBook | None = None) -> Standing:
    """What ``actor`` is to ``request`` now."""
    book = book or ApproverBook(now=now)
    approvers = book.of_request(request)
    return Standing(
        is_requester=request.requested_by == actor.name,
        is_holder=not actor.is_system and book.is_holder(request, actor),
        approvers=approvers,
        is_approver=any(person.email == actor.name for person in approvers.people),
    )


def is_approver_anywhere(*, actor: Actor, now: datetime) -> bool:
    """Whether some current rule names the actor or one of their groups as an approver, or leaves a group's requests to its
    admins and the actor is one of some group."""
    asking = [rule for rule in rules.current_rules() if rule.effect is Effect.ALLOW and rule.approval.required]
    _, groups, direct = directory.find_person_with_groups(email=actor.name, now=now)
    if any(includes(rule.approval.approvers, subject=actor.name, groups=groups, direct=direct) for rule in asking):
        return True
    if not any(rule.asks_admins for rule in asking):
        return False
    return any(one.role is GroupRole.ADMIN for one in directory.roles_of(email=actor.name, now=now))


def _without(crowd: Crowd, excluded: set[str]) -> tuple[Approver, ...]:
    return tuple(Approver(email=person.key, name=person.name or person.email) for person in crowd.people if person.key not in excluded)
