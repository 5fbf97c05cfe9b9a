"""kernels.cl on whichever OpenCL platform BENCH_OPENCL (a regular expression) names.

Buffers wrap the harness's page-aligned arrays (CL_MEM_USE_HOST_PTR), which is zero-copy on a CPU
device, so all peers work on the same kind of memory.  No build options: contraction is on, as
OpenCL has it by default.
"""

import os
import re
from pathlib import Path

import numpy as np
import pyopencl as cl

f32, i32, u32 = np.float32, np.int32, np.uint32


def _device():
    found = [
        (f"{p.name} {p.version}", d)
        for p in cl.get_platforms()
        for d in p.get_devices(cl.device_type.CPU)
    ]
    for name, device in found:
        if re.search(os.environ.get("BENCH_OPENCL", "."), name):
            return name, device
    raise RuntimeError("no such OpenCL platform; found: " + "; ".join(name for name, _ in found))


VERSION, DEVICE = _device()
CONTEXT = cl.Context([DEVICE])
QUEUE = cl.CommandQueue(CONTEXT)
EXACT = "#pragma OPENCL FP_CONTRACT OFF\n" if os.environ.get("BENCH_EXACT") else ""
PROGRAM = cl.Program(CONTEXT, EXACT + (Path(__file__).parent / "kernels.cl").read_text()).build()
LINE, SQUARE = (256,), (16, 16)


def wrap(a, output=False):
    flags = cl.mem_flags.READ_WRITE if output else cl.mem_flags.READ_ONLY
    return cl.Buffer(CONTEXT, flags | cl.mem_flags.USE_HOST_PTR, hostbuf=a)


def scratch(n, dtype):
    return cl.Buffer(CONTEXT, cl.mem_flags.READ_WRITE, n * np.dtype(dtype).itemsize)


def launcher(name, *args):
    """The kernel with its arguments bound and kept alive; the call enqueues it."""
    k = cl.Kernel(PROGRAM, name)
    k.set_args(*args)

    def launch(items, group, keep=args):
        cl.enqueue_nd_range_kernel(QUEUE, k, items, group)

    return launch


def job(run, o, bufs):
    """(run, get, put) with the outputs mapped while the host looks at them, as OpenCL asks."""

    def mapped(name, flags, act):
        view, _ = cl.enqueue_map_buffer(QUEUE, bufs[name], flags, 0, o[name].shape, o[name].dtype)
        act(view)
        del view
        QUEUE.finish()

    def get():
        for name in o:
            mapped(name, cl.map_flags.READ, lambda view: None)
        return o

    def put(values):
        for name in o:
            mapped(name, cl.map_flags.WRITE, lambda view, new=values[name]: np.copyto(view, new))

    return run, get, put


def simple(name, args, items, group=LINE):
    """One launch.  `args`: names of inputs and outputs, or functions of (i, o) giving a scalar."""

    def factory(i, o):
        bufs = {k: wrap(v) for k, v in i.items() if isinstance(v, np.ndarray)}
        bufs.update({k: wrap(v, True) for k, v in o.items()})
        launch = launcher(name, *(bufs[a] if isinstance(a, str) else a(i, o) for a in args))
        count = items(i, o)

        def run():
            launch(count, group)
            QUEUE.finish()

        return job(run, o, bufs)

    return factory


def flat(name):
    return lambda i, o: (o[name].size,)


def grid(name):
    return lambda i, o: o[name].shape[::-1]


def scalar(name, kind=f32):
    return lambda i, o: kind(i[name])


def width(name):
    return lambda i, o: u32(o[name].shape[-1])


def reduction(kernel, names, final):
    def factory(i, o):
        out, partial, groups = wrap(o["s"], True), scratch(256, f32), 256
        first = launcher(kernel, *(wrap(i[n]) for n in names), partial, u32(i["x"].size))
        last = launcher(final, partial, out, u32(groups))

        def run():
            first((groups * 256,), LINE)
            last(LINE, LINE)
            QUEUE.finish()

        return job(run, o, {"s": out})

    return factory


def scan(i, o):
    x, y, launches, keep = wrap(i["x"]), wrap(o["y"], True), [], []

    def level(src, dst, n):
        groups = -(-n // 2048)
        total, total_scanned = scratch(groups, i32), scratch(groups, i32)
        keep.extend((total, total_scanned))
        launches.append((launcher("scan_block", src, dst, total, u32(n)), (groups * 256,), LINE))
        if groups > 1:
            level(total, total_scanned, groups)
            launches.append((launcher("scan_add", dst, total_scanned), (n,), None))

    level(x, y, i["x"].size)

    def run():
        for launch, items, group in launches:
            launch(items, group)
        QUEUE.finish()

    return job(run, o, {"y": y})


def histogram(i, o):
    x, bins = wrap(i["x"]), wrap(o["bins"], True)
    launch = launcher("histogram", x, bins, u32(i["x"].size))

    def run():
        cl.enqueue_fill_buffer(QUEUE, bins, i32(0), 0, 1024)
        launch((64 * 256,), LINE)
        QUEUE.finish()

    return job(run, o, {"bins": bins})


def bitonic_sort(i, o):
    x, y, n, launches = wrap(i["x"]), wrap(o["y"], True), i["x"].size, []
    launches.append(launcher("bitonic_local", y, u32(2), u32(512)))
    k = 1024
    while k <= n:
        j = k >> 1
        while j >= 512:
            launches.append(launcher("bitonic_global", y, u32(k), u32(j)))
            j >>= 1
        launches.append(launcher("bitonic_local", y, u32(k), u32(k)))
        k <<= 1

    def run():
        cl.enqueue_copy(QUEUE, y, x)
        for launch in launches:
            launch((n // 2,), LINE)
        QUEUE.finish()

    return job(run, o, {"y": y})


CONTENDERS = {
    "vector_add": simple("vector_add", ("a", "b", "c"), flat("c")),
    "triad": simple("triad", ("a", "b", scalar("s"), "c"), flat("c")),
    "saxpy": simple("saxpy", (scalar("a"), "x", "y"), flat("y")),
    "dot": reduction("reduce_dot", "xy", "reduce_sum"),
    "reduction_sum": reduction("reduce_sum", "x", "reduce_sum"),
    "reduction_max": reduction("reduce_max", "x", "reduce_max"),
    "scan": scan,
    "transpose_naive": simple("transpose_naive", ("a", "b", width("b")), grid("b"), SQUARE),
    "transpose_tiled": simple("transpose_tiled", ("a", "b", width("b")), grid("b"), SQUARE),
    "matmul_naive": simple("matmul_naive", ("a", "b", "c", width("c")), grid("c"), SQUARE),
    "matmul_tiled": simple("matmul_tiled", ("a", "b", "c", width("c")), grid("c"), SQUARE),
    "mandelbrot": simple(
        "mandelbrot",
        (scalar("x0"), scalar("y0"), scalar("step"), scalar("limit", i32), "it", width("it")),
        grid("it"),
        SQUARE,
    ),
    "nbody": simple(
        "nbody",
        ("pos", scalar("eps2"), "acc", lambda i, o: u32(len(i["pos"]))),
        lambda i, o: (len(i["pos"]),),
    ),
    "black_scholes": simple(
        "black_scholes",
        ("spot", "strike", "years", scalar("rate"), scalar("vol"), "call", "put"),
        flat("call"),
    ),
    "monte_carlo": simple("monte_carlo", ("seed", scalar("draws", i32), "hits"), flat("hits")),
    "collatz": simple("collatz", ("steps",), flat("steps")),
    "sha_mix": simple("sha_mix", ("x", "h"), flat("h")),
    "conv2d": simple("conv2d", ("u", "k", "v", width("v")), grid("v"), SQUARE),
    "stencil2d": simple(
        "stencil2d", ("u", scalar("c0"), scalar("c1"), "v", width("v")), grid("v"), SQUARE
    ),
    "histogram": histogram,
    "gather": simple("gather", ("x", "idx", "y"), flat("y")),
    "scatter": simple("scatter", ("x", "idx", "y"), flat("y")),
    "bitonic_sort": bitonic_sort,
    "spmv": simple("spmv", ("ptr", "col", "val", "x", "y"), flat("y")),
    "kmeans": simple(
        "kmeans", ("p", "cent", "label", lambda i, o: u32(i["p"].shape[1])), flat("label")
    ),
}
