"""Registered classes, used in ways that have no meaning. New ones go to the end."""

from dataclasses import dataclass

import sarek_numba as sarek


@sarek.register_type
@dataclass
class Ball:
    height: sarek.float32
    bounces: sarek.int32

    def bounced(self):
        return Ball(self.height, self.bounces + 1)


def registered_without_a_field(x, n):
    x[0] = Ball(height=n).height


def registered_with_an_unknown_field(x, n):
    x[0] = Ball(n, bounce=n).height


def registered_with_too_many(x, n):
    x[0] = Ball(n, n, n).height


def registered_without_such_field(x, n):
    x[0] = Ball(n, n).heigth


def method_of_a_registered_class(x, n):
    x[0] = Ball(n, n).bounced().height


def register_type_in_a_kernel(x, n):
    sarek.register_type(Ball)
