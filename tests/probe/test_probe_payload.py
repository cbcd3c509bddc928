from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pynvml
import pytest

import tuimon.probe.program
from tuimon.probe import send
from tuimon.probe.program import nvml
from tuimon.probe.pruning import pruned

PROGRAM = sorted(Path(tuimon.probe.program.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", PROGRAM, ids=lambda path: path.stem)
def test_the_program_is_python_3_6_and_imports_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names


def test_the_program_has_no_syntax_that_3_6_lacks_but_feature_version_lets_through(any_python: str) -> None:
    check = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"
    subprocess.run([any_python, "-c", check, *map(str, PROGRAM)], check=True)


def test_the_command_survives_every_login_shell() -> None:
    assert not set("'!\n\\$`") & set(send.BOOTSTRAP)
    assert shlex.split(shlex.join(send.command("python3"))) == ["python3", "-I", "-S", "-u", "-c", send.BOOTSTRAP]


def test_the_api_key_travels_over_stdin_only() -> None:
    options = send.ProbeOptions(api_key="s3cret")
    assert "s3cret" not in " ".join(send.command("python3"))
    first, rest = send.payload(options).split(b"\n", 1)
    _loader, rest = rest[: int(first)], rest[int(first) :]
    length, rest = rest.split(b"\n", 1)
    parcel = json.loads(zlib.decompress(rest[: int(length)]))
    assert parcel["options"]["api_key"] == "s3cret"
    assert parcel["run"] == "main"


def test_the_payload_is_small() -> None:
    assert len(send.payload(send.ProbeOptions())) < 60_000
    assert len(send.payload(send.ProbeOptions(), b"")) < 50_000
    assert len(send.tail_payload("/var/log/server.log", 0)) < 8_000


def code_of(function: FunctionType) -> Iterator[CodeType]:
    """Its code and that of the functions in it."""
    todo = [function.__code__]
    while todo:
        code = todo.pop()
        yield code
        todo += [each for each in code.co_consts if isinstance(each, CodeType)]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What is sent of pynvml, loaded as it is there."""
    module = ModuleType("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", module)
    exec(compile(send.pynvml(), "pynvml.py", "exec"), vars(module))
    return module


def test_what_is_sent_of_pynvml_does_what_the_whole_does(sent: ModuleType) -> None:
    functions = {name: each for name, each in vars(sent).items() if isinstance(each, FunctionType)}
    used = set(re.findall(r"\bnvml\w+", Path(nvml.__file__).read_text())) & vars(pynvml).keys()
    assert len(used) > 20
    assert used <= functions.keys()
    assert len(vars(sent)) < len(vars(pynvml)) / 5
    for name, function in functions.items():
        assert function.__code__.co_code == vars(pynvml)[name].__code__.co_code
        for code in code_of(function):
            assert {each for each in code.co_names if each in vars(pynvml)} <= vars(sent).keys()
    errors = {name for name in vars(pynvml) if name.startswith(("NVML_ERROR_", "NVMLError"))}
    assert errors <= vars(sent).keys()


def no_such_gpu(module: ModuleType) -> None:
    module.nvmlInit()
    module.nvmlDeviceGetHandleByIndex(999)


def test_what_is_sent_of_pynvml_says_what_is_wrong_as_the_whole_does(sent: ModuleType) -> None:
    said = []
    for module in (sent, pynvml):
        with pytest.raises(module.NVMLError) as caught:
            no_such_gpu(module)
        said.append((type(caught.value).__name__, str(caught.value), caught.value.value))
    assert said[0] == said[1]


def test_a_definition_stays_where_anything_that_stays_names_it() -> None:
    source = (
        "import ctypes\n"
        "A = 1\n"
        "B = A\n"
        "NVML_ERROR_X = 3\n"
        "TABLE = {\n    1: A,\n}\n\n"
        "@wraps\n"
        'def wanted(x):\n    """Text.\n\n    More.\n    """\n\n    return getattr(lib, "B")\n\n'
        "def unwanted():\n    return TABLE\n\n"
        "class lib(object):\n    pass\n"
        "start()\n"
    )
    kept = pruned(source, "nvml.wanted(1)")
    assert "unwanted" not in kept
    assert "TABLE" not in kept
    for line in ("import ctypes", "A = 1", "B = A", "NVML_ERROR_X = 3", "@wraps\ndef wanted", "class lib", "start()"):
        assert line in kept
    compile(kept, "kept", "exec")
