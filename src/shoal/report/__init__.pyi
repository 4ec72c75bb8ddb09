from .figure import Figure as Figure
from .figures import figures as figures
from .figures import save_figures as save_figures
from .page import write_report as write_report
