"""Start-up: gives the ground rooms what the environment says. Runs once per process, before any request or job."""

from __future__ import annotations

import os
from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from accessportal.conf import Conf, conf, debug_faults, demo_faults
from accessportal.store.base import StoreSettings, configure
from accessportal.store.cursors import configure_cursors

# More would only wait for the processor; with all threads of a web process in a read, there are connections left.
_READS_SIDE_BY_SIDE = 8


class AccessPortalConfig(AppConfig):
    name = "accessportal"
    label = "accessportal"
    verbose_name = "Access Portal"

    def ready(self) -> None:
        # Not at the top: these reach the catalog's ORM models, which may be imported only once the app registry is ready.
        from accessportal.access_requests import kinds
        from accessportal.access_requests import operations as access_requests
        from accessportal.assignments import operations as assignments
        from accessportal.audit import operations as audit
        from accessportal.authz import operations as authz
        from accessportal.evidence import config as evidence
        from accessportal.leases import operations as leases
        from accessportal.leases.effects import flaw_of
        from accessportal.mirror import operations as mirror
        from accessportal.sandboxes import operations as sandboxes
        from accessportal.upstream import client as upstream

        checks.register(check_demo, "demo")
        checks.register(check_audit_keys, checks.Tags.security, deploy=True)
        export_aws_settings(conf())
        configure(
            StoreSettings(
                table_prefix=conf().table_prefix,
                region=conf().aws_region,
                connect_timeout_seconds=conf().dynamodb_connect_seconds,
                read_timeout_seconds=conf().dynamodb_read_seconds,
                max_attempts=conf().dynamodb_attempts,
                reads_side_by_side=_READS_SIDE_BY_SIDE,
            )
        )
        configure_cursors(settings.SECRET_KEY)
        audit.configure(
            audit.AuditKeys(
                secrets=audit.read_keys(conf().audit_keys.get_secret_value()),
                plain_until=conf().audit_plain_until,
                pseudonyms=audit.read_pseudonyms(conf().pseudonym_key.get_secret_value()),
            )
        )
        evidence.configure(evidence.signer_of(conf().evidence_key.get_secret_value(), kms_key=conf().evidence_kms_signing_key))
        assignments.configure(
            assignments.Limits(
                calls_per_second=conf().identity_center_calls_per_second,
                open_creations=conf().identity_center_open_creations,
            )
        )
        mirror.configure(mirror.MirrorSettings(user_pool_id=conf().user_pool_id, user_pool_invites=conf().user_pool_invites))
        sandboxes.configure(
            sandboxes.SandboxSettings(
                grace_seconds=conf().sandbox_grace_seconds,
                longest_hours=conf().sandbox_longest_hours,
                programs_first=conf().line_programs_first,
            )
        )
        authz.configure(authz.AuthzSettings(global_scope=conf().authz_require_scope, chain_depth=conf().authz_chain_depth))
        leases.configure(
            leases.LeaseSettings(
                undo_seconds=conf().undo_seconds,
                flaw_of=flaw_of if conf().leases_units else leases.anything_goes,
                cleaner_arn=conf().leases_cleaner_arn,
                units=conf().pool_of_unit,
                never=frozenset(filter(None, conf().leases_never.split(","))),
                most_attempts=conf().leases_clean_attempts,
                reads_costs=conf().leases_costs,
                billing_view_arn=conf().leases_billing_view_arn,
            )
        )
        upstream.configure(
            upstream.UpstreamSettings(url=conf().sandbox_provider_url, token=conf().sandbox_provider_token.get_secret_value())
        )
        kinds.register_all()
        access_requests.configure(
            access_requests.WorkflowSettings(
                decide_within_seconds=conf().decide_within_seconds,
                purge_after_days=conf().purge_after_days,
                operator_group=conf().operator_group,
                asks_per_minute=conf().asks_per_minute,
                most_open=conf().most_open_requests,
                undo_seconds=conf().undo_seconds,
                longest_wait_seconds=conf().line_longest_hours * 3600,
                stand_in_days=conf().stand_in_days,
            )
        )


def check_demo(app_configs: Sequence[AppConfig] | None, **_: object) -> list[checks.CheckMessage]:
    """A demo is on this machine alone, and debug pages are. Every command looks at this before it does anything, and so does the web
    server."""
    hint = "Unset PORTAL_DEMO for a real installation, or start the demo by: make run"
    found: list[checks.CheckMessage] = [
        checks.Error(f"PORTAL_DEMO is on, but {fault}.", hint=hint, id="accessportal.E001") for fault in demo_faults(conf(), os.environ)
    ]
    hint = "Unset PORTAL_DEBUG: its pages show settings to whoever causes an error"
    return found + [checks.Error(f"PORTAL_DEBUG is on, but {fault}.", hint=hint, id="accessportal.E002") for fault in debug_faults(conf())]


def check_audit_keys(app_configs: Sequence[AppConfig] | None, **_: object) -> list[checks.CheckMessage]:
    """In production the audit log has a key that whoever writes to the tables does not have, and its copy can't be deleted."""
    found: list[checks.CheckMessage] = []
    if (conf().evidence_bucket and not conf().evidence_lock_days) or conf().evidence_dir:
        words = (
            "Evidence is not locked (PORTAL_EVIDENCE_LOCK_DAYS is 0, or it lies in a folder): whoever may delete there can take it away."
        )
        found.append(checks.Warning(words, hint="Make the bucket with object lock (docs/evidence.md)", id="accessportal.W002"))
    if not conf().pseudonym_key.get_secret_value():
        words = "PORTAL_PSEUDONYM_KEY is not set: nobody can be erased, and names and addresses go into evidence for good."
        hint = "Make a key: openssl rand -base64 32 (docs/operations.md)"
        found.append(checks.Warning(words, hint=hint, id="accessportal.W003"))
    if conf().audit_keep_days and not (conf().evidence_bucket or conf().evidence_dir):
        words = "PORTAL_AUDIT_KEEP_DAYS is set, and no evidence is: nothing can be removed from the audit log."
        found.append(checks.Warning(words, hint="Set up evidence (docs/evidence.md), or unset it", id="accessportal.W004"))
    if conf().audit_keys.get_secret_value():
        return found
    words = "PORTAL_AUDIT_KEYS is not set: whoever can write to the tables can change the audit log, and verify_audit finds nothing."
    hint = "Make a key: python manage.py rotate_audit_key (docs/operations.md)"
    return [*found, checks.Warning(words, hint=hint, id="accessportal.W001")]


def export_aws_settings(values: Conf) -> None:
    """Put what ``.portal/env`` told about AWS where the AWS libraries look: the standard variables, if not set."""
    given = {
        "AWS_REGION": values.aws_region,
        "AWS_DEFAULT_REGION": values.aws_region,
        "AWS_ENDPOINT_URL": values.aws_endpoint_url,
        "AWS_ACCESS_KEY_ID": values.aws_access_key_id.get_secret_value(),
        "AWS_SECRET_ACCESS_KEY": values.aws_secret_access_key.get_secret_value(),
    }
    for name, value in given.items():
        if value:
            os.environ.setdefault(name, value)
