"""Finds, imports and checks plugins. A failure disables only its plugin. :mod:`bothost.hookspecs` is the contract.

>>> plugins = Plugins.load(settings.host.plugins_dir)
>>> plugins.strategies["random"]
>>> plugins.resolve("random", {}).make()
>>> for failure in plugins.failures: print(failure.plugin, failure.cause)
"""

from bothost.plugins.address import (
    AliasResolver,
    Resolved,
    check_options,
    evaluators_of,
    made,
    resolve,
    settle,
    start_of,
    trainer_evaluators,
)
from bothost.plugins.discover import Failure
from bothost.plugins.manager import Plugins, require
from bothost.plugins.trainers import checked_figures, import_failed, learners, trainers_of
from bothost.plugins.weights import model_sha256

__all__ = [
    "AliasResolver",
    "Failure",
    "Plugins",
    "Resolved",
    "check_options",
    "checked_figures",
    "evaluators_of",
    "import_failed",
    "learners",
    "made",
    "model_sha256",
    "require",
    "resolve",
    "settle",
    "start_of",
    "trainer_evaluators",
    "trainers_of",
]
