"""Apple's GPUs through the Metal Shading Language and the Metal framework, by PyObjC.

Importing this package opens nothing.
"""

from sarek_metal.runtime import backend

__all__ = ["backend"]
