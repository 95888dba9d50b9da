"""A server that speaks as much of the Hugging Face Hub's protocol as pushing and pulling a model takes."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "b" * 40


class FakeHub:
    """One repository, in memory. Use it in a ``with``; ``HF_ENDPOINT`` leads clients to ``url``."""

    def __init__(self, repository: str, token: str) -> None:
        self.files: dict[str, bytes] = {}
        self.repository = repository
        self.token = token
        """Who writes must have it."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = hub.answer(self.command, self.path, body, self.headers.get("Authorization", ""))
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("ETag", f'"{COMMIT}"')
                self.send_header("X-Repo-Commit", COMMIT)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_HEAD = do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, url: str, body: bytes, authorization: str) -> tuple[int, Any]:
        """Status and body of the answer."""
        path = unquote(urlsplit(url).path)
        api, tree = f"/api/models/{self.repository}", f"/api/models/{self.repository}/tree/main"
        if path.startswith(f"/{self.repository}/resolve/"):
            name = path.split("/resolve/", 1)[1].partition("/")[2]
            return (200, self.files[name]) if name in self.files else (404, {"error": "Entry not found"})
        if not (path == api or path.startswith(f"{api}/")):
            return 404, {"error": "Repository not found"}
        if method == "POST" and ("/preupload/" in path or "/commit/" in path):
            if authorization != f"Bearer {self.token}":
                return 401, {"error": "Invalid credentials"}
            return 200, self._preupload(body) if "/preupload/" in path else self._commit(body)
        if path.startswith(tree):
            folder = path.removeprefix(tree).strip("/")
            within = [name for name in self.files if not folder or name.startswith(f"{folder}/")]
            return (200, [self._entry(name) for name in within]) if within else (404, {"error": "Entry not found"})
        if "/paths-info/" in path:
            wanted = json.loads(body)["paths"]
            return 200, [self._entry(name) for name in wanted if name in self.files]
        return 200, {"_id": "1", "id": self.repository, "sha": COMMIT, "private": False, "siblings": [], "tags": []}

    def _entry(self, name: str) -> dict[str, Any]:
        return {"type": "file", "oid": "a" * 40, "size": len(self.files[name]), "path": name}

    @staticmethod
    def _preupload(body: bytes) -> dict[str, Any]:
        asked = json.loads(body)["files"]
        return {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in asked]}

    def _commit(self, body: bytes) -> dict[str, Any]:
        for line in body.splitlines():
            item = json.loads(line)
            if item["key"] == "file":
                self.files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
            elif item["key"] == "deletedFile":
                self.files.pop(item["value"]["path"], None)
        url = f"{self.url}/{self.repository}/commit/{COMMIT}"
        return {"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""}
