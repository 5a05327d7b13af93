"""Whom an issuer's claims vouch for. They come in the ID token, or some of them from its userinfo endpoint alone
(OpenID Connect Core 5.4); which name they have, and whether an address needs proof, is set (decision 0048)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accessportal.identity.tokens import Refused, untrusted

_MOST_SUBJECT = 255


@dataclass(frozen=True, slots=True)
class Reading:
    """The claims' names; ``trusts_emails``: an address of which the issuer doesn't say whether it is verified, is."""

    email_claim: str
    verified_claim: str
    name_claim: str
    trusts_emails: bool


@dataclass(frozen=True, slots=True)
class Proven:
    """Whom the issuer vouches for: ``subject`` is its own lasting name for the person, ``email`` verified by it, as written."""

    issuer: str
    subject: str
    email: str
    name: str

    @property
    def identity(self) -> str:
        """Issuer and subject: two issuers may give the same subject to different people."""
        return f"{self.issuer}#{self.subject}"


def is_whole(claims: Mapping[str, Any], reading: Reading) -> bool:
    """Whether nothing has to be asked of the userinfo endpoint."""
    return _tells_email(claims, reading) and bool(_name_of(claims, reading))


def completed(claims: Mapping[str, Any], told: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Add to ``claims`` of the ID token those that the userinfo endpoint ``told`` and the token lacks; address and proof are of one source.
    :raises Refused: when that was told of somebody else."""
    if told.get("sub") != claims["sub"]:
        raise untrusted("wrong_subject")
    pair = (reading.email_claim, reading.verified_claim)
    source = claims if _tells_email(claims, reading) else told
    rest = {name: value for name, value in {**told, **claims}.items() if name not in pair}
    return rest | {name: source[name] for name in pair if name in source}


def prove(claims: Mapping[str, Any], reading: Reading) -> Proven:
    """Say whom the ``claims`` of a checked ID token vouch for. :raises Refused: when they name nobody, or no verified address."""
    subject = str(claims["sub"])
    if not subject or len(subject) > _MOST_SUBJECT:
        raise untrusted("claim_missing")
    return Proven(issuer=claims["iss"], subject=subject, email=_email_of(claims, reading), name=_name_of(claims, reading))


def _tells_email(claims: Mapping[str, Any], reading: Reading) -> bool:
    return reading.email_claim in claims and (reading.verified_claim in claims or reading.trusts_emails)


def _email_of(claims: Mapping[str, Any], reading: Reading) -> str:
    email = claims.get(reading.email_claim)
    if not isinstance(email, str) or "@" not in email:
        raise Refused("The sign-in service did not tell your e-mail address, and the portal knows people by that.", code="email_missing")
    is_trusted = reading.trusts_emails and reading.verified_claim not in claims
    # Cognito writes the word instead of the value for some people.
    if not is_trusted and claims.get(reading.verified_claim) is not True and claims.get(reading.verified_claim) != "true":
        raise Refused(
            "The sign-in service has not verified your e-mail address, and the portal trusts only verified ones. Verify it there first.",
            code="email_unverified",
            email=email,
        )
    return email


def _name_of(claims: Mapping[str, Any], reading: Reading) -> str:
    parts = [claims.get("given_name"), claims.get("family_name")]
    name = claims.get(reading.name_claim) or " ".join(part for part in parts if isinstance(part, str))
    return name.strip() if isinstance(name, str) else ""
