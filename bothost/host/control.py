"""The control socket of a running host: one JSON line in, one JSON line out, on a Unix socket in ``data_dir``."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from bothost.errors import BothostError, UsageError
from bothost.host.tasks import stop
from bothost.listening import stop_accepting
from bothost.messages import Json

PATH_BYTES = 100
"""Maximum length of a Unix socket's path, which the system limits to a little more."""
LINE_BYTES = 64 * 1024


class HostRunning(BothostError):
    """Another host runs in this data_dir."""


class NoHost(UsageError):
    """No host runs in this data_dir, or it does not answer."""

    exit_code = 1


def socket_path(data_dir: Path) -> Path:
    """The path of the control socket of ``data_dir``. If it is too long, use a private folder of this user instead.

    Raises UsageError if other users have access to that folder.
    """
    path = data_dir.resolve() / "control.sock"
    if len(os.fsencode(path)) <= PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return _private_folder() / f"{name}.sock"


def _private_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"bothost-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        advice = "remove it, or give [host] data_dir a shorter path"
        raise UsageError(f"{folder} is not a private folder of this user", advice=advice)
    return folder


class Control:
    """Serves commands: name → function that takes the message's other keys and returns the answer, or an awaitable."""

    def __init__(self, path: Path, commands: Mapping[str, Callable[..., Json | Awaitable[Json]]]) -> None:
        self.path = path
        self._commands = commands
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Raises HostRunning if another host already answers there, and BothostError if it cannot listen."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            if await asyncio.to_thread(_answers, self.path):
                raise HostRunning(
                    f"a host is already running in {self.path.parent}",
                    advice="see it with bothost status, or give this host another host.data_dir",
                )
            self.path.unlink()
        previous = os.umask(0o177)  # only our user may connect
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path, limit=LINE_BYTES)
        except OSError as error:
            advice = "let this user write to its folder, or set another [host] data_dir"
            raise BothostError(f"control socket {self.path}: {error.strerror or error}", advice=advice) from error
        finally:
            os.umask(previous)

    async def aclose(self) -> None:
        if self._server is not None:
            await stop_accepting(self._server)
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
            await stop(self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
                async with asyncio.timeout(5.0):
                    line = await reader.readline()
                    refused = _is_in_a_sandbox(writer.get_extra_info("socket"))
                    answer = {"error": "programs in a sandbox may not command the host"} if refused else None
                    writer.write(msgspec.json.encode(answer or await self._answer(line)) + b"\n")
                    await writer.drain()
        finally:
            self._serving.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, line: bytes) -> Json:
        try:
            arguments = msgspec.json.decode(line, type=dict[str, str])
        except ValueError:
            return {"error": "the message must be a JSON object with string values"}
        command = arguments.pop("command", "")
        function = self._commands.get(command)
        if function is None:
            return {"error": f"unknown command {command!r}; known: {', '.join(sorted(self._commands))}"}
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            return {"error": f"{command}: {error}"}
        try:
            answer = function(**arguments)
            return await answer if inspect.isawaitable(answer) else answer
        except UsageError as error:
            return {"error": str(error), "advice": error.advice}


def _is_in_a_sandbox(client: socket.socket) -> bool:
    """Whether a client has process ids of its own, as a program in a sandbox has: it may see the folder of the socket.

    Also where the client has ended already: it waits for no answer.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return False
    (pid,) = struct.unpack_from("i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if pid == 0:  # outside of our container
        return False
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return True
    ids = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(ids) > 1  # one in each namespace, from ours on


def ask(data_dir: Path, command: str, timeout_s: float = 5.0, **arguments: str) -> Json:
    """Send a command to the host in ``data_dir``. Raises NoHost if there is none, and UsageError if it refuses."""
    path = socket_path(data_dir)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(timeout_s)
            client.connect(str(path))
            client.sendall(msgspec.json.encode({"command": command, **arguments}) + b"\n")
            with client.makefile("rb") as answer:
                line = answer.readline()
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoHost(f"no host runs in {data_dir}", advice="start one with: bothost run") from error
    except OSError as error:
        problem = f"the host in {data_dir} cannot be asked: {error.strerror or error}"
        raise NoHost(problem, advice="look at its log, and at who may open its data_dir") from error
    try:
        result = msgspec.json.decode(line, type=Json)
    except ValueError as error:  # the host ended before it answered
        raise NoHost(f"the host in {data_dir} did not answer", advice="ask again, or look at its log") from error
    if "error" in result:
        raise UsageError(str(result["error"]), advice=str(result.get("advice", "")))
    return result


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(path))
        except OSError:
            return False
        with contextlib.suppress(OSError):  # a host that accepts connections is running, even if it does not answer
            client.shutdown(socket.SHUT_WR)
            while client.recv(LINE_BYTES):
                pass
        return True
