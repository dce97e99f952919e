"""The opponent of `cinta train bert` in same_time: the same recipe in PyTorch, on what benchmark_recipe exported.

As many steps as it is told, with a linear schedule over them; then the loss on the held-out part. It says on stderr when
the first step is done, after what a compiler does, and when the last one is.
"""
import argparse
import copy
import json
import sys
import time

import torch
sys.dont_write_bytecode = True
from step import Stepper  # beside this file

WARM_UP = 100


class Recipe(Stepper):
    def rate(self, done, steps):
        """Linear warm-up, then linearly to 0."""
        return done / WARM_UP if done < WARM_UP else max(0.0, steps - done) / max(1, steps - WARM_UP)

    def prepare(self, batch):
        # A mask costs time: only where a sample is shorter than the others.
        self.model.shape["ragged"] = bool((batch["lengths"] < batch["ids"].shape[1]).any())

    def warm_up(self):
        """What a compiler does for batches of several shapes. No weight is changed."""
        parameters, optimizer = self.model.parameters(), copy.deepcopy(self.optimizer.state_dict())
        weights = [p.detach().clone() for p in parameters]
        self.train(30)
        self.optimizer.load_state_dict(optimizer)
        with torch.no_grad():
            for p, weight in zip(parameters, weights):
                p.copy_(weight)
                p.grad = None

    def train(self, steps, log=None):
        base = [group["lr"] for group in self.optimizer.param_groups]
        start = time.perf_counter()
        for done in range(steps):
            batch = self.batches[done % len(self.batches)]
            self.prepare(batch)
            for group, lr in zip(self.optimizer.param_groups, base):
                group["lr"] = lr * self.rate(done, steps)
            self.optimizer.zero_grad()
            with self.types():
                loss = self.loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            if log and done == 0:
                print("training has begun", file=log, flush=True)
        if log:
            print("training ends", file=log, flush=True)
        return time.perf_counter() - start

    @torch.no_grad()
    def held_out(self):
        total, count = 0.0, 0
        for name, batch in self.others.items():
            items = int((batch["labels"] != -100).sum())
            if items == 0:
                continue
            self.prepare(batch)
            with self.types():
                total += self.loss(batch).item() * items
            count += items
        return total / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", help="what benchmark_recipe --export wrote")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "pure"))
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--result", required=True, help="JSON file")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    recipe = Recipe(options.file, "adamw", options.precision, options.compiled)
    recipe.warm_up()
    seconds = recipe.train(options.steps, sys.stderr)
    with open(options.result, "w") as out:
        json.dump(dict(steps=options.steps, seconds=seconds, eval_loss=recipe.held_out(), torch=torch.__version__,
                       attention=recipe.model.attention), out)


if __name__ == "__main__":
    main()
