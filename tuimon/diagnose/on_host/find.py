"""Finds a py-spy that may be run on this host, or takes the one that came over stdin. Standard library, Python 3.6."""

import os
import stat
import subprocess
import sys
import zlib

# hashlib only where it is used, no shutil, no tempfile: they are half of the time until the first py-spy starts.


def read_text(path):
    """The file's text, or None where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode("utf-8", "replace").strip()
    except OSError:
        return None


def trusted(path):
    """Only a file that root or we ourselves own, writable by no one else, is run; as root anything else is a trap."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    mine = found.st_uid in (0, os.getuid())
    return stat.S_ISREG(found.st_mode) and mine and not found.st_mode & 0o022 and os.access(path, os.X_OK)


def same_mounts(pid):
    """Whether the process sees the same files as we do (False for a container seen from outside)."""
    try:
        return os.readlink("/proc/%d/ns/mnt" % pid) == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return False


def beside_server(pid):
    """Where the server's own environment would have py-spy: beside its interpreter and beside its argv[0]."""
    if not same_mounts(pid):
        return
    try:
        yield os.path.join(os.path.dirname(os.readlink("/proc/%d/exe" % pid)), "py-spy")
    except OSError:
        pass
    first = (read_text("/proc/%d/cmdline" % pid) or "").split("\0")[0]
    if first.startswith("/"):
        yield os.path.join(os.path.dirname(first), "py-spy")
    for item in (read_text("/proc/%d/environ" % pid) or "").split("\0"):
        if item.startswith("VIRTUAL_ENV=/"):
            yield os.path.join(item.split("=", 1)[1], "bin", "py-spy")


def cache_path(name):
    """Where an uploaded py-spy is kept."""
    return os.path.join(os.path.expanduser("~"), ".cache", "tuimon", name)


def digest(path):
    """The file's sha256, or None."""
    try:
        with open(path, "rb") as file:
            return sha256(file.read())
    except OSError:
        return None


def sha256(content):
    """As hex digits."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


def which(name):
    """The program's path, empty where PATH has none."""
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder, name)
        if folder.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def find_binaries(options):
    """Paths of py-spy in the order they should be tried: the server's own, PATH, uploaded earlier."""
    wanted = []
    for pid, _ in options["targets"]:
        wanted.extend(beside_server(pid))
    wanted.append(which("py-spy"))
    found = []
    for path in wanted:
        if path and path not in found and trusted(path):
            found.append(path)
    name = options.get("name")
    if name:
        cached = cache_path(name)
        if trusted(cached) and digest(cached) == options["sha256"] and runs(cached):
            found.append(cached)
    return found


def runs(path):
    """Whether this host lets us execute the file (noexec mounts do not)."""
    try:
        return subprocess.call([path, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def keep_in_cache(content, name):
    """Write the binary into the cache; the path, or None where that is impossible or it may not be executed there."""
    path = cache_path(name)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        draft = "%s.%d" % (path, os.getpid())
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(draft, 0o700)
            if runs(draft):
                os.rename(draft, path)
                return path
        except OSError:
            pass
        os.unlink(draft)
    except OSError:
        pass
    return None


def keep_in_memory(content):
    """The way round noexec: an anonymous file in memory, gone when we end; None where kernel or Python is too old."""
    try:
        handle = os.memfd_create("py-spy", 0)
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
    except (AttributeError, OSError):
        return None
    path = "/proc/%d/fd/%d" % (os.getpid(), handle)
    return path if runs(path) else None


def receive(options):
    """The binary that came over stdin, checked, as a path; (None, reason) where it cannot be used."""
    content = zlib.decompress(sys.stdin.buffer.read(options["packed"]))
    if sha256(content) != options["sha256"]:
        return None, "py-spy arrived damaged (checksum)"
    path = keep_in_cache(content, options["name"]) or keep_in_memory(content)
    return path, "" if path else "py-spy may not be executed here (noexec) and memfd is not allowed either"
