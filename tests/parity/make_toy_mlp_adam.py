#!/usr/bin/env python3
"""Makes the reference data for the exchange of optimizer state with PyTorch: 20 steps of Adam, the state after them, and 20 more losses.

    pip install torch safetensors numpy
    PDP_PARITY_EXPORT=exported.safetensors build/debug/tests/test_checkpoint "[.parity]"      20 steps of pdp, and their state
    python3 tests/parity/make_toy_mlp_adam.py exported.safetensors

writes beside itself toy_mlp_adam.safetensors, the state that PyTorch has after 20 steps, in the form that pdp-checkpoint imports, and
toy_mlp_adam_losses.csv. Its columns are PyTorch's losses of the next 20 steps, from its own state and from the state that pdp exported. The
tests read these files and need no PyTorch. Data, initial parameters and model are those of make_toy_mlp.py.
"""
import pathlib
import sys

import torch
from make_toy_mlp import BATCH, HERE, make_model
from safetensors import safe_open
from safetensors.torch import load_file, save_file

RATE, STEPS = 0.01, 20


def train(model, adam, first_step):
    """Makes STEPS steps on batches in order. Returns the loss of each, before its update."""
    data = load_file(HERE / "toy_mlp.safetensors")
    x, y = data["train.x"], data["train.y"]
    found = []
    for step in range(first_step, first_step + STEPS):
        first = step % (len(x) // BATCH) * BATCH
        loss = torch.nn.functional.cross_entropy(model(x[first : first + BATCH]), y[first : first + BATCH])
        found.append(loss.item())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return found


def export_state(model, adam, path):
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key in ("exp_avg", "exp_avg_sq"):
            tensors[f"optimizer.{name}.{key}"] = adam.state[parameter][key].clone()
    save_file(tensors, path, {"format": "pt", "step": str(STEPS)})


def import_state(model, adam, path):
    file = safe_open(path, "pt")
    model.load_state_dict({name: file.get_tensor(name) for name in file.keys() if not name.startswith("optimizer.")})
    state = {}
    for number, (name, _) in enumerate(model.named_parameters()):
        state[number] = {key: file.get_tensor(f"optimizer.{name}.{key}") for key in ("exp_avg", "exp_avg_sq")}
        state[number]["step"] = torch.tensor(float(file.metadata()["step"]))
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})


def main(exported):
    torch.set_num_threads(1)
    model = make_model()
    model.load_state_dict(load_file(HERE / "toy_mlp_init.safetensors"))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    train(model, adam, 0)
    export_state(model, adam, HERE / "toy_mlp_adam.safetensors")
    from_own = train(model, adam, STEPS)

    model = make_model()
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    import_state(model, adam, exported)
    from_pdp = train(model, adam, STEPS)
    with open(HERE / "toy_mlp_adam_losses.csv", "w") as file:
        file.write("step,from PyTorch's state,from pdp's state\n")
        for step, pair in enumerate(zip(from_own, from_pdp)):
            file.write(f"{STEPS + step},{pair[0]:.9g},{pair[1]:.9g}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} EXPORTED.safetensors")
    main(pathlib.Path(sys.argv[1]))
