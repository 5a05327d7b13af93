"""Who may decide, from live facts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from accessportal.access_requests.config import current
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Approver, Approvers, Status, Tally
from accessportal.directory import queries as directory
from accessportal.directory.states import END_OF_TIME, Crowd, GroupRole, Person
from accessportal.kernel.actors import Actor
from accessportal.rules import queries as rules
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Rule

_NOBODY = Approvers(people=(), quorum=0, is_fallback=False, missing_groups=())


class ApproverBook:
    """Approvers and holders of many requests, each fact looked up once. Made for one page or one decision, never kept. ``now`` is the
    moment at which memberships are judged: they can end."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now
        self._crowds: dict[tuple[tuple[str, ...], ...], Crowd] = {}
        self._admins: dict[str, Crowd] = {}
        self._is_admin_on: dict[tuple[str, str], bool] = {}
        self._persons: dict[str, tuple[Person | None, frozenset[str], frozenset[str]]] = {}
        self._rules: dict[str, Rule] | None = None
        self._gives_power: dict[str, bool] = {}
        self._lasting: ApproverBook | None = None

    def of_request(self, request: AccessRequest) -> Approvers:
        """By the rule as it is now; by the request's own copy when the rule is gone or asks for no approval any more."""
        identity = request.identities.get(request.requested_by, "")
        demand = self._demand_of(request)
        book = self._book_of(request)
        return book.of_demand(demand, requested_by=request.requested_by, subject_id=request.subject_id, identity=identity)

    def is_approver(self, request: AccessRequest, email: str) -> bool:
        """Whether :meth:`of_request` has this person. Of their own groups alone: the others are listed only for an operator, who
        stands in only where they are too few."""
        book = self._book_of(request)
        if not book._could_decide(request, email):
            return False
        return book._is_named(self._demand_of(request), email) or self._stands_in(request, email)

    def approved_rules(self, actor: Actor) -> tuple[str, ...]:
        """The names of the rules by which the actor or one of their groups is named as an approver, or which leave a group's requests to
        its admins, and the actor is one of some group."""
        named, by_admins = self._named_in(actor)
        return (*named, *(by_admins if by_admins and self._is_admin_somewhere(actor.name) else ()))

    def approves_anywhere(self, actor: Actor) -> bool:
        """Whether there are :meth:`approved_rules`."""
        named, by_admins = self._named_in(actor)
        return bool(named) or (bool(by_admins) and self._is_admin_somewhere(actor.name))

    def _named_in(self, actor: Actor) -> tuple[list[str], list[str]]:
        asking = [rule for rule in self._current_rules().values() if rule.effect is Effect.ALLOW and rule.approval.required]
        _, groups, direct = self._person(actor.name)
        named = [rule.name for rule in asking if includes(rule.approval.approvers, subject=actor.name, groups=groups, direct=direct)]
        return named, [rule.name for rule in asking if rule.asks_admins]

    def _is_admin_somewhere(self, email: str) -> bool:
        return any(one.role is GroupRole.ADMIN for one in directory.roles_of(email=email, now=self._now))

    def identity_of(self, email: str) -> str:
        """Which account of the sign-in service is theirs; empty for none."""
        person = self._person(email)[0]
        return person.identity if person is not None else ""

    def tally(self, request: AccessRequest, approvals: Collection[str]) -> Tally:
        """Which of ``approvals`` count now: those of people who may decide. Somebody disabled since does not, two of one account of
        the sign-in service count once, and one of the requester's account never."""
        demand = self._demand_of(request)
        valid = [email for email in approvals if self.is_approver(request, email)]
        book = self._book_of(request)
        is_fallback = any(not book._is_named(demand, email) for email in valid)
        humans = {request.identities.get(email, email) for email in valid} - {request.identities.get(request.requested_by)}
        return Tally(given=len(humans), quorum=max(1, demand.quorum) if demand.required else 0, is_fallback=is_fallback)

    def of_demand(self, demand: ApprovalDemand, *, requested_by: str, subject_id: str, identity: str = "") -> Approvers:
        """List the live, enabled approvers without the requester and whoever the access would serve. The requester by another address is
        among them, and counts for nothing. Where they are fewer than the quorum the operators stand in, so that no request is
        undecidable."""
        if not demand.required:
            return _NOBODY
        quorum = max(1, demand.quorum)
        crowd = self._admins_of(demand.admins_of) if demand.admins_of else self._crowd(demand.groups, demand.users, demand.groups_only)
        excluded = {requested_by, subject_id} | self._served(subject_id)
        people = _without(crowd, excluded)
        if sum(1 for one in people if not identity or one.identity != identity) >= quorum:
            return Approvers(people=people, quorum=quorum, is_fallback=False, missing_groups=crowd.missing_groups)
        own = {person.email for person in people}
        operators = _without(self._crowd((current().operator_group,)), excluded | own)
        return Approvers(people=people + operators, quorum=quorum, is_fallback=True, missing_groups=crowd.missing_groups)

    def about(self, *, group_id: str, role: str) -> ApproverBook:
        """Return the book to ask about a request for this membership (``group_id`` empty: for something else). Where it gives the right to
        let others decide, only rights without an end count: two who have it for a time would keep each other for ever."""
        if not group_id or not self._is_power(group_id, role):
            return self
        if self._lasting is None:
            self._lasting = ApproverBook(now=END_OF_TIME)
            self._lasting._rules = self._current_rules()
        return self._lasting

    def _book_of(self, request: AccessRequest) -> ApproverBook:
        group_id, role = kind_named(request.kind).target.membership(request.target)
        return self.about(group_id=group_id, role=role)

    def _is_power(self, group_id: str, role: str) -> bool:
        """Whether whoever is in the group with this role decides on requests, by any rule or as an operator."""
        if role == GroupRole.ADMIN.value:
            return True
        if group_id not in self._gives_power:
            group = directory.find_group(group_id=group_id)
            approvers = [rule.approval.approvers for rule in self._current_rules().values()]
            named = {current().operator_group}.union(*(one.groups for one in approvers))
            is_above = not named.isdisjoint({group_id, *(group.ancestors if group else ())})
            self._gives_power[group_id] = is_above or any(group_id in one.groups_only for one in approvers)
        return self._gives_power[group_id]

    def is_holder(self, request: AccessRequest, actor: Actor) -> bool:
        """The subject, or somebody in the subject group."""
        return self._is_served(request.subject_id, actor.name)

    def _is_served(self, subject_id: str, email: str) -> bool:
        return subject_id in self._person(email)[1] if subject_id.startswith("/") else subject_id == email

    def _could_decide(self, request: AccessRequest, email: str) -> bool:
        """Somebody enabled whom it is not for, if it is decided by people at all."""
        if not self._demand_of(request).required or email == request.requested_by or self._is_served(request.subject_id, email):
            return False
        person = self._person(email)[0]
        return person is not None and person.is_enabled

    def _is_named(self, demand: ApprovalDemand, email: str) -> bool:
        """Whether the rule itself lets this person decide, who is enabled."""
        if demand.admins_of:
            return self._is_admin(email, demand.admins_of)
        _, groups, direct = self._person(email)
        return email in demand.users or not groups.isdisjoint(demand.groups) or not direct.isdisjoint(demand.groups_only)

    def _stands_in(self, request: AccessRequest, email: str) -> bool:
        if current().operator_group not in self._book_of(request)._person(email)[1]:
            return False
        return any(one.email == email for one in self.of_request(request).people)

    def _person(self, email: str) -> tuple[Person | None, frozenset[str], frozenset[str]]:
        if email not in self._persons:
            self._persons[email] = directory.find_person_with_groups(email=email, now=self._now)
        return self._persons[email]

    def _served(self, subject_id: str) -> set[str]:
        return {person.key for person in self._crowd((subject_id,)).people} if subject_id.startswith("/") else set()

    def _crowd(self, groups: tuple[str, ...], users: tuple[str, ...] = (), groups_only: tuple[str, ...] = ()) -> Crowd:
        key = (groups, users, groups_only)
        if key not in self._crowds:
            self._crowds[key] = directory.people_in(groups=groups, groups_only=groups_only, users=users, now=self._now)
        return self._crowds[key]

    def _is_admin(self, email: str, group_id: str) -> bool:
        if (email, group_id) not in self._is_admin_on:
            role = directory.role_on(email=email, group_id=group_id, now=self._now)
            self._is_admin_on[email, group_id] = role is GroupRole.ADMIN
        return self._is_admin_on[email, group_id]

    def _admins_of(self, group_id: str) -> Crowd:
        if group_id not in self._admins:
            self._admins[group_id] = directory.admins_of(group_id=group_id, now=self._now)
        return self._admins[group_id]

    def _demand_of(self, request: AccessRequest) -> ApprovalDemand:
        return self._demand_now(request) or request.approval

    def _demand_now(self, request: AccessRequest) -> ApprovalDemand | None:
        rule = self._current_rules().get(request.rule_name)
        demands = rule is not None and rule.effect is Effect.ALLOW and rule.approval.required
        return (
            demand_of(rule, group_id=kind_named(request.kind).target.membership(request.target)[0])
            if rule is not None and demands
            else None
        )

    def _current_rules(self) -> dict[str, Rule]:
        if self._rules is None:
            self._rules = {rule.name: rule for rule in rules.current_rules()}
        return self._rules


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
    return Standing(
        is_requester=request.requested_by == actor.name,
        is_holder=not actor.is_system and book.is_holder(request, actor),
        is_approver=lambda: not actor.is_system and book.is_approver(request, actor.name),
        approvers=lambda: book.of_request(request),
        identity=lambda: "" if actor.is_system else book.identity_of(actor.name),
    )


def with_identities(request: AccessRequest) -> AccessRequest:
    """The request with the accounts of the sign-in service that it does not tell of (an earlier version's), as they are now."""
    unknown = {request.requested_by, *request.approvals} - request.identities.keys()
    found = directory.find_people(emails=unknown) if unknown and request.status is Status.PENDING else {}
    live = {key: person.identity for key, person in found.items() if person.identity}
    return replace(request, identities={**live, **request.identities}) if live else request


def is_approver_anywhere(*, actor: Actor, now: datetime, book: ApproverBook | None = None) -> bool:
    """Whether some current rule names the actor or one of their groups as an approver, or leaves a group's requests to its
    admins and the actor is one of some group. One ``book`` serves a whole page."""
    return (book or ApproverBook(now=now)).approves_anywhere(actor)


def _without(crowd: Crowd, excluded: set[str]) -> tuple[Approver, ...]:
    people = (person for person in crowd.people if person.key not in excluded)
    return tuple(Approver(email=person.key, name=person.name or person.email, identity=person.identity) for person in people)
