from .export import export as export
from .figure import Figure as Figure
from .figures import figures as figures
from .figures import save_figures as save_figures
from .page import write_order_report as write_order_report
from .page import write_report as write_report
