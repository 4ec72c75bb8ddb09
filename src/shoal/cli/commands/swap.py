"""`shoal swap`: replaces the model of a service, whose log goes on."""

import os
import shutil
from pathlib import Path

from shoal.serve.client import Client, ServiceError
from shoal.serve.contract import Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.model_changes import OF_SHARDS

TOKEN = "SHOAL_TOKEN_ADMIN"


def swap_model(service: str, file: Path, log: str | None, *, shadow: bool) -> None:
    """The whole command.

    Raises
    ------
    ValueError
        If the file is no model for the service, or a service has the folder.
    """
    if not file.is_file():
        raise ValueError(f"no model at {file}")
    if "://" in service:
        with Client(service, os.environ.get(TOKEN)) as client:
            try:
                receipt = client.swap(file, shadow=shadow)
            except ServiceError as error:
                raise ValueError(f"{service} answered {error}") from None
    else:
        if not Path(service).is_dir():
            raise ValueError(f"{service} is no folder of a service, nor an address such as http://127.0.0.1:8000")
        if any(Path(service).glob("shard-*")):
            raise ValueError(OF_SHARDS)
        try:
            with Engine(None, Path(service), EngineSettings(log=log)) as engine:
                copy = engine.new_file()
                shutil.copyfile(file, copy)
                receipt = engine.change("shadow" if shadow else "swap", copy)
        except Unavailable as error:
            raise ValueError(str(error)) from None
    print(
        f"{file} {'learns beside the model' if shadow else 'answers'} from record {receipt.position:,} of {service} on"
    )
