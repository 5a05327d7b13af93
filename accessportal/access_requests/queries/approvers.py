"""Who may decide, from live facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from accessportal.access_requests.config import current
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.policy import Standing
from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Approver, Approvers, Status, Tally
from accessportal.directory import queries as directory
from accessportal.directory.queries import Book, Named
from accessportal.directory.states import END_OF_TIME, Crowd, GroupRole
from accessportal.kernel.actors import Actor
from accessportal.rules import queries as rules
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Question, Rule, RuleDecision

_NOBODY = Approvers(people=(), quorum=0, is_fallback=False, missing_groups=())


class ApproverBook:
    """Approvers and holders of many requests: each person, group and rule is read once. Made for one web request or one decision, never
    kept (docs/decisions/0064-what-a-web-request-remembers.md). ``now`` is the moment at which memberships are judged: they can end."""

    def __init__(self, *, now: datetime) -> None:
        self.now = now
        self.directory = Book()

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Return the rules in force, by name, in their order."""
        return {rule.name: rule for rule in rules.current_rules()}

    def decide(self, question: Question) -> RuleDecision:
        """Ask the rules, with the whole explanation."""
        return rules.decide(question=question, among=self.rules.values())

    def expect(self, requests: Iterable[AccessRequest]) -> None:
        """Read the groups that these requests are about at once."""
        self.directory.groups(_membership(one)[0] for one in requests)

    def expect_approvers(self, requests: Collection[AccessRequest]) -> None:
        """Read who decides on these requests, and whom they serve, at once; not who stands in where those are too few."""
        demands = [self._demand_of(one) for one in requests]
        served = {Named(groups=(one.subject_id,)) for one in requests if one.subject_id.startswith("/")}
        self.directory.look_up({*(_named_by(demand) for demand in demands if demand.required), *served})
        self.expect(requests)

    def expect_standings(self, requests: Collection[AccessRequest], actor: Actor) -> None:
        """Read at once what tells whether the actor decides on these; of an operator who stands in, how many others there are."""
        self.expect(requests)
        if actor.is_operator:
            named = (self._is_named(self._demand_of(one), actor.name, self._moment_of(one)) for one in requests)
            self.expect_approvers([one for one, is_named in zip(requests, named, strict=True) if not is_named])

    def of_request(self, request: AccessRequest) -> Approvers:
        """List who may decide it now, without those who may not because it is their own: by the rule as it is now; by the request's own
        copy when the rule is gone or asks for no approval any more."""
        return self.of_demand(
            self._demand_of(request),
            requested_by=request.requested_by,
            subject_id=request.subject_id,
            identity=request.identities.get(request.requested_by, ""),
            at=self._moment_of(request),
        )

    def is_approver(self, request: AccessRequest, email: str) -> bool:
        """Whether :meth:`of_request` has this person. Of their own groups alone: the others are listed only for an operator, who
        stands in only where they are too few."""
        at = self._moment_of(request)
        if not self._could_decide(request, email, at):
            return False
        return self._is_named(self._demand_of(request), email, at) or self._stands_in(request, email, at)

    def approved_rules(self, actor: Actor) -> tuple[str, ...]:
        """The names of the rules by which the actor or one of their groups is named as an approver, or which leave a group's requests to
        its admins, and the actor is one of some group."""
        asking = [rule for rule in self.rules.values() if rule.effect is Effect.ALLOW and rule.approval.required]
        groups, direct = self._groups_of(actor.name, self.now)
        named = [rule.name for rule in asking if includes(rule.approval.approvers, subject=actor.name, groups=groups, direct=direct)]
        by_admins = [rule.name for rule in asking if rule.asks_admins]
        return (*named, *(by_admins if by_admins and self._is_admin_somewhere(actor.name) else ()))

    def standing(self, request: AccessRequest, actor: Actor) -> Standing:
        """What ``actor`` is to ``request`` now."""
        return Standing(
            is_requester=actor.name in (request.requested_by, request.asked_through),
            is_holder=not actor.is_system and self._is_served(request.subject_id, actor.name, self.now),
            is_approver=lambda: not actor.is_system and self.is_approver(request, actor.name),
            approvers=lambda: self.of_request(request),
            identity=lambda: "" if actor.is_system else self._identity_of(actor.name),
        )

    def tally(self, request: AccessRequest, approvals: Collection[str] | None = None) -> Tally:
        """Which of ``approvals`` (those that it has) count now: those of people who may decide. Somebody disabled since does not, two of
        one account of the sign-in service count once, and one of the requester's account never."""
        demand, at = self._demand_of(request), self._moment_of(request)
        valid = [email for email in (request.approvals if approvals is None else approvals) if self.is_approver(request, email)]
        is_fallback = any(not self._is_named(demand, email, at) for email in valid)
        humans = {request.identities.get(email, email) for email in valid} - {request.identities.get(request.requested_by)}
        return Tally(given=len(humans), quorum=max(1, demand.quorum) if demand.required else 0, is_fallback=is_fallback)

    def of_demand(self, demand: ApprovalDemand, *, requested_by: str, subject_id: str, identity: str = "", at: datetime) -> Approvers:
        """List the live, enabled approvers ``at`` the :meth:`moment_for` it, without the requester and whoever the access would serve. The
        requester by another address is among them, and counts for nothing. Where they are fewer than the quorum the operators stand in,
        so that no request is undecidable."""
        if not demand.required:
            return _NOBODY
        quorum = max(1, demand.quorum)
        crowd = self.directory.crowd(_named_by(demand), now=at)
        excluded = {requested_by, subject_id} | self._served(subject_id, at)
        people = _without(crowd, excluded)
        if sum(1 for one in people if not identity or one.identity != identity) >= quorum:
            return Approvers(people=people, quorum=quorum, is_fallback=False, missing_groups=crowd.missing_groups)
        own = {person.email for person in people}
        operators = _without(self.directory.crowd(Named(groups=(current().operator_group,)), now=at), excluded | own)
        return Approvers(people=people + operators, quorum=quorum, is_fallback=True, missing_groups=crowd.missing_groups)

    def moment_for(self, *, group_id: str, role: str) -> datetime:
        """Return when those must be approvers who decide about this membership (``group_id`` empty: about something else). Where it gives
        the right to let others decide, only rights without an end count: two who have it for a time would keep each other for ever."""
        return END_OF_TIME if group_id and self._is_power(group_id, role) else self.now

    def _moment_of(self, request: AccessRequest) -> datetime:
        group_id, role = _membership(request)
        return self.moment_for(group_id=group_id, role=role)

    def _is_power(self, group_id: str, role: str) -> bool:
        """Whether whoever is in the group with this role decides on requests, by any rule or as an operator."""
        if role == GroupRole.ADMIN.value:
            return True
        group = self.directory.groups([group_id]).get(group_id)
        approvers = [rule.approval.approvers for rule in self.rules.values()]
        named = {current().operator_group}.union(*(one.groups for one in approvers))
        is_above = not named.isdisjoint({group_id, *(group.ancestors if group else ())})
        return is_above or any(group_id in one.groups_only for one in approvers)

    def _could_decide(self, request: AccessRequest, email: str, at: datetime) -> bool:
        """Somebody enabled whom it is not for, if it is decided by people at all."""
        if not self._demand_of(request).required or email == request.requested_by or self._is_served(request.subject_id, email, at):
            return False
        person, _ = self.directory.held_by(email)
        return person is not None and person.is_enabled

    def _is_named(self, demand: ApprovalDemand, email: str, at: datetime) -> bool:
        """Whether the rule itself lets this person decide, who is enabled."""
        if demand.admins_of:
            role = directory.role_on(email=email, group_id=demand.admins_of, now=at, book=self.directory)
            return role is GroupRole.ADMIN
        groups, direct = self._groups_of(email, at)
        return email in demand.users or not groups.isdisjoint(demand.groups) or not direct.isdisjoint(demand.groups_only)

    def _stands_in(self, request: AccessRequest, email: str, at: datetime) -> bool:
        if current().operator_group not in self._groups_of(email, at)[0]:
            return False
        return any(one.email == email for one in self.of_request(request).people)

    def _is_admin_somewhere(self, email: str) -> bool:
        return any(one.role is GroupRole.ADMIN for one in directory.roles_of(email=email, now=self.now, book=self.directory))

    def _identity_of(self, email: str) -> str:
        """Which account of the sign-in service is theirs; empty for none."""
        person, _ = self.directory.held_by(email)
        return person.identity if person is not None else ""

    def _groups_of(self, email: str, at: datetime) -> tuple[frozenset[str], frozenset[str]]:
        """All groups that they are in, and those of them directly."""
        _, groups, direct = directory.find_person_with_groups(email=email, now=at, book=self.directory)
        return groups, direct

    def _is_served(self, subject_id: str, email: str, at: datetime) -> bool:
        """The subject, or somebody in the subject group."""
        return subject_id in self._groups_of(email, at)[0] if subject_id.startswith("/") else subject_id == email

    def _served(self, subject_id: str, at: datetime) -> set[str]:
        is_group = subject_id.startswith("/")
        return {person.key for person in self.directory.crowd(Named(groups=(subject_id,)), now=at).people} if is_group else set()

    def _demand_of(self, request: AccessRequest) -> ApprovalDemand:
        rule = self.rules.get(request.rule_name)
        if rule is None or rule.effect is not Effect.ALLOW or not rule.approval.required:
            return request.approval
        return demand_of(rule, group_id=_membership(request)[0])

    def with_identities(self, request: AccessRequest) -> AccessRequest:
        """The request with the accounts of the sign-in service that it does not tell of (an earlier version's), as they are now."""
        unknown = {request.requested_by, *request.approvals} - request.identities.keys() if request.status is Status.PENDING else set()
        live = {email: identity for email in sorted(unknown) if (identity := self._identity_of(email))}
        return replace(request, identities={**live, **request.identities}) if live else request


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


def _membership(request: AccessRequest) -> tuple[str, str]:
    return kind_named(request.kind).target.membership(request.target)


def _named_by(demand: ApprovalDemand) -> Named:
    if demand.admins_of:
        return Named(admins_of=demand.admins_of)
    return Named(groups=demand.groups, groups_only=demand.groups_only, users=demand.users)


def _without(crowd: Crowd, excluded: set[str]) -> tuple[Approver, ...]:
    people = (person for person in crowd.people if person.key not in excluded)
    return tuple(Approver(email=person.key, name=person.name or person.email, identity=person.identity) for person in people)
