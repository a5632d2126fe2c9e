"""The names of all methods, without the methods themselves, which take long to import."""

from __future__ import annotations

from typing import Literal, get_args

Method = Literal[
    "ran",
    "distance",
    "self_diffusion",
    "pagerank",
    "manifold",
    "transduction",
    "lcdp",
    "tensor",
    "k_reciprocal",
    "lhrr",
    "query_expansion",
]
METHODS: tuple[Method, ...] = get_args(Method)
