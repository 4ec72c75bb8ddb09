"""How a tree is grown: leaf by leaf, the largest gain first (Shi 2007), from histograms (Ke et al. 2017).

With the sums G and H of gradients and curvatures of the loss, a split's gain is G_l²/(H_l + 1) + G_r²/(H_r + 1) -
G²/(H + 1), and a leaf's value -0.1 G/(H + 1) (Chen and Guestrin 2016).

Gradients and curvatures are rounded to 17 bits and added as whole numbers, both in one word; 16,384 rows need 31 bits.
So sums are the same in any order, the histogram of a split's larger part is exactly the whole's less the smaller
part's, and the most common code of a column needs no addition at all: it has what the others leave.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import ROW
from shoal.engine.compile import kernel
from shoal.online.boosted_trees.forest import (
    FEW_LEAVES,
    MISSING,
    N_CODES,
    N_EDGES,
    N_LEAVES,
    N_SMALL,
    TASK_COLUMN,
    CodeArray,
    Forests,
    U,
    ValueArray,
    spread,
)

RATE, PENALTY, TASK_PENALTY = 0.1, 1.0, 10.0
LEAST_ROWS = 10.0  # of a leaf
LARGEST = 131_071.0  # 17 bits
DENSE = 0.7  # a code with more than this share of the rows is left out of histograms
CURVATURE = 2**32 - 1  # the low half of a word
SAMPLE = 4_096  # rows that edges are quantiles of


class Training(NamedTuple):
    """The frozen rows, and scratch of one tree."""

    codes: Annotated[CodeArray, ROW]  # (columns, rows)
    entries: Annotated[NDArray[np.uint16], ROW]  # (rows, columns) column * 64 + code, but for codes that are left out
    lengths: Annotated[IndexArray, ROW]  # (rows,) entries of each row
    common: Annotated[IntArray, ROW]  # (columns,) the code that is left out, or -1; -2: the column has one code only
    target: Annotated[FloatArray, ROW]  # (rows,) 0 or 1, or in deviations from the mean
    weight: Annotated[FloatArray, ROW]
    margin: Annotated[FloatArray, ROW]  # (rows,) of the trees so far
    slopes: Annotated[IntArray, ROW]  # (rows,) gradient * 2^32 + curvature
    order: Annotated[IndexArray, ROW]  # (2, rows) rows by leaf, and scratch
    cells: Annotated[IntArray, ROW]  # (32, columns * 64) sums of slopes, by leaf and code
    leaves: Annotated[IntArray, ROW]  # (32, 4) first row in `order`, the row after the last, split's column, slopes
    gains: Annotated[FloatArray, ROW]  # (32,) of the best split
    lefts: Annotated[NDArray[np.uint64], ROW]  # (32,) its codes
    ratios: Annotated[FloatArray, ROW]  # (64,) of tasks' places: gradient over curvature
    places: Annotated[IntArray, ROW]  # (64,) sorted by them
    sample: Annotated[ValueArray, ROW]  # (4096,)
    units: Annotated[FloatArray, ROW]  # (3,) largest weight, and the units of the 17 bits of gradient and curvature


def new_training(n_rows: int, n_columns: int) -> Training:
    return Training(
        np.zeros((n_columns, n_rows), np.uint8),
        np.zeros((n_rows, n_columns), np.uint16),
        np.zeros(n_rows, np.int32),
        np.zeros(n_columns, np.int64),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(n_rows, np.int64),
        np.zeros((2, n_rows), np.int32),
        np.zeros((N_LEAVES, n_columns * N_CODES), np.int64),
        np.zeros((N_LEAVES, 4), np.int64),
        np.zeros(N_LEAVES),
        np.zeros(N_LEAVES, np.uint64),
        np.zeros(N_CODES),
        np.zeros(N_CODES, np.int64),
        np.zeros(SAMPLE, np.float32),
        np.zeros(3),
    )


@kernel(inline=False, alone=False)
def enter(c: int, n: int, training: Training) -> None:
    """The column's entries of the frozen rows; a very common code has none."""
    codes, counts = training.codes[c], training.cells[0, :N_CODES]
    for code in range(N_CODES):
        counts[code] = 0
    for i in range(n):
        counts[codes[i]] += 1
    most = 0
    for code in range(N_CODES):
        most = code if counts[code] > counts[most] else most
    training.common[c] = -2 if counts[most] == n else most if counts[most] > DENSE * n else -1
    if training.common[c] == -2:
        return
    for i in range(n):
        if codes[i] != training.common[c]:
            training.entries[i, training.lengths[i]] = c * N_CODES + int(codes[i])  # plain Python overflows a uint8
            training.lengths[i] += 1


@kernel(inline=False, alone=False)
def grow(t: int, n: int, side: int, regression: bool, training: Training, forests: Forests) -> None:
    """Grow tree t of a forest on the first n frozen rows, and move their margins; large trees begin anew."""
    if t == N_SMALL:
        for i in range(n):
            training.margin[i] = 0.0 if regression else forests.units[side, 0]
    training.units[1], training.units[2] = _slopes(n, regression, training)
    leaves, order, n_columns = training.leaves, training.order[0], forests.sizes[side]
    total = 0
    for i in range(n):
        order[i] = i
        total += training.slopes[i]
    leaves[0, 0], leaves[0, 1], leaves[0, 3] = 0, n, total
    values = forests.values[side, t]
    values[0] = _leaf_value(total, training)
    _fill_cells(0, n_columns, training)
    _find_split(0, n_columns, training)
    n_leaves = FEW_LEAVES if t < N_SMALL else N_LEAVES
    for s in range(n_leaves - 1):
        leaf = 0
        for other in range(1, s + 1):
            leaf = other if training.gains[other] > training.gains[leaf] else leaf
        if training.gains[leaf] <= 0.0:
            break
        forests.column[side, t, s], forests.parent[side, t, s] = leaves[leaf, 2], leaf
        forests.left[side, t, s] = training.lefts[leaf]
        _split(leaf, s + 1, n_columns, s + 2 < n_leaves, training)
        values[1 + 2 * s] = _leaf_value(leaves[leaf, 3], training)
        values[2 + 2 * s] = _leaf_value(leaves[s + 1, 3], training)
    spread(side, t, forests)
    _move(side, t, training, forests)


@kernel(inline=False, sums="exact", alone=False)
def _slopes(n: int, regression: bool, training: Training) -> tuple[float, float]:
    """Gradients and curvatures of the first n rows' losses, as whole numbers; return their units."""
    margin, target, weight, slopes = training.margin, training.target, training.weight, training.slopes
    largest = training.units[0]
    if regression:
        most = 0.0
        for i in range(n):
            most = max(most, abs(weight[i] * (margin[i] - target[i])))
        g_unit, h_unit = most / LARGEST if most > 0.0 else 1.0, largest / LARGEST
        for i in range(n):
            g = weight[i] * (margin[i] - target[i]) / g_unit
            slopes[i] = (np.int64(math.floor(g + 0.5)) << 32) + np.int64(math.floor(weight[i] / h_unit + 0.5))
        return g_unit, h_unit
    g_unit, h_unit = largest / LARGEST, 0.25 * largest / LARGEST
    for i in range(n):
        p = 1.0 / (1.0 + math.exp(-margin[i]))
        g, h = weight[i] * (p - target[i]) / g_unit, weight[i] * (p * (1.0 - p)) / h_unit
        slopes[i] = (np.int64(math.floor(g + 0.5)) << 32) + np.int64(math.floor(h + 0.5))
    return g_unit, h_unit


@kernel(sums="exact", alone=False)
def _leaf_value(slopes: int, training: Training) -> float:
    g, h = (slopes >> 32) * training.units[1], (slopes & CURVATURE) * training.units[2]
    return float(-RATE * g / (h + PENALTY))


@kernel(inline=False, alone=False)
def _fill_cells(leaf: int, n_columns: int, training: Training) -> None:
    """Sums of the slopes of a leaf's rows, by code."""
    cells, order, total = training.cells[leaf], training.order[0], np.int64(0)
    for i in range(n_columns * N_CODES):
        cells[i] = 0
    for p in range(training.leaves[leaf, 0], training.leaves[leaf, 1]):
        row = order[p]
        slopes, entries = training.slopes[row], training.entries[row]
        total += slopes
        for k in range(training.lengths[row]):
            cells[U(entries[U(k)])] += slopes
    for c in range(n_columns):
        if training.common[c] >= 0:
            others = np.int64(0)
            for i in range(c * N_CODES, (c + 1) * N_CODES):
                others += cells[i]
            cells[c * N_CODES + training.common[c]] = total - others


@kernel(inline=False, sums="exact", alone=False)
def _find_split(leaf: int, n_columns: int, training: Training) -> None:
    """The split of a leaf with the largest gain; gain 0 if none is allowed."""
    leaves, slopes = training.leaves[leaf], training.leaves[leaf, 3]
    n = leaves[1] - leaves[0]
    training.gains[leaf] = 0.0
    if n < 2.0 * LEAST_ROWS:
        return
    least = max(LEAST_ROWS * (slopes & CURVATURE) / n, 1.0)  # the curvature of LEAST_ROWS rows, by the leaf's mean
    for c in range(n_columns):
        if training.common[c] == -2:
            continue
        if c == TASK_COLUMN:
            _split_tasks(leaf, least, training)
        else:
            _split_values(c, leaf, least, training)


@kernel(sums="exact", alone=False)
def _gain(left: int, whole: int, least: float, penalty: float) -> float:
    """G_l²/(H_l + penalty) + G_r²/(H_r + penalty) - G²/(H + penalty), or 0 if a part has too little curvature."""
    h_left, h = float(left & CURVATURE), float(whole & CURVATURE)
    h_right = h - h_left
    if h_left < least or h_right < least:
        return 0.0
    g_left, g = float(left >> 32), float(whole >> 32)
    g_right = g - g_left
    return g_left * g_left / (h_left + penalty) + g_right * g_right / (h_right + penalty) - g * g / (h + penalty)


@kernel(sums="exact", alone=False)
def _offer(gain: float, c: int, left: np.uint64, leaf: int, training: Training) -> None:
    """Take the split if its gain is larger than that of the best so far."""
    if gain > training.gains[leaf]:
        training.gains[leaf], training.leaves[leaf, 2], training.lefts[leaf] = gain, c, left


@kernel(inline=False, sums="exact", alone=False)
def _split_values(c: int, leaf: int, least: float, training: Training) -> None:
    """Codes up to one go to the left; missing values to either side, or if there are none to the larger."""
    cells, whole, penalty = training.cells[leaf], training.leaves[leaf, 3], PENALTY / training.units[2]
    first, left, rest = c * N_CODES, np.int64(0), whole & CURVATURE
    missing, bit = cells[first + MISSING], U(1) << U(MISSING)
    for code in range(N_EDGES + 1):
        if cells[first + code] == 0:
            continue
        left += cells[first + code]
        if rest - (left & CURVATURE) < least:
            break  # so it is for all later codes
        codes = (U(2) << U(code)) - U(1)
        if missing != 0:
            _offer(_gain(left, whole, least, penalty), c, codes, leaf, training)
            _offer(_gain(left + missing, whole, least, penalty), c, codes | bit, leaf, training)
        else:
            is_larger = 2 * (left & CURVATURE) >= rest
            _offer(_gain(left, whole, least, penalty), c, codes | bit if is_larger else codes, leaf, training)


@kernel(inline=False, sums="exact", alone=False)
def _split_tasks(leaf: int, least: float, training: Training) -> None:
    """Places in the order of G/(H + 10) up to one go to the left (Fisher 1958); those not there, to the larger side."""
    cells, whole, penalty = training.cells[leaf], training.leaves[leaf, 3], TASK_PENALTY / training.units[2]
    ratios, places, n, absent = training.ratios, training.places, 0, ~U(0)
    for code in range(N_CODES):
        slopes = cells[code]
        if slopes == 0:
            continue
        absent &= ~(U(1) << U(code))
        ratio, k = (slopes >> 32) / ((slopes & CURVATURE) + penalty), n
        while k > 0 and ratios[k - 1] > ratio:
            ratios[k], places[k] = ratios[k - 1], places[k - 1]
            k -= 1
        ratios[k], places[k] = ratio, code
        n += 1
    left, codes = np.int64(0), U(0)
    for k in range(n - 1):
        left += cells[places[k]]
        if (whole & CURVATURE) - (left & CURVATURE) < least:
            break
        codes |= U(1) << U(places[k])
        is_larger = 2 * (left & CURVATURE) >= whole & CURVATURE
        _offer(_gain(left, whole, least, penalty), TASK_COLUMN, codes | absent if is_larger else codes, leaf, training)


@kernel(inline=False, alone=False)
def _split(leaf: int, new: int, n_columns: int, goes_on: bool, training: Training) -> None:
    """Part a leaf's rows, and if the tree goes on find the splits of both parts."""
    leaves, lefts = training.leaves, training.lefts[leaf]
    begin, end, c = leaves[leaf, 0], leaves[leaf, 1], leaves[leaf, 2]
    codes, order, right = training.codes[c], training.order[0], training.order[1]
    middle, n_right, slopes = begin, 0, np.int64(0)
    for p in range(begin, end):
        row = order[p]
        goes_left = int((lefts >> U(codes[U(row)])) & U(1))
        order[U(middle)], right[U(n_right)] = row, row
        middle, n_right = middle + goes_left, n_right + 1 - goes_left
    for i in range(n_right):
        order[middle + i] = right[i]
    cells = training.cells[leaf, c * N_CODES : (c + 1) * N_CODES]
    for code in range(N_CODES):
        slopes += cells[code] * np.int64((lefts >> U(code)) & U(1))
    leaves[new, 0], leaves[new, 1], leaves[new, 3] = middle, end, leaves[leaf, 3] - slopes
    leaves[leaf, 1], leaves[leaf, 3] = middle, slopes
    if not goes_on:
        return
    _part_cells(leaf, new, n_columns, training)
    _find_split(leaf, n_columns, training)
    _find_split(new, n_columns, training)


@kernel(inline=False, alone=False)
def _part_cells(leaf: int, new: int, n_columns: int, training: Training) -> None:
    """Sums of the part with fewer rows are added up, the other's are the whole's less these."""
    leaves, cells, new_cells = training.leaves, training.cells[leaf], training.cells[new]
    is_smaller = leaves[leaf, 1] - leaves[leaf, 0] < leaves[new, 1] - leaves[new, 0]
    if not is_smaller:
        _fill_cells(new, n_columns, training)
        for i in range(n_columns * N_CODES):
            cells[i] -= new_cells[i]
        return
    for i in range(n_columns * N_CODES):
        new_cells[i] = cells[i]
    _fill_cells(leaf, n_columns, training)
    for i in range(n_columns * N_CODES):
        new_cells[i] -= cells[i]


@kernel(inline=False, sums="exact", alone=False)
def _move(side: int, t: int, training: Training, forests: Forests) -> None:
    """Add a tree's answers to the margins of the frozen rows."""
    order, margin = training.order[0], training.margin
    for leaf in range(N_LEAVES):
        if leaf == 0 or forests.column[side, t, leaf - 1] >= 0:
            value = forests.leaves[side, t, leaf]
            for p in range(training.leaves[leaf, 0], training.leaves[leaf, 1]):
                margin[U(order[p])] += value
