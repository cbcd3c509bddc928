"""Health and metrics against real little servers."""

from __future__ import annotations

import datetime as dt
import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tuimon.launch.events import Health, Metrics, Sample

Probe = Callable[..., Any]
Server = Callable[..., subprocess.Popen[bytes]]

SERVER = """
import http.server, json, os, sys, time
port, answers, asked = int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(asked, "a") as file:
            file.write("%s %s %s\\n" % (self.path, self.request_version, self.headers.get("Authorization")))
        status, body, delay = answers.get(self.path, [404, "", 0])
        time.sleep(delay)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *arguments):
        pass
time.sleep(float(os.environ.get("LATE", "0")))
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def serving(sglang: Server, launch: Server, tmp_path: Path) -> Callable[..., tuple[Any, int, Any]]:
    """Starts a server with canned answers: path → [status, body, delay]."""

    def start(answers: dict[str, list[object]], program: str = SERVER, module: str = "") -> tuple[Any, int, Any]:
        port, asked = free_port(), tmp_path / "asked"
        arguments = ("--port", str(port), json.dumps(answers), str(asked))
        server = launch(program, *arguments, module=module) if module else sglang(program, *arguments)
        return server, port, asked

    return start


def test_refused_each_second_until_the_port_opens_then_http(
    probe: Probe, serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE", "2.5")
    server, port, _asked = serving({"/model_info": [200, "{}", 0]})
    watching = probe()
    refused = watching.until(Health)
    assert (refused.address, refused.path, refused.status, refused.error) == (
        f"127.0.0.1:{port}",
        None,
        None,
        "refused",
    )
    opened = watching.until(Health, lambda health: health.error is None)
    assert (opened.path, opened.status, opened.listener) == (None, None, server.pid)
    answered = watching.until(Health)
    assert (answered.path, answered.status, answered.error, answered.listener) == ("/model_info", 200, None, server.pid)
    assert 0 < answered.latency < 5
    tries = [event for event in watching.events if isinstance(event, Health) and event.error == "refused"]
    assert 1 <= len(tries) <= 5


def test_old_sglang_is_asked_on_its_old_path(probe: Probe, serving: Callable[..., Any]) -> None:
    serving({"/get_model_info": [200, "{}", 0]})
    answered = probe().until(Health, lambda health: health.status is not None)
    assert (answered.path, answered.status) == ("/get_model_info", 200)


def test_the_second_node_has_only_health(probe: Probe, serving: Callable[..., Any]) -> None:
    serving({"/health": [200, "", 0]})
    answered = probe().until(Health, lambda health: health.status is not None)
    assert (answered.path, answered.status) == ("/health", 200)


def test_the_key_is_sent_and_401_is_an_answer(probe: Probe, serving: Callable[..., Any]) -> None:
    _server, _port, asked = serving({"/model_info": [401, "", 0]})
    answered = probe(api_key="s3cret").until(Health, lambda health: health.status is not None)
    assert answered.status == 401
    assert asked.read_text() == "/model_info HTTP/1.0 Bearer s3cret\n"


def test_vllm_is_asked_for_health(probe: Probe, serving: Callable[..., Any]) -> None:
    serving({"/health": [200, "", 0]}, module="vllm.entrypoints.openai.api_server")
    answered = probe().until(Health, lambda health: health.status is not None)
    assert (answered.path, answered.status) == ("/health", 200)


def test_an_address_that_is_none_is_said_and_ends_nothing(probe: Probe, sglang: Server) -> None:
    sglang("import time\ntime.sleep(600)\n", "--host", f"{'a' * 64}..b", "--port", str(free_port()))
    watching = probe()
    assert watching.until(Health).error.startswith("UnicodeError: ")
    assert watching.until(Sample).processes


def test_a_server_that_accepts_and_says_nothing_times_out(probe: Probe, serving: Callable[..., Any]) -> None:
    serving({"/model_info": [200, "", 100]})
    answered = probe().until(Health, lambda health: health.path is not None)
    assert (answered.status, answered.error) == (None, "timeout")
    assert 4.5 < answered.latency < 7


@pytest.mark.parametrize(
    ("says", "error"), [(b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"), (b"", "reset"), (b"\0" * 20_000, "not HTTP")]
)
def test_what_is_no_http_is_said(probe: Probe, sglang: Server, says: bytes, error: str) -> None:
    port = free_port()
    sglang(
        """
        import socket, sys
        server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
        while True:
            peer = server.accept()[0]
            try:
                peer.sendall(bytes.fromhex(sys.argv[3]))
                peer.shutdown(socket.SHUT_WR)
            except OSError:  # the TCP knock that comes first
                pass
        """,
        "--port", str(port), says.hex(),
    )  # fmt: skip
    answered = probe().until(Health, lambda health: health.path is not None)
    assert (answered.status, answered.error) == (None, error)


def test_an_endless_answer_is_cut(probe: Probe, sglang: Server) -> None:
    port = free_port()
    sglang(
        """
        import socket, sys
        server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
        while True:
            peer = server.accept()[0]
            try:
                peer.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
                while True:
                    peer.sendall(b"x" * 65536)
            except OSError:
                pass
        """,
        "--port", str(port),
    )  # fmt: skip
    answered = probe().until(Health, lambda health: health.path is not None)
    assert (answered.status, answered.error) == (200, None)


METRICS = """# HELP sglang:num_running_reqs The number of running requests
sglang:num_running_reqs{engine_type="unified",model_name="a b {x}",tp_rank="0"} 3.0
sglang:num_queue_reqs{model_name="m"} 2.0
sglang:spec_accept_length{model_name="m"} 1.02
sglang:generation_tokens_total{model_name="m"} 12345.0
sglang:token_usage{model_name="m"} NaN
python_gc_objects_collected_total{generation="0"} 1.0
"""


def test_metrics_are_read_only_when_the_server_serves(probe: Probe, serving: Callable[..., Any]) -> None:
    _server, _port, asked = serving({"/model_info": [200, "{}", 0], "/metrics": [200, METRICS, 0]})
    watching = probe()
    watching.until(Health, lambda health: health.status == 200)
    assert "/metrics" not in asked.read_text()
    watching.request(do="serving", metrics=True)
    values = watching.until(Metrics).values
    assert values == {"running": 3.0, "waiting": 2.0, "accept_length": 1.02, "generation_tokens": 12345.0}


def test_a_server_without_metrics_is_not_asked_again_and_again(probe: Probe, serving: Callable[..., Any]) -> None:
    _server, _port, asked = serving({"/model_info": [200, "{}", 0]})
    watching = probe()
    watching.request(do="serving", metrics=True)
    watching.until(Health, lambda health: health.status == 200)
    for _sample in range(10):  # 2 s
        watching.until(Sample)
    assert asked.read_text().count("/metrics") == 1


def test_no_proxy_is_used(probe: Probe, serving: Callable[..., Any]) -> None:
    serving({"/model_info": [200, "{}", 0]})
    watching = probe(wrapper=("env", "http_proxy=http://127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9"))
    assert watching.until(Health, lambda health: health.path is not None).status == 200


def test_a_port_held_by_somebody_else_names_him(probe: Probe, sglang: Server, launch: Server) -> None:
    port = free_port()
    other = launch(
        "import socket, sys, time\nserver = socket.create_server(('127.0.0.1', int(sys.argv[1])))\ntime.sleep(1000)",
        str(port),
    )
    sglang("import time\ntime.sleep(1000)", "--port", str(port))
    assert probe().until(Health, lambda health: health.error is None).listener == other.pid


def test_a_server_that_speaks_tls_is_asked_in_tls(probe: Probe, sglang: Server, tmp_path: Path) -> None:
    key = certificate_of_our_own(tmp_path)
    port = free_port()
    sglang(
        """
        import http.server, ssl, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[4])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()
        """,
        "--port", str(port), "--ssl-certfile", str(key),
    )  # fmt: skip
    answered = probe().until(Health, lambda health: health.path is not None)
    assert (answered.status, answered.error) == (200, None)


def certificate_of_our_own(folder: Path) -> Path:
    """A self-signed certificate with its key in one file."""
    now = dt.datetime.now(dt.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(private + certificate.public_bytes(pem))
    return folder / "cert.pem"
