"""The program `shoal`: words on the command line become calls of the library.

Read `app` first (signatures and help), then `options`, then a command in `commands`; the other modules serve several
commands.
"""

import sys

EXTRA = ("altair", "cyclopts", "polars", "rich", "vl_convert")  # packages of shoal[cli]


def main() -> None:
    """Entry point; everything else is imported when it is needed."""
    from shoal.cli.starting import collect_rarely, defer, exit_at_once

    try:
        collect_rarely()
        defer()
        exit_at_once()
        from shoal.cli.app import start

        start()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRA:
            raise
        print(f'shoal: the program needs {error.name}, among others: pip install "shoal[cli]"', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # while modules are imported
        sys.exit(130)
