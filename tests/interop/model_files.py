"""Opens cinta's model files with transformers, and transformers' with cinta, and compares what both compute.

    python tests/interop/model_files.py CINTA BERT_OUTPUTS TEXT      (needs torch, transformers and safetensors)

CINTA is the command, BERT_OUTPUTS the program of bert_outputs.cpp (its head says how to build it), TEXT a text file or a
folder to train a small model on. Python computes in float64 from the same float32 weights. A difference is given relative to
the largest number of its tensor: at most 1e-5 for logits and 1e-4 for gradients.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

LOGITS, GRADIENTS, LENGTH, BATCH, IGNORED = 1e-5, 1e-4, 16, 3, -100
LINES = ["std::[MASK]<int> v;", "#include <[MASK]>", "template<typename _Tp> Struct Is_Same;", "na\u00efve \u00c5ngstr\u00f6m \u4f60\u597d", "", "x" * 120]
cinta, bert_outputs, text = sys.argv[1:]


def relative(found, expected):
    expected = expected.detach().double()
    return float((found.double() - expected).abs().max() / expected.abs().max())


def inputs(config):
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([LENGTH, 5, LENGTH - 3], dtype=torch.int32)
    real = torch.arange(LENGTH) < lengths[:, None]
    ids = torch.randint(1, config.vocab_size, (BATCH, LENGTH), generator=generator) * real
    labels = torch.randint(0, config.vocab_size, (BATCH, LENGTH), generator=generator).masked_fill(~real, IGNORED)
    return {"ids": ids, "types": torch.randint(0, 2, (BATCH, LENGTH), generator=generator), "lengths": lengths,
            "labels": labels.flatten(), "next_sentence": torch.tensor([0, 1, 1]),
            "classes": torch.tensor([1, 0, config.num_labels - 1])}, real


def without_padding(found, real):
    """What stands in padding is defined by nobody."""
    if found.shape[:2] == real.shape:
        return found[real]
    return found[real.flatten()] if found.shape[0] == real.numel() else found


def compare(name, directory, model):
    """Runs both on one batch and prints the largest differences of logits and of gradients."""
    model = model.double().eval()
    batch, real = inputs(model.config)
    common = {"input_ids": batch["ids"], "token_type_ids": batch["types"], "attention_mask": real.long()}
    labels = batch["labels"].reshape(BATCH, LENGTH)
    if isinstance(model, transformers.BertForSequenceClassification):
        out = model(**common, labels=batch["classes"])
        expected = {"logits": out.logits}
    elif isinstance(model, transformers.BertForPreTraining):
        out = model(**common, labels=labels, next_sentence_label=batch["next_sentence"])
        expected = {"logits": out.prediction_logits[real], "next_sentence_logits": out.seq_relationship_logits}
    elif isinstance(model, transformers.BertModel):
        out = model(**common)
        expected = {"last_hidden_state": out.last_hidden_state[real], "pooler_output": out.pooler_output}
        out.loss = (torch.nn.functional.cross_entropy(out.pooler_output, batch["classes"])  # hidden units stand for classes
                    + torch.nn.functional.cross_entropy(out.last_hidden_state[:, 1], batch["next_sentence"]))
    else:
        out = model(**common, labels=labels)
        expected = {"logits": out.logits[real]}
    out.loss.backward()
    with tempfile.TemporaryDirectory() as scratch:
        save_file({k: v.contiguous() for k, v in batch.items()}, scratch + "/in.safetensors")
        report = subprocess.run([bert_outputs, directory, type(model).__name__, scratch + "/in.safetensors", scratch + "/out.safetensors"],
                                check=True, capture_output=True, text=True).stdout.splitlines()
        found = load_file(scratch + "/out.safetensors")
    logits = max(relative(without_padding(found[k], real), v) for k, v in expected.items())
    prefix = "bert." if isinstance(model, transformers.BertModel) else ""
    gradients = {prefix + k: p.grad for k, p in model.named_parameters()}
    assert {"gradient." + k for k in gradients} == {k for k in found if k.startswith("gradient.")}, name
    # A key's bias has the gradient 0: softmax does not see what all keys share.
    zero = max(float(found["gradient." + k].abs().max()) for k in gradients if k.endswith("key.bias"))
    worst = max(relative(found["gradient." + k], v) for k, v in gradients.items() if not k.endswith("key.bias"))
    print(f"{name:52} logits {logits:.1e}  gradients {worst:.1e}  {report[0]}{'; ' + '; '.join(report[1:]) if report[1:] else ''}")
    assert logits <= LOGITS and worst <= GRADIENTS and zero < 1e-6, name
    assert not any(line.startswith("missing") for line in report), name


def compare_predict(name, directory, model):
    """The files that `cinta predict` leaves of a body alone."""
    model = model.double().eval()
    batch, real = inputs(model.config)
    common = {"input_ids": batch["ids"], "token_type_ids": batch["types"], "attention_mask": real.long()}
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        save_file(common, scratch + "/in.safetensors")
        subprocess.run([cinta, "predict", "--model", directory, "--input_ids", scratch + "/in.safetensors",
                        "--output_logits", scratch + "/out.safetensors"], check=True)
        found = load_file(scratch + "/out.safetensors")
        out = model(**common)
    expected = {"last_hidden_state": out.last_hidden_state, "pooler_output": out.pooler_output}
    assert found.keys() == {k for k, v in expected.items() if v is not None}, (name, found.keys())
    worst = {k: relative(without_padding(v, real), without_padding(expected[k], real)) for k, v in found.items()}
    print(f"{name:52} {'  '.join(f'{k} {v:.1e}' for k, v in worst.items())}")
    assert max(worst.values()) <= LOGITS, name


def opened(kind, directory):
    """What from_pretrained makes of cinta's files, none of which it misses or leaves over."""
    model, info = kind.from_pretrained(directory, output_loading_info=True)
    problems = {k: v for k, v in info.items() if v}
    assert not problems, (kind.__name__, problems)
    return model


def ours_there(scratch):
    """Runs' directories of cinta, opened by from_pretrained: every head, and a body alone."""
    run = lambda *words: subprocess.run([cinta, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    short = ["--max_steps", "20", "--sequence_length", str(LENGTH), "--vocab_size", "1000", "--quiet"]
    directory, pairs, classes, bare = (f"{scratch}/{name}" for name in ("run", "pairs", "classes", "bare"))
    run("train", "bert", "--data", text, "--output_dir", directory, *short)
    run("train", "bert", "--data", text, "--next_sentence", "--output_dir", pairs, *short)
    with open(scratch + "/lines.csv", "w") as file:
        file.write("text,label\n" + "".join(f"word {i} of {i % 3},{'abc'[i % 3]}\n" for i in range(60)))
    run("train", "classify", "--data", scratch + "/lines.csv", "--model", pairs, "--output_dir", classes, "--max_steps", "20", "--quiet")
    run("convert", pairs, bare, "--names", "bare")
    for name, kind, path in (("cinta train bert", transformers.BertForMaskedLM, directory),
                             ("cinta train bert --next_sentence", transformers.BertForPreTraining, pairs),
                             ("cinta train classify", transformers.BertForSequenceClassification, classes),
                             ("cinta convert --names bare", transformers.BertModel, bare)):
        compare(f"{name} -> {kind.__name__}", path, opened(kind, path))
    compare_predict("cinta convert --names bare | cinta predict", bare, opened(transformers.BertModel, bare))
    model = opened(transformers.BertForMaskedLM, directory)

    vocabulary = (pathlib.Path(directory) / "vocab.txt").read_text().split("\n")[:-1]
    found = subprocess.run([bert_outputs, directory, "tokens"], input="\n".join(LINES) + "\n", check=True, capture_output=True,
                           text=True).stdout.splitlines()
    for kind in (transformers.AutoTokenizer, transformers.BertTokenizer, transformers.BertTokenizerFast):
        tokenizer = kind.from_pretrained(directory)
        assert len(tokenizer) == len(vocabulary) == model.config.vocab_size
        for line, ids in zip(LINES, found):
            assert tokenizer(line)["input_ids"] == [int(i) for i in ids.split()], (kind.__name__, line, tokenizer(line)["input_ids"], ids)
        print(f"{kind.__name__ + '.from_pretrained':52} {len(LINES)} lines cut alike, e.g. {tokenizer.tokenize(LINES[2])}")
    top = transformers.pipeline("fill-mask", model=directory, tokenizer=directory)("std::[MASK]<int> v;", top_k=2)
    here = subprocess.run([cinta, "fill", "std::[MASK]<int> v;", "--model", directory, "--top", "2"], check=True, capture_output=True,
                          text=True).stdout.splitlines()[1:]
    print(f"{'pipeline(fill-mask)':52} {[(t['token_str'], round(100 * t['score'], 1)) for t in top]}, here {[h.strip() for h in here]}")
    assert [t["token_str"] for t in top] == [h.split()[-1] for h in here]
    model.float().save_pretrained(scratch + "/back")
    tokenizer.save_pretrained(scratch + "/back")
    back = subprocess.run([cinta, "fill", "std::[MASK]<int> v;", "--model", scratch + "/back", "--top", "2"], check=True,
                          capture_output=True, text=True).stdout.splitlines()[1:]
    print(f"{'save_pretrained of both -> cinta fill':52} {[h.strip() for h in back]}")
    assert back == here


def old_names(directory):
    path = directory + "/model.safetensors"
    tensors = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
               for k, v in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})


def theirs_here(scratch):
    """Random models, saved by save_pretrained."""
    base = dict(vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
                max_position_embeddings=20, attn_implementation="eager")
    cases = [(transformers.BertForMaskedLM, {}, None), (transformers.BertForMaskedLM, {}, old_names),
             (transformers.BertForMaskedLM, {"hidden_act": "gelu_new"}, None), (transformers.BertForPreTraining, {}, None),
             (transformers.BertForPreTraining, {}, old_names), (transformers.BertForSequenceClassification, {}, None),
             (transformers.BertForSequenceClassification, {"num_labels": 5}, None), (transformers.BertModel, {}, None),
             (transformers.BertModel, {}, old_names)]
    for number, (kind, more, change) in enumerate(cases):
        torch.manual_seed(number)
        model = kind(transformers.BertConfig(**base, **more))
        for parameter in model.parameters():  # nothing may be 0 or 1 throughout: a forgotten bias must show
            parameter.data += 0.05 * torch.randn(parameter.shape)
        directory = f"{scratch}/{number}"
        model.save_pretrained(directory)
        if change:
            change(directory)
        compare(f"{kind.__name__} {more or ''}{' gamma, beta' if change else ''} -> cinta", directory, model)
        if kind is transformers.BertModel:
            compare_predict(f"{kind.__name__} -> cinta predict", directory, model)
    body = transformers.BertModel(transformers.BertConfig(**base), add_pooling_layer=False)
    body.save_pretrained(scratch + "/body")
    compare_predict("BertModel without a pooler -> cinta predict", scratch + "/body", body)


with tempfile.TemporaryDirectory() as scratch:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    theirs_here(scratch)
    ours_there(scratch)
