"""One training step of the small GPT: the same batch, weights and update on every device give the same bits."""

from __future__ import annotations

from typing import Any

from assay.node.load.digests import sum_digest
from assay.node.load.gpt_layers import (
    GptShape,
    Join,
    Weights,
    attend,
    attend_back,
    multiply,
    normalize_back,
    weight_gradient,
    widen,
    widen_back,
)
from assay.node.load.lane import Lane
from assay.node.load.reductions import normalize

RATE, MOMENTUM = 0.1, 0.9
STEP, OFFSET = 5, 7  # the language that is learned: each token follows from the one before
State = dict[str, Weights]


def stay(array: Any) -> Any:
    """Return the array: nothing to add up where devices share no layer."""
    return array


def make_state(lane: Lane, shape: GptShape, part: Any = None) -> State:
    """Return weights from the lane's key, and no momentum. `part`: the device's number where devices share layers."""
    xp, width = lane.xp, shape.width
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
    xp, (tokens, following) = lane.xp, batch
    names = xp.arange(shape.vocabulary, dtype=xp.int32)
    chosen = (tokens[..., None] == names).astype(xp.float32)  # a product in place of scatter: its order is fixed
    x, kept = multiply(lane, chosen, w["embed"]) + w["place"], []
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
