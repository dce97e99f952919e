"""The opponent of `cinta train bert` in same_time: the same recipe in PyTorch, on what benchmark_recipe exported.

As many steps as it is told, or as fit the time by the pace of the first thirty, with a linear schedule over them; then
the loss on the held-out part. A compiler's time is not counted.
"""
import argparse
import json
import sys
import time

import torch
sys.dont_write_bytecode = True
from step import Stepper  # beside this file

WARM_UP, PACE_STEPS = 100, 30


class Recipe(Stepper):
    def rate(self, done, steps):
        """Linear warm-up, then linearly to 0."""
        return done / WARM_UP if done < WARM_UP else max(0.0, steps - done) / max(1, steps - WARM_UP)

    def prepare(self, batch):
        # A mask costs time: only where a sample is shorter than the others.
        self.model.shape["ragged"] = bool((batch["lengths"] < batch["ids"].shape[1]).any())

    def train(self, steps, of):
        base = [group["lr"] for group in self.optimizer.param_groups]
        start = time.perf_counter()
        for done in range(steps):
            batch = self.batches[done % len(self.batches)]
            self.prepare(batch)
            for group, lr in zip(self.optimizer.param_groups, base):
                group["lr"] = lr * self.rate(done, of)
            self.optimizer.zero_grad()
            with self.types():
                loss = self.loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
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
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--steps", type=int, default=0, help="instead of what fits --seconds")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "pure"))
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    trial = Recipe(options.file, "adamw", options.precision, options.compiled)
    trial.train(6, 10000)
    steps = options.steps or round(options.seconds * PACE_STEPS / trial.train(PACE_STEPS, 10000))
    recipe = Recipe(options.file, "adamw", options.precision, options.compiled)
    recipe.model.attention = trial.model.attention
    seconds = recipe.train(steps, steps)
    print(json.dumps(dict(steps=steps, seconds=seconds, eval_loss=recipe.held_out(), torch=torch.__version__,
                          attention=recipe.model.attention)))


if __name__ == "__main__":
    main()
