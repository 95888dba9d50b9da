"""Put what ``ship`` made into the package: ``python -m experiments.fm_clone.assemble FOLDER``.

FOLDER has the crowds of all games, and a training of each named clone. They replace the package's versions, which
the manifest then lists as retired.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import typer

import bothost_fm_clone
from bothost_fm_clone.shared import VERSION

GAMES = ("doudizhu", "mahjong", "othello")
Json = dict[str, Any]


def main(made: Path) -> None:
    """The crowds of all games become one version, each named clone one of its own. Aliases keep their names."""
    package = Path(next(iter(bothost_fm_clone.__path__))) / "weights"
    before = json.loads((package / "manifest.json").read_text())
    crowd = f"v{int(before['aliases']['champion'][1:]) + 1}"
    named = sorted(path.name for path in made.iterdir() if not path.name.endswith("-crowd"))
    aliases = {"champion": crowd} | {name: f"{name}-{crowd}" for name in named}
    assert aliases.keys() == before["aliases"].keys(), "a named clone is missing"
    sources = {alias: [made / alias] for alias in named} | {"champion": [made / f"{game}-crowd" for game in GAMES]}
    versions, lineage = {}, {}
    for alias, version in aliases.items():
        files = {}
        for source in sources[alias]:
            told = json.loads((source / "weights" / "lineage.json").read_text())
            # The crowd's package may hold files of other games that this training has not made.
            file = source / "weights" / "v1" / f"{told['game']}.safetensors"
            (package / version).mkdir(exist_ok=True)
            shutil.copy(file, package / version / file.name)
            files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
            for key in ("styles", "query"):
                told["log"].pop(key, None)
            lineage[f"{version} {told['game']}" if alias == "champion" else version] = told
        about = before["versions"][before["aliases"][alias]]["about"]
        versions[version] = {"files": dict(sorted(files.items())), "encoder_version": VERSION, "about": about}
    manifest = {"versions": versions, "aliases": aliases, "retired": before["retired"] | _gone(before, aliases)}
    (package / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (package / "lineage.json").write_text(json.dumps(lineage, indent=2) + "\n")
    for version in before["versions"]:
        shutil.rmtree(package / version)


def _gone(before: Json, aliases: dict[str, str]) -> Json:
    """The versions of the old manifest as retired ones."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    gone = {}
    for alias, version in before["aliases"].items():
        told = before["versions"][version]
        gone[version] = {
            "files": told["files"],
            "last_in": f"commit {head.stdout.strip()}",
            "encoder_version": told["encoder_version"],
            "instead": aliases[alias],
        }
    return gone


if __name__ == "__main__":
    typer.run(main)
