"""One thread that plays, without a host."""

import threading

from bothost.host.worker import Worker
from bothost.testing.hosting import RandomStrategy


def test_an_instance_that_was_only_being_made_when_its_thread_was_given_up_is_closed_after_all():
    """Nobody else knows it: a strategy's process would live on for as long as the host."""
    loaded, other = object(), object()
    making, go_on, back = threading.Event(), threading.Event(), threading.Event()
    closed = []

    class Closing(RandomStrategy):
        def close(self):
            closed.append(self)

    def make(wanted):
        if wanted is loaded:
            making.set()
            assert go_on.wait(10)
        return Closing(None, None)

    worker = Worker("test", lambda worker, results: None, lambda worker: back.set(), make=make)
    taken_over = worker.instances[other] = Closing(None, None)
    worker.submit({loaded: []})
    assert making.wait(10)
    worker.abandon(loaded)
    go_on.set()
    assert back.wait(10)
    assert closed == [worker.instances[loaded]] and taken_over not in closed
    worker.join(10)
