"""The OpenCL text that this package generates, launched as the hand-written peer launches its own.

A first, ordinary launch is recorded; its buffers stay bound. What is measured is then the same host
work as in `opencl_peer`, so that the ratio of the two is that of the texts.
"""

import contextlib
from unittest import mock

import numpy as np

from benchmarks.peers import sarek_peer
from sarek_opencl import driver
from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram

VERSION = f"{sarek_peer.VERSION}, buffers kept"


@contextlib.contextmanager
def recorded():
    """Launches made inside are run and listed; buffers bound inside stay bound."""
    launches, buffers, launch = [], [], OpenCLProgram.launch

    def record(program, *given):
        launches.append((program, given))
        launch(program, *given)

    def keep(_driver, buffer):
        buffers.append(buffer)

    with (
        mock.patch.object(OpenCLProgram, "launch", record),
        mock.patch.object(OpenCLDriver, "unbind", keep),
    ):
        yield launches, buffers


def kept(factory):
    def prepare(inputs, outputs):
        with recorded() as (launches, buffers):
            factory(inputs, outputs)()
        cl, queue = driver.load(), sarek_peer.DEVICE.driver.queue
        written = [buffer for buffer in buffers if buffer.written]

        def run():
            for program, given in launches:
                program.launch(*given)

        @contextlib.contextmanager
        def mapped(flags):
            """The outputs belong to the host inside, as OpenCL asks."""
            views = [
                cl.enqueue_map_buffer(queue, b.memory, flags, 0, b.host.shape, np.uint8)[0]
                for b in written
            ]
            yield
            for view in views:
                view.base.release(queue)
            queue.finish()

        def get():
            with mapped(cl.map_flags.READ):
                return outputs

        def put(values):
            with mapped(cl.map_flags.READ | cl.map_flags.WRITE):
                for name, array in outputs.items():
                    np.copyto(array, values[name])

        return run, get, put

    return prepare


CONTENDERS = {name: kept(factory) for name, factory in sarek_peer.CONTENDERS.items()}
