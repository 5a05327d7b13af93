"""Start-up of the jobs: fills the kernel's port."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "accessportal.jobs"
    label = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        # The queue's own models are loaded only by now.
        from accessportal.jobs.queue import enqueue
        from accessportal.kernel.ports import set_after_commit

        set_after_commit(enqueue)
