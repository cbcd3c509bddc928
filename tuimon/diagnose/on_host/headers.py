"""Reads what tells a checkpoint: config.json, the shard index, the headers of its safetensors files. No weights.

stdin: one line of JSON: `{"path", "pid", "headers"}`; `pid` is the server that loads it (its container, folder).
stdout: frames, each a line of JSON and then `length` bytes; the first lists the folder, the last says `done`.
"""

import json
import os
import sys

CONFIG_LIMIT = 8 << 20
HEADER_LIMIT = 64 << 20  # a header of 100,000 tensors is 15 MB
ENTRIES = 4096


def places(path, pid):
    """Where the path may lie: as the server sees it, as we see it, in the Hugging Face cache."""
    path = os.path.expanduser(path)
    if pid:
        if os.path.isabs(path):
            yield "/proc/%d/root%s" % (pid, path)
        else:
            yield os.path.join("/proc/%d/cwd" % pid, path)
    yield path
    if path.count("/") == 1 and not path.startswith((".", "/")):
        for hub in hubs():
            folder = os.path.join(hub, "models--" + path.replace("/", "--"))
            for snapshot in snapshots(folder):
                yield snapshot


def hubs():
    """Folders of the Hugging Face cache, the configured one first."""
    home = os.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
    configured = os.environ.get("HF_HUB_CACHE")
    return ([configured] if configured else []) + [os.path.join(home, "hub")]


def snapshots(folder):
    """The snapshot that `main` names, then the others."""
    base = os.path.join(folder, "snapshots")
    try:
        with open(os.path.join(folder, "refs", "main")) as file:
            yield os.path.join(base, file.read(100).strip())
    except (OSError, ValueError):
        pass
    try:
        names = sorted(os.listdir(base))
    except OSError:
        names = []
    for name in names:
        yield os.path.join(base, name)


def find(path, pid):
    """(folder, the one file meant or None); raises OSError where nothing is there."""
    problem = OSError(2, "No such file or directory")
    for place in places(path, pid):
        try:
            if os.path.isdir(place):
                return place, None
            os.stat(place)
            return os.path.dirname(place) or ".", os.path.basename(place)
        except OSError as error:
            problem = error
    raise problem


def listing(folder):
    """Names and sizes of the folder's files."""
    found = []
    for name in sorted(os.listdir(folder))[:ENTRIES]:
        full = os.path.join(folder, name)
        if os.path.isfile(full):
            found.append([name, os.path.getsize(full)])
    return found


def read_head(path, size):
    """The first bytes of a safetensors file: 8 bytes of length and, where that is sane, the header."""
    with open(path, "rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) == 8 and length <= min(size, HEADER_LIMIT):
            first += file.read(length)
        return first


def contents(folder, only, headers):
    """(name, size, bytes or None, error) of each file worth reading."""
    for name, size in listing(folder):
        full = os.path.join(folder, name)
        is_head = name.endswith(".safetensors")
        wanted = name in ("config.json", "model.safetensors.index.json") or (headers and is_head)
        if not wanted or (is_head and only is not None and name != only):
            continue
        try:
            if is_head:
                yield name, size, read_head(full, size), ""
            else:
                with open(full, "rb") as file:
                    yield name, size, file.read(CONFIG_LIMIT), ""
        except OSError as error:
            yield name, size, None, error.strerror or str(error)


def frames(options):
    """Everything as (header, bytes) pairs; used here and, for local paths, by tuimon itself."""
    try:
        folder, only = find(options["path"], options.get("pid"))
        files = listing(folder)
    except OSError as error:
        yield {"error": error.strerror or str(error)}, b""
        return
    if only is not None and not only.endswith(".safetensors"):
        only = None
    yield {"folder": folder, "files": files, "only": only}, b""
    for name, size, content, problem in contents(folder, only, options["headers"]):
        yield {"name": name, "size": size, "error": problem}, content or b""
    yield {"done": True}, b""


def main():
    """Read the options, write the frames."""
    options = json.loads(sys.stdin.buffer.readline().decode())
    for header, content in frames(options):
        header["length"] = len(content)
        sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
