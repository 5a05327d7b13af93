"""Django's settings, made from :mod:`accessportal.conf`. Nothing here reads the environment by itself."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from pydantic import ValidationError

from accessportal.conf import ROOT, conf
from accessportal.observe.logs import configure_structlog, logging_settings

try:
    _conf = conf()
except ValidationError as error:
    # Without the values: one of them may be a secret.
    # A fault of several settings together names them itself.
    _faults = [
        ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, "))))
        for fault in error.errors(include_input=False)
    ]
    raise ImproperlyConfigured(f"The settings can't be used. {'; '.join(_faults)}.") from None

BASE_DIR = ROOT
DEBUG = _conf.debug
DEMO = _conf.demo
OPERATOR_GROUP = _conf.operator_group
AUDITOR_GROUP = _conf.auditor_group
AWS_REGION = _conf.aws_region
AWS_START_URL = _conf.aws_start_url
EVENTS_TOPIC_ARN = _conf.events_topic_arn
AUDIT_KEEP_DAYS = _conf.audit_keep_days
AUTHZ_SWEEP_MINUTES = _conf.authz_sweep_minutes
IDENTITY_CENTER_CALLS_PER_SECOND = _conf.identity_center_calls_per_second
TRUSTED_PROXIES = _conf.trusted_proxies
WEB_THREADS = _conf.web_threads
METRICS_TOKEN = _conf.metrics_token.get_secret_value()
DEMO_PASSWORD = _conf.demo_password.get_secret_value()

OIDC_ISSUER = _conf.oidc_issuer
OIDC_CLIENT_ID = _conf.oidc_client_id
OIDC_CLIENT_SECRET = _conf.oidc_client_secret.get_secret_value()
OIDC_NAME = _conf.oidc_name
OIDC_CREATE_PEOPLE = _conf.oidc_create_people
OIDC_USERINFO = _conf.oidc_userinfo
OIDC_EMAIL_CLAIM = _conf.oidc_email_claim
OIDC_VERIFIED_CLAIM = _conf.oidc_verified_claim
OIDC_NAME_CLAIM = _conf.oidc_name_claim
OIDC_TRUSTS_EMAILS_OF = _conf.oidc_trusts_emails_of
OIDC_SIGN_OUT_URL = _conf.oidc_sign_out_url
HELP_CONTACT = _conf.help_contact
DOCS_URL = _conf.docs_url
SESSION_IDLE_MINUTES = _conf.session_idle_minutes
SESSION_HOURS = _conf.session_hours

SECRET_KEY = _conf.secret_key.get_secret_value()
if not SECRET_KEY:
    raise ImproperlyConfigured("PORTAL_SECRET_KEY is not set. Set it to 50 or more random characters (docs/settings.md).")

ALLOWED_HOSTS = [host.strip() for host in _conf.allowed_hosts.split(",") if host.strip()]
CSRF_TRUSTED_ORIGINS = [origin.strip() for origin in _conf.trusted_origins.split(",") if origin.strip()]

INSTALLED_APPS = [
    "accessportal",
    "accessportal.catalog",
    "accessportal.identity",
    "accessportal.observe",
    "accessportal.console",
    "accessportal.commands",
    "accessportal.jobs",
    "accessportal.console.apps.PortalAdminConfig",
    # Its sign-in flow alone: none of its pages has an address, and none of its tables gets a row (docs/subsystems/identity.md).
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_q",
    "django_htmx",
    "django_structlog",
    "lucide",
    "csp",
]

MIDDLEWARE = [
    # The first: what any of the others answers under /v1/ passes here.
    "accessportal.api.middleware.ApiMiddleware",
    "django.middleware.security.SecurityMiddleware",
    # Before WhiteNoise, which answers for static files itself: they get the policy too.
    "csp.middleware.CSPMiddleware",
    # Before anything judges a host: balancers send the target's address as one.
    "accessportal.observe.probes.Probes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Static files wait for nothing; everything from here on may.
    "accessportal.observe.seats.Seats",
    "accessportal.observe.web_log.RequestLog",
    "accessportal.identity.sessions.Sessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accessportal.identity.sessions.SessionLimits",
    "accessportal.identity.middleware.ActorMiddleware",
    "accessportal.web.middleware.ErrorMiddleware",
    # Before anything reads a body: Django asks for the form's token only after all of these.
    "accessportal.web.middleware.BodyLimit",
]

ROOT_URLCONF = "accessportal.urls"
WSGI_APPLICATION = "accessportal.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accessportal.web.frame.frame",
            ],
            "builtins": ["django.templatetags.i18n", "accessportal.web.templatetags.web"],
        },
    }
]

DATABASES: dict[str, Any] = {"default": dj_database_url.parse(_conf.database_url, conn_max_age=60, conn_health_checks=True)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # One writer at a time: take the write lock at the start, wait for it, and let readers go on meanwhile.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
if DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # A host that is gone is noticed in seconds, not in the quarter of an hour that TCP takes. What the address itself says counts.
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        **DATABASES["default"].get("OPTIONS", {}),
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {"default": {"BACKEND": "accessportal.identity.memory.SteadyMemory"}}

AUTHENTICATION_BACKENDS = ["accessportal.identity.backends.DirectoryBackend"]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in/"

# allauth: no sign-up, no e-mail of its own, nothing kept. Starting is a GET that changes nothing here (decision 0016).
ACCOUNT_ADAPTER = "accessportal.identity.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_ADAPTER = "accessportal.identity.adapters.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_ONLY = True
SOCIALACCOUNT_STORE_TOKENS = False

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = _conf.static_url or "/static/"
# The demo serves static files from where they lie; a production image collects them once.
WHITENOISE_USE_FINDERS = DEMO or DEBUG
STATIC_ROOT = None if WHITENOISE_USE_FINDERS or _conf.static_bucket else BASE_DIR / "staticfiles"


def _folder_of(package: str) -> Path:
    """Where a package lies that brings static files alone."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ImproperlyConfigured(f"The package {package} is not installed: pip install -r requirements.txt")
    return Path(found.submodule_search_locations[0])


STATICFILES_DIRS: list[Any] = [
    BASE_DIR / "static",
    ("bootstrap", _folder_of("bootstrap")),
    ("swagger-ui", _folder_of("drf_spectacular_sidecar") / "static" / "drf_spectacular_sidecar" / "swagger-ui-dist"),
]
STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if _conf.static_bucket:
    STORAGES["staticfiles"] = {
        "BACKEND": "accessportal.web.static_bucket.StaticBucket",
        "OPTIONS": {
            "bucket_name": _conf.static_bucket,
            "region_name": _conf.aws_region,
            "custom_domain": _conf.static_url.removeprefix("https://").rstrip("/"),
            # Pages name files by what is in them; under one name there is never anything else.
            "object_parameters": {"CacheControl": "public, max-age=31536000, immutable"},
        },
    }
if _conf.evidence_dir:
    STORAGES["evidence"] = {"BACKEND": "accessportal.evidence.storages.WriteOnceFolder", "OPTIONS": {"location": _conf.evidence_dir}}
if _conf.evidence_bucket:
    STORAGES["evidence"] = {
        "BACKEND": "accessportal.evidence.storages.WriteOnceBucket",
        "OPTIONS": {
            "bucket_name": _conf.evidence_bucket,
            "region_name": _conf.aws_region,
            "lock_days": _conf.evidence_lock_days,
            # Without a key of its own the bucket's rule counts: S3 encrypts in any case.
            "object_parameters": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": _conf.evidence_kms_key}
            if _conf.evidence_kms_key
            else {},
        },
    }

# Strict: nothing inline, nothing from elsewhere but the files that are in a bucket.
_OWN = [SELF, _conf.static_url] if _conf.static_url else [SELF]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": _OWN,
        "style-src": _OWN,
        "img-src": [*_OWN, "data:"],
        "font-src": _OWN,
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
CSRF_FAILURE_VIEW = "accessportal.web.errors.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "accessportal.identity.session_store"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# No longer than a session may last at most; ``identity.sessions`` enforces that, and the shorter limit for doing nothing.
SESSION_COOKIE_AGE = SESSION_HOURS * 3600
# For every body, whatever is in it (portal.middleware.BodyLimit); and no file is taken in any.
DATA_UPLOAD_MAX_MEMORY_SIZE = _conf.most_body_bytes
FILE_UPLOAD_HANDLERS = ["accessportal.web.middleware.NoFiles"]
# Nor do balancers ask over HTTPS.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|workz)$"]
if _conf.secure:
    SECURE_SSL_REDIRECT = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

# It would believe any address that a client writes into X-Forwarded-For; ours is bound in ``observe.logs``.
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
LOGGING = logging_settings(level=_conf.log_level, as_json=_conf.log_json)
configure_structlog()

# Its processes are our own (accessportal.jobs.worker). ``timeout`` is for tasks that bring none; ``retry`` only silences a warning.
Q_CLUSTER = {
    "name": "accessportal",
    "orm": "default",
    "broker_class": "accessportal.jobs.broker.LineBroker",
    "workers": _conf.workers,
    "timeout": 150,
    "retry": 1000,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 0.5,
    "save_limit": 500,
    "label": "Jobs",
    "recycle": 1000,
}
