"""Put what ``ship`` made into the package: ``python -m experiments.fm_clone.assemble FOLDER``.

FOLDER has crowds of games, and trainings of named clones. They replace the package's, which the manifest then lists as
retired. What FOLDER lacks stays: crowds of other games move into the new version of the crowd.
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
    before, lineage = (json.loads((package / name).read_text()) for name in ("manifest.json", "lineage.json"))
    old = before["aliases"]["champion"]
    crowd = f"v{int(old[1:]) + 1}"
    named = sorted(path.name for path in made.iterdir() if not path.name.endswith("-crowd"))
    aliases = before["aliases"] | {"champion": crowd} | {name: f"{name}-{crowd}" for name in named}
    assert aliases.keys() == before["aliases"].keys(), "an unknown clone was made"
    replaced = {alias: before["aliases"][alias] for alias in ("champion", *named)}
    versions = {version: told for version, told in before["versions"].items() if version not in replaced.values()}
    shutil.copytree(package / old, package / crowd)
    for game in GAMES:
        lineage[f"{crowd} {game}"] = lineage.pop(f"{old} {game}")
        if (source := made / f"{game}-crowd").exists():
            lineage[f"{crowd} {game}"] = _copy(source, package / crowd)
    for name in named:
        lineage.pop(before["aliases"][name])
        lineage[aliases[name]] = _copy(made / name, package / aliases[name])
    for alias, version in replaced.items():
        files = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (package / aliases[alias]).iterdir()
        }
        about = before["versions"][version]["about"]
        versions[aliases[alias]] = {"files": dict(sorted(files.items())), "encoder_version": VERSION, "about": about}
        shutil.rmtree(package / version)
    manifest = {
        "versions": versions,
        "aliases": aliases,
        "retired": before["retired"] | _gone(before, replaced, aliases),
    }
    (package / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (package / "lineage.json").write_text(json.dumps(dict(sorted(lineage.items())), indent=2) + "\n")


def _copy(source: Path, folder: Path) -> Json:
    """Copy the file that a training made. Returns its lineage."""
    told: Json = json.loads((source / "weights" / "lineage.json").read_text())
    # The package of a named clone's crowd may hold files of other games, too.
    file = source / "weights" / "v1" / f"{told['game']}.safetensors"
    folder.mkdir(exist_ok=True)
    shutil.copy(file, folder / file.name)
    for key in ("styles", "query"):
        told["log"].pop(key, None)
    return told


def _gone(before: Json, replaced: dict[str, str], aliases: dict[str, str]) -> Json:
    """The replaced versions of the old manifest as retired ones."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    return {
        version: {
            "files": before["versions"][version]["files"],
            "last_in": f"commit {head.stdout.strip()}",
            "encoder_version": before["versions"][version]["encoder_version"],
            "instead": aliases[alias],
        }
        for alias, version in replaced.items()
    }


if __name__ == "__main__":
    typer.run(main)
