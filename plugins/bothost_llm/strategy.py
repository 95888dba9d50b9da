"""The strategy ``llm-player``: a language model decides."""

from __future__ import annotations

import os
import re
import time
from typing import Any
from urllib.parse import urlsplit

from bothost import Budget, Decision, Model, ModelError, Player, ProtocolError, Strategy, Table
from bothost.errors import UsageError
from bothost.rules import ActionArray, View
from bothost_llm.client import Busy, Client, allowance_of
from bothost_llm.options import Options as LlmOptions
from bothost_llm.prompt import messages, read, response_format

MARGIN_S = 0.05
"""Stop waiting for an answer this long before the deadline, so that the host has time for a fallback."""
NO_MODEL = "set its options in its route; bothost model rollback llm-player --alias NAME gives up an alias"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class LlmPlayer(Strategy):
    """Asks a language model for every decision. A route must set ``url`` and ``model``."""

    name = "llm-player"
    version = "1"
    games = ("*",)
    execution = "thread"
    deterministic = False
    Options = LlmOptions

    def __init__(self, options: LlmOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        if model is not None:  # a stranger's could name the address, and the variable whose value is sent there
            raise ModelError(f"llm-player takes no model, and there is {model.version}", advice=NO_MODEL)
        try:
            parts = urlsplit(options.url)
            host, _ = parts.hostname, parts.port  # raises ValueError for a port out of range
        except ValueError:
            host = None
        if not host:
            raise UsageError(f"llm-player: {options.url!r} is not a URL", advice="write https://HOST/v1")
        if parts.scheme == "http" and host not in LOOPBACK:
            raise UsageError(f"llm-player: {options.url} sends prompts and key in clear text", advice="use https://")
        if options.max_cost is not None and not (options.price_in or options.price_out):
            raise UsageError("llm-player: max_cost needs prices", advice="set price_in and price_out")
        key = None if options.key_variable is None else os.environ.get(options.key_variable)
        if options.key_variable is not None and not key:
            raise UsageError(f"llm-player: ${options.key_variable} is not set", advice="set it, or drop key_variable")
        if key is not None and not re.fullmatch("[!-~]+", key):
            advice = "set it to the key alone, without spaces or line breaks"
            raise UsageError(f"llm-player: ${options.key_variable} is not a key", advice=advice)
        self.allowance = allowance_of(options)
        self.client = Client(options, key)

    def player(self, table: Table) -> Player:
        return Seat(self, table)

    def close(self) -> None:
        self.client.close()


class Seat(Player):
    """One seat for one hand."""

    def __init__(self, strategy: LlmPlayer, table: Table) -> None:
        self._strategy = strategy
        self._table = table

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        """Ask the model. Raises PluginError, ProtocolError or TimeoutError, and the host then uses a fallback."""
        if len(legal) == 1:
            return Decision(action=int(legal[0]), stats={"reason": "the only legal action"})
        options: LlmOptions = self._strategy.options
        began = time.monotonic()
        deadline = min(began + options.timeout_ms / 1000.0, budget.deadline) - MARGIN_S
        game = self._table.game
        talk = messages(view, legal, game.name, dict(game.rules), self._table.seat, most=options.max_prompt_chars)
        used: dict[str, Any] = {"model": options.model, "prompt_tokens": 0, "completion_tokens": 0, "cost": 0.0}
        for attempt in range(1, options.attempts + 1):
            try:
                self._pause(self._strategy.allowance.wait_s(deadline - time.monotonic()), deadline)
                text, usage, cut = self._strategy.client.complete(self._body(talk), deadline)
                used["prompt_tokens"] += max(0, usage.prompt_tokens)
                used["completion_tokens"] += max(0, usage.completion_tokens)
                used["cost"] += self._strategy.allowance.spent(usage)
                action, reason = read(text, view, legal, cut=cut)
            except Busy as error:
                if attempt == options.attempts:
                    raise
                self._pause(error.retry_after_s, deadline)
                continue
            except ProtocolError:
                if attempt == options.attempts:
                    raise
                continue
            most = options.transcript_chars
            used |= {"attempts": attempt, "ms": round(1000.0 * (time.monotonic() - began), 1)}
            used["transcript"] = {"prompt": talk[1]["content"][:most], "answer": text[:most]}
            return Decision(action=action, stats={"reason": reason, "llm": used})
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _body(self, talk: list[dict[str, Any]]) -> dict[str, Any]:
        options: LlmOptions = self._strategy.options
        body: dict[str, Any] = {"model": options.model, "messages": talk}
        body[options.token_limit] = options.max_answer_tokens
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if (form := response_format(options.structured)) is not None:
            body["response_format"] = form
        return body

    @staticmethod
    def _pause(seconds: float, deadline: float) -> None:
        if time.monotonic() + seconds >= deadline:
            raise TimeoutError("the endpoint is busy for longer than the time of the decision")
        time.sleep(seconds)
