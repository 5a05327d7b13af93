"""The sign-in form."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    """Django's form, with the e-mail address as the user name."""

    username = forms.CharField(
        label="E-mail address",
        max_length=150,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True, "spellcheck": "false", "class": "form-control"}),
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "class": "form-control"}),
    )

    error_messages = {  # noqa: RUF012  # Django's own declaration has this shape
        "invalid_login": "That e-mail address and password don't belong together, or the person is disabled. Try again.",
        "inactive": "This person is disabled. Ask your operator.",
    }
