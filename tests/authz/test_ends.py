"""When a record ends: the policies of scopes, the presets, and the moment itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accessportal.authz.policy.ends import End, GoverningPolicy, check_policy, end_of, governing, is_over, refreshed_end
from accessportal.authz.policy.scopes import line_of, read_scope
from accessportal.authz.states import PRESETS, TtlPolicy
from accessportal.kernel.errors import InvalidRequest

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
ACME = read_scope("tenant:acme")


@pytest.mark.parametrize(("seconds", "over"), [(-1, False), (0, True), (1, True)])
def test_the_end_itself_is_over(seconds: int, over: bool) -> None:
    assert is_over(NOW, NOW + timedelta(seconds=seconds)) is over


def test_without_an_end_nothing_is_over() -> None:
    assert not is_over(None, NOW)


@pytest.mark.parametrize(
    ("preset", "default", "shortest", "longest"),
    [("temporary", 3_600, 60, 86_400), ("short_lived", 86_400, 3_600, 604_800), ("long_lived", 2_592_000, 86_400, 31_536_000)],
)
def test_the_presets_of_the_seed(preset: str, default: int, shortest: int, longest: int) -> None:
    policy = PRESETS[preset]

    assert (policy.default_seconds, policy.min_seconds, policy.max_seconds, policy.is_enforced) == (default, shortest, longest, True)


def test_the_default_policy_of_the_seed() -> None:
    assert TtlPolicy() == TtlPolicy(default_seconds=None, min_seconds=60, max_seconds=31_536_000, is_enforced=True)


@pytest.mark.parametrize("scope", ["tenant:acme:env:prod", "tenant:acme"])
def test_the_nearest_policy_up_the_line_counts(scope: str) -> None:
    policies = {read_scope("global"): PRESETS["long_lived"], ACME: PRESETS["temporary"], read_scope("env:prod"): PRESETS["short_lived"]}

    assert governing(line_of(read_scope(scope)), policies) == GoverningPolicy(PRESETS["temporary"], ACME)
    assert governing(line_of(read_scope("tenant:other")), policies).scope == read_scope("global")
    assert governing(line_of(ACME), {}) == GoverningPolicy(TtlPolicy())


@pytest.mark.parametrize("seconds", [60, 3_600, 86_400])
def test_a_length_within_the_policy_is_granted(seconds: int) -> None:
    end = end_of(seconds, governed=GoverningPolicy(PRESETS["temporary"], ACME), started_at=NOW, now=NOW)

    assert end == End(NOW + timedelta(seconds=seconds), seconds)


@pytest.mark.parametrize(("seconds", "limit"), [(59, "1 min"), (86_401, "1 d")])
def test_a_length_outside_is_refused_with_the_limit_and_whose_policy_it_is(seconds: int, limit: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        end_of(seconds, governed=GoverningPolicy(PRESETS["temporary"], ACME), started_at=NOW, now=NOW)

    assert refused.value.field == "ttl_seconds"
    assert limit in refused.value.message
    assert "the policy of tenant:acme" in refused.value.message


@pytest.mark.parametrize("seconds", [59, 86_401])
def test_a_policy_that_only_advises_keeps_the_length_and_warns(seconds: int) -> None:
    advice = TtlPolicy(3_600, 60, 86_400, is_enforced=False)

    end = end_of(seconds, governed=GoverningPolicy(advice, ACME), started_at=NOW, now=NOW)

    assert end.expires_at == NOW + timedelta(seconds=seconds)
    assert "the policy of tenant:acme" in end.warning


@pytest.mark.parametrize("seconds", [0, -1, -(10**12), 10**12])
def test_an_absurd_length_is_refused_by_every_policy(seconds: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        end_of(seconds, governed=GoverningPolicy(TtlPolicy(is_enforced=False)), started_at=NOW, now=NOW)

    assert refused.value.code == "ttl_out_of_range"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (PRESETS["temporary"], 3_600),
        # Enforced and without a default: what is granted without a length lives as long as it may, and not for ever.
        (TtlPolicy(), 31_536_000),
        (TtlPolicy(is_enforced=False), None),
    ],
)
def test_what_is_granted_without_a_length(policy: TtlPolicy, expected: int | None) -> None:
    assert end_of(None, governed=GoverningPolicy(policy), started_at=NOW, now=NOW).ttl_seconds == expected


def test_extending_again_and_again_never_passes_the_maximum_from_the_first_grant() -> None:
    governed = GoverningPolicy(PRESETS["temporary"], ACME)
    later = NOW + timedelta(hours=20)

    assert end_of(4 * 3_600, governed=governed, started_at=NOW, now=later).expires_at == NOW + timedelta(days=1)
    with pytest.raises(InvalidRequest):
        end_of(4 * 3_600 + 1, governed=governed, started_at=NOW, now=later)


def test_a_check_that_says_yes_moves_the_end_as_the_policy_says() -> None:
    policy = TtlPolicy(3_600, 60, 7_200, refresh_seconds=1_800)
    end = NOW + timedelta(minutes=10)

    assert refreshed_end(end, policy=policy, started_at=NOW, refreshed_at=None, now=NOW) == NOW + timedelta(minutes=30)
    # At most once a minute, never earlier, never past the maximum, and not for what has no end.
    assert refreshed_end(end, policy=policy, started_at=NOW, refreshed_at=NOW - timedelta(seconds=59), now=NOW) is None
    assert refreshed_end(NOW + timedelta(hours=1), policy=policy, started_at=NOW, refreshed_at=None, now=NOW) is None
    late = NOW + timedelta(minutes=115)
    assert refreshed_end(late + timedelta(minutes=1), policy=policy, started_at=NOW, refreshed_at=None, now=late) == NOW + timedelta(
        hours=2
    )
    assert refreshed_end(None, policy=policy, started_at=NOW, refreshed_at=None, now=NOW) is None
    assert refreshed_end(end, policy=TtlPolicy(), started_at=NOW, refreshed_at=None, now=NOW) is None
    assert refreshed_end(end, policy=policy, started_at=NOW, refreshed_at=None, now=end) is None


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (TtlPolicy(None, 0, 60), "min_seconds"),
        (TtlPolicy(None, 61, 60), "min_seconds"),
        (TtlPolicy(None, 60, 10**12), "min_seconds"),
        (TtlPolicy(59, 60, 3_600), "default_seconds"),
        (TtlPolicy(3_601, 60, 3_600), "default_seconds"),
        (TtlPolicy(None, 60, 3_600, refresh_seconds=30), "refresh_seconds"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(policy: TtlPolicy, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_policy(policy)

    assert refused.value.field == field


@pytest.mark.parametrize("policy", PRESETS.values())
def test_the_presets_can_be_set(policy: TtlPolicy) -> None:
    assert check_policy(policy) == policy
