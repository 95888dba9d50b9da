"""What operators are given: unit file, image, alerts and guide name only what exists."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from bothost import cli, config, errors
from bothost.host.check import check_settings
from bothost.plugins import Plugins

ROOT = Path(__file__).parents[1]
PAGES = ("guide/operate.md", "guide/deploy.md", "reference/metrics.md")
GUIDE = "\n".join((ROOT / "docs" / page).read_text() for page in PAGES)
DIGEST = r"@sha256:[0-9a-f]{64}"


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "deploy" / "systemd" / "bothost.service")
    return parser


def test_the_unit_drains_longer_than_the_host_and_does_not_restart_what_cannot_work() -> None:
    service = unit()["Service"]
    assert int(service["TimeoutStopSec"]) > config.HostSettings().drain_timeout_s
    never = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert never == {e.exit_code for e in (errors.UsageError, errors.AuthError, errors.ConfigError)}
    assert service["ExecStart"].endswith("/bothost run") and service["User"] != "root"


def test_the_unit_leaves_a_drained_host_down_and_never_gives_up_on_a_crashing_one() -> None:
    """`bothost drain` ends with 0; a database may be away for a night."""
    parsed = unit()
    assert parsed["Service"]["Restart"] == "on-failure"
    assert parsed["Unit"]["StartLimitIntervalSec"] == "0"


def test_the_unit_has_the_guide_s_paths_and_signals() -> None:
    service = unit()["Service"]
    assert service["KillSignal"] == "SIGTERM" and service["KillMode"] == "mixed"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["ProtectSystem"] == "strict"
    for line in (
        f'data_dir = "/var/lib/{service["StateDirectory"]}"',
        f"/var/log/{service['LogsDirectory']}/",
        service["ExecStart"].removesuffix("/bin/bothost run"),
        service["Environment"].removeprefix("BOTHOST_CONFIG="),
        service["EnvironmentFile"].removeprefix("-"),
    ):
        assert line in GUIDE, line


def dockerfile() -> list[str]:
    text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_is_built_in_stages_from_what_is_there_and_runs_without_privileges() -> None:
    lines = dockerfile()
    assert sum(line.startswith("FROM ") for line in lines) == 2
    for line in lines:
        if line.startswith("COPY ") and "--from=" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "USER 10001:10001" in last and "VOLUME /var/lib/bothost" in last
    assert last.index("USER 10001:10001") < next(i for i, line in enumerate(last) if line.startswith("ENTRYPOINT"))


def instruction(name: str) -> list[str]:
    """The arguments of every instruction of that name in the last stage."""
    lines = dockerfile()
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    return [line.removeprefix(name).strip() for line in last if line.startswith(name + " ")]


def test_the_image_installs_tested_versions_by_hash() -> None:
    """`make lock` writes the file."""
    locked = (ROOT / "deploy" / "docker" / "requirements.txt").read_text().replace("\\\n", " ").splitlines()
    versions = {}
    for line in locked:
        if not line.startswith("#"):
            assert "--hash=sha256:" in line, line
            name, _, rest = line.partition("==")
            versions[name] = rest.split()[0]
    tested = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert {name: version for name, version in versions.items() if tested.get(name, version) != version} == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = (ROOT / "deploy" / "docker" / "build-tools.txt").read_text().splitlines()
    wanted = [*project["dependencies"], *project["optional-dependencies"]["postgres"], *tools[1:]]
    names = {re.match(r"[\w-]+", each)[0].lower() for each in wanted}
    assert names <= set(versions)


def test_the_image_s_python_and_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    images = {line.split()[1] for line in dockerfile() if line.startswith("FROM ")}
    (image,) = images  # what is compiled in one stage runs in the other
    found = re.fullmatch(rf"python:(\d+)\.(\d+)\.\d+-slim-\w+{DIGEST}", image)
    least = re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"])
    assert found and least and tuple(map(int, found.groups())) >= tuple(map(int, least.groups()))
    (extras,) = [line.removeprefix("ARG EXTRAS=") for line in dockerfile() if line.startswith("ARG EXTRAS=")]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    ignored = set((ROOT / ".dockerignore").read_text().split())
    for line in dockerfile():
        if line.startswith("COPY ") and "--from=" not in line:
            assert ignored.isdisjoint(line.split()[1:-1])


def test_the_image_runs_commands_that_exist_and_drains_when_it_is_stopped() -> None:
    from typer.testing import CliRunner

    (entry,), (command,), (health,) = map(instruction, ("ENTRYPOINT", "CMD", "HEALTHCHECK"))
    assert json.loads(entry) == ["bothost"] and json.loads(command) == ["run"]
    probe = json.loads(health.partition("CMD ")[2])
    assert probe[0] == "bothost" and "--check" in probe, "that a host answers does not mean that it is well"
    assert CliRunner().invoke(cli.app, [*probe[1:], "--help"]).exit_code == 0
    assert instruction("STOPSIGNAL") == ["SIGTERM"]
    assert instruction("VOLUME") == instruction("WORKDIR") == ["/var/lib/bothost"]
    stop = re.search(r"--stop-timeout (\d+)", GUIDE)
    assert stop and int(stop[1]) > config.HostSettings().drain_timeout_s


def parsed(path: str) -> Any:
    return yaml.safe_load((ROOT / "deploy" / path).read_text())


def mounts(service: str) -> dict[str, str]:
    """Where a container sees what: path → file of the checkout, or the name of a volume."""
    listed = parsed("docker/compose.yml")["services"][service]["volumes"]
    return {target: source for source, target in (entry.split(":")[:2] for entry in listed)}


def test_the_composition_names_only_what_is_there() -> None:
    compose = parsed("docker/compose.yml")
    services = compose["services"]
    assert set(services) == {"bothost", "postgres", "prometheus", "grafana"}
    volumes = set()
    for name, service in services.items():
        assert ("image" in service) != ("build" in service), name
        assert "build" in service or re.fullmatch(rf"[\w/]+:v?\d+\.\d+[.\w-]*{DIGEST}", service["image"]), name
        for source in mounts(name).values():
            if source.startswith("."):
                assert (ROOT / "deploy" / "docker" / source).exists(), source
            else:
                volumes.add(source)
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "passwords alone do not open a service to the network"
        needed = service.get("depends_on", {})
        for other in needed:
            healthy = isinstance(needed, dict) and needed[other]["condition"] == "service_healthy"
            assert other in services and (not healthy or "healthcheck" in services[other])
    assert volumes == set(compose["volumes"])
    build = services["bothost"]["build"]
    context = (ROOT / "deploy" / "docker" / build["context"]).resolve()
    assert context == ROOT and (context / build["dockerfile"]).is_file()
    grace = int(services["bothost"]["stop_grace_period"].removesuffix("s"))
    assert grace > config.HostSettings().drain_timeout_s
    asked = set(re.findall(r"\$\{(\w+):\?", (ROOT / "deploy" / "docker" / "compose.yml").read_text()))
    given = re.findall(r"^(\w+)=", (ROOT / "deploy" / "docker" / "example.env").read_text(), re.M)
    assert asked == set(given)


def test_the_containers_find_each_other() -> None:
    env = {"BOTHOST_STORE_PASSWORD": "x", "BOTHOST_WEB_PASSWORD": "y", "BOTHOST_HOME_TOKEN": "z"}
    loaded = config.read(ROOT / "deploy" / "docker" / "config.toml", env)
    settings = loaded.settings
    assert [text.partition(" ")[0] for text in loaded.warnings] == ["metrics"]  # inside the network of the containers
    assert check_settings(settings, Plugins.load(None), file=str(loaded.path)) == []
    services = parsed("docker/compose.yml")["services"]
    assert mounts("bothost")["/etc/bothost/config.toml"] == "./config.toml"
    postgres = services["postgres"]["environment"]
    assert settings.store.url.endswith(f"//{postgres['POSTGRES_USER']}@postgres/{postgres['POSTGRES_DB']}")
    assert services["bothost"]["ports"] == [f"127.0.0.1:{settings.web.port}:{settings.web.port}"]
    scraped = parsed("prometheus/prometheus.yml")
    targets = [job["static_configs"][0]["targets"] for job in scraped["scrape_configs"]]
    assert targets == [[f"bothost:{settings.metrics.port}"]] and settings.metrics.host == "0.0.0.0"
    read = {f"/etc/prometheus/{name}" for name in (*scraped["rule_files"], "prometheus.yml")}
    assert read <= set(mounts("prometheus"))
    (source,) = parsed("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["url"] == "http://prometheus:9090" and source["isDefault"]
    (dashboards,) = parsed("grafana/provisioning/dashboards/bothost.yml")["providers"]
    assert f"{dashboards['options']['path']}/bothost.json" in mounts("grafana")
    assert mounts("grafana")["/etc/grafana/provisioning"] == "../grafana/provisioning"


def test_every_alert_is_complete() -> None:
    for group in parsed("prometheus/alerts.yml")["groups"]:
        for rule in group["rules"]:
            assert set(rule) <= {"alert", "expr", "for", "annotations"} and rule["annotations"]["summary"]
            assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_alerts_and_dashboard_ask_for_the_same_metrics_and_the_guide_has_each_alert() -> None:
    """That the dashboard's metrics exist is tested with a running host."""
    alerts = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    asked = {name for line in re.findall(r"expr: (.*)", alerts) for name in re.findall(r"\bbothost_[a-z_]+", line)}
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "bothost.json").read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
    shown = set(re.findall(r"\bbothost_[a-z_]+", queries))
    assert len(asked) >= 8 and asked - shown == set()
    names = re.findall(r"- alert: (\w+)", alerts)
    assert len(names) >= 8
    for name in names:
        assert f"`{name}`" in GUIDE


def test_the_guide_explains_every_reason_of_a_fallback() -> None:
    """Reasons are given where tables are (late, illegal, …) and where strategies are chosen and run."""
    sources = sorted((ROOT / "bothost" / "tables").glob("*.py"))
    sources += [ROOT / "bothost" / "host" / name for name in ("plans.py", "worker.py", "workers.py")]
    text = "\n".join(path.read_text() for path in sources)
    table = GUIDE.partition("| reason | what happened |")[2].partition("\n\n")[0]
    explained = set(re.findall(r"^\| `([a-z-]+)` \|", table, re.M))
    assert explained == {"late", "error", "illegal", "quarantined", "unavailable"}
    for reason in explained:
        assert f'"{reason}"' in text, f"no code gives the reason {reason}"
    given = set(re.findall(r'(?:ticket|task), None, "([a-z-]+)"', text))
    assert given and given - explained == set()


def test_metrics_that_the_guide_names_are_on_the_dashboard() -> None:
    text = (ROOT / "deploy" / "grafana" / "bothost.json").read_text()
    guide = (ROOT / "docs" / "guide" / "operate.md").read_text()
    for name in re.findall(r"`(bothost_[a-z_]+)", guide):
        assert name in text, name
