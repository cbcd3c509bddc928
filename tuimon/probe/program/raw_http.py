"""One HTTP question over a raw socket (http.client costs 6 MB): never a proxy, a redirect or a second try."""

import _socket  # `socket` makes enums of 300 constants: 0.4 MB, and nothing here wants it
import errno
import time

LIMIT = 65536
"""Bytes read of an answer whose body nobody needs."""


class Answer:
    """What came back: a status, or an error in words; `latency` in seconds."""

    def __init__(self, status=None, error=None, latency=None):
        self.status = status
        self.error = error
        self.latency = latency


def connect(address, port, timeout):
    """A connected socket. Raises OSError."""
    family = _socket.AF_INET6 if ":" in address else _socket.AF_INET
    if family == _socket.AF_INET and not address.replace(".", "").isdigit():
        import socket  # noqa: PLC0415  (only where the server is bound to a name)

        return socket.create_connection((address, port), timeout)
    sock = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def knock(address, port, timeout):
    """Only a TCP connect."""
    began = time.monotonic()
    try:
        connect(address, port, timeout).close()
    except OSError as error:
        return Answer(error=words(error), latency=time.monotonic() - began)
    return Answer(latency=time.monotonic() - began)


def ask(target, path, timeout, sink=None, limit=LIMIT):
    """GET one path within `timeout` in all; the body goes to `sink` piece by piece where one is given."""
    began = time.monotonic()
    try:
        sock = connect(target.address, target.port, timeout)
        try:
            if target.tls:
                sock = encrypt(sock)
            sock.sendall(request(target, path))
            status = answer(sock, began + timeout, sink, limit)
        finally:
            sock.close()
    except OSError as error:
        return Answer(error=words(error), latency=time.monotonic() - began)
    if status is None:
        return Answer(error="not HTTP", latency=time.monotonic() - began)
    return Answer(status=status, latency=time.monotonic() - began)


def request(target, path):
    """The bytes of the question; HTTP/1.0, so that nobody answers in chunks."""
    lines = ["GET %s HTTP/1.0" % path, "Host: %s:%d" % (target.address, target.port), "User-Agent: tuimon"]
    if target.key:
        lines.append("Authorization: Bearer " + target.key.replace("\r", "").replace("\n", ""))
    return ("\r\n".join(lines) + "\r\nAccept: */*\r\nConnection: close\r\n\r\n").encode("utf-8", "replace")


def answer(sock, deadline, sink, limit):
    """The status of the answer, None where it is no HTTP. Reads to the end or the limit, whichever comes first."""
    head = b""
    status = None
    taken = 0
    while taken < limit:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _socket.timeout("timeout")
        sock.settimeout(left)
        try:
            piece = sock.recv(65536)
        except OSError:
            if status is not None and sink is None:
                return status  # the status line was all we wanted
            raise
        if not piece:
            break
        taken += len(piece)
        if head is not None:
            head += piece
            status, body = split(head)
            if body is not None:
                piece, head = body, None
            elif len(head) > 16384:
                return status
        if head is None and sink is not None:
            sink(piece)
    if status is None and head and not head.startswith(b"HTTP/"):
        return None
    if status is None and not head:
        raise ConnectionResetError(errno.ECONNRESET, "closed without an answer")
    return status


def split(head):
    """(status or None, first bytes of the body or None while the head goes on)."""
    status = None
    line = head.split(b"\r\n", 1)[0].split(None, 2)
    if len(line) >= 2 and line[0].startswith(b"HTTP/") and line[1].isdigit():
        status = int(line[1])
    end = head.find(b"\r\n\r\n")
    return status, (head[end + 4 :] if end >= 0 else None)


def encrypt(sock):
    """TLS without checking the certificate: we ask our own host, and send a key only where the server has one."""
    import ssl  # noqa: PLC0415  (3 MB, so only where the server's arguments say TLS)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(sock)


def words(error):
    """What happened, in a word or two."""
    if isinstance(error, _socket.timeout):
        return "timeout"
    known = {
        errno.ECONNREFUSED: "refused",
        errno.ECONNRESET: "reset",
        errno.EPIPE: "reset",
        errno.ETIMEDOUT: "timeout",
        errno.EHOSTUNREACH: "no route",
        errno.ENETUNREACH: "no route",
    }
    return known.get(error.errno, error.strerror or str(error) or type(error).__name__)
