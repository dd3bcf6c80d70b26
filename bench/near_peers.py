"""The peers of bench.near, one at a time, in the environment of .ci/peers.txt.

    python -m bench.near_peers NAME ENTRIES

Prints the seconds that the clustering took and the cluster of each row. Settings are those that each does
best with on these texts: rapidfuzz `cdist` with `token_sort_ratio` of 85 on two cores, MinHash of words with
a Jaccard threshold of 0.5 for the other two.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import sys
import time
from collections import defaultdict

from bench.near import groups_of, joined, rows

CUT, JACCARD, PERM = 85, 0.5, 128


def _linked(count, pairs):
    roots = list(range(count))

    def root(at):
        while roots[at] != at:
            roots[at] = roots[roots[at]]
            at = roots[at]
        return at

    for a, b in pairs:
        roots[root(a)] = root(b)
    return [root(at) for at in range(count)]


def _blocks(groups):
    blocks = defaultdict(list)
    for at, (surface, _) in enumerate(groups):
        blocks[surface].append(at)
    return blocks.values()


def rapidfuzz(groups):
    import numpy
    from rapidfuzz import fuzz, process

    for block in _blocks(groups):
        texts = [groups[at][1] for at in block]
        alike = process.cdist(
            texts, texts, scorer=fuzz.token_sort_ratio, score_cutoff=CUT, workers=2, dtype=numpy.uint8
        )
        for a, b in zip(*numpy.nonzero(alike), strict=True):
            if a < b:
                yield block[a], block[b]


def datasketch(groups):
    from datasketch import MinHash, MinHashLSH

    for block in _blocks(groups):
        index = MinHashLSH(threshold=JACCARD, num_perm=PERM)
        for at in block:
            sketch = MinHash(num_perm=PERM)
            sketch.update_batch([word.encode() for word in groups[at][1].split()])
            yield from ((at, other) for other in index.query(sketch))
            index.insert(at, sketch)


def rensa(groups):
    from rensa import RMinHash, RMinHashLSH

    for block in _blocks(groups):
        index = RMinHashLSH(threshold=JACCARD, num_perm=PERM, num_bands=32)
        for at in block:
            sketch = RMinHash(num_perm=PERM, seed=1)
            sketch.update(groups[at][1].split())
            yield from ((at, other) for other in index.query(sketch))
            index.insert(at, sketch)


def main() -> None:
    made = rows(int(sys.argv[2]))
    groups = groups_of(made)
    started, cpu = time.perf_counter(), time.process_time()
    roots = _linked(len(groups), globals()[sys.argv[1]](groups))
    taken, cpu = time.perf_counter() - started, time.process_time() - cpu
    labels = joined(made, dict(zip(groups, roots, strict=True)))
    print(json.dumps({"seconds": taken, "cpu": cpu, "labels": labels}))


if __name__ == "__main__":
    main()
