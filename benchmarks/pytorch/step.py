"""The opponent of step.cpp: the same training step in PyTorch, with the weights and batches that step.cpp exported.

Eager or compiled; in fp32, in bf16 by autocast, or with weights and moments in bf16 too; query, key and value as one product; attention by hand or by scaled_dot_product_attention, whichever is
faster here; the head on gathered masked rows only; fused optimizers; samples of
different lengths padded, and attention masked. Speaks the same lines on stdin and stdout as
step.cpp with --serve.
"""
import argparse
import json
import math
import os
import sys
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

import safetensors
import torch
import torch.nn.functional as F


def resident(field):
    """Bytes of this process: VmRSS is now, VmHWM the largest since the last reset."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(field))


def reset_peak_resident():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Bert:
    def __init__(self, weights, shape):
        self.shape, self.attention = shape, "sdpa"
        take = lambda name: weights[name].clone().requires_grad_()
        self.word, self.position, self.type = (take(f"bert.embeddings.{n}_embeddings.weight") for n in ("word", "position", "token_type"))
        self.norm = self.pair(take, "bert.embeddings.LayerNorm")
        self.layers = []
        for i in range(shape["layers"]):
            p = f"bert.encoder.layer.{i}."
            joined = lambda kind: torch.cat([weights[f"{p}attention.self.{n}.{kind}"] for n in ("query", "key", "value")]).requires_grad_()
            self.layers.append(dict(
                qkv=(joined("weight"), joined("bias")), out=self.pair(take, p + "attention.output.dense"),
                norm1=self.pair(take, p + "attention.output.LayerNorm"), up=self.pair(take, p + "intermediate.dense"),
                down=self.pair(take, p + "output.dense"), norm2=self.pair(take, p + "output.LayerNorm")))
        self.dense = self.pair(take, "cls.predictions.transform.dense")
        self.head_norm = self.pair(take, "cls.predictions.transform.LayerNorm")
        self.bias = take("cls.predictions.bias")

    @staticmethod
    def pair(take, name):
        return take(name + ".weight"), take(name + ".bias")

    def parameters(self):
        out = [self.word, self.position, self.type, *self.norm, *self.dense, *self.head_norm, self.bias]
        return out + [p for layer in self.layers for pair in layer.values() for p in pair]

    def layer_norm(self, x, pair):
        return F.layer_norm(x, (x.shape[-1],), *pair, self.shape["eps"])

    def attend(self, x, layer, exists):
        b, s, h = x.shape
        heads, p = self.shape["heads"], self.shape["dropout"]
        q, k, v = F.linear(x, *layer["qkv"]).view(b, s, 3, heads, h // heads).permute(2, 0, 3, 1, 4)
        if self.attention == "sdpa":
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=exists, dropout_p=p)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(h // heads)
            if exists is not None:
                scores = scores.masked_fill(~exists, -math.inf)
            scores = torch.softmax(scores, -1)
            mixed = torch.matmul(F.dropout(scores, p) if p else scores, v)
        return F.linear(mixed.transpose(1, 2).reshape(b, s, h), *layer["out"])

    def loss(self, batch):
        p = self.shape["dropout"]
        drop = (lambda x: F.dropout(x, p)) if p else (lambda x: x)
        ids, exists = batch["ids"], None
        if self.shape["ragged"]:
            exists = (torch.arange(ids.shape[1]) < batch["lengths"][:, None])[:, None, None, :]
        x = F.embedding(ids, self.word) + self.position[: ids.shape[1]] + self.type[0]
        x = drop(self.layer_norm(x, self.norm))
        for layer in self.layers:
            x = self.layer_norm(x + drop(self.attend(x, layer, exists)), layer["norm1"])
            x = self.layer_norm(x + drop(F.linear(F.gelu(F.linear(x, *layer["up"])), *layer["down"])), layer["norm2"])
        rows = x.reshape(-1, x.shape[-1]).index_select(0, batch["rows"])
        rows = self.layer_norm(F.gelu(F.linear(rows, *self.dense)), self.head_norm)
        return F.cross_entropy(F.linear(rows, self.word, self.bias), batch["labels"])


class Mlp:
    def __init__(self, weights):
        count = len(weights) // 2
        self.layers = [[weights[f"layers.{i}.{kind}"].clone().requires_grad_() for kind in ("weight", "bias")] for i in range(count)]

    def parameters(self):
        return [p for layer in self.layers for p in layer]

    def loss(self, batch):
        x = batch["x"]
        for i, layer in enumerate(self.layers):
            x = F.linear(x, *layer)
            x = F.relu(x) if i + 1 < len(self.layers) else x
        return F.cross_entropy(x, batch["labels"])


class Stepper:
    """Copies what it keeps: a tensor of the file would hold the whole file in memory."""

    def __init__(self, path, optimizer, precision="fp32", compiled=False):
        with safetensors.safe_open(path, "pt") as file:
            self.workload = json.loads(file.metadata()["workload"])
            numbers = json.loads(file.metadata()["hyper_parameters"])
            parts = {}  # of a name: "batch.3.ids" is part "batch.3"
            for name in file.keys():
                part, _, rest = name.rpartition(".") if not name.startswith("model.") else name.partition(".")
                parts.setdefault(part, {})[rest or name] = file.get_tensor(name).clone()
        self.precision = precision
        form = torch.bfloat16 if precision == "pure" else torch.float32
        weights = {name: tensor.to(form) for name, tensor in parts.pop("model").items()}
        self.batches = [parts.pop(f"batch.{i}") for i in range(self.workload["batches"])]
        self.others = parts
        if precision == "pure":
            self.batches = [{name: x.to(form) if x.is_floating_point() else x for name, x in batch.items()} for batch in self.batches]
        self.model = Bert(weights, self.workload) if "layers" in self.workload else Mlp(weights)
        if isinstance(self.model, Bert):
            self.choose_attention()
        self.loss = torch.compile(self.model.loss) if compiled else self.model.loss
        parameters = self.model.parameters()
        if optimizer == "sgd":
            self.optimizer = torch.optim.SGD(parameters, lr=numbers["sgd_rate"], fused=True)
        else:
            groups = [dict(params=[p for p in parameters if p.dim() > 1], weight_decay=numbers["adamw_decay"]),
                      dict(params=[p for p in parameters if p.dim() <= 1], weight_decay=0.0)]
            self.optimizer = torch.optim.AdamW(groups, lr=numbers["adamw_rate"], fused=True)
        self.next = 0

    def choose_attention(self):
        """Times forward and backward without an update, alternately, and keeps the faster way."""
        best = {}
        for _ in range(4):
            for way in ("math", "sdpa"):
                self.model.attention = way
                start = time.perf_counter()
                with self.types():
                    loss = self.model.loss(self.batches[0])
                loss.backward()
                best[way] = min(best.get(way, math.inf), time.perf_counter() - start)
        self.model.attention = min(best, key=best.get)
        for parameter in self.model.parameters():
            parameter.grad = None

    def types(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16")

    def step(self):
        self.optimizer.zero_grad()
        with self.types():
            loss = self.loss(self.batches[self.next % len(self.batches)])
        self.next += 1
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        wall, losses, processor = [], [], time.process_time()
        for _ in range(steps):
            start = time.perf_counter()
            losses.append(self.step())
            wall.append(1e3 * (time.perf_counter() - start))
        return dict(wall_ms=wall, processor_ms=1e3 * (time.process_time() - processor), losses=losses,
                    peak_resident_bytes=resident("VmHWM"))


def profile(stepper, steps):
    with torch.profiler.profile() as watch:
        stepper.run(steps)
    print(watch.key_averages().table(sort_by="self_cpu_time_total", row_limit=30), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", help="what benchmark_step --export wrote")
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "sgd"))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--attention", choices=("math", "sdpa"))
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "pure"), help="bf16 by autocast, or pure")
    parser.add_argument("--compiled", action="store_true", help="through torch.compile")
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    before = resident("VmRSS")
    stepper = Stepper(options.file, options.optimizer, options.precision, options.compiled)
    if options.attention:
        stepper.model.attention = options.attention
    if options.profile:
        stepper.run(3)
        return profile(stepper, options.profile)
    about = dict(torch=torch.__version__, threads=torch.get_num_threads(), python=sys.version.split()[0],
                 attention=getattr(stepper.model, "attention", ""), capability=torch.backends.cpu.get_cpu_capability(),
                 mkl_opened="mkl" in os.environ.get("LD_PRELOAD", ""), resident_bytes_before=before)
    reset_peak_resident()  # the steps are compared, not how the model was built
    print(json.dumps(dict(ready=True, machine=about)), flush=True)
    for line in sys.stdin:
        print(json.dumps(stepper.run(int(line))), flush=True)


if __name__ == "__main__":
    main()
