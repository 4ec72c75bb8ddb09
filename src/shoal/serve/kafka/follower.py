"""The thread that reads topics into an engine: each message once, as one commit has its rows and its offset."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from confluent_kafka import KafkaException

from shoal.serve.contract import Busy, Followed, LimitExceeded, Messages, Refused, Unavailable
from shoal.serve.kafka.messages import Columns, read_messages
from shoal.serve.kafka.topic import Topics

logger = logging.getLogger("shoal")
MOST = 2_000  # messages of a commit
SECONDS = 0.1  # for which a commit waits for more messages
PARTITIONS_SECONDS = 60.0  # between looks for new partitions
PAUSE = 0.5  # seconds before a failed commit is repeated
SHOWN = 5  # bad messages of a poll that are logged


class Taking(Protocol):
    """The part of a service that takes messages."""

    def follow(self, messages: Messages) -> Future[Followed]: ...


class Follower(threading.Thread):
    """The thread.

    Parameters
    ----------
    service : Taking
    topics : Topics
        Closed at the end.
    columns : Columns
    on_failure : function, optional
        Called if an error ends the thread.

    Attributes
    ----------
    rows, refused, double : int
        Learned rows, and those left out.
    lag : int
        Known messages of the topics that are not learned yet.
    failure : BaseException or None
        The error that ended the thread.
    """

    def __init__(
        self, service: Taking, topics: Topics, columns: Columns, on_failure: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(name="shoal-follow", daemon=True)
        self._service, self._topics, self._columns, self._on_failure = service, topics, columns, on_failure
        self._ends = threading.Event()
        self.rows = self.refused = self.double = 0
        self.lag = 0
        self.failure: BaseException | None = None

    def stop(self) -> None:
        """End after the running commit."""
        self._ends.set()
        if self.is_alive():
            self.join()

    def gauges(self) -> dict[str, float]:
        """Numbers for dashboards."""
        counts = {"lag_messages": self.lag, "rows": self.rows, "refused": self.refused, "double": self.double}
        return {f"follow_{name}": count for name, count in counts.items()}

    def run(self) -> None:
        try:
            look = time.monotonic() + PARTITIONS_SECONDS
            while not self._ends.is_set():
                self._step()
                if time.monotonic() >= look:
                    look = time.monotonic() + PARTITIONS_SECONDS
                    self._look_for_partitions()
        except BaseException as error:
            logger.exception("following has stopped")
            self.failure = error
            self._on_failure()
        finally:
            self._topics.close()

    def _step(self) -> None:
        messages, bad = read_messages(self._topics.take(MOST, SECONDS), self._columns)
        self.lag = self._topics.lag()
        if not messages.offsets:
            return
        for one in bad[:SHOWN]:
            logger.warning("left out: %s", one)
        self._commit(messages)
        self.refused += len(bad)

    def _commit(self, messages: Messages) -> None:
        """Repeat the commit until it is written, as no message may be skipped."""
        is_logged = False
        while not self._ends.is_set():
            try:
                answer = self._service.follow(messages).result()
            except (Busy, LimitExceeded, Unavailable, Refused) as error:
                if not is_logged and not isinstance(error, Busy):
                    logger.warning("messages wait: %s", error)
                    is_logged = True
                self._ends.wait(getattr(error, "retry_after", None) or PAUSE)
                continue
            self.rows, self.double = self.rows + answer.rows, self.double + answer.double
            self.refused += len(answer.refused)
            for fault in answer.refused[:SHOWN]:
                logger.warning("left out: %s", fault.sentence)
            return

    def _look_for_partitions(self) -> None:
        try:
            self._topics.find_partitions()
        except KafkaException as error:
            logger.warning("Kafka: %s", error.args[0].str())
