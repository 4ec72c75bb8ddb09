"""Gradient-boosted histogram trees on the last 16,384 rows, trained anew in small slices as rows come.

Read `forest` (columns, codes, what a trained forest answers and why), `training` (the buffer, when a training begins,
and how it is cut into slices), `tree` (how one grows) and `state`. They are kernels for other kernels: a learner such
as hedged sharing holds a `State`. The twin in plain NumPy is tests/twins/boosted_trees.py.
"""

from shoal.online.boosted_trees.forest import FIRST_COLUMN as FIRST_COLUMN
from shoal.online.boosted_trees.forest import LANES as LANES
from shoal.online.boosted_trees.forest import STAGES as STAGES
from shoal.online.boosted_trees.state import MOST_COLUMNS as MOST_COLUMNS
from shoal.online.boosted_trees.state import Packed as Packed
from shoal.online.boosted_trees.state import State as State
from shoal.online.boosted_trees.state import blank as blank
from shoal.online.boosted_trees.state import check as check
from shoal.online.boosted_trees.state import extended as extended
from shoal.online.boosted_trees.state import forget as forget
from shoal.online.boosted_trees.state import new_state as new_state
from shoal.online.boosted_trees.state import pack as pack
from shoal.online.boosted_trees.state import unpack as unpack
from shoal.online.boosted_trees.training import Effort as Effort
from shoal.online.boosted_trees.training import explain as explain
from shoal.online.boosted_trees.training import has_room as has_room
from shoal.online.boosted_trees.training import learn as learn
from shoal.online.boosted_trees.training import margins as margins
from shoal.online.boosted_trees.training import rows_left as rows_left
