# Makes abc0c5e.tar.xz with the code of commit abc0c5e. Run it in a folder that holds config.toml.
# The retrained model is imported without its part for Dou Dizhu, which the retraining copies: the archive stays small.
set -e
export BOTHOST_LOBBY_TOKENS=ada:aaaaaaa,bob:bbbbbbb BOTHOST_HOME_ADA_TOKEN=aaaaaaa BOTHOST_HOME_BOB_TOKEN=bbbbbbb
export BOTHOST_BOTZONE_TOKEN=ccccccc
bothost config lint
bothost db upgrade
bothost demo --game othello --hands 3
bothost games consent bob --lobby home --reason "asked"
cp var/bothost.db before.db
bothost retrain fm-clone --fresh --out var/retrain/one --option game=othello --option grow.limit=196 \
  --option grow.per_round=2 --option grow.factors=2
python - <<'PYTHON'
import json, pathlib
weights = pathlib.Path("var/retrain/one/training/weights")
manifest = json.loads((weights / "manifest.json").read_text())
for version in manifest["versions"].values():
    del version["files"]["doudizhu.safetensors"]
(weights / "manifest.json").write_text(json.dumps(manifest))
(weights / "v1" / "doudizhu.safetensors").unlink()
PYTHON
rm -rf var/bothost.db* && mv before.db var/bothost.db
bothost model import fm-clone var/retrain/one/training/weights --version tiny
sed 's/"styled-othello"/"fm-clone:tiny"/; /^options = { style/d' config.toml > second.toml
bothost demo --game othello --hands 1 -c second.toml
bothost export --out parquet --rllib --raw --no-view-json
bothost export --out jsonl -f jsonl
rm -rf second.toml var/models var/host.id var/bothost.log var/retrain/one/start var/retrain/one/training
tar -cJf abc0c5e.tar.xz config.toml var parquet jsonl
