"""What a hostile plugin in a process of its own can reach, and what is left of it when it is killed."""

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bothost import Budget, PluginError, Request, Table, children, rules
from bothost.config import load
from bothost.errors import ConfigError
from bothost.host.control import Control
from bothost.host.process import ProcessFailed, ProcessLate, ProcessLimits, ProcessStrategy
from bothost.host.spares import Spares
from bothost.plugins import Plugins
from bothost_exec.options import Options
from bothost_exec.sandbox import sandboxed
from bothost_exec.strategy import Exec

GAME = rules.game("claims")
DAEMON = """
import os, sys, time

def daemon(work):
    '''Fork twice and leave the session, as daemons do. Returns the daemon's process id.'''
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writes, str(os.getpid()).encode())
            work()
            time.sleep(600)
        os._exit(0)
    os.wait()
    return int(os.read(reads, 20))
"""
HOSTILE = (
    DAEMON
    + """
from bothost import Decision, Player, Strategy, hookimpl

class Hostile(Player):
    def decide(self, view, legal, budget):
        task = FILE.read_text()
        if task == "environment":
            return Decision(action=int(legal[0]), stats={"environment": sorted(os.environ), "path": sys.path})
        if task == "daemon":
            PIDS.write_text(str(daemon(lambda: None)))
        if task == "memory":
            PIDS.write_text(str(daemon(lambda: globals().update(held=bytearray(400 << 20)))))
        time.sleep(600)

class HostileStrategy(Strategy):
    name, version, games, execution = "hostile", "1", ("*",), "process"

    def player(self, table):
        return Hostile()

@hookimpl
def bothost_strategies():
    return [HostileStrategy]
"""
)


@pytest.fixture
def hostile(tmp_path):
    """Starts the hostile strategy with a task."""
    folder, task, pids = tmp_path / "plugins.d", tmp_path / "task", tmp_path / "pids"
    folder.mkdir()
    text = f"from pathlib import Path\nFILE, PIDS = Path({str(task)!r}), Path({str(pids)!r})\n{HOSTILE}"
    (folder / f"hostile_{tmp_path.name}.py").write_text(text)  # a module is imported under its own name
    made = []

    def make(what, memory_mb=2048, variables=()):
        task.write_text(what)
        limits = ProcessLimits(memory_mb << 20, folder)
        spares = Spares(variables=variables)
        made.append(ProcessStrategy(Plugins.load(folder).resolve("hostile", {}), limits, spares))
        return made[-1], pids

    yield make
    for strategy in made:
        strategy.close()


def decide(strategy, seconds):
    state = GAME.new_state(3)
    seat = state.to_act[0]
    view = state.view(seat)
    player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=seat, seed=1))
    return player.decide(view, view.legal(), Budget(time.monotonic() + seconds))


def ended(pid, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_process_sees_listed_variables_only(hostile, monkeypatch):
    for name in ("MY_DATABASE", "AWS_SECRET_ACCESS_KEY", "BOTHOST_HOME_TOKEN", "HF_HOME"):
        monkeypatch.setenv(name, "planted")
    strategy, _ = hostile("environment", variables=["HF_HOME"])
    seen = decide(strategy, 60.0).stats
    assert "HF_HOME" in seen["environment"] and "PATH" in seen["environment"]
    assert {*seen["environment"]} <= {*children.VARIABLES, "HF_HOME", *(n for n in os.environ if n.startswith("LC_"))}


def test_the_current_folder_is_not_on_the_path_of_a_process(tmp_path, monkeypatch):
    """With it, a file there would run in place of a module of that name."""
    (tmp_path / "msgspec.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.chdir(tmp_path)
    strategy = ProcessStrategy(Plugins.load().resolve("random", {}), ProcessLimits())
    try:
        assert decide(strategy, 60.0).action >= 0 and strategy.starts == 1
    finally:
        strategy.close()


def test_a_daemon_that_a_process_left_ends_with_it(hostile):
    strategy, pids = hostile("daemon")
    seconds = 1.0
    while not pids.exists() or not pids.read_text():  # a busy machine may need longer to start one
        with pytest.raises(ProcessLate):
            decide(strategy, seconds)
        seconds *= 2
    assert ended(int(pids.read_text()))


def test_the_memory_of_a_daemon_counts(hostile):
    strategy, pids = hostile("memory", memory_mb=450)
    with pytest.raises(ProcessFailed, match="MiB"):
        decide(strategy, 60.0)
    assert ended(int(pids.read_text()))


PROGRAM = (
    DAEMON
    + """
import json, socket
from pathlib import Path
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "hello":
        print(json.dumps({"type": "hello", "version": 1, "name": "bot", "games": ["*"]}), flush=True)
    elif m["type"] == "decide":
        stats = {}
        TASK
        print(json.dumps({"type": "action", "id": m["id"], "action": m["legal"][0], "stats": stats}), flush=True)
"""
)


@pytest.fixture
def program(tmp_path):
    """Starts a program that does something at each decision."""
    made = []

    def make(task, **options):
        (tmp_path / "bot.py").write_text(PROGRAM.replace("TASK", task))
        command = ("/usr/bin/python3" if options.get("sandbox") else sys.executable, "-I", "-S", "bot.py")
        made.append(Exec(Options(command=command, cwd=str(tmp_path), **options)))
        return made[-1]

    yield make
    for strategy in made:
        strategy.close()


def ask(strategy, seconds=60.0):
    state = GAME.new_state(3)
    seat = state.to_act[0]
    view = state.view(seat)
    player = strategy.player(Table(lobby="l", table="t", game=GAME, seat=seat, seed=1))
    one = Request(player, view, view.legal(), Budget(time.monotonic() + seconds))
    return player, player.decide(one.view, one.legal, one.budget)


def test_a_program_sees_listed_variables_only(program, monkeypatch):
    for name in ("MY_DATABASE", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "planted")
    _, decision = ask(program("stats = {'seen': sorted(os.environ)}", environment=("OPENAI_API_KEY",)))
    assert "OPENAI_API_KEY" in decision.stats["seen"] and "MY_DATABASE" not in decision.stats["seen"]


def test_a_daemon_that_a_program_left_ends_with_its_table(program):
    player, decision = ask(program("stats = {'pid': daemon(lambda: None), 'own': os.getpid()}"))
    assert not ended(decision.stats["pid"], seconds=0.1)
    player.close()
    assert ended(decision.stats["pid"]) and ended(decision.stats["own"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing finds the descendants of a process")
def test_a_daemon_that_is_another_process_at_every_moment_ends_too(program, tmp_path):
    task = """
        def run():
            end, n = time.time() + 20, 0
            while time.time() < end:
                if os.fork() > 0:
                    os._exit(0)  # another runs on in its place
                if (n := n + 1) % 10 == 0:
                    Path("trace").write_text("")
        daemon(run)
"""
    player, _ = ask(program(task.strip()))
    trace = tmp_path / "trace"
    while not trace.exists():
        time.sleep(0.01)
    player.close()
    time.sleep(0.5)
    last = trace.stat().st_mtime_ns
    time.sleep(0.5)
    assert trace.stat().st_mtime_ns == last


CHAIN = """
import os, sys, time
for _ in range(200):
    if os.fork() > 0:
        time.sleep(60)
        os._exit(0)
print("whole", flush=True)
time.sleep(60)
"""
FOUND = "import sys; sys.setrecursionlimit(150); from bothost import children; "


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing finds the descendants of a process")
def test_processes_below_each_other_are_all_found():
    """However deep: a program could hide its memory, and what it leaves behind, below many processes."""
    command = children.contained([sys.executable, "-I", "-S", "-c", CHAIN])
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as chain:
        assert chain.stdout.readline() == b"whole\n"
        code = FOUND + f"print(len([*children.descendants({chain.pid})])); children.end({chain.pid})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert chain.wait(10) < 0 and chain.stdout.read() == b""
    assert (done.stdout, done.stderr) == ("201\n", "")


def test_the_memory_of_what_a_program_started_counts(program):
    task = "stats = {'pid': daemon(lambda: globals().update(held=bytearray(200 << 20)))}; time.sleep(600)"
    with pytest.raises(PluginError, match="MiB, more than 100"):
        ask(program(task, memory_mb=100))


def sandbox_works():
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "true"]
    return (
        shutil.which("bwrap") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap is not installed, or may not make namespaces here")
def test_a_program_in_a_sandbox_reaches_nothing(program, monkeypatch):
    """Neither the network, nor other processes, nor a home, nor a file outside its folder to write."""
    monkeypatch.setenv("HOME", str(Path(__file__).parent))  # a service has its home and its data anywhere
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = f"""
        def tried(work):
            try:
                return str(work() or "done")
            except OSError as error:
                return error.strerror
        stats = {{
            "connects": tried(lambda: socket.create_connection(("127.0.0.1", {listening.getsockname()[1]}), 2)),
            "processes": sum(name.isdigit() for name in os.listdir("/proc")),
            "home": tried(lambda: os.listdir("/root") + os.listdir("/home") + os.listdir(os.environ["HOME"])),
            "state": tried(lambda: os.listdir("/var")),
            "writes": tried(lambda: Path("bot.py").write_text("other")),
            "writes_system": tried(lambda: Path("/etc/planted").write_text("")),
            "reads_its_folder": Path("bot.py").read_text()[:0] == "",
            "own_tmp": tried(lambda: Path("/tmp/own").write_text("")),
        }}
"""
        _, decision = ask(program(task.strip(), sandbox="bwrap"))
    told = decision.stats
    assert told["connects"] not in ("done", "") and "socket" not in told["connects"]
    assert told["processes"] <= 4 and told["home"] == told["state"] == "done"
    assert told["writes"] == told["writes_system"] == "Read-only file system"
    assert told["reads_its_folder"] and told["own_tmp"] == "done"


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap is not installed, or may not make namespaces here")
async def test_a_program_in_a_sandbox_commands_no_host(program, tmp_path):
    """Its folder is the configuration's unless it has its own, so it may see the control socket."""
    task = """
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        client.connect("control.sock")
        client.sendall(b'{"command": "drain"}\\n')
        stats = json.loads(client.recv(1000))
"""
    drained = []
    control = Control(tmp_path / "control.sock", {"drain": lambda: drained.append("drained") or {}})
    await control.start()
    try:
        _, decision = await asyncio.to_thread(ask, program(task.strip(), sandbox="bwrap"))
        assert "sandbox" in decision.stats["error"] and not drained
        await asyncio.to_thread(ask, program(task.strip()))
        assert drained
    finally:
        await control.aclose()


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap is not installed, or may not make namespaces here")
def test_a_program_in_a_sandbox_cannot_fill_the_memory_with_files(program):
    task = """
        for place in ("/dev", "/dev/shm", "/tmp", "/var", "/home"):
            try:
                with open(place + "/large", "wb") as file:
                    for _ in range(60):
                        file.write(bytes(1 << 20))
            except OSError as error:
                stats[place] = error.strerror
"""
    _, decision = ask(program(task.strip(), sandbox="bwrap", memory_mb=50))
    full, closed = "No space left on device", "Read-only file system"
    assert decision.stats == {"/dev": closed, "/dev/shm": full, "/tmp": full, "/var": closed, "/home": closed}


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap is not installed, or may not make namespaces here")
def test_a_sandbox_hides_what_it_hides_in_the_folder_of_the_program_too():
    command = sandboxed(["ls", "-A", "/home", "/var"], "/", 0)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("/home:\n\n/var:\n", "")


def test_a_sandbox_without_bubblewrap_says_what_to_install(program, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PluginError, match="needs the program bwrap") as refused:
        ask(program("pass", sandbox="bwrap"))
    assert "install bubblewrap" in refused.value.advice


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is Linux's")
def test_a_host_hides_its_memory_and_environment():
    code = (
        "import ctypes, os, sys\nfrom bothost import children\nchildren.hide()\n"
        "sys.stdout.write(str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))"  # PR_GET_DUMPABLE
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0"


def test_a_priority_is_lowered_and_never_raised(monkeypatch):
    """Linux lets only root raise one."""
    given = []
    monkeypatch.setattr(os, "setpriority", lambda which, task, nice: given.append(nice))
    for own in (0, 19):
        monkeypatch.setattr(os, "getpriority", lambda which, task, own=own: own)
        children.lower_priority(1, 15)
    assert given == [15, 19]


@pytest.mark.parametrize("part", ["folder", "file"])
def test_plugins_that_others_may_write_are_not_imported(tmp_path, part):
    folder = tmp_path / "plugins.d"
    folder.mkdir()
    file = folder / "planted.py"
    file.write_text("raise SystemExit('imported')")
    open_to_all = folder if part == "folder" else file
    open_to_all.chmod(open_to_all.stat().st_mode | stat.S_IWOTH)
    failures = Plugins.load(folder).failures
    assert [failure.cause for failure in failures] == [f"other users can write to {open_to_all}"]
    assert f"chmod go-w {open_to_all}" in failures[0].advice


@pytest.mark.parametrize("part", ["inner", "cache", "linked", "other's"])
def test_parts_of_a_plugin_that_others_may_write_are_found(tmp_path, part):
    """A folder inside it, compiled code, what a symbolic link leads to, and what belongs to another user."""
    root = tmp_path / "plugins.d" / "planted"
    elsewhere = tmp_path / "elsewhere"
    for folder in (root / "inner", root / "__pycache__", elsewhere):
        folder.mkdir(parents=True)
    (root / "__init__.py").write_text("raise SystemExit('imported')")
    (root / "__pycache__" / "__init__.pyc").write_bytes(b"")
    (root / "linked").symlink_to(elsewhere)
    (root / "back").symlink_to(root)
    part_of = {"inner": root / "inner", "cache": root / "__pycache__" / "__init__.pyc", "linked": elsewhere}
    if part == "other's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(root / "__init__.py", 65534, 65534)
    else:
        part_of[part].chmod(0o777)
    (failure,) = Plugins.load(tmp_path / "plugins.d").failures
    assert failure.cause.startswith("other users can write to")


def test_links_within_a_plugin_are_no_obstacle(tmp_path):
    root = tmp_path / "plugins.d" / "looping"
    root.mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "back").symlink_to(root)
    (failure,) = Plugins.load(tmp_path / "plugins.d").failures
    assert "no hook" in failure.cause


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[host]\nplugin_environment = ["HOME_PASSWORD"]', "host.plugin_environment"),
        (
            '[[route]]\nstrategy = "exec:./bot"\noptions = { environment = ["HOME_PASSWORD"] }',
            "route[0].options.environment",
        ),
        ('[host]\nplugin_environment = ["BOTHOST_HOME_TOKEN"]', "host.plugin_environment[0]"),
    ],
)
def test_a_secret_of_the_configuration_is_not_passed_on(tmp_path, text, key, monkeypatch):
    monkeypatch.setenv("HOME_PASSWORD", "planted")
    account = (
        '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://localhost:1"\n[[lobby.account]]\nname = "ada"\n'
    )
    file = tmp_path / "config.toml"
    file.write_text(f'{text}\n{account}password = {{ env = "HOME_PASSWORD" }}\n')
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert key in str(refused.value)
    assert "planted" not in str(refused.value)
