"""Who is measured: names, packages as published, and what a reader must know about each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Every driver reads the vectors with it, and some products are slower without.
NUMPY: Final = "numpy>=2,<3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A product, or one way of it.

    Attributes:
        name: In options and runs.
        title: In tables.
        driver: Its file in drivers/.
        packages: What is installed for it; empty: it is ours, and runs in this environment.
        keeps: Where memories are when the process ends.
        how: How it finds them at its defaults.
        at_least: How many times as long as ours its search should take; None: no target.
        at_our_recall: Its effort is raised until its recall is ours.
        memories_max: Beyond so many it would take longer to fill than a run may take.
    """

    name: str
    title: str
    driver: str
    packages: tuple[str, ...] = ()
    keeps: str
    how: str
    at_least: float | None = None
    at_our_recall: bool = False
    memories_max: int | None = None


OURS: Final = "pillion"
LANGGRAPH: Final = ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2")

# Those that take rows one by one and have no target are measured up to here.
ONE_BY_ONE_MAX: Final = 20_000

ENTRIES: Final = (
    Entry(
        name=OURS,
        title="Pillion, in process",
        driver="pillion_service.py",
        keeps="disk, encrypted",
        how="scan",
    ),
    Entry(
        name="pillion_table",
        title="Pillion's ranker alone",
        driver="pillion_table.py",
        keeps="memory",
        how="scan",
    ),
    Entry(
        name="hnswlib",
        title="hnswlib alone, at our recall",
        driver="hnsw_alone.py",
        packages=("hnswlib==0.8.0",),
        keeps="memory, no texts",
        how="HNSW",
        at_least=1.0,
        at_our_recall=True,
    ),
    Entry(
        name="chroma",
        title="Chroma",
        driver="chroma_local.py",
        packages=("chromadb==1.5.9",),
        keeps="disk",
        how="HNSW",
        at_least=10.0,
    ),
    Entry(
        name="lancedb",
        title="LanceDB",
        driver="lance_local.py",
        packages=("lancedb==0.40.0",),
        keeps="disk",
        how="scan",
        at_least=10.0,
    ),
    Entry(
        name="qdrant",
        title="Qdrant, local mode",
        driver="qdrant_local.py",
        packages=("qdrant-client==1.20.0",),
        keeps="disk",
        how="scan",
        at_least=10.0,
    ),
    Entry(
        name="langgraph_memory",
        title="LangGraph InMemoryStore",
        driver="langgraph_memory.py",
        packages=LANGGRAPH,
        keeps="memory",
        how="scan",
        at_least=10.0,
    ),
    Entry(
        name="langgraph_sqlite",
        title="LangGraph SqliteStore",
        driver="langgraph_sqlite.py",
        packages=(*LANGGRAPH, "pysqlite3-binary==0.5.4.post2"),
        keeps="disk",
        how="scan",
        at_least=10.0,
    ),
    Entry(
        name="mem0",
        title="mem0, infer=False",
        driver="mem0_local.py",
        packages=("mem0ai==2.2.1",),
        keeps="disk",
        how="scan (Qdrant, local)",
        at_least=10.0,
    ),
    Entry(
        name="agentkv",
        title="AgentKV",
        driver="agentkv_local.py",
        packages=("agentkv==0.9.1",),
        keeps="disk",
        how="HNSW",
        memories_max=ONE_BY_ONE_MAX,
    ),
    Entry(
        name="yantrikdb",
        title="YantrikDB",
        driver="yantrik_local.py",
        packages=("yantrikdb==0.23.2",),
        keeps="disk",
        how="HNSW",
        memories_max=ONE_BY_ONE_MAX,
    ),
)
