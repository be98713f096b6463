"""The forward pass of a BERT encoder in numpy, mean-pooled to unit vectors.

Devlin et al. 2018, post-norm. All matrices are stored transposed and contiguous, so that each
layer is four plain products; the attention scale is folded into the query weights at load.
A model is read-only after construction: any number of threads may run it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pillion.embedders.weights import dequantize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pillion.embedders.weights import Weights

    Floats = NDArray[np.float32]

_MASKED = np.float32(-1e9)
"""Added to the attention score of padding: exp() of it is exactly 0 in float32."""


@dataclass(frozen=True, slots=True)
class _Norm:
    gain: Floats
    bias: Floats
    epsilon: np.float32

    def __call__(self, x: Floats) -> Floats:
        """Layer normalisation over the last axis, in place."""
        x -= x.mean(-1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[-1])
        x /= np.sqrt(variance + self.epsilon)
        x *= self.gain
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: Floats  # (inputs, outputs)
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y: Floats = x @ self.weight
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class _Layer:
    query_key_value: _Linear
    attention_out: _Linear
    attention_norm: _Norm
    feed_in: _Linear
    feed_out: _Linear
    feed_norm: _Norm


class BertEncoder:
    """The network of one checked weights file. Word rows stay 4-bit and memory-mapped."""

    def __init__(self, weights: Weights) -> None:
        g = weights.geometry
        self.geometry = g
        self._words = weights.packed_rows("emb.word", g.vocabulary)
        self._positions = (
            weights.tensor("emb.pos", g.positions_max, g.dimension)
            + weights.tensor("emb.type", g.token_types, g.dimension)[0]
        )
        self._input_norm = _norm(weights, "emb.ln")
        self._layers = [_layer(weights, f"l{i}.") for i in range(g.layers)]

    def __call__(self, tokens: NDArray[np.int64], mask: NDArray[np.bool_]) -> Floats:
        """Unit vectors (batch, dimension) of tokens (batch, length); False masks padding out."""
        batch, length = tokens.shape
        dimension, heads = self.geometry.dimension, self.geometry.heads
        x = self._input_norm(
            (self._embed(tokens) + self._positions[:length]).reshape(-1, dimension)
        )
        penalty = None
        if not mask.all():
            penalty = np.where(mask, np.float32(0), _MASKED)[:, None, None, :]
        for layer in self._layers:
            split = (batch, length, 3, heads, dimension // heads)
            query, key, value = layer.query_key_value(x).reshape(split).transpose(2, 0, 3, 1, 4)
            scores = query @ key.transpose(0, 1, 3, 2)
            if penalty is not None:
                scores += penalty
            attended = _softmax(scores) @ value
            y = layer.attention_out(attended.transpose(0, 2, 1, 3).reshape(-1, dimension))
            y += x
            x = layer.attention_norm(y)
            y = layer.feed_out(_gelu(layer.feed_in(x)))
            y += x
            x = layer.feed_norm(y)
        kept = mask[..., None].astype(np.float32)
        pooled = (x.reshape(batch, length, dimension) * kept).sum(1) / kept.sum(1)
        unit: Floats = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def _embed(self, tokens: NDArray[np.int64]) -> Floats:
        unique, inverse = np.unique(tokens, return_inverse=True)
        rows = dequantize(np.asarray(self._words[unique])).reshape(len(unique), -1)
        return rows[inverse.reshape(tokens.shape)]


def _norm(weights: Weights, name: str) -> _Norm:
    g = weights.geometry
    return _Norm(
        weights.tensor(f"{name}.w", g.dimension),
        weights.tensor(f"{name}.b", g.dimension),
        np.float32(g.norm_epsilon),
    )


def _linear(weights: Weights, name: str, inputs: int, outputs: int) -> _Linear:
    matrix = weights.tensor(f"{name}.w", outputs, inputs)
    return _Linear(np.ascontiguousarray(matrix.T), weights.tensor(f"{name}.b", outputs))


def _layer(weights: Weights, prefix: str) -> _Layer:
    g = weights.geometry
    d = g.dimension
    parts = [_linear(weights, prefix + name, d, d) for name in "qkv"]
    scale = np.float32((d // g.heads) ** -0.5)
    parts[0] = _Linear(parts[0].weight * scale, parts[0].bias * scale)
    joined = _Linear(
        np.ascontiguousarray(np.concatenate([p.weight for p in parts], axis=1)),
        np.concatenate([p.bias for p in parts]),
    )
    return _Layer(
        query_key_value=joined,
        attention_out=_linear(weights, f"{prefix}ao", d, d),
        attention_norm=_norm(weights, f"{prefix}aln"),
        feed_in=_linear(weights, f"{prefix}fi", d, g.feed_forward),
        feed_out=_linear(weights, f"{prefix}fo", g.feed_forward, d),
        feed_norm=_norm(weights, f"{prefix}oln"),
    )


def _softmax(scores: Floats) -> Floats:
    """Softmax over the last axis, in place."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


_ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ERF_SLOPE = 0.3275911


def _gelu(x: Floats) -> Floats:
    """X * Phi(x), exact to 2e-7 (erf by Abramowitz & Stegun 7.1.26). numpy itself has no erf."""
    z = np.abs(x)
    z *= np.float32(0.5**0.5)
    t = z * np.float32(_ERF_SLOPE)
    t += 1
    np.reciprocal(t, out=t)
    erf = t * np.float32(_ERF_COEFFICIENTS[0])
    for coefficient in _ERF_COEFFICIENTS[1:]:
        erf += np.float32(coefficient)
        erf *= t
    z *= z
    np.negative(z, out=z)
    erf *= np.exp(z, out=z)
    np.subtract(1, erf, out=erf)
    np.copysign(erf, x, out=erf)
    erf += 1
    erf *= x
    erf *= np.float32(0.5)
    return erf
