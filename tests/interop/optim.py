"""Writes tests/golden/optim.txt: ten steps of torch's optimizers and the curves of transformers' schedules.

    python tests/interop/optim.py > tests/golden/optim.txt     (needs torch and transformers)

Every input is a formula that tests/optim_golden.cpp repeats, so the file holds results only. All in float64.
  optimizer CASE    then: name values... for weight, bias and their state after ten steps; with clipping, norms of each step
  schedule KIND WARMUP TOTAL POWER END_FACTOR    then: factors of steps 0 ... TOTAL
"""
import math

import torch
import transformers

STEPS, ROWS, COLUMNS = 10, 3, 5


def initial(count, phase):
    return torch.tensor([math.sin(phase + i) for i in range(count)], dtype=torch.float64)


def gradient(count, phase, step):
    """The scale grows and shrinks with the step, so that clipping is at work in some steps only."""
    return torch.tensor([math.cos(phase + 1.3 * i + 0.7 * step) * 2.0 ** (step % 4 - 2) for i in range(count)],
                        dtype=torch.float64)


def show(name, values):
    print(name, *(repr(float(v)) for v in values))


def run(case, make, decay, max_norm=None):
    weight = initial(ROWS * COLUMNS, 1).reshape(ROWS, COLUMNS).requires_grad_()
    bias = initial(COLUMNS, 2).requires_grad_()
    # The bias has no decay and half the rate, as a parameter group of its own.
    optimizer = make([{"params": [weight], "weight_decay": decay}, {"params": [bias], "weight_decay": 0.0}])
    optimizer.param_groups[1]["lr"] *= 0.5
    norms = []
    for step in range(STEPS):
        weight.grad = gradient(ROWS * COLUMNS, 3, step).reshape(ROWS, COLUMNS)
        bias.grad = gradient(COLUMNS, 4, step)
        if max_norm is not None:
            norms.append(torch.nn.utils.clip_grad_norm_([weight, bias], max_norm))
        optimizer.step()
    print("optimizer", case)
    for name, tensor in (("weight", weight), ("bias", bias)):
        show(name, tensor.detach().flatten())
        for key, value in optimizer.state[tensor].items():
            if key != "step" and value is not None:
                show(f"{name}.{key}", value.flatten())
    if norms:
        show("norms", norms)


def schedule(kind, warmup, total, power=1.0, end_factor=0.0):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    extra = {"num_training_steps": total, "num_warmup_steps": warmup}
    if kind == "constant":
        made = transformers.get_constant_schedule_with_warmup(optimizer, warmup)
    elif kind == "inverse_sqrt":
        made = transformers.get_inverse_sqrt_schedule(optimizer, warmup)
    elif kind == "polynomial":
        made = transformers.get_polynomial_decay_schedule_with_warmup(optimizer, **extra, lr_end=end_factor, power=power)
    else:
        made = getattr(transformers, f"get_{kind}_schedule_with_warmup")(optimizer, **extra)
    print("schedule", kind, warmup, total, power, end_factor)
    print("factors", *(repr(float(made.lr_lambdas[0](step))) for step in range(total + 1)))


def main():
    sgd = lambda **options: lambda groups: torch.optim.SGD(groups, lr=0.05, **options)
    adamw = lambda **options: lambda groups: torch.optim.AdamW(groups, **options)
    run("sgd", sgd(), 0.0)
    run("sgd_decay_clip", sgd(), 0.1, 1.0)
    run("sgd_momentum", sgd(momentum=0.9), 0.1)
    run("sgd_nesterov", sgd(momentum=0.8, nesterov=True), 0.1, 0.5)
    run("adamw", adamw(lr=1e-2), 0.1)
    run("adamw_plain", adamw(lr=1e-3), 0.0)
    run("adamw_betas_eps_clip", adamw(lr=2e-2, betas=(0.8, 0.95), eps=1e-3), 0.3, 0.7)
    for kind in ("constant", "linear", "cosine", "inverse_sqrt"):
        schedule(kind, 0, 12)
        schedule(kind, 4, 12)
    schedule("linear", 12, 12)
    schedule("polynomial", 0, 12)
    schedule("polynomial", 4, 12, 2.0, 0.1)
    schedule("polynomial", 3, 12, 0.5, 0.01)


main()
