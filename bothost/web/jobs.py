"""Long commands that a page starts: each runs as a process of low priority, and reports its progress line by line."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from bothost.children import contained, descendants, lower_priority
from bothost.errors import UsageError
from bothost.host.tasks import stop
from bothost.locking import locked
from bothost.rules.game import Json
from bothost.web.opponents import CONFIGURATION, JOBS, basis_of, end, environment_of
from bothost.web.site import Site
from bothost.web.stream import DATABASE_AWAY, DATABASE_ERRORS, OPEN_ELSEWHERE, SCREENS, Changes, Places

NICE = 15
"""Live tables come first."""
AT_ONCE, OF_VISITORS = 2, 1
"""Commands that run at the same time, and where visitors start no more: operators find room beside them."""
LONGEST_S = 86_400.0
"""A job that takes longer is ended."""
KEPT = 20
"""Finished jobs that can still be looked at."""
_ADVICE = {"GateRefused": "train on, or promote without a match"}
"""Advice by the type of an error, where that of the command names options: pages have none."""

_object = msgspec.json.Decoder(Json)


class Job:
    """Some commands of bothost, one after another. The first that fails ends the job."""

    def __init__(self, name: str) -> None:
        self.id = secrets.token_urlsafe(12)
        self.name = name
        self.state = "running"
        """"running", "done", "failed" or "cancelled"."""
        self.progress: Json = {}
        self.results: list[Json] = []
        """The output of each command."""
        self.problems: list[Json] = []
        """Why it failed: each ``message`` with its ``advice``."""
        self.screens = Places(SCREENS, OPEN_ELSEWHERE)
        self._changes = Changes()

    async def note(self, **news: Any) -> None:
        """Change attributes, and wake who watches."""
        for name, value in news.items():
            setattr(self, name, value)
        await self._changes.note()

    async def watch(self) -> AsyncIterator[Json]:
        """The job as it is, and again after each change, until it has ended."""
        async for _ in self._changes.each():
            state = self.state  # it may end before this is read
            yield {
                "job": self.name,
                "state": state,
                "progress": self.progress,
                "results": self.results,
                "problems": self.problems,
            }
            if state != "running":
                return


class Jobs:
    """The jobs of this server. They end with it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of(self, number: str) -> Job | None:
        return self._jobs.get(number)

    def running(self, name: str) -> str | None:
        """The id of the running job of this name."""
        return next((job.id for job in self._jobs.values() if job.name == name and job.state == "running"), None)

    def last(self, name: str) -> str | None:
        """The id of the newest job of this name, also once it has ended: a closed page shows its result later."""
        return next((job.id for job in reversed(self._jobs.values()) if job.name == name), None)

    def start(self, name: str, commands: Sequence[Sequence[str | Path]], *, most: int = AT_ONCE) -> Job:
        """Run commands (words after ``bothost``) in the background. A path is one in the job's own folder.

        Raises UsageError where this job runs already, or ``most`` do.
        """
        if self.running(name) is not None:
            raise UsageError(f"{name} is running already", advice="wait until it has ended")
        if (running := len(self._tasks)) >= most:
            problem = "1 command is running" if running == 1 else f"{running} commands are running"
            raise UsageError(problem, advice="wait until one of them has ended")
        for number in [number for number in self._jobs if number not in self._tasks][:-KEPT]:
            del self._jobs[number]
        job = Job(name)
        self._jobs[job.id] = job
        self._tasks[job.id] = asyncio.create_task(self._run(job, commands), name=name)
        return job

    def cancel(self, job: Job) -> bool:
        """End a job with all its processes: it is cancelled once they have ended. Returns whether it was running."""
        task = self._tasks.get(job.id)
        if task is None or task.cancelling():  # a second time would not wait for the processes
            return False
        return task.cancel()

    async def aclose(self) -> None:
        await stop(self._tasks.values())

    async def _run(self, job: Job, commands: Sequence[Sequence[str | Path]]) -> None:
        data_dir = self._site.settings.host.data_dir.resolve()
        folder = data_dir / JOBS / secrets.token_hex(8)
        file = folder / CONFIGURATION
        try:
            folder.mkdir(parents=True, mode=0o700)
            with locked(folder):
                file.write_text(tomli_w.dumps(basis_of(self._site.settings, folder, data_dir)))
                async with asyncio.timeout(LONGEST_S):
                    for words in commands:
                        given = [str(folder / word) if isinstance(word, Path) else word for word in words]
                        await self.run_command(job, [*given, "--config", str(file), "--json"])
            await job.note(state="done")
        except asyncio.CancelledError:
            await job.note(state="cancelled")
            raise
        except TimeoutError:
            await job.note(state="failed", problems=[_problem(f"it was ended after {LONGEST_S / 3600:g} hours")])
        except _Failed as failed:
            await job.note(state="failed", problems=failed.problems)
        except Exception as error:  # whatever it is, the page must see it
            await job.note(state="failed", problems=[_problem(str(error))])
        finally:
            del self._tasks[job.id]
            shutil.rmtree(folder, ignore_errors=True)

    async def run_command(self, job: Job, words: Sequence[str]) -> None:
        """One command. It ends with this server, also if that is killed. Raises _Failed with what it complained of."""
        process = await asyncio.create_subprocess_exec(
            *contained([sys.executable, "-m", "bothost", *words]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment_of(self._site.settings), "BOTHOST_PROGRESS": "json", "OMP_NUM_THREADS": "1"},
        )
        assert process.stdout is not None and process.stderr is not None
        for pid in (process.pid, *descendants(process.pid)):  # what starts later inherits it
            lower_priority(pid, NICE)
        try:
            printed, complaints = await asyncio.gather(process.stdout.read(), _follow(job, process.stderr))
            if await process.wait():
                raise _Failed(_problems(complaints, process.returncode))
        finally:
            await end(process)
        job.results.append(_object.decode(printed))


async def _follow(job: Job, lines: asyncio.StreamReader) -> str:
    """Report progress; returns everything else that was written."""
    rest = []
    async for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            if "progress" in (found := _object.decode(line)):
                await job.note(progress=found)
                continue
        rest.append(line.decode(errors="replace"))
    return "".join(rest)


class _Failed(Exception):
    """A command failed."""

    def __init__(self, problems: list[Json]) -> None:
        super().__init__(problems)
        self.problems = problems


def _problems(complaints: str, code: int | None) -> list[Json]:
    """The errors of a failed command with ``--json``, or else the end of its output."""
    try:
        errors = _object.decode(complaints[complaints.index("{") :])["errors"]
        hidden = [kind.__name__ for kind in DATABASE_ERRORS]
        return [
            _problem(
                DATABASE_AWAY if error["type"] in hidden else error["message"],
                _ADVICE.get(error["type"], error["advice"]),
            )
            for error in errors
        ]
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        return [_problem(complaints[-500:].strip() or f"the command ended with exit code {code}")]


def _problem(message: str, advice: str = "") -> Json:
    return {"message": message, "advice": advice}
