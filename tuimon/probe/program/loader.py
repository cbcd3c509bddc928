"""First stage on the host: takes the other modules from stdin into memory and starts the one that is asked for.

Executed by the bootstrap line, not imported; `f` is stdin's buffer, left behind by it.
"""

import json
import marshal
import sys
import zlib
from importlib.machinery import ModuleSpec

PACKAGE = "tuimon_probe"


class Memory:
    """Finds and loads the modules of the parcel: no file on the host."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002  (importlib's protocol)
        """The spec of one of ours, None for everybody else's."""
        if name == PACKAGE:
            return ModuleSpec(name, self, is_package=True)
        if name.startswith(PACKAGE + ".") and name[len(PACKAGE) + 1 :] in self.modules:
            return ModuleSpec(name, self)
        return None

    def create_module(self, spec):  # noqa: ARG002  (importlib's protocol)
        """None: the usual module object will do."""
        return

    def exec_module(self, module):
        """Run a module; its text, or code, is dropped then, it is not needed twice."""
        code = self.modules.pop(module.__name__[len(PACKAGE) + 1 :] or "__init__")
        exec(marshal.loads(code) if isinstance(code, bytes) else code, module.__dict__)


def receive(stdin):
    """The next frame: its length on a line, then its bytes."""
    length = int(stdin.readline() or -1)
    content = stdin.read(length) if length >= 0 else b""
    if len(content) != length:
        raise SystemExit("the program did not arrive whole")
    return content


def start(stdin):
    """Load what stdin brings and run it until stdin ends."""
    parcel = json.loads(zlib.decompress(receive(stdin)).decode("utf-8"))
    nvml = receive(stdin)
    memory = Memory(parcel.pop("modules"))
    sys.meta_path.insert(0, memory)
    forked = __import__(PACKAGE + ".forked", fromlist=["compiled"])
    memory.modules = forked.compiled(memory.modules)
    program = __import__(PACKAGE + "." + parcel["run"], fromlist=["run"])
    program.run(stdin, parcel["options"], nvml)


if "f" in globals():
    start(globals()["f"])
