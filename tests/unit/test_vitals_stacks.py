"""Stack motion: progress moves the frames above the innermost ones, a busy wait only flickers below."""

from __future__ import annotations

from tests.judging import Story
from tuimon.launch.events import Frame, RankStack, Stacks, ThreadStack

WAIT = [("acquire", 10), ("wait", 20), ("barrier", 30), ("load_model", 40), ("main", 50)]


def _looks(*stacks: list[tuple[str, int]]) -> Story:
    story = Story(1)
    for stack in stacks:
        story.runs(2)
        story.looks(stack)
    return story


def test_the_same_stack_twice_is_no_motion() -> None:
    story = _looks(WAIT, WAIT, WAIT)
    assert story.launch.run.vitals.stacks.last is None
    assert "unmoved in 3 looks" in story.launch.run.vitals.stacks.text


def test_other_lines_above_are_motion() -> None:
    story = _looks(WAIT, [*WAIT[:3], ("load_model", 44), *WAIT[4:]])
    assert story.launch.run.vitals.stacks.last == story.now


def test_a_busy_wait_that_flickers_below_is_no_motion() -> None:
    other = [("acquire", 11), ("wait", 22), *WAIT[2:]]
    story = _looks(WAIT, other, WAIT, other, WAIT)
    assert story.launch.run.vitals.stacks.last is None


def test_a_loop_with_two_shapes_is_no_motion() -> None:
    shape = [("is_set", 3), *WAIT[1:]]
    story = _looks(WAIT, shape, WAIT, shape, WAIT, shape)
    assert story.launch.run.vitals.stacks.last is None


def test_ever_new_functions_below_are_motion() -> None:
    story = _looks(*[[(f"step_{i}", 1), ("inner", 2), *WAIT[2:]] for i in range(3)])
    assert story.launch.run.vitals.stacks.last == story.now


def test_looks_far_apart_are_not_compared() -> None:
    story = _looks(WAIT)
    story.runs(70)
    story.looks([*WAIT[:3], ("load_model", 99), *WAIT[4:]])
    assert story.launch.run.vitals.stacks.last is None


def test_the_front_process_moves_by_our_own_questions_and_does_not_count() -> None:
    story = Story(1)
    for line in range(4):
        story.runs(2)
        ranks = (
            _stack(101, "TP0", WAIT),
            _stack(100, None, [("recv", 1), ("select", 2), ("answer", line), ("main", 4)]),
        )
        story.apply(Stacks(at=story.now, ranks=ranks))
    assert story.launch.run.vitals.stacks.last is None


def _stack(pid: int, rank: str | None, frames: list[tuple[str, int]]) -> RankStack:
    thread = ThreadStack(name="MainThread", frames=tuple(Frame(name=name, line=line) for name, line in frames))
    return RankStack(pid=pid, rank=rank, threads=(thread,))


def test_a_look_that_could_not_be_taken_says_why() -> None:
    story = Story(1)
    story.runs(2)
    story.looks()
    assert not story.launch.run.vitals.stacks.visible
    assert "cannot be read" in story.launch.run.vitals.stacks.text
