"""Which version of an engine a process runs: one listing of its environment's site-packages."""

import os.path

_DISTRIBUTIONS = {
    "sglang": "sglang",
    "vllm": "vllm",
    "trtllm": "tensorrt_llm",
    "lmdeploy": "lmdeploy",
    "torchrun": "torch",
    "accelerate": "accelerate",
}


def version(guard, pid, engine, argv):
    """The installed version, None where it cannot be told cheaply."""
    name = _DISTRIBUTIONS.get(engine)
    if name is None:
        return None
    root = "/proc/%d/root" % pid
    for folder in _folders(argv) or _activated(guard, pid):
        for packages in _site_packages(guard, root, folder):
            try:
                entries = guard.names(packages)
            except OSError:
                continue
            for entry in entries:
                if entry.startswith(name + "-") and entry.endswith(".dist-info"):
                    return entry[len(name) + 1 : -len(".dist-info")]
    return None


def _folders(argv):
    """Environments named by the interpreter's and the script's paths: /opt/venv for /opt/venv/bin/python3."""
    found = []
    for word in argv[:3]:
        if word.startswith("/") and "/bin/" in word:
            folder = os.path.dirname(os.path.dirname(word))
            if folder not in found:
                found.append(folder)
    return found


def _activated(guard, pid):
    """The environment that was activated where it was launched (a retitled process has lost this)."""
    try:
        items = guard.read("/proc/%d/environ" % pid, 131072).split(b"\0")
    except OSError:
        return []
    pairs = [item.split(b"=", 1) for item in items if item.startswith((b"VIRTUAL_ENV=", b"CONDA_PREFIX="))]
    return [value.decode("utf-8", "replace") for _name, value in pairs if value.startswith(b"/")]


def _site_packages(guard, root, folder):
    try:
        pythons = [name for name in guard.names(root + folder + "/lib") if name.startswith("python3")]
    except OSError:
        return []
    kinds = ("site-packages", "dist-packages")
    return ["%s%s/lib/%s/%s" % (root, folder, python, kind) for python in sorted(pythons) for kind in kinds]
