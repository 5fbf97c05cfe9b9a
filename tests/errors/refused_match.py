"""Kernels with a `match` outside of the language."""
# ruff: noqa

import sarek_numba as sarek


def match_star(x, n):
    match n, 1, 2:
        case (1, *rest):
            x[0] = 1


def match_all_findings(x, n):
    match n:
        case {"a": 1} | int():
            x[0] = 1
        case [a, *_]:
            match x[0]:
                case float():
                    x[0] = 2


def match_wrong_length(x, n):
    match n, x[0]:
        case (1, _, _):
            x[0] = 1


def match_wrong_length_of_a_name(x, n):
    pair = (n, x[0])
    match pair:
        case (1, 1.0):
            x[0] = 1
        case (2, (a, b)):
            x[0] = 2
        case (3, _, _):
            x[0] = 3


def match_number_by_items(x, n):
    match n:
        case ():
            x[0] = 1


def match_number_by_true(x, n):
    match n:
        case 4:
            x[0] = 1
        case False:
            x[0] = 2


def match_tuple_by_a_number(x, n):
    match n, 1:
        case 1:
            x[0] = 1


def match_number_by_a_string(x, n):
    match n:
        case "one":
            x[0] = 1


def match_literal_twice(x, n):
    match n:
        case 1 | 2:
            x[0] = 1
        case 3 | 2.0:
            x[0] = 2


def match_unreached(x, n):
    match n > 1, n:
        case True, 1:
            x[0] = 1
        case True, _:
            x[0] = 2
        case False, k if k > 7:
            x[0] = k
        case False, 2:
            x[0] = 3
        case True, 3:
            x[0] = 4


def match_not_assigned(x, n):
    match n:
        case other if unknown > 3:
            x[0] = other


def match_guard_with_walrus(x, n):
    match n:
        case other if (y := other) > 3:
            x[0] = y


def match_joins_types(x, n):
    match n:
        case 1:
            value = 1
        case _:
            value = (1, 2)
    x[0] = value


def match_jumps_out_of_a_superstep(x, n):
    with sarek.superstep():
        match n:
            case 1:
                return
            case _:
                x[0] = 1


def match_divergent_barrier(x, n):
    match x[sarek.thread_idx.x]:
        case 1.0:
            sarek.barrier()
        case _:
            x[0] = 1
