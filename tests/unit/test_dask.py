"""A sharded k-means on a Dask cluster of processes, as `docs/dask.md` has it."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from tests.unit.realize_kit import N, floats, scale

distributed = pytest.importorskip("dask.distributed")

DOCUMENT = Path(__file__).parents[2] / "docs" / "dask.md"
DEVICES = ["native", "opencl"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers in processes of their own, with one folder for the cache."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAREK_CACHE", "1")
        patch.setenv("SAREK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with (
            distributed.LocalCluster(processes=True, **options) as made,
            distributed.Client(made) as client,
        ):
            client.wait_for_workers(2)
            patch.undo()  # for the workers alone
            yield client


def example() -> dict[str, Any]:
    """The names that the document defines; nothing of it runs."""
    code = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    file = "<dask.md>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "the example of a document"}
    exec(compile(code, file, "exec", dont_inherit=True), names)
    return names


def lloyd(points, centres, rounds):
    """k-means of NumPy, with the same rounding: sums of whole numbers are exact."""
    for _ in range(rounds):
        distances = sum((points[:, None, j] - centres[None, :, j]) ** 2 for j in range(2))
        nearest = distances.argmin(1)
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.stack(
            [np.bincount(nearest, points[:, j], len(centres)) for j in range(2)], 1
        ).astype(np.float32)
        means = sums / np.maximum(counts, 1)[:, None].astype(np.int32)
        centres = np.where(counts[:, None] > 0, means, centres).astype(np.float32)
    return centres


def counters() -> dict[str, int]:
    """On a worker: what it did until now."""
    from sarek_numba import execute

    found = execute.counters
    names = ("launches", "compiles", "disk_hits", "disk_writes")
    return {name: getattr(found, name) for name in names}


def done_since(cluster, before):
    """What each worker did, in the order of their names."""
    now = cluster.run(counters)
    return [{k: now[w][k] - before[w][k] for k in now[w]} for w in sorted(now)]


def test_k_means(cluster):
    """The centres are NumPy's; every worker launches on its device, once a round."""
    names = example()
    generator = np.random.default_rng(2)
    points = generator.integers(-50, 50, (2001, 2)).astype(np.float32)
    centres, rounds = points[:4].copy(), 5
    before = cluster.run(counters)
    found = names["k_means"](cluster, points, centres, DEVICES, rounds)
    assert np.allclose(found, lloyd(points, centres, rounds), rtol=1e-6)
    assert [each["launches"] for each in done_since(cluster, before)] == [rounds] * len(DEVICES)


def test_the_example_is_a_program(capsys):
    """With a cluster of its own; it prints what the document says."""
    example()["main"]()
    (said,) = re.findall(r"print\(.*# (.*)", DOCUMENT.read_text())
    assert capsys.readouterr().out.strip() == said


def keeps(part):
    """On a worker: where its points are."""
    points, device = part
    return points.is_current(device), sarek.device(device).name, points.shape


def test_parts_stay_on_the_devices_of_their_workers(cluster):
    """As vectors, which are not sent again."""
    names = example()
    workers = sorted(cluster.nthreads())
    points = np.arange(20, dtype=np.float32).reshape(10, 2)
    parts = [
        cluster.submit(names["keep"], points[5 * k : 5 * k + 5], device, workers=[worker])
        for k, (device, worker) in enumerate(zip(DEVICES, workers, strict=True))
    ]
    found = cluster.gather([cluster.submit(keeps, part) for part in parts])
    assert found == [(True, sarek.device(d).name, (5, 2)) for d in DEVICES]
    placed = cluster.who_has(parts)
    assert [list(placed[part.key]) for part in parts] == [[worker] for worker in workers]
    back = [np.asarray(vector) for vector, _ in cluster.gather(parts)]
    assert np.array_equal(np.concatenate(back), points)


def launched_on(kernel, x):
    """On a worker: what a kernel makes of x."""
    with sarek.use_device("native"):
        kernel[4, 16](x, x, N, 2.0)
    return x


def test_workers_share_the_cache_on_disk(cluster):
    """What the first one compiled the second one finds: it compiles nothing."""

    @sarek.kernel
    def shared(out, x, n, a):  # no other test has its like
        i = sarek.global_idx.x
        if i < n:
            out[i] = (x[i] + 7) * a

    before = cluster.run(counters)
    for worker in sorted(before):
        task = cluster.submit(launched_on, shared, floats(), workers=[worker], pure=False)
        assert np.array_equal(task.result(), 2 * (np.arange(N) + 7))
    first, second = done_since(cluster, before)
    assert first == {"launches": 1, "compiles": 1, "disk_hits": 0, "disk_writes": 2}
    assert second == {"launches": 1, "compiles": 0, "disk_hits": 2, "disk_writes": 0}


def replayed(graph, x):
    """On a worker: what a graph makes of x."""
    graph.replay(x=x)
    return graph.inputs["out"].captured


def stepped(step, vectors):
    """On a worker: what a function of `sarek.jit` gives, and how many graphs it has then."""
    return [np.asarray(step(vector)) for vector in vectors], len(step.graphs)


def test_graphs_and_jitted_functions_go_to_workers(cluster):
    """With their kernels; what they give comes back as vectors."""
    out, x = sarek.zeros(N, np.float32), floats()
    with sarek.capture() as g:
        scale[4, 16](out, x, N, 3.0)
    tasks = [cluster.submit(replayed, g, floats(k), pure=False) for k in range(4)]
    for k, vector in enumerate(cluster.gather(tasks)):
        assert np.array_equal(vector, 3 * (k + np.arange(N)))
    assert not np.asarray(out).any()

    @sarek.jit
    def step(x):
        made = sarek.empty(N, np.float32)
        scale[4, 16](made, x, N, 2.0)
        return made

    arrays, graphs = cluster.submit(stepped, step, [floats(k) for k in range(3)]).result()
    assert graphs == 1
    for k, array in enumerate(arrays):
        assert np.array_equal(array, 2 * (k + np.arange(N)))


def test_errors_of_workers_come_back(cluster):
    """As what they are, with their text."""
    names = example()
    part = cluster.submit(names["keep"], np.ones((2, 2), np.float32), "cuba")
    with pytest.raises(sarek.UnknownDevice, match="no device is named 'cuba'"):
        part.result()
