"""The launcher's HTTP side: opened only when every rank is ready."""

import http.client
import http.server
import json
import os
import sys
import threading
import time
from typing import ClassVar

import stage
from sglang.srt.entrypoints.engine import Engine

METRICS = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{{model_name="Kimi-K2.5"}} {running}
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{{model_name="Kimi-K2.5"}} 0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{{model_name="Kimi-K2.5"}} {tokens}
"""
ANSWERS = {"/model_info", "/get_model_info", "/server_info", "/metrics", "/health", "/health_generate", "/v1/models"}


class Server(http.server.ThreadingHTTPServer):
    """Holds what requests share."""

    daemon_threads = True

    def __init__(self, engine: Engine, host: str, port: int) -> None:
        self.engine = engine
        self.turn = threading.Lock()
        self.up = False
        self.running = 0
        self.tokens = 0
        super().__init__((host, port), Requests)

    def generate(self, tokens: int) -> None:
        """Let the ranks make tokens; one request at a time."""
        self.running += 1
        with self.turn:
            self.engine.requests.sendall(b"%d\n" % tokens)
            self.engine.requests.recv(1)
        self.running -= 1
        self.tokens += tokens


class Requests(http.server.BaseHTTPRequestHandler):
    """Answers as SGLang 0.5.6 does."""

    server: Server
    protocol_version = "HTTP/1.1"
    reasons: ClassVar[dict[int, str]] = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}

    def do_GET(self) -> None:
        """Health, facts and counters; `/health` makes a token, and so takes its time and writes a line."""
        path = self.path.partition("?")[0]
        if path not in ANSWERS:
            return self._answer(404, {"detail": "Not Found"})
        if path.startswith("/get_"):
            stage.say(
                f"Endpoint '{path}' is deprecated and will be removed in a future version. "
                f"Please use '/{path.removeprefix('/get_')}' instead."
            )
        if path.startswith("/health"):
            return self._health()
        if path == "/metrics":
            return self._send(200, METRICS.format(running=self.server.running, tokens=self.server.tokens).encode())
        return self._answer(200, {"model_path": "models/Kimi-K2.5", "is_generation": True, "version": "0.5.6"})

    def do_POST(self) -> None:
        """`/generate` and its relatives."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            tokens = int(json.loads(body)["sampling_params"]["max_new_tokens"])
        except (ValueError, KeyError, TypeError):
            tokens = 8
        self.server.generate(max(1, min(tokens, 100_000)))
        self._answer(200, {"text": " Paris.", "meta_info": {"completion_tokens": tokens}})

    def _health(self) -> None:
        if not self.server.up:
            return self._send(503, b"")
        if not self.server.running:  # else any token that somebody gets proves health
            self.server.generate(1)
        time.sleep(stage.SPEED)
        return self._send(200, b"")

    def _answer(self, status: int, facts: dict[str, object]) -> None:
        self._send(status, json.dumps(facts).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        host, port = self.client_address[:2]
        line = f'INFO:     {host}:{port} - "{self.command} {self.path} HTTP/1.1" {status} {self.reasons[status]}'
        sys.stdout.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {line}\n")
        sys.stdout.flush()

    def log_message(self, *_: object) -> None:
        """Uvicorn's access line is written instead."""


def launch_server(engine: Engine, host: str, port: int) -> None:
    """Wait for the ranks, open the port, warm up, serve."""
    engine.wait_for_ready()
    stage.say(f"INFO:     Started server process [{os.getpid()}]")
    stage.say("INFO:     Waiting for application startup.")
    stage.say("INFO:     Application startup complete.")
    server = Server(engine, host, port)
    stage.say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    threading.Thread(target=_wait_and_warmup, args=(server, host, port), daemon=True).start()
    server.serve_forever(poll_interval=5.0)


def _wait_and_warmup(server: Server, host: str, port: int) -> None:
    _ask(host, port, "GET", "/get_model_info")
    stage.until("warmup", 0.8)
    _ask(host, port, "POST", "/generate", 8)
    stage.until("ready")
    server.up = True
    stage.say("The server is fired up and ready to roll!")
    _traffic(host, port)


def _traffic(host: str, port: int) -> None:
    """Somebody uses the server now and then."""
    while stage.SCENARIO in {"healthy", "useless-draft"}:
        time.sleep(2 * stage.SPEED)
        _ask(host, port, "POST", "/generate", 600)


def _ask(host: str, port: int, method: str, path: str, tokens: int = 0) -> None:
    link = http.client.HTTPConnection(host, port)
    try:
        body = json.dumps({"text": "The capital city of France is", "sampling_params": {"max_new_tokens": tokens}})
        link.request(method, path, body if method == "POST" else None)
        link.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass
    finally:
        link.close()
