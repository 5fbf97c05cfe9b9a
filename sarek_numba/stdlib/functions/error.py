"""erf and erfc: a series close to 0, elsewhere exp(-x^2) times a smooth function."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from sarek_numba.stdlib.functions.exponential import exp_of
from sarek_numba.stdlib.functions.pairs import add, divide, multiply, quick_sum, two_product

_SCALE, _SCALE_LOW = 1.1283791670955126, 1.533545961316588e-17  # 2 / sqrt pi
_ROOT, _ROOT_LOW = 0.5641895835477563, 7.66772980658294e-18  # 1 / sqrt pi


@sarek.function
def erf_small(x: sarek.float64):
    """erf(x) as a pair, for |x| <= 0.85."""
    z = x * x
    p = -4.9694911013719125e-12
    p = p * z + 9.090448752777545e-11
    p = p * z - 1.2252641028669057e-09
    p = p * z + 1.480437242125239e-08
    p = p * z - 1.6365702314364342e-07
    p = p * z + 1.6462109417697228e-06
    p = p * z - 1.4925650240504805e-05
    p = p * z + 0.00012055332979905224
    p = p * z - 0.0008548327023431506
    p = p * z + 0.00522397762544207
    p = p * z - 0.02686617064513125
    p = p * z + 0.11283791670955126
    p = p * z - 0.37612638903183754
    a, b = multiply(x, 0.0, _SCALE, _SCALE_LOW)
    return quick_sum(a, b + x * z * p)


@sarek.function
def smooth(x: sarek.float64):
    """exp(x^2) erfc(x) as a pair, for x >= 0.84."""
    if x < 2.0:
        u = (x - 1.25) / (x + 1.25)
        p = 1.392909524193607e-05
        p = p * u + 2.6934186259696357e-05
        p = p * u + 1.984280906882175e-05
        p = p * u - 3.514176137736038e-05
        p = p * u - 0.00014268715069740669
        p = p * u - 0.0002075010415035453
        p = p * u + 2.7869211502996954e-05
        p = p * u + 0.0008163319066910074
        p = p * u + 0.001641174861499826
        p = p * u - 3.931468780057464e-05
        p = p * u - 0.007730661445216132
        p = p * u - 0.013800420609356833
        p = p * u + 0.02822941635990454
        p = p * u + 0.14541763194221785
        p = p * u - 0.5220546899115246
        return quick_sum(0.3678229164523611, p * u)
    if x < 5.0:
        u = (x - 3.0) / (x + 3.0)
        p = -3.74773920913854e-07
        p = p * u + 1.2224990438472697e-06
        p = p * u + 2.132954668787381e-06
        p = p * u - 7.976697586227963e-06
        p = p * u - 1.286131578731573e-05
        p = p * u + 6.405652425402467e-05
        p = p * u + 4.525532517089802e-05
        p = p * u - 0.0005970619480998843
        p = p * u + 0.0007077464384368706
        p = p * u + 0.004269136332827014
        p = p * u - 0.024392499318666744
        p = p * u + 0.07166583719797848
        p = p * u - 0.15011593650077723
        p = p * u + 0.24560380171233087
        p = p * u - 0.3262335600430372
        return quick_sum(0.17900115118138996, p * u)
    u = 1.0 / (x * x)
    p = 3420439.518012497
    p = p * u - 1248649.5996191667
    p = p * u + 236829.72681934742
    p = p * u - 33518.93046318102
    p = p * u + 4351.594922890284
    p = p * u - 593.4938913807434
    p = p * u + 91.60886479123131
    p = p * u - 16.660977276569046
    p = p * u + 3.7024927286713845
    p = p * u - 1.0578554642871898
    p = p * u + 0.42314218765206013
    p = p * u - 0.2820947917738719
    a, b = quick_sum(_ROOT, _ROOT_LOW + p * u)
    return divide(a, b, x, 0.0)


@sarek.function
def erfc_large(x: sarek.float64) -> sarek.float64:
    """erfc(x) for 0.84 <= x <= 28: the exponential may be no normal number."""
    a, b = two_product(x, x)
    f, g = smooth(x)
    e = exp_of(-a, -b, sarek.int64(300))
    # times 2^-300 at the end: what is no normal number is rounded once
    return (e * f + e * g) * 4.909093465297727e-91


@sarek.function
def erf(x: sarek.float64) -> sarek.float64:
    magnitude = abs(x)
    if np.isnan(x):
        return x
    if magnitude <= 0.84:
        if magnitude < 1e-280:
            return x * _SCALE
        a, b = erf_small(x)
        return a + b
    if magnitude > 6.0:
        return np.copysign(1.0, x)
    return np.copysign(1.0 - erfc_large(magnitude), x)


@sarek.function
def erfc(x: sarek.float64) -> sarek.float64:
    if np.isnan(x):
        return x
    magnitude = abs(x)
    if magnitude <= 0.84:
        a, b = erf_small(x)
        high, low = add(1.0, 0.0, -a, -b)
        return high + low
    if magnitude > 28.0:
        return 2.0 if x < 0.0 else 0.0
    value = erfc_large(magnitude)
    return 2.0 - value if x < 0.0 else value
