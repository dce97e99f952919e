"""Writes tests/golden/bert*.safetensors: a small BERT with each of its heads, and without, as transformers computes it.

    python tests/interop/bert.py          (needs torch, transformers and safetensors; from the repository root)

bert_weights.safetensors holds the weights all heads start from, under the names transformers saves; bert_head64_weights
those of a layer whose head is 64 wide, as in every BERT that has a name. Each other file holds for one head: ten batches, the first batch's logits, loss and every gradient, then gradient norms and losses of ten steps of
AdamW (no decay for biases and norms, clipping, linear schedule with warm-up) and every weight after them (left out where
the head is 64 wide: the files would be large, and ten losses and norms say as much). Computed in
float64 from float32 weights and rounded once, so that what differs is our own rounding.
"""
import torch
import transformers
from safetensors.torch import save_file

STEPS, BATCH, LENGTH, ROWS, IGNORED = 10, 3, 11, 6, -100
RATE, WARMUP, TOTAL, DECAY, EPS, MAX_NORM = 2e-3, 3, 12, 0.1, 1e-6, 1.0
GOLDEN = "tests/golden/bert_"


def config(hidden=20, layers=2, heads=2, intermediate=24):
    return transformers.BertConfig(
        vocab_size=61, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=intermediate, max_position_embeddings=12, type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        num_labels=3, attn_implementation="eager")


def batches(generator):
    """Token 0 is padding and nothing else; the masked rows of a batch are flat positions, the seats left over ignored."""
    ids = torch.randint(1, 61, (STEPS, BATCH, LENGTH), generator=generator)
    types = torch.randint(0, 2, (STEPS, BATCH, LENGTH), generator=generator)
    lengths = torch.randint(3, LENGTH + 1, (STEPS, BATCH), generator=generator)
    lengths[:, 0] = LENGTH
    ids[torch.arange(LENGTH) >= lengths[..., None]] = 0
    rows = torch.zeros(STEPS, ROWS, dtype=torch.int64)
    labels = torch.full((STEPS, ROWS), IGNORED)
    for step in range(STEPS):
        real = torch.nonzero(ids[step].flatten()).flatten()
        count = ROWS - step % 3
        rows[step, :count] = real[torch.randperm(len(real), generator=generator)[:count]].sort().values
        labels[step, :count] = torch.randint(1, 61, (count,), generator=generator)
    return {"ids": ids, "types": types, "lengths": lengths.int(), "rows": rows, "labels": labels,
            "next_sentence": torch.randint(0, 2, (STEPS, BATCH), generator=generator),
            "classes": torch.randint(0, 3, (STEPS, BATCH), generator=generator)}


def forward(model, data, step):
    """Logits by name, and the loss."""
    common = {"input_ids": data["ids"][step], "token_type_ids": data["types"][step],
              "attention_mask": (torch.arange(LENGTH) < data["lengths"][step][:, None]).long()}
    if isinstance(model, transformers.BertForSequenceClassification):
        out = model(**common, labels=data["classes"][step])
        return {"logits": out.logits}, out.loss
    if isinstance(model, transformers.BertModel):
        out = model(**common)  # hidden units stand for classes, so that there is a loss to go down
        loss = (torch.nn.functional.cross_entropy(out.pooler_output, data["classes"][step])
                + torch.nn.functional.cross_entropy(out.last_hidden_state[:, 1], data["next_sentence"][step]))
        return {"last_hidden_state": out.last_hidden_state, "pooler_output": out.pooler_output}, loss
    labels = torch.full((BATCH * LENGTH,), IGNORED)
    counted = data["labels"][step] != IGNORED
    labels[data["rows"][step][counted]] = data["labels"][step][counted]
    labels = labels.reshape(BATCH, LENGTH)
    if isinstance(model, transformers.BertForPreTraining):
        out = model(**common, labels=labels, next_sentence_label=data["next_sentence"][step])
        return {"logits": out.prediction_logits, "next_sentence_logits": out.seq_relationship_logits}, out.loss
    out = model(**common, labels=labels)
    return {"logits": out.logits}, out.loss


def as_f32(tensors):
    return {name: (t.detach().float() if t.is_floating_point() else t).contiguous() for name, t in tensors.items()}


def golden(name, model, weights, data, after=True):
    model = model.double().train()
    prefix = "bert." if isinstance(model, transformers.BertModel) else ""
    model.load_state_dict({k.removeprefix(prefix): v.double() for k, v in weights.items()}, strict=False)
    model.tie_weights()
    parameters = {prefix + k: p for k, p in model.named_parameters()}
    logits, loss = forward(model, data, 0)
    loss.backward()
    out = dict(data) | logits | {"loss": loss.reshape(1)}
    out |= {"gradient." + k: p.grad.clone() for k, p in parameters.items()}

    plain = [p for k, p in parameters.items() if k.endswith("bias") or "LayerNorm" in k]
    decayed = [p for k, p in parameters.items() if not (k.endswith("bias") or "LayerNorm" in k)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}],
                                  lr=RATE, eps=EPS)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, TOTAL)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = forward(model, data, step)[1]
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), MAX_NORM).detach())
        losses.append(loss.detach())
        optimizer.step()
        schedule.step()
    out |= {"losses": torch.stack(losses), "norms": torch.stack(norms)}
    if after:
        out |= {"after." + k: p for k, p in parameters.items()}
    save_file(as_f32(out), f"{GOLDEN}{name}.safetensors", metadata={"format": "pt"})
    print(name, "norms", [round(float(n), 3) for n in norms], "losses", [round(float(x), 4) for x in losses])


def start(name, *models):
    """The weights of `models`, shaken and saved: nothing may be 0 or 1 throughout, a forgotten bias must show."""
    weights = {k: p.detach().clone() for m in models for k, p in m.named_parameters()}
    for weight in weights.values():
        weight += 0.05 * torch.randn(weight.shape)
        if weight.dim() == 2:
            weight *= 3
    save_file(as_f32(weights), f"{GOLDEN}{name}.safetensors", metadata={"format": "pt"})
    return weights


def main():
    torch.manual_seed(3)
    pretraining = transformers.BertForPreTraining(config())
    classify = transformers.BertForSequenceClassification(config())
    weights = start("weights", classify, pretraining)
    data = batches(torch.Generator().manual_seed(5))
    golden("masked", transformers.BertForMaskedLM(config()), weights, data)
    golden("pretraining", pretraining, weights, data)
    golden("classify", classify, weights, data)
    golden("bare", transformers.BertModel(config()), weights, data)
    wide = transformers.BertForMaskedLM(config(hidden=64, layers=1, heads=1, intermediate=32))
    golden("head64", wide, start("head64_weights", wide), data, after=False)


main()
