#!/usr/bin/env python3
"""Records the losses of a small transformer in PyTorch. Its first block has PyTorch's MultiheadAttention, its second one has keys that heads
share, and rotary positions.

    pip install torch numpy
    python3 tests/parity/make_gpt.py        writes gpt_losses.csv beside itself

Formulas give the tokens and the initial parameters, so that no file is needed for them. The tests read the losses and need no PyTorch.
"""
import pathlib

import torch
from make_images import Residual, set_parameters

HERE = pathlib.Path(__file__).resolve().parent
BATCH, STEPS, RATE = 8, 100, 0.05
POSITIONS, VOCABULARY, WIDTH, HEADS, KEY_HEADS = 12, 18, 16, 4, 2


class Positions(torch.nn.Embedding):
    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class Attention(torch.nn.MultiheadAttention):
    def forward(self, x):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return super().forward(x, x, x, need_weights=False, attn_mask=mask, is_causal=True)[0]


class RotaryAttention(torch.nn.Module):
    """Tensors as in MultiheadAttention, with fewer heads of keys and values."""

    def __init__(self):
        super().__init__()
        self.head = WIDTH // HEADS
        row = (HEADS + 2 * KEY_HEADS) * self.head
        self.in_proj_weight, self.in_proj_bias = torch.nn.Parameter(torch.empty(row, WIDTH)), torch.nn.Parameter(torch.empty(row))
        self.out_proj = torch.nn.Linear(WIDTH, WIDTH)

    def rotate(self, x):
        half = self.head // 2
        rates = 10000 ** (-2 * torch.arange(half, dtype=torch.float64) / self.head)
        angles = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * rates
        cosine, sine = angles.cos().float(), angles.sin().float()
        first, second = x[..., :half], x[..., half:]
        return torch.cat((first * cosine - second * sine, first * sine + second * cosine), -1)

    def forward(self, x):
        rows, positions, _ = x.shape
        projected = torch.nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        queries, keys, values = projected.split([WIDTH, KEY_HEADS * self.head, KEY_HEADS * self.head], -1)
        queries, keys, values = (part.view(rows, positions, -1, self.head).transpose(1, 2) for part in (queries, keys, values))
        keys, values = (part.repeat_interleave(HEADS // KEY_HEADS, 1) for part in (self.rotate(keys), values))
        y = torch.nn.functional.scaled_dot_product_attention(self.rotate(queries), keys, values, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(rows, positions, WIDTH))


def block(attention):
    nn = torch.nn
    return (
        Residual(nn.LayerNorm(WIDTH), attention),
        Residual(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)),
    )


def main():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Embedding(VOCABULARY, WIDTH), Positions(POSITIONS, WIDTH), *block(Attention(WIDTH, HEADS, batch_first=True)),
        *block(RotaryAttention()), torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY))  # fmt: skip
    set_parameters(model)
    numbers = torch.arange(BATCH * STEPS * POSITIONS)
    x = (numbers * numbers % 7919 % VOCABULARY).view(-1, POSITIONS)
    y = (x + numbers.view(-1, POSITIONS) % POSITIONS) % VOCABULARY
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    with open(HERE / "gpt_losses.csv", "w") as file:
        file.write("step,loss\n")
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[rows]).flatten(0, 1), y[rows].flatten())
            loss.backward()
            optimizer.step()
            file.write(f"{step},{loss.item():.9g}\n")


if __name__ == "__main__":
    main()
