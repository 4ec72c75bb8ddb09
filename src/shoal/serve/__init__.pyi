from .calls import ServiceError as ServiceError
from .client import AsyncClient as AsyncClient
from .client import Client as Client
from .engine import Engine as Engine
from .engine import EngineSettings as EngineSettings
