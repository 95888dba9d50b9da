"""Put what ``ship`` made into the package: ``python -m experiments.fm_clone.assemble FOLDER``."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import bothost_fm_clone
from bothost_fm_clone.shared import VERSION

CROWD = "v4"
GAMES = ("doudizhu", "mahjong", "othello")
RETIRED = {
    "v2": {
        "files": {
            "doudizhu.safetensors": "29f30ae1557bf402507b2299be8f7052113a62dde4b5080ab2e1f61499eb1c3c",
            "othello.safetensors": "9375814e0cb2f023572fdb76d642f5e105d38d29663630ac2d0055149c82bda3",
        },
        "last_in": "commit 0481562",
        "encoder_version": 1,
        "instead": "v4",
    },
    "v3": {
        "files": {
            "doudizhu.safetensors": "f1a24e811e7480dc843e77f91b89553eb336307a007845c15e2f448a4c46591b",
            "mahjong.safetensors": "3933575be6a0964d815f38fb9ba389998c211c10bb303ce7b09c921b360dc19d",
            "othello.safetensors": "f5b855af2755ac2b031a96e22a5c10417e9382899553d99752f885fa9c321184",
        },
        "last_in": "commit 2bfbb40",
        "encoder_version": 2,
        "instead": "v4",
    },
}


def main(made: Path) -> None:
    """The crowds of all games become one version, each named clone one of its own."""
    package = Path(next(iter(bothost_fm_clone.__path__))) / "weights"
    named = sorted(path.name for path in made.iterdir() if not path.name.endswith("-crowd"))
    folders = {CROWD: [made / f"{game}-crowd" for game in GAMES], **{name: [made / name] for name in named}}
    versions, lineage = {}, {}
    for version, sources in folders.items():
        place = package / version
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        files = {}
        for source in sources:
            told = json.loads((source / "weights" / "lineage.json").read_text())
            # The crowd's package may hold files of other games that this training has not made.
            file = source / "weights" / "v1" / f"{told['game']}.safetensors"
            shutil.copy(file, place / file.name)
            files[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
            for key in ("styles", "query"):
                told["log"].pop(key, None)
            lineage[version if len(sources) == 1 else f"{version} {told['game']}"] = told
        versions[version] = {"files": dict(sorted(files.items())), "encoder_version": VERSION}
    manifest = {
        "versions": versions,
        "aliases": {"champion": CROWD} | {name: name for name in named},
        "retired": RETIRED,
    }
    (package / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (package / "lineage.json").write_text(json.dumps(lineage, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
