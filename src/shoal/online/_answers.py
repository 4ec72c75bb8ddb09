"""Two cores for a learner that errs rarely: another thread answers with the tasks' own weights, rows ahead.

That thread reads the tables that the learner writes, without waiting. Each task counts the changes of its weights: the
count is odd while they change. An answer carries the count from before it was begun, and the learner takes it if that
is even and still the task's count; else it answers itself. So what is learnt never depends on who was faster, and
neither thread ever waits for the other one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from shoal.atomics import seen, tell
from shoal.checks import are_good
from shoal.cores import n_cores
from shoal.online._own import Own, own_dot
from shoal.online._own_pairs import nothing_ahead
from shoal.ops import leaf, leaf_entry, on_stack
from shoal.rounds import FloatArray, IntArray, Rounds

T = TypeVar("T")

ENTRIES = 2**17  # with fewer, another thread does not pay
FARTHEST = 512  # rows ahead: of those farther ahead more tasks would change before their turn comes
NEAREST = 16  # a row that is nearer is the learner's
OFTEN = 16  # rows after which the learner says where it is
PAUSE = 5e-5  # seconds, a hundred rows


class Answers(NamedTuple):
    """What the two threads know of each other; without rows there is no other thread."""

    answer: FloatArray  # (rows,) <v, x> with the weights of the row's task
    begun: IntArray  # (rows,) the task's count of changes then, or -1 if there is no answer
    changes: IntArray  # (tasks,) twice the changes so far, and 1 more during one
    learner: IntArray  # (1,) the row that it learns


def new_answers(n_rows: int, n_tasks: int, first: int) -> Answers:
    """Nothing is answered yet."""
    return Answers(np.empty(n_rows), np.full(n_rows, -1), np.zeros(n_tasks, np.int64), np.array([first]))


@leaf
def no_answers(like: FloatArray, counts: IntArray) -> Answers:
    """There is no other thread."""
    return Answers(like[:0], counts[:0], counts[:0], counts[:0])


@leaf
def is_answered(row: int, task: int, answers: Answers) -> bool:
    """Is there an answer with the weights that the task has now?"""
    return bool(row < len(answers.begun) and seen(answers.begun, row) == answers.changes[task])


@leaf
def be_at(row: int, answers: Answers) -> None:
    """Let the other thread know how far the learner is."""
    if len(answers.begun) > 0 and row % OFTEN == 0:
        tell(answers.learner, 0, row)


@leaf
def change(task: int, answers: Answers) -> None:
    """Called before and after the task's weights change."""
    if len(answers.begun) > 0:
        tell(answers.changes, task, answers.changes[task] + 1)


@leaf_entry
def answer_from(row: int, farthest: int, rounds: Rounds, own: Own, answers: Answers) -> int:
    """Answer rows until one is farther ahead of the learner than that; return it."""
    ahead = on_stack()
    nothing_ahead(ahead)
    while row < len(answers.begun):
        learner = seen(answers.learner, 0)
        if row > learner + farthest:
            break
        if row < learner + NEAREST:
            row = learner + NEAREST
            continue
        if not are_good(rounds, row, row + 1):  # the learner will say so
            return len(answers.begun)
        task = rounds.task[row]
        begun = seen(answers.changes, task)
        answers.answer[row] = own_dot(rounds, row, task, own, ahead)
        if begun % 2 == 0:
            tell(answers.begun, row, begun)
        row += 1
    return row


def pays(rounds: Rounds) -> bool:
    """Are there rows enough, and a core?"""
    return len(rounds.values) >= ENTRIES and n_cores() > 1


def learn_beside(learn: Callable[[Answers], T], rounds: Rounds, own: Own) -> tuple[T, float]:
    """What `learn` returns, which gets answers meanwhile, and the other thread's seconds of a processor."""
    n_rows, first = len(rounds.task), int(rounds.starts[0])
    answers = new_answers(n_rows, len(own.tables.start), first)

    def be_ahead() -> float:
        row = first
        while (row := answer_from(row, FARTHEST, rounds, own, answers)) < n_rows:
            time.sleep(PAUSE)
        return time.thread_time()

    with ThreadPoolExecutor(1) as other:
        seconds = other.submit(be_ahead)
        try:
            learnt = learn(answers)
        finally:
            answers.learner[0] = n_rows
        return learnt, seconds.result()
