from .client import AsyncClient as AsyncClient
from .client import Client as Client
from .client import ServiceError as ServiceError
from .engine import Engine as Engine
from .engine import EngineSettings as EngineSettings
