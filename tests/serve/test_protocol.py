"""The protocol of the log, all interleavings: two writers, cuts, late commits, kills; each state is looked at.

What a writer concludes from what it finds at the end of the log is the product's own decision, `log.is_written`. The
server is a model of PostgreSQL: a session that has lost its client may still commit, and has its lock until it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import pytest

from shoal.serve.log import End, Taken, is_written

Phase = Literal["down", "idle", "checked", "open", "sent", "doubt", "stopped"]
Client = Literal["asks", "waits", "told"]
Decision = Callable[[End, End, End], bool]
WRITERS, REQUESTS = (0, 1), (0, 1)
NOTHING = End(0, "")


class Written(NamedTuple):
    """A record of the log."""

    commit: str
    request: int


class Attempt(NamedTuple):
    """What a writer wants to commit."""

    end: End  # of the log, then
    request: int


class Session(NamedTuple):
    """Of the server; `attempt` is its transaction."""

    writer: int
    has_client: bool = True
    attempt: Attempt | None = None
    is_committing: bool = False


class Writer(NamedTuple):
    """A service."""

    phase: Phase = "down"
    is_connected: bool = False
    end: End = NOTHING  # as far as it knows
    model: tuple[int, ...] = ()  # what it has learned
    attempt: Attempt | None = None


class State(NamedTuple):
    """Everything."""

    log: tuple[Written, ...] = ()
    sessions: tuple[Session, ...] = ()
    writers: tuple[Writer, ...] = (Writer(), Writer())
    clients: tuple[Client, ...] = ("asks", "asks")
    refused: frozenset[str] = frozenset()  # commits that are said not to be written
    sends: tuple[int, ...] = (2, 1)  # how often each request may still be sent
    cuts: int = 2
    kills: int = 1

    @property
    def end(self) -> End:
        return End(len(self.log), self.log[-1].commit) if self.log else NOTHING

    def with_writer(self, number: int, **changes: Any) -> State:
        found = list(self.writers)
        found[number] = found[number]._replace(**changes)
        return self._replace(writers=tuple(found))

    def with_session(self, old: Session | None, *new: Session) -> State:
        found = list(self.sessions)
        if old is not None:
            found.remove(old)
        return self._replace(sessions=tuple(sorted([*found, *new], key=repr)))

    def with_client(self, request: int, client: Client) -> State:
        found = list(self.clients)
        found[request] = client
        return self._replace(clients=tuple(found))

    def session_of(self, number: int) -> Session:
        return next(one for one in self.sessions if one.writer == number and one.has_client)


class Protocol(NamedTuple):
    """What a writer concludes; and whether the lock holds, or is lost as when a standby takes over."""

    decide: Decision = is_written
    has_lock: bool = True

    def following(self, state: State) -> Iterator[State]:
        """All states that can be next."""
        for number, writer in enumerate(state.writers):
            yield from self._of_writer(state, number, writer)
        for session in set(state.sessions):
            yield from _of_server(state, session)

    def _is_free(self, state: State) -> bool:
        return not self.has_lock or not state.sessions

    def _of_writer(self, state: State, number: int, writer: Writer) -> Iterator[State]:
        if writer.phase == "down":
            if self._is_free(state):  # it starts, and learns the log
                learned = tuple(one.request for one in state.log)
                begun = state.with_writer(number, phase="idle", is_connected=True, end=state.end, model=learned)
                yield begun.with_session(None, Session(number))
            return
        if state.kills:
            yield _killed(state._replace(kills=state.kills - 1), number)
        if writer.phase == "stopped":
            return
        if writer.is_connected and state.cuts:
            yield _cut(state._replace(cuts=state.cuts - 1), number)
        if not writer.is_connected and self._is_free(state):
            yield state.with_writer(number, is_connected=True).with_session(None, Session(number))
        if writer.phase == "doubt" and writer.attempt is not None and state.clients[writer.attempt.request] == "waits":
            yield state.with_client(writer.attempt.request, "asks")  # its patience ends: "it may have been accepted"
        if writer.is_connected:
            yield from self._connected(state, number, writer)

    def _connected(self, state: State, number: int, writer: Writer) -> Iterator[State]:
        session, attempt = state.session_of(number), writer.attempt
        if writer.phase == "idle":
            yield from _asked(state, number, writer)
        elif attempt is None:
            return
        elif writer.phase == "checked" and not any(one.attempt for one in state.sessions):  # they lock the row
            if state.end == writer.end:
                begun = state.with_session(session, session._replace(attempt=attempt))
                yield begun.with_writer(number, phase="open")
            else:
                yield self._concluded(state, number, writer.end)
        elif writer.phase == "open":
            sent = state.with_session(session, session._replace(is_committing=True))
            yield sent.with_writer(number, phase="sent")
        elif writer.phase == "sent" and session.attempt is None:
            yield _learned(state, number)
        elif writer.phase == "doubt":
            yield self._concluded(state, number, attempt.end)

    def _concluded(self, state: State, number: int, tried: End) -> State:
        writer = state.writers[number]
        assert writer.attempt is not None
        try:
            written = self.decide(state.end, writer.end, tried)
        except Taken:
            stopped = state.with_writer(number, phase="stopped", attempt=None)
            return stopped.with_client(writer.attempt.request, "asks") if _waits(state, writer) else stopped
        return _learned(state, number) if written else _refused(state, number)


def _asked(state: State, number: int, writer: Writer) -> Iterator[State]:
    """A request comes, with its key; what is in the log is answered as the first time."""
    for request in REQUESTS:
        if state.clients[request] == "asks" and state.sends[request]:
            sends = list(state.sends)
            sends[request] -= 1
            sent = state._replace(sends=tuple(sends))
            if any(one.request == request for one in state.log):
                yield sent.with_client(request, "told")
                continue
            commit = f"{request}/{sends[request]}"
            attempt = Attempt(End(writer.end.position + 1, commit), request)
            yield sent.with_client(request, "waits").with_writer(number, phase="checked", attempt=attempt)


def _of_server(state: State, session: Session) -> Iterator[State]:
    attempt = session.attempt
    if attempt is not None and session.is_committing:
        ended = state.with_session(session, session._replace(attempt=None, is_committing=False))
        yield ended._replace(log=(*state.log, Written(attempt.end.commit, attempt.request)))
    if attempt is not None and not session.has_client:
        yield state.with_session(session, session._replace(attempt=None, is_committing=False))
    if attempt is None and not session.has_client:
        yield state.with_session(session)


def _cut(state: State, number: int) -> State:
    """The connection is gone; what was not sent to be committed is not written."""
    writer = state.writers[number]
    if writer.is_connected:
        session = state.session_of(number)
        state = state.with_session(session, session._replace(has_client=False))
        state = state.with_writer(number, is_connected=False)
    if writer.phase in ("checked", "open"):
        return _refused(state, number)
    return state.with_writer(number, phase="doubt") if writer.phase == "sent" else state


def _killed(state: State, number: int) -> State:
    """Whoever waited asks again."""
    cut, writer = _cut(state, number), state.writers[number]
    if _waits(state, writer) and writer.attempt is not None:
        cut = cut.with_client(writer.attempt.request, "asks")
    return cut.with_writer(number, **Writer()._asdict())


def _learned(state: State, number: int) -> State:
    writer = state.writers[number]
    assert writer.attempt is not None
    done = state.with_writer(
        number, phase="idle", end=writer.attempt.end, model=(*writer.model, writer.attempt.request), attempt=None
    )
    return done.with_client(writer.attempt.request, "told") if _waits(state, writer) else done


def _refused(state: State, number: int) -> State:
    writer = state.writers[number]
    assert writer.attempt is not None
    done = state.with_writer(number, phase="idle", attempt=None)
    done = done._replace(refused=done.refused | {writer.attempt.end.commit})
    return done.with_client(writer.attempt.request, "asks") if _waits(state, writer) else done


def _waits(state: State, writer: Writer) -> bool:
    """Does the client still wait for this very attempt?"""
    attempt = writer.attempt
    if attempt is None or state.clients[attempt.request] != "waits":
        return False
    return int(attempt.end.commit.partition("/")[2]) == state.sends[attempt.request]


def wrong_with(state: State, protocol: Protocol) -> str:
    """What must never be."""
    learned = [one.request for one in state.log]
    if any(client == "told" and request not in learned for request, client in enumerate(state.clients)):
        return "what was acknowledged is missing"
    if len(learned) > len(set(learned)):
        return "a request is learned twice"
    for writer in state.writers:
        if writer.phase != "down" and writer.model != tuple(learned[: writer.end.position]):
            return "the live model is not the fold of the log"
    if protocol.has_lock and any(one.commit in state.refused for one in state.log):
        return "what was refused is in the log"  # without the lock, its commit may still be on its way
    return ""


def search(protocol: Protocol, state: State) -> tuple[str, int]:
    """What is wrong in the first state in which something is, and after how many steps; or when nothing new comes."""
    seen = reached = {state}
    depth = 0
    while True:
        for state in reached:
            if found := wrong_with(state, protocol):
                return found, depth
        reached = {state for one in reached for state in protocol.following(one)} - seen
        if not reached:
            return "", depth
        seen, depth = seen | reached, depth + 1


@pytest.mark.parametrize(
    ("protocol", "state", "depth"),
    [(Protocol(), State(), 27), (Protocol(has_lock=False), State(cuts=1), 24)],
    ids=["lock", "lock is lost"],
)
def test_nothing_goes_wrong_in_any_order(protocol: Protocol, state: State, depth: int) -> None:
    """Exhaustive: after so many steps no step leads to a new state."""
    assert search(protocol, state) == ("", depth)


def by_position(found: End, before: End, tried: End) -> bool:
    return found.position >= tried.position


@pytest.mark.parametrize(
    ("decide", "has_lock", "wrong"),
    [
        (by_position, True, "what was acknowledged is missing"),
        (by_position, False, "what was acknowledged is missing"),
        (lambda found, before, tried: found != before, True, "what was acknowledged is missing"),
        (lambda found, before, tried: found == tried, True, "what was refused is in the log"),
    ],
    ids=["position alone", "position alone, lock is lost", "another's is one's own", "another's is nothing"],
)
def test_the_search_finds_what_is_planted(decide: Decision, has_lock: bool, wrong: str) -> None:
    assert search(Protocol(decide, has_lock), State())[0] == wrong
