"""Why a kernel is not a product of matrices that could be computed otherwise: one text for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sarek_numba.span import Span


class Reason(Enum):
    """The value is the text; `{}` stands for what is particular to the kernel."""

    # found in the kernel
    NO_SUM = "no loop adds up products of elements of two arrays"
    TILED = "left alone: it is tiled by hand, {}"
    COOPMAT = "it uses matrix units already"
    WARP = "the threads of a warp work together"
    ATOMICS = "it has an atomic operation"
    EFFECTS = "it has a side effect: {}"
    NATIVE = "it has source text of another language"
    LOCAL_ARRAY = "it has an array of each thread's own, '{}'"
    ELEMENTS = "the elements of '{}' are no plain numbers"
    CONSTANTS = "'{}' is no array that the launch is given"
    MORE_PRODUCTS = "it has more than one product"
    OPERATOR = "products are put together by {}, not added up"
    STATE = "the loop carries more than the sum: '{}'"
    CONDITIONAL_SUM = "what is added up depends on a condition"
    COMPUTED_OPERAND = "an operand is computed, not an element of an array"
    ONE_ARRAY = "elements of one array are added up, not products of two"
    MANY_FACTORS = "more than two elements are multiplied"
    NARROW_PRODUCT = "each product is of type {}, and is rounded or wraps before it is added"
    ACCUMULATOR = "the sum is of type {}: matrix units add up in float32 and int32"
    FLOAT64 = "it is a product of float64"
    OPERANDS = "elements of {} and {} are no operands of one product on matrix units"
    INDEX = "an index is not a sum of loop variables times strides: {}"
    DATA_INDEX = "an index depends on data: {}"
    DATA_BOUND = "the bounds of a loop depend on data or on another index: {}"
    STEP = "the step of a loop is not a constant"
    LOOP = "a loop has no range that is known when it begins"
    EARLY_EXIT = "a loop may end early, by {}"
    GUARD = "a condition links indices, and what is left is no rectangle: {}"
    STORE_GUARD = "the sum has a condition that the store has not"
    DATA_STORE = "whether an element is stored depends on data"
    OTHER_STORE = "it stores elsewhere too, in '{}'"
    READS_OTHER = "it reads elements of '{}' that other threads or passes write"
    SAME_ARRAY = "'{}' is both an operand and the result"
    LAST_VALUE = "'{}' is used after a loop that overwrites it"
    NESTED_SUM = "the sum runs over more than one index"
    RACE = "several threads add to one element: the result does not depend on '{}'"
    WITHOUT_K = "an operand does not depend on the index of the sum, '{}'"
    UNUSED_INDEX = "'{}' chooses an element of an operand, not of the result"
    VECTOR = "it is a product with a vector: each element of a matrix is used once"
    PARTS = "an index of the launch is used in part and in whole"
    STATEMENT = "it has a statement that no product needs: {}"
    TOO_LARGE = "it is too large to be looked through"
    # found in a launch
    GRID = "the grid of the launch has no thread for some elements"
    CONDITION = "a condition does not hold in this launch: {}"
    OUTSIDE = "this launch would access elements outside of '{}'"
    WIDTH = "an index of this launch leaves the range of its type"
    ALIAS = "'{}' and '{}' share memory in this launch"
    OVERLAP = "two elements of the result have one place in memory in this launch"
    REPEATED = "several threads update each element in this launch"
    EMPTY = "the product has no elements or no sum in this launch"
    UNKNOWN = "nothing is known about this launch"


@dataclass(frozen=True, slots=True)
class NotAProduct:
    """Why there is no product, and the user's line that shows it.

    `near` says that some loop of the kernel adds up products: then who asks is told.
    """

    reason: Reason
    detail: tuple[str, ...] = ()
    span: Span | None = None
    near: bool = True

    @property
    def text(self) -> str:
        return self.reason.value.format(*self.detail)

    def __str__(self) -> str:
        return self.text if self.span is None else f"{self.span}: {self.text}"


class Refusal(Exception):
    """Carries a `NotAProduct` out of the analysis."""

    def __init__(self, reason: Reason, *detail: str, span: Span | None = None) -> None:
        super().__init__(reason, detail)
        self.found = NotAProduct(reason, detail, span)
