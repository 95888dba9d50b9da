"""The benchmark of watchers: they read from the pages of a host's database."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bothost.bench.browsers import serving, watchers
from bothost.config import StoreSettings
from bothost.store import schema


def test_every_watcher_reads_the_list_of_tables(tmp_path):
    schema.upgrade(StoreSettings(url=f"sqlite:///{tmp_path}/bench.db"))
    with serving(tmp_path) as url, watchers(url, 3) as read:
        ends = time.monotonic() + 20
        while min(read) == 0 and time.monotonic() < ends:
            time.sleep(0.05)
        assert min(read) > 0


def test_signs_of_life_are_no_messages():
    streams, again = iter([b"event: alive\ndata:\n\n" * 3 + b'data: {"tables": []}\n\n']), threading.Event()

    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            if self.path == "/api/tables":
                self.wfile.write(next(streams, b"") or again.set() or b"")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with watchers(f"http://127.0.0.1:{server.server_port}", 1) as read:
            assert again.wait(60)
        server.shutdown()
    assert read == [1]
