"""The layers of a small GPT with their gradients, written by hand, so that numpy and JAX run one text.

Arrays: x is (batch, tokens, width) float32; products are of bfloat16 with float32 sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.node.load.lane import Lane
from assay.node.load.reductions import normalize, softmax

PRODUCTS = "bfloat16"
Weights = dict[str, Any]
Join = Callable[[Any], Any]
"""Adds up the parts of devices that share a layer; without sharing it changes nothing."""


@dataclass(frozen=True)
class GptShape:
    """Sizes. `heads` and `hidden` are those of one device, where devices share the layers."""

    vocabulary: int
    width: int
    layers: int
    tokens: int
    batch: int
    heads: int
    head_width: int
    hidden: int


def multiply(lane: Lane, left: Any, right: Any) -> Any:
    """Multiply in bfloat16 with sums in float32."""
    narrow = lane.arithmetic.narrow
    return lane.arithmetic.product(narrow(left, PRODUCTS), narrow(right, PRODUCTS), PRODUCTS)


def weight_gradient(lane: Lane, inputs: Any, outputs: Any) -> Any:
    """Return the gradient of a weight: both arguments are (batch, tokens, …)."""
    left, right = inputs.reshape(-1, inputs.shape[-1]), outputs.reshape(-1, outputs.shape[-1])
    return multiply(lane, left.T, right)


def normalize_back(gradient: Any, normal: Any, spread: Any) -> Any:
    """Return the gradient before `normalize`."""
    mean, along = (part.mean(axis=-1, keepdims=True) for part in (gradient, gradient * normal))
    return (gradient - mean - normal * along) * spread


def attend(lane: Lane, shape: GptShape, x: Any, w: Weights, layer: int, join: Join) -> tuple[Any, tuple[Any, ...]]:
    """Return x after attention, and what its gradient needs."""
    xp = lane.xp
    normal, spread = normalize(lane, x)
    mixed_in = multiply(lane, normal, w[f"qkv{layer}"])
    q, k, v = (_split_heads(shape, part) for part in xp.split(mixed_in, 3, axis=-1))
    seen = xp.tril(xp.ones((shape.tokens, shape.tokens), dtype=bool))
    scores = multiply(lane, q, k.swapaxes(-1, -2)) * xp.float32(shape.head_width**-0.5)
    shares = softmax(xp, xp.where(seen, scores, xp.float32(-1e9)))
    mixed = _join_heads(shape, multiply(lane, shares, v))
    return x + join(multiply(lane, mixed, w[f"out{layer}"])), (normal, spread, q, k, v, shares, mixed)


def attend_back(
    lane: Lane, shape: GptShape, gradient: Any, kept: tuple[Any, ...], w: Weights, layer: int, join: Join
) -> tuple[Any, Weights]:
    """Return the gradient before attention, and those of its weights."""
    normal, spread, q, k, v, shares, mixed = kept
    to_mixed = _split_heads(shape, multiply(lane, gradient, w[f"out{layer}"].T))
    to_shares = multiply(lane, to_mixed, v.swapaxes(-1, -2))
    inner = shares * (to_shares - (to_shares * shares).sum(axis=-1, keepdims=True))
    to_scores = inner * lane.xp.float32(shape.head_width**-0.5)
    parts = (
        multiply(lane, to_scores, k),
        multiply(lane, to_scores.swapaxes(-1, -2), q),
        multiply(lane, shares.swapaxes(-1, -2), to_mixed),
    )
    to_in = lane.xp.concatenate([_join_heads(shape, part) for part in parts], axis=-1)
    back = join(multiply(lane, to_in, w[f"qkv{layer}"].T))
    gradients = {
        f"out{layer}": weight_gradient(lane, mixed, gradient),
        f"qkv{layer}": weight_gradient(lane, normal, to_in),
    }
    return gradient + normalize_back(back, normal, spread), gradients


def widen(lane: Lane, x: Any, w: Weights, layer: int, join: Join) -> tuple[Any, tuple[Any, ...]]:
    """Return x after the two wide products. The planted fault is in the float32 sums of the first."""
    normal, spread = normalize(lane, x)
    hidden = lane.spoil(multiply(lane, normal, w[f"up{layer}"]))
    gate = 1 / (1 + lane.xp.exp(-hidden))
    active = hidden * gate
    return x + join(multiply(lane, active, w[f"down{layer}"])), (normal, spread, hidden, gate, active)


def widen_back(
    lane: Lane, gradient: Any, kept: tuple[Any, ...], w: Weights, layer: int, join: Join
) -> tuple[Any, Weights]:
    """Return the gradient before the wide products, and those of their weights."""
    normal, spread, hidden, gate, active = kept
    to_hidden = multiply(lane, gradient, w[f"down{layer}"].T) * (gate * (1 + hidden * (1 - gate)))
    back = join(multiply(lane, to_hidden, w[f"up{layer}"].T))
    gradients = {
        f"down{layer}": weight_gradient(lane, active, gradient),
        f"up{layer}": weight_gradient(lane, normal, to_hidden),
    }
    return gradient + normalize_back(back, normal, spread), gradients


def _split_heads(shape: GptShape, x: Any) -> Any:
    return x.reshape(shape.batch, shape.tokens, shape.heads, shape.head_width).swapaxes(1, 2)


def _join_heads(shape: GptShape, x: Any) -> Any:
    return x.swapaxes(1, 2).reshape(shape.batch, shape.tokens, shape.heads * shape.head_width)
