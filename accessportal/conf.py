"""The environment, read once into one frozen typed object. ``settings`` turns it into Django's names.

Every variable is documented in ``docs/settings.md``; a test keeps the two equal.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import AwareDatetime, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from accessportal.audit.operations import read_keys, read_pseudonyms
from accessportal.demo.env import published_file
from accessportal.evidence.config import LEAST_KEEP_DAYS, read_key
from accessportal.kernel.addresses import is_on_this_machine, is_safe_address

ROOT = Path(__file__).resolve().parent.parent
_MOST_KEEP_DAYS = 36_500
_READ_KEYS = {"audit_keys": read_keys, "pseudonym_key": read_pseudonyms, "evidence_key": read_key}
# A pool and an organizational unit whose accounts are in it.
_UNIT = r"[a-z0-9][a-z0-9-]{0,39}=ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}"


class Conf(BaseSettings):
    """Values with the prefix ``PORTAL_``, and the standard AWS variables under their own names.

    ``.portal/env`` is written by ``runportal`` while it runs, so that the commands in a second terminal reach the same
    twin, tables and database without any setting. Where there is any setting, the file does not count.
    """

    model_config = SettingsConfigDict(env_prefix="PORTAL_", extra="ignore", frozen=True)

    aws_region: str = Field(default="eu-central-1", validation_alias="AWS_REGION")
    aws_endpoint_url: str = Field(default="", validation_alias="AWS_ENDPOINT_URL")
    aws_access_key_id: SecretStr = Field(default=SecretStr(""), validation_alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: SecretStr = Field(default=SecretStr(""), validation_alias="AWS_SECRET_ACCESS_KEY")

    table_prefix: str = ""
    dynamodb_connect_seconds: float = Field(default=1.0, gt=0, le=10)
    dynamodb_read_seconds: float = Field(default=3.0, gt=0, le=60)
    dynamodb_attempts: int = Field(default=3, ge=1, le=10)
    database_url: str = f"sqlite:///{ROOT / '.portal' / 'portal.sqlite3'}"
    secret_key: SecretStr = SecretStr("")
    debug: bool = False
    allowed_hosts: str = "localhost,127.0.0.1,[::1]"
    trusted_origins: str = ""
    secure: bool = True
    trusted_proxies: int = Field(default=0, ge=0, le=10)
    most_body_bytes: int = Field(default=2_621_440, ge=100_000)

    demo: bool = False
    operator_group: str = "/portal/operators"
    auditor_group: str = "/portal/auditors"
    aws_start_url: str = ""
    user_pool_id: str = Field(default="", pattern=r"^([\w-]+_[0-9a-zA-Z]+)?$")
    user_pool_invites: bool = False
    events_topic_arn: str = Field(default="", pattern=r"^(arn:[\w-]+:sns:[\w-]+:\d{12}:[\w-]+(\.fifo)?)?$")

    audit_keys: SecretStr = SecretStr("")
    audit_plain_until: AwareDatetime | None = None
    audit_keep_days: int | None = None
    pseudonym_key: SecretStr = SecretStr("")
    evidence_key: SecretStr = SecretStr("")
    evidence_dir: str = ""
    evidence_bucket: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$")
    evidence_kms_key: str = ""
    evidence_kms_signing_key: str = ""
    evidence_lock_days: int = Field(default=0, ge=0, le=36_500)

    static_bucket: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$")
    static_url: str = Field(default="", pattern=r"^(https://[a-z0-9.-]+(/[A-Za-z0-9._-]+)*/)?$")

    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: SecretStr = SecretStr("")
    oidc_name: str = "your company account"
    oidc_create_people: bool = False
    oidc_userinfo: bool = False
    oidc_email_claim: str = Field(default="email", min_length=1)
    oidc_verified_claim: str = Field(default="email_verified", min_length=1)
    oidc_name_claim: str = Field(default="name", min_length=1)
    oidc_trusts_emails_of: str = ""
    oidc_sign_out_url: str = ""
    help_contact: str = "your operator"
    docs_url: str = ""
    session_idle_minutes: int = Field(default=60, ge=1, le=60 * 24 * 7)
    session_hours: int = Field(default=12, ge=1, le=24 * 7)

    decide_within_seconds: int = Field(default=86_400, ge=60, le=86_400 * 366)
    asks_per_minute: int = Field(default=20, ge=0, le=10_000)
    most_open_requests: int = Field(default=100, ge=0, le=10_000)
    undo_seconds: int = Field(default=120, ge=0, le=86_400)
    line_longest_hours: int = Field(default=72, ge=1, le=24 * 366)
    line_programs_first: bool = False
    stand_in_days: int = Field(default=90, ge=1, le=366)
    purge_after_days: int = Field(default=90, ge=1, le=3_650)
    identity_center_calls_per_second: float = Field(default=18.0, gt=0, le=20)
    identity_center_open_creations: int = Field(default=10, ge=1, le=10)
    sandbox_provider_url: str = ""
    sandbox_provider_token: SecretStr = SecretStr("")
    sandbox_grace_seconds: int = Field(default=300, ge=0, le=86_400 * 7)
    sandbox_longest_hours: int = Field(default=24, ge=1, le=24 * 366)
    leases_cleaner_arn: str = Field(default="", pattern=r"^(arn:[\w-]+:states:[\w-]+:\d{12}:stateMachine:[\w-]+)?$")
    leases_units: str = Field(default="", pattern=rf"^({_UNIT}(,{_UNIT})*)?$")
    leases_never: str = Field(default="", pattern=r"^(\d{12}(,\d{12})*)?$")
    leases_clean_attempts: int = Field(default=5, ge=1, le=20)
    leases_costs: bool = False
    leases_billing_view_arn: str = Field(default="", pattern=r"^(arn:[\w-]+:billing::\d{12}:billingview/.+)?$")
    authz_require_scope: str = Field(default="allow", pattern="^(allow|warn|refuse)$")
    authz_chain_depth: int = Field(default=8, ge=1, le=20)
    authz_sweep_minutes: int = Field(default=60, ge=1, le=60 * 24)
    workers: int = Field(default=4, ge=1)
    web_threads: int = Field(default=16, ge=4, le=1_000)
    log_level: str = "INFO"
    log_json: bool = True
    metrics_token: SecretStr = SecretStr("")
    demo_password: SecretStr = SecretStr("")

    @property
    def pool_of_unit(self) -> dict[str, str]:
        """Which pool the accounts of an organizational unit are in, by its id."""
        pairs = (one.partition("=") for one in self.leases_units.split(",") if one)
        return {unit: pool for pool, _, unit in pairs}

    @field_validator("log_level")
    @classmethod
    def _log_level_is_known(cls, value: str) -> str:
        known = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
        if value.upper() not in known:
            raise ValueError(f"PORTAL_LOG_LEVEL must be one of {', '.join(known)}")
        return value.upper()

    @field_validator(*_READ_KEYS)
    @classmethod
    def _key_can_be_read(cls, value: SecretStr, told: ValidationInfo) -> SecretStr:
        if value.get_secret_value():
            _READ_KEYS[str(told.field_name)](value.get_secret_value())
        return value

    @field_validator("audit_keep_days", mode="before")
    @classmethod
    def _no_value_is_for_ever(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("audit_keep_days")
    @classmethod
    def _events_stay_long_enough(cls, value: int | None) -> int | None:
        if value is not None and not LEAST_KEEP_DAYS <= value <= _MOST_KEEP_DAYS:
            raise ValueError(
                f"PORTAL_AUDIT_KEEP_DAYS must be from {LEAST_KEEP_DAYS} to {_MOST_KEEP_DAYS} days; without a value events stay for ever"
            )
        return value

    @model_validator(mode="after")
    def _evidence_is_set_up_whole(self) -> Self:
        if self.evidence_dir and self.evidence_bucket:
            raise ValueError("PORTAL_EVIDENCE_DIR and PORTAL_EVIDENCE_BUCKET exclude each other: evidence lies in one place")
        has_key = bool(self.evidence_key.get_secret_value())
        if has_key and self.evidence_kms_signing_key:
            raise ValueError("PORTAL_EVIDENCE_KEY and PORTAL_EVIDENCE_KMS_SIGNING_KEY exclude each other: one key signs evidence")
        if bool(self.evidence_dir or self.evidence_bucket) != (has_key or bool(self.evidence_kms_signing_key)):
            raise ValueError(
                "PORTAL_EVIDENCE_KEY (or PORTAL_EVIDENCE_KMS_SIGNING_KEY) and one of PORTAL_EVIDENCE_DIR and PORTAL_EVIDENCE_BUCKET "
                "belong together: set both or none"
            )
        if (self.evidence_lock_days or self.evidence_kms_key) and not self.evidence_bucket:
            raise ValueError("PORTAL_EVIDENCE_LOCK_DAYS and PORTAL_EVIDENCE_KMS_KEY are for PORTAL_EVIDENCE_BUCKET: set it too")
        return self

    @model_validator(mode="after")
    def _static_files_are_set_up_whole(self) -> Self:
        if bool(self.static_bucket) != bool(self.static_url):
            raise ValueError("PORTAL_STATIC_BUCKET and PORTAL_STATIC_URL belong together: set both or none")
        return self

    @field_validator("database_url")
    @classmethod
    def _database_url_is_given(cls, value: str) -> str:
        if "://" not in value:
            raise ValueError("PORTAL_DATABASE_URL must be an address like postgres://user:secret@host/name or sqlite:////path/file")
        return value

    @field_validator("oidc_issuer", "oidc_sign_out_url", "sandbox_provider_url")
    @classmethod
    def _address_is_safe(cls, value: str) -> str:
        if value and not is_safe_address(value):
            raise ValueError("must be an address that begins with https:// (http:// only for this machine itself)")
        return value

    @model_validator(mode="after")
    def _issuer_is_set_up_whole(self) -> Self:
        given = {
            "PORTAL_OIDC_ISSUER": self.oidc_issuer,
            "PORTAL_OIDC_CLIENT_ID": self.oidc_client_id,
            "PORTAL_OIDC_CLIENT_SECRET": self.oidc_client_secret.get_secret_value(),
        }
        missing = [name for name, value in given.items() if not value]
        if missing and len(missing) < len(given):
            raise ValueError(f"{', '.join(given)} belong together: set {' and '.join(missing)} too, or none of them")
        if missing and self.oidc_create_people:
            raise ValueError(f"PORTAL_OIDC_CREATE_PEOPLE needs an issuer to sign in with: set {', '.join(given)} too")
        return self

    @model_validator(mode="after")
    def _addresses_have_proof(self) -> Self:
        trusted = self.oidc_trusts_emails_of
        if trusted and trusted != self.oidc_issuer:
            raise ValueError("PORTAL_OIDC_TRUSTS_EMAILS_OF must be the very PORTAL_OIDC_ISSUER: another issuer is trusted anew, or not")
        if not trusted and self.oidc_email_claim != "email" and self.oidc_verified_claim == "email_verified":
            raise ValueError(
                f"PORTAL_OIDC_EMAIL_CLAIM is {self.oidc_email_claim}, and email_verified vouches for the claim email alone: name the claim "
                "that vouches for it (PORTAL_OIDC_VERIFIED_CLAIM), or trust the issuer (PORTAL_OIDC_TRUSTS_EMAILS_OF)"
            )
        return self


@functools.cache
def conf() -> Conf:
    """The one configuration of this process."""
    return Conf(_env_file=published_file(os.environ))  # type: ignore[call-arg]  # pydantic-settings takes it beside the fields


def demo_faults(values: Conf, environ: Mapping[str, str]) -> list[str]:
    """Why this can't be a demo on this machine alone, in words for whoever set it up; nothing outside the demo.

    In the demo everybody signs in with one password, and its people, rules and sandboxes are made up.
    """
    if not values.demo:
        return []
    endpoints = {name: value for name, value in environ.items() if name.startswith("AWS_ENDPOINT_URL") and value}
    endpoints.setdefault("AWS_ENDPOINT_URL", values.aws_endpoint_url)
    endpoints["PORTAL_SANDBOX_PROVIDER_URL"] = values.sandbox_provider_url or "http://localhost"
    faults = [f"{name} is not an address of this machine" for name, url in endpoints.items() if not is_on_this_machine(url)]
    # With the first of them boto3 takes no notice of AWS_ENDPOINT_URL.
    barred = {
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
        "PORTAL_OIDC_ISSUER": values.oidc_issuer,
    }
    faults += [f"{name} is set" for name, value in barred.items() if value]
    return faults + _others_reach_it(values)


def debug_faults(values: Conf) -> list[str]:
    """Why Django's debug pages, which show settings and whatever was being worked on, would be shown to others than a developer."""
    return _others_reach_it(values) if values.debug else []


def _others_reach_it(values: Conf) -> list[str]:
    hosts = [host.strip() for host in values.allowed_hosts.split(",")]
    foreign = [host for host in hosts if host and not is_on_this_machine(f"http://{host}")]
    return [f"PORTAL_ALLOWED_HOSTS names more than this machine ({', '.join(foreign)})"] if foreign else []
