"""The models of bench/common/configs.hpp that are not multilayer perceptrons, in PyTorch. Their parameters have the same names there."""


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))  # fmt: skip


def resnet(torch):
    nn = torch.nn

    class Residual(nn.Sequential):
        def forward(self, x):
            return x + super().forward(x)

    class Sum(nn.ModuleList):
        def forward(self, x):
            return sum(branch(x) for branch in self)

    def convolution(inputs, outputs, stride):
        return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)

    def block(inputs, outputs, stride):
        norms = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        return convolution(inputs, outputs, stride), norms[0], nn.ReLU(), convolution(outputs, outputs, 1), norms[1]

    def wider(inputs, outputs):
        return Sum((nn.Sequential(*block(inputs, outputs, 2)), nn.Conv2d(inputs, outputs, 1, 2, bias=False)))

    return nn.Sequential(
        convolution(1, 16, 1), nn.BatchNorm2d(16), nn.ReLU(), Residual(*block(16, 16, 1)), nn.ReLU(), wider(16, 32), nn.ReLU(),
        wider(32, 64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))  # fmt: skip


def gpt(torch, layers=4, width=128, heads=4, positions=128, vocabulary=128):
    nn = torch.nn

    class Residual(nn.Sequential):
        def forward(self, x):
            return x + super().forward(x)

    class Positions(nn.Embedding):
        def forward(self, x):
            return x + self.weight

    class Attention(nn.Module):
        """Has the parameters of nn.MultiheadAttention, which is slower on a CPU."""

        def __init__(self):
            super().__init__()
            self.in_proj_weight, self.in_proj_bias = nn.Parameter(torch.empty(3 * width, width)), nn.Parameter(torch.zeros(3 * width))
            self.out_proj = nn.Linear(width, width)
            nn.init.xavier_uniform_(self.in_proj_weight)

        def forward(self, x):
            rows = x.shape[0]
            projected = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
            q, k, v = projected.view(rows, positions, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out_proj(y.transpose(1, 2).reshape(rows, positions, width))

    class Logits(nn.Linear):
        def forward(self, x):
            return super().forward(x).flatten(0, 1)

    def block():
        return nn.Sequential(
            Residual(nn.LayerNorm(width), Attention()),
            Residual(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)))  # fmt: skip

    return nn.Sequential(
        nn.Embedding(vocabulary, width), Positions(positions, width), nn.Sequential(*[block() for _ in range(layers)]),
        nn.LayerNorm(width), Logits(width, vocabulary))  # fmt: skip


MODELS = {"lenet": lenet, "resnet": resnet, "gpt": gpt}
SHAPES = {"lenet": (1, 28, 28), "resnet": (1, 28, 28), "gpt": (128,)}  # of a sample
CLASSES = {"lenet": 10, "resnet": 10, "gpt": 128}
TOKENS = ("gpt",)  # models whose samples are tokens, with a target for each of them
