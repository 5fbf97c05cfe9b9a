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


@pytest.fixture
def cluster(disk_cache, monkeypatch):
    """Two workers in processes of their own, with one folder for the cache."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as made,
        distributed.Client(made) as client,
    ):
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


def counters() -> dict[str, Any]:
    """On a worker: what it did, and where."""
    from sarek_numba import execute

    found = execute.counters
    names = ("launches", "compiles", "disk_hits", "disk_writes")
    return {name: getattr(found, name) for name in names}


def test_k_means(cluster):
    """The centres are NumPy's; every worker launches on its device, once a round."""
    names = example()
    generator = np.random.default_rng(2)
    points = generator.integers(-50, 50, (2001, 2)).astype(np.float32)
    centres, rounds = points[:4].copy(), 5
    found = names["k_means"](cluster, points, centres, DEVICES, rounds)
    assert np.allclose(found, lloyd(points, centres, rounds), rtol=1e-6)
    done = cluster.run(counters)
    assert [each["launches"] for each in done.values()] == [rounds] * len(DEVICES)


def keeps(part):
    """On a worker: where its points are."""
    points, device = part
    return points.is_current(device), sarek.device(device).name, points.shape


def test_parts_stay_on_the_devices_of_their_workers(cluster):
    """As vectors, which are not sent again."""
    names = example()
    workers = sorted(cluster.scheduler_info()["workers"])
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


def test_workers_share_the_cache_on_disk(cluster, disk_cache):
    """What the first one compiled the second one finds: it compiles nothing."""
    names = example()
    first, second = sorted(cluster.scheduler_info()["workers"])
    points, centres = np.ones((8, 2), np.float32), np.zeros((2, 2), np.float32)
    results = []
    for worker in (first, second):
        part = cluster.submit(names["keep"], points, "native", workers=[worker], pure=False)
        task = cluster.submit(names["sums_of"], part, centres, workers=[worker], pure=False)
        results.append(task.result())
    assert np.array_equal(results[0][0], results[1][0])
    done = cluster.run(counters)
    assert done[first]["compiles"] > 0
    assert done[first]["disk_writes"] > 0
    assert done[second]["compiles"] == 0
    assert done[second]["disk_hits"] > 0
    assert done[second]["launches"] == done[first]["launches"] == 1
    assert any(disk_cache.rglob("*"))


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
