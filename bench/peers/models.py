"""The models of bench/common/configs.hpp that are not multilayer perceptrons, in PyTorch."""


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))  # fmt: skip


MODELS = {"lenet": lenet}
SHAPES = {"lenet": (1, 28, 28)}  # of a sample
