"""The Botzone adapter without HTTP."""

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.botzone import Botzone, BotzoneOptions

SECRET = "planted-5ecret"
TOKEN = f"https://botzone.example/api/5f0000/{SECRET}/localai"
A, B = "594553a2630d4c0758e2b2b1", "594553a2630d4c0758e2b2b2"
LEAD = '{"own":[4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23],"history":[[],[]],"publiccard":[4,8,12]}'
"""The first request to a landlord."""
BLACK = '{"x":-1,"y":-1}'


class Line:
    """An adapter with what it said: polls, other calls, timers and events."""

    def __init__(self, memo=None, token=TOKEN, **options):
        account = Account(name="ada", url="https://botzone.example", token=token)
        self.adapter = Botzone(account, BotzoneOptions(**options))
        self.calls, self.timers, self.events, self.memo = [], {}, [], memo or {}
        self.do(m.Authenticate(self.memo))

    def do(self, item):
        """Feed; what came of it that is no effect."""
        out = []
        for output in self.adapter.feed(item):
            match output:
                case m.HttpRequest():
                    self.calls.append(output)
                case m.SetTimer():
                    self.timers[output.name] = output.after_s
                case m.CancelTimer():
                    self.timers.pop(output.name, None)
                case m.Remember():
                    self.memo = {**self.memo, **output.memo}
                case _:
                    out.append(output)
        self.events += out
        return out

    @property
    def poll(self):
        """The poll that stands."""
        return next(call for call in reversed(self.calls) if call.url.endswith("/localai"))

    @property
    def polls(self):
        return sum(call.url.endswith("/localai") for call in self.calls)

    def answered(self, *requests, finished=(), status=200):
        """The poll that stands is answered."""
        lines = [f"{len(requests)} {len(finished)}", *(part for pair in requests for part in pair), *finished]
        return self.do(m.HttpResult(self.poll.request, status, (), "\n".join(lines).encode()))

    def failed(self, status, body=b""):
        return self.do(m.HttpResult(self.poll.request, status, (), body))

    def fire(self, name):
        assert name in self.timers, self.timers
        del self.timers[name]
        return self.do(m.TimerFired(name))

    def carried(self):
        """Answers that the last poll carries."""
        return {name.removeprefix("X-Match-"): text for name, text in self.poll.headers if name.startswith("X-Match-")}

    def play(self, *words):
        """Answer the last question."""
        question = [event for event in self.events if isinstance(event, m.ActionRequest)][-1]
        return self.do(m.Act(question.table, question.request_id, words))


def kinds(events):
    return [type(event).__name__ for event in events]


def begun(**options):
    """Logged in, and asked for the first move of a match of Reversi."""
    line = Line(**options)
    line.answered((A, BLACK))
    return line
