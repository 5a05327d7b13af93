from accessportal.jobs.management.commands.run_worker import Command as RunWorker


class Command(RunWorker):
    # In place of django-q2's own, which knows one line only and stands still for ever when one of its processes is killed.
    help = "The same as run_worker."
