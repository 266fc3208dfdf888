"""A small GPT: layers with their gradients, written by hand so that numpy and JAX run one text, and a training step.

The same batch, weights and update on every device give the same bits. Arrays: x is (batch, tokens, width) float32;
products are of bfloat16 with float32 sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.node.load.arithmetic import normalize, softmax
from assay.node.load.digests import sum_digest
from assay.node.load.lane import Lane

PRODUCTS = "bfloat16"
Weights = dict[str, Any]
Join = Callable[[Any], Any]
"""Adds up the parts of devices that share a layer; without sharing it changes nothing."""
RATE = 0.1
MOMENTUM = 0.9
STEP = 5  # with OFFSET, the language that is learned: each token follows from the one before
OFFSET = 7
State = dict[str, Weights]


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
    left = inputs.reshape(-1, inputs.shape[-1])
    right = outputs.reshape(-1, outputs.shape[-1])
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


def stay(array: Any) -> Any:
    """Return the array: nothing to add up where devices share no layer."""
    return array


def make_state(lane: Lane, shape: GptShape, part: Any = None) -> State:
    """Return weights from the lane's key, and no momentum. `part`: the device's number where devices share layers."""
    xp = lane.xp
    width = shape.width
    inner = shape.heads * shape.head_width
    sizes: dict[str, tuple[int, int]] = {"embed": (shape.vocabulary, width), "place": (shape.tokens, width)}
    for layer in range(shape.layers):
        sizes |= {f"qkv{layer}": (width, 3 * inner), f"out{layer}": (inner, width)}
        sizes |= {f"up{layer}": (width, shape.hidden), f"down{layer}": (shape.hidden, width)}
    sizes["head"] = (width, shape.vocabulary)
    own = lane if part is None else Lane(lane.arithmetic, lane.key + part.astype(xp.uint32) * 977, lane.fault)
    weights = {}
    for stream, (name, size) in enumerate(sizes.items()):
        source = own if is_shared_out(name) else lane
        weights[name] = source.numbers(size, stream) * xp.float32(width**-0.5)
    return {"weights": weights, "momentum": {name: xp.zeros_like(weight) for name, weight in weights.items()}}


def is_shared_out(name: str) -> bool:
    """Whether each device has a part of its own of this weight, where devices share layers."""
    return name.startswith(("qkv", "out", "up", "down"))


def make_batch(lane: Lane, shape: GptShape) -> tuple[Any, Any]:
    """Return tokens and the tokens that follow them, (batch, tokens) int32."""
    xp = lane.xp
    rows = [(lane.words(shape.batch, 99) % xp.uint32(shape.vocabulary)).astype(xp.int32)]
    for _ in range(shape.tokens):
        rows.append((rows[-1] * STEP + OFFSET) % shape.vocabulary)
    text = xp.stack(rows, axis=1)
    return text[:, :-1], text[:, 1:]


def find_gradients(lane: Lane, shape: GptShape, w: Weights, batch: tuple[Any, Any], join: Join) -> tuple[Any, Weights]:
    """Return the mean loss (natural logarithm, a token) and the gradient of each weight."""
    xp = lane.xp
    tokens, following = batch
    names = xp.arange(shape.vocabulary, dtype=xp.int32)
    chosen = (tokens[..., None] == names).astype(xp.float32)  # a product in place of scatter: its order is fixed
    x = multiply(lane, chosen, w["embed"]) + w["place"]
    kept = []
    for layer in range(shape.layers):
        x, attention = attend(lane, shape, x, w, layer, join)
        x, wide = widen(lane, x, w, layer, join)
        kept.append((attention, wide))
    normal, spread = normalize(lane, x)
    scores = multiply(lane, normal, w["head"])
    away = scores - scores.max(axis=-1, keepdims=True)
    powers = xp.exp(away)
    total = powers.sum(axis=-1, keepdims=True)
    wanted = (following[..., None] == names).astype(xp.float32)
    loss = ((xp.log(total) - away) * wanted).sum() / xp.float32(shape.batch * shape.tokens)
    to_scores = (powers / total - wanted) / xp.float32(shape.batch * shape.tokens)
    gradients = {"head": weight_gradient(lane, normal, to_scores)}
    back = normalize_back(multiply(lane, to_scores, w["head"].T), normal, spread)
    for layer in reversed(range(shape.layers)):
        back, wide_gradients = widen_back(lane, back, kept[layer][1], w, layer, join)
        back, attention_gradients = attend_back(lane, shape, back, kept[layer][0], w, layer, join)
        gradients |= wide_gradients | attention_gradients
    gradients |= {"embed": weight_gradient(lane, chosen, back), "place": back.sum(axis=0)}
    return loss, gradients


def update(lane: Lane, state: State, gradients: Weights) -> State:
    """Return the state after a step of gradient descent with momentum."""
    xp = lane.xp
    momentum = {name: old * xp.float32(MOMENTUM) + gradients[name] for name, old in state["momentum"].items()}
    weights = {name: old - momentum[name] * xp.float32(RATE) for name, old in state["weights"].items()}
    return {"weights": weights, "momentum": momentum}


def digest_weights(lane: Lane, weights: Weights, *, shared_out: bool = False) -> Any:
    """Return one digest of the weights that all devices have, or of a device's own where devices share layers."""
    xp = lane.xp
    names = [name for name in sorted(weights) if not shared_out or is_shared_out(name)]
    digests = [sum_digest(xp, weights[name]) * xp.uint32(2 * place + 1) for place, name in enumerate(names)]
    return xp.sum(xp.stack(digests), dtype=xp.uint32)
