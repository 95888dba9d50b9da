"""What benches of adapters share: no sockets, and views folded as a host folds them."""

import msgspec

from bothost import messages as m


class AdapterBench:
    """Feeds an adapter, and keeps what it says: ``out``, the view of the hand, the memo, the timers."""

    def __init__(self, adapter, game, memo=None):
        self.adapter, self.game = adapter, game
        self.out = []
        self.view = None
        self.memo = dict(memo or {})
        self.conn = 0
        self.timers = {}

    def feed(self, item):
        out = self.adapter.feed(item)
        for output in out:
            match output:
                case m.OpenSocket():
                    self.conn = output.conn
                case m.SetTimer():
                    self.timers[output.name] = output.after_s
                case m.CancelTimer():
                    self.timers.pop(output.name, None)
                case m.Remember():
                    self.memo = msgspec.json.decode(msgspec.json.encode(output.memo))
                case m.HandStarted():
                    self.view = self.game.new_view(output.seat)
                case m.Snapshot():
                    self.view = self.game.view_from_snapshot(output.view)
                case m.Delta():
                    assert output.seq == self.view.seq
                    self.view.observe_all(output.events)
                case m.ActionRequest():
                    assert self.view.asked and output.seq == self.view.seq
        self.out += out
        return out

    def fire(self, name):
        assert self.timers.pop(name, None) is not None, f"no timer {name}"
        return self.feed(m.TimerFired(name))

    def request(self):
        return told(self.out, m.ActionRequest)[-1]

    def act(self, action):
        request = self.request()
        return self.feed(m.Act(request.table, request.request_id, (action,)))

    def lose(self):
        return self.feed(m.SocketClosed(self.conn, 1006))


def told(outputs, kind):
    return [o for o in outputs if isinstance(o, kind)]
