"""Kafka topics with all their partitions, from given offsets on.

The log keeps the offsets with the rows, so there is no consumer group: one engine reads all partitions.
"""

import logging
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from shoal.serve.kafka.messages import Message

logger = logging.getLogger("shoal")
PATIENCE = 15.0  # seconds for a broker to answer
POLL_SECONDS = 0.2
FIXED = {
    "group.id": "shoal",  # required by the client; nothing is committed to it
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "log_level": "2",  # `_heard` logs errors, once a minute instead of at every attempt
}
MINUTE = 60.0


class Topics:
    """The unread messages of some topics.

    Parameters
    ----------
    brokers : str
    names : sequence of str
    offsets : mapping
        The next message of each partition, by "topic/partition"; others are read from their beginning.
    settings : mapping, optional
        Of librdkafka, such as passwords.

    Raises
    ------
    ValueError
        If no broker answers, a topic is not there, or a setting is none.
    """

    def __init__(
        self, brokers: str, names: Sequence[str], offsets: Mapping[str, int], settings: Mapping[str, str] | None = None
    ) -> None:
        self._names, self._offsets = list(dict.fromkeys(names)), dict(offsets)
        self._next_line: dict[str, float] = {}
        try:
            self._consumer = Consumer(
                {"bootstrap.servers": brokers, **(settings or {}), **FIXED, "error_cb": self._heard},
                logger=logging.getLogger("shoal.kafka"),
            )
        except KafkaException as error:
            raise ValueError(f"Kafka: {error.args[0].str()}") from None
        self._assigned: set[tuple[str, int]] = set()
        try:
            self.find_partitions(is_first=True)
        except KafkaException as error:
            self._consumer.close()
            raise ValueError(f"no broker answers at {brokers}: {error.args[0].str()}") from None
        except ValueError:
            self._consumer.close()
            raise

    def find_partitions(self, *, is_first: bool = False) -> None:
        """Begin to read partitions that are new since the last time."""
        new: list[TopicPartition] = []
        for name in self._names:
            known = self._consumer.list_topics(name, timeout=PATIENCE).topics[name]
            if known.error is not None or not known.partitions:
                if is_first:
                    raise ValueError(f"there is no topic {name!r}: {known.error or 'it has no partitions'}")
                continue
            for number in sorted(known.partitions):
                if (name, number) not in self._assigned:
                    start = self._offsets.get(f"{name}/{number}", OFFSET_BEGINNING)
                    new.append(TopicPartition(name, number, start))
        if new:
            self._say_what_is_gone(new)
            self._consumer.incremental_assign(new)
            self._assigned |= {(one.topic, one.partition) for one in new}

    def take(self, n: int, seconds: float) -> list[Message]:
        """The next messages: at most n, and fewer if no more come in that time. The client reports its errors here,
        and repeats by itself what failed."""
        found: list[Message] = []
        for one in self._consumer.consume(n, seconds):
            error = one.error()
            if error is None:
                place = str(one.topic()), _number(one.partition()), _number(one.offset())
                found.append(Message(*place, one.key(), one.value()))
            else:
                self._heard(error)
        for message in found:
            self._offsets[f"{message.topic}/{message.partition}"] = message.offset + 1
        return found

    def lag(self) -> int:
        """The number of known messages that are not taken yet."""
        return sum(self._behind(name, number) for name, number in self._assigned)

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()

    def _heard(self, error: KafkaError) -> None:
        """Log an error, each kind once a minute; the client itself tries again."""
        kind = error.name()
        if time.monotonic() >= self._next_line.get(kind, 0.0):
            self._next_line[kind] = time.monotonic() + MINUTE
            logger.warning("Kafka: %s", error.str())

    def _behind(self, name: str, number: int) -> int:
        marks: tuple[int, int] = self._consumer.get_watermark_offsets(TopicPartition(name, number), cached=True)
        low, high = marks
        return max(high - max(self._offsets.get(f"{name}/{number}", low), low), 0)

    def _say_what_is_gone(self, partitions: Sequence[TopicPartition]) -> None:
        for one in partitions:
            if one.offset == OFFSET_BEGINNING:
                continue
            low = self._first_of(one)
            if low > one.offset:
                source = f"{one.topic}/{one.partition}"
                logger.error("messages %d to %d of %s are gone: nobody learned them", one.offset, low - 1, source)
                one.offset = low

    def _first_of(self, partition: TopicPartition) -> int:
        """The first message of a partition. The client does not know it while the partition moves to another broker, so
        it is asked again."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                marks: tuple[int, int] = self._consumer.get_watermark_offsets(partition, timeout=PATIENCE)
                return marks[0]
            except KafkaException:
                if time.monotonic() >= until:
                    raise
                time.sleep(POLL_SECONDS)


def _number(value: int | None) -> int:
    assert value is not None  # of a message that was read
    return value
