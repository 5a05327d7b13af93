"""Start-up of the jobs: fills the kernel's port, and lets every worker say that it lives."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "accessportal.jobs"
    label = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        # The queue's own models are loaded only by now.
        from django_q.signals import post_spawn

        from accessportal.jobs.queue import enqueue, say_that_the_worker_lives
        from accessportal.kernel.ports import set_after_commit

        set_after_commit(enqueue)
        post_spawn.connect(say_that_the_worker_lives, dispatch_uid="accessportal.jobs.worker_lives")
