"""How a container ended, as Docker and Kubernetes tell it."""

from __future__ import annotations

import json

import pytest

from tuimon.hosts.ending import Ending, of_container, of_deaths, of_pod, words

# As Docker 20.10 told it after `docker kill`.
STATE = (
    b'{"Status":"exited","Running":false,"Paused":false,"Restarting":false,"OOMKilled":false,"Dead":false,"Pid":0,'
    b'"ExitCode":137,"Error":"","StartedAt":"2026-11-30T09:25:15.598080716Z",'
    b'"FinishedAt":"2026-11-30T09:26:13.870104385Z"}'
)
KILLED = b"[" + STATE + b',"vllm",["serve","/model"]]\n'
BEGAN, ENDED = 1796030715.59808, 1796030773.870104
SERVE = ("vllm", "serve", "/model")
FAILED = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-30T09:26:13Z"}}
STARVED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
LOOPS = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
RUNS = {"running": {"startedAt": "2026-11-30T09:26:14Z"}}


def statuses(state: object, last: object = None, name: str = "vllm") -> bytes:
    """A pod's statuses: a sidecar's, and this container's."""
    ours = {"name": name, "restartCount": 1, "state": state, "lastState": last or {}, "ready": False}
    return json.dumps([ours, {"name": "sidecar", "state": RUNS, "lastState": {}}]).encode()


def state(**told: object) -> bytes:
    return json.dumps([{**json.loads(STATE), **told}, "", None]).encode()


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        (KILLED, Ending(-9, began=BEGAN, ended=ENDED, argv=SERVE)),
        (state(ExitCode=1), Ending(1, began=BEGAN, ended=ENDED)),
        (state(ExitCode=0), Ending(0, began=BEGAN, ended=ENDED)),
        (state(OOMKilled=True), Ending(-9, oom=True, began=BEGAN, ended=ENDED)),
        (state(Status="restarting", ExitCode=3), Ending(3, began=BEGAN, ended=ENDED)),
        (state(ExitCode=255), Ending(255, began=BEGAN, ended=ENDED)),
        # As Docker 20.10 told it of `sh -c 'exit 3'`.
        (state(ExitCode=3, StartedAt="2026-11-30T09:26:14Z"), Ending(3, began=ENDED, ended=ENDED)),
        (state(ExitCode=1, StartedAt="0001-01-01T00:00:00Z", FinishedAt="soon"), Ending(1)),
        (state(Status="running"), None),
        (state(Status="paused"), None),
        (state(ExitCode="one"), None),
        (b"Error: No such object: vllm\n", None),
        (STATE, None),
        (b'["\xff"]', None),
        (b"", None),
    ],
)
def test_what_docker_tells_of_an_end(told: bytes, ending: Ending | None) -> None:
    assert of_container(told) == ending


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        (statuses(FAILED), Ending(1, ended=1796030773.0)),
        (statuses(STARVED), Ending(-9, oom=True)),
        (statuses(LOOPS, FAILED), Ending(1, ended=1796030773.0)),
        (statuses(LOOPS), None),
        (statuses(RUNS, FAILED), None),  # which of its ends cut our link, nobody knows
        (statuses({}), None),
        (b"[]", None),
        (b"", None),
        (b"Error from server (NotFound)", None),
    ],
)
def test_what_kubernetes_tells_of_an_end(told: bytes, ending: Ending | None) -> None:
    assert of_pod(told, None) == ending
    assert of_pod(told, "vllm") == ending
    assert of_pod(told, "sidecar") is None


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        (b'{"exitCode":"0","image":"tm/base","name":"vllm"}\n', Ending(0)),  # as Docker 20.10 told it
        (b'{"exitCode":"1"}\n{"exitCode":"137"}\n', Ending(-9)),
        (b'{"exitCode":"one"}\n', None),
        (b'{"exitCode":"1"}\n{"exit', None),
        (KILLED, None),
        (b"", None),
    ],
)
def test_what_docker_tells_of_deaths(told: bytes, ending: Ending | None) -> None:
    assert of_deaths(told) == ending


def test_an_end_is_said_in_words() -> None:
    assert words("the container vllm", Ending(1)) == "The container vllm ended with 1"
    assert words("docker:vllm", Ending(-9, oom=True)) == "Docker:vllm ended by signal 9, for want of memory (OOM)"
    told = words("docker:vllm", Ending(1, ended=1796030773.9))
    assert told == "Docker:vllm ended with 1 on 2026-11-30 at 09:26:13 UTC"
    assert words("docker:vllm", Ending(None)) == "Docker:vllm ended without telling how"
