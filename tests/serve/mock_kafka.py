"""Brokers in this process: librdkafka's mock cluster, through the library that confluent_kafka brings."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

PRODUCER = 0  # rd_kafka_type_t


class Brokers:
    """A cluster."""

    def __init__(self, library: Any, cluster: int) -> None:
        self._library, self._cluster = library, cluster
        self.address: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def create(self, topic: str, partitions: int = 2) -> None:
        """A topic that every broker has."""
        assert self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1) == 0

    def stop(self, broker: int) -> None:
        """A broker that no longer answers, its connections cut."""
        assert self._library.rd_kafka_mock_broker_set_down(self._cluster, broker) == 0

    def start(self, broker: int) -> None:
        """It is back."""
        assert self._library.rd_kafka_mock_broker_set_up(self._cluster, broker) == 0

    def send(self, topic: str, messages: Iterable[tuple[str | None, bytes | None]]) -> None:
        """Keys and values, which are in the topic when this returns."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5})
        for key, value in messages:
            producer.produce(topic, value, key)
            producer.poll(0)
        assert producer.flush(30) == 0


@contextmanager
def mock_brokers(n: int = 2) -> Iterator[Brokers]:
    """A cluster of so many brokers; they are gone at the end."""
    library = _library()
    said = ctypes.create_string_buffer(512)
    client = library.rd_kafka_new(PRODUCER, None, said, len(said))
    assert client, said.value
    cluster = library.rd_kafka_mock_cluster_new(client, n)
    try:
        yield Brokers(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def _library() -> Any:
    """The one that is loaded already."""
    maps = Path("/proc/self/maps").read_text()
    found = re.search(r"(/\S*librdkafka\S*)", maps)
    assert found, "confluent_kafka brings no librdkafka of its own"
    library = ctypes.CDLL(found[1])
    for name in ("rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    library.rd_kafka_new.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.rd_kafka_mock_cluster_new.argtypes = [ctypes.c_void_p, ctypes.c_int]
    for name in ("rd_kafka_mock_cluster_bootstraps", "rd_kafka_mock_cluster_destroy", "rd_kafka_destroy"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.rd_kafka_mock_topic_create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    for name in ("rd_kafka_mock_broker_set_down", "rd_kafka_mock_broker_set_up"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_int32]
    return library
