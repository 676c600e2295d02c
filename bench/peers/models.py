"""The models of bench/common/configs.hpp that are not multilayer perceptrons, in PyTorch."""


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))  # fmt: skip


def gpt(torch, layers=4, width=128, heads=4, positions=128, vocabulary=128):
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            rows = x.shape[0]
            q, k, v = self.qkv(x).view(rows, positions, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(rows, positions, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.Sequential(nn.LayerNorm(width), Attention())
            self.perceptron = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(x)
            return x + self.perceptron(x)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.token(tokens) + self.position.weight))).flatten(0, 1)

    return Gpt()


MODELS = {"lenet": lenet, "gpt": gpt}
SHAPES = {"lenet": (1, 28, 28), "gpt": (128,)}  # of a sample
TOKENS = ("gpt",)  # models whose samples are tokens, with a target for each of them
