"""Opens what cinta writes sharded and converted with Python's safetensors and transformers, and theirs with cinta.

    python tests/interop/sharded.py CINTA      (needs torch, transformers and safetensors; from the repository root)

CINTA is the command. Every precision is compared bit for bit with torch's own conversion (a NaN with a NaN), every model
by its tensors and its logits. Prints a line for each comparison; a difference ends it with an error.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

transformers.utils.logging.disable_progress_bar()
torch.set_grad_enabled(False)
cinta = sys.argv[1]
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def run(*arguments):
    done = subprocess.run([cinta, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: {done.returncode}: {done.stderr}")
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def same_bits(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    as_int = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return bool(((a.view(as_int) == b.view(as_int)) | (a.isnan() & b.isnan())).all())


def model():
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=211, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return transformers.BertForMaskedLM(config).eval()


def all_tensors(directory):
    """Of a directory in either form, read with safetensors alone."""
    index = directory / "model.safetensors.index.json"
    if not index.exists():
        return load_file(directory / "model.safetensors")
    index = json.loads(index.read_text())
    out = {}
    for shard in sorted(set(index["weight_map"].values())):
        part = load_file(directory / shard)
        assert all(index["weight_map"][name] == shard for name in part), shard
        out |= part
    assert sum(t.nbytes for t in out.values()) == index["metadata"]["total_size"]
    assert set(out) == set(index["weight_map"])
    return out


def convert_numbers(scratch):
    generator = torch.Generator().manual_seed(7)
    bits = torch.randint(-2**31, 2**31, (2_000_000,), generator=generator, dtype=torch.int64).to(torch.int32)
    every_high_half = (torch.arange(2**16, dtype=torch.int64) << 16).to(torch.int32)
    middles = torch.cat([every_high_half + offset for offset in (0, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    halves = torch.arange(-2**15, 2**15).to(torch.int16).view(torch.float16)
    tensors = {"random": bits.view(torch.float32), "bf16_middles": middles.view(torch.float32),
               "fp16_codes": halves, "bf16_codes": torch.arange(-2**15, 2**15).to(torch.int16).view(torch.bfloat16),
               "ids": torch.arange(12).reshape(3, 4), "mask": torch.tensor([True, False]), "scalar": torch.tensor(0.1)}
    save_file(tensors, scratch / "numbers.safetensors")
    for name, dtype in TYPES.items():
        report = run("convert", scratch / "numbers.safetensors", scratch / f"{name}.safetensors", "--dtype", name, "--json")
        found = load_file(scratch / f"{name}.safetensors")
        too_large = 0
        for key, before in tensors.items():
            expected = before.to(dtype) if before.is_floating_point() else before
            assert same_bits(found[key], expected), (name, key)
            if before.is_floating_point():
                too_large += int((before.isfinite() & ~expected.isfinite()).sum())
        assert report["counts"]["too_large"] == too_large
        assert report["counts"]["nan"] == sum(int(t.isnan().sum()) for t in tensors.values() if t.is_floating_point())
        print(f"convert to {name}: {report['counts']['numbers']} numbers bit for bit as torch, counts {report['counts']}")


def inspect_numbers(scratch):
    model().save_pretrained(scratch / "inspected")
    found = {t["name"]: t for t in run("inspect", scratch / "inspected", "--json")["tensors"]}
    worst = 0
    for name, tensor in load_file(scratch / "inspected/model.safetensors").items():
        values, row = tensor.double(), found.pop(name)
        assert row["shape"] == list(tensor.shape) and row["bytes"] == tensor.nbytes
        assert row["min"] == float(values.min()) and row["max"] == float(values.max())
        for key, expected in (("mean", values.mean()), ("std", values.std(correction=0))):
            worst = max(worst, abs(row[key] - float(expected)))
    assert not found and worst < 1e-14
    print(f"inspect: mean and std of every tensor within {worst:.1e} of torch's")


def theirs_opens_here(scratch):
    """transformers shards; cinta reads the shards wherever it reads a model."""
    theirs = model()
    folder, single = scratch / "theirs", scratch / "theirs_single"
    theirs.save_pretrained(folder, max_shard_size="40KB")
    theirs.save_pretrained(single)
    shards = sorted(p.name for p in folder.glob("*.safetensors"))
    assert len(shards) > 3 and not (folder / "model.safetensors").exists()
    difference = run("inspect", folder, "--diff", single, "--json")
    assert difference["same"], difference
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(206)]
    for directory in (folder, single):
        (directory / "vocab.txt").write_text("\n".join(words) + "\n")
    filled = [run("fill", "w1 [MASK] w3", "--model", directory) for directory in (folder, single)]
    assert filled[0] == filled[1]
    token = torch.tensor([[2, 6, 4, 8, 3]])
    best = theirs(token).logits[0, 2].softmax(-1).topk(3)
    for line, i, p in zip(filled[0].splitlines()[1:], best.indices, best.values):
        assert line.split() == [f"{100 * float(p):.1f}", "%", words[i]], (line, i, p)
    print(f"transformers' {len(shards)} shards open here: same tensors, same guesses as there")


def ours_opens_there(scratch):
    """cinta shards and converts; transformers and safetensors read it."""
    source = scratch / "source"
    model().save_pretrained(source)
    original = load_file(source / "model.safetensors")
    tokens = torch.randint(5, 211, (2, 9), generator=torch.Generator().manual_seed(2))
    for name, dtype in TYPES.items():
        for to in (["--to", "single"], ["--max_shard_size", "40KB"]):
            target = scratch / f"ours_{name}_{to[0][2:]}"
            report = run("convert", source, target, "--dtype", name, *to, "--json")
            found = all_tensors(target)
            assert set(found) == set(original) and all(same_bits(found[k], original[k].to(dtype)) for k in original)
            for shard in target.glob("model-*"):
                part = load_file(shard)
                assert len(part) == 1 or sum(t.nbytes for t in part.values()) <= 40_000
            opened, info = transformers.BertForMaskedLM.from_pretrained(target, output_loading_info=True)
            assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
            assert opened.dtype == dtype
            assert torch.equal(opened.eval()(tokens).logits, model().to(dtype)(tokens).logits), (name, to)
            print(f"transformers opens {name} in {len(report['files'])} file(s) as {opened.dtype}: same tensors, same logits")
    again = scratch / "again"
    run("convert", scratch / "ours_fp32_max_shard_size", again, "--to", "single")
    assert (again / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    print("fp32 in shards and back: the bytes of transformers' own file")
    run("convert", source, scratch / "bare", "--names", "bare")
    body, info = transformers.BertModel.from_pretrained(scratch / "bare", add_pooling_layer=False, output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    assert torch.equal(body.eval()(tokens).last_hidden_state, model().bert(tokens).last_hidden_state)
    run("convert", source, scratch / "old", "--names", "old")
    old, info = transformers.BertForMaskedLM.from_pretrained(scratch / "old", output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    assert torch.equal(old.eval()(tokens).logits, model()(tokens).logits)
    run("convert", scratch / "old", scratch / "new", "--names", "hf")
    assert (scratch / "new/model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    print("--names: transformers opens the body alone and the old names, and old to new gives the bytes of its own file")


with tempfile.TemporaryDirectory() as folder:
    for number, check in enumerate((convert_numbers, inspect_numbers, theirs_opens_here, ours_opens_there)):
        scratch = pathlib.Path(folder) / str(number)
        scratch.mkdir()
        check(scratch)
