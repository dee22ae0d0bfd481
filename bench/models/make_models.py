"""Full-size models with random weights, exported by torch: python make_models.py [-o DIR] [NAME ...]

Writes DIR/NAME/model.onnx and, for every size the model is run at, inputs*.npz and expected*.npz (what
ONNX Runtime gives with all graph optimisations off), and DIR/cases.json, the list of what there is.
"""
import argparse
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "..", "..", "build", "bench-models")


class Encoder(torch.nn.Module):
    """Token ids, mask and types in; hidden states and pooled vector out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=token_type_ids)
        return out.last_hidden_state, out.pooler_output


class Classifier(torch.nn.Module):
    """Pixels in, logits out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


class Prefill(torch.nn.Module):
    """Token ids in; logits, then key and value of every layer out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (out.logits, *present)


def livelier(model):
    """Norms and biases that do something: a fresh model has ones and zeros there."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 1:
                value.add_(torch.randn_like(value) * 0.1)
    return model


def encoder(hidden, layers, heads, attention):
    config = transformers.BertConfig(hidden_size=hidden, num_hidden_layers=layers,
                                     num_attention_heads=heads, intermediate_size=4 * hidden,
                                     attn_implementation=attention)
    return Encoder(livelier(transformers.BertModel(config)))


def text(batch, length, padded):
    """Inputs of an encoder; `padded`: sentences of different lengths, as a real batch has."""
    ids = torch.randint(0, 30522, (batch, length))
    mask = torch.ones_like(ids)
    types = torch.zeros_like(ids)
    types[:, length // 2:] = 1
    if padded:
        for row in range(batch):
            mask[row, length - row * length // (2 * batch):] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


ENCODER_NAMES = ["last_hidden_state", "pooler_output"]
BERT = (768, 12, 12)
MINILM = (384, 6, 12)


def encoder_model(size, cases, dynamic=False, attention="sdpa", opset=17, dynamo=False):
    def make():
        return {"module": encoder(*size, attention), "inputs": {c: text(*a) for c, a in cases.items()},
                "outputs": ENCODER_NAMES, "opset": opset, "dynamo": dynamo,
                "axes": {0: "batch", 1: "sequence"} if dynamic else None}
    return make


def vit():
    config = transformers.ViTConfig(num_labels=1000, attn_implementation="eager")
    return {"module": Classifier(livelier(transformers.ViTForImageClassification(config))),
            "inputs": {"": {"pixel_values": torch.randn(1, 3, 224, 224)}},
            "outputs": ["logits"], "opset": 17, "dynamo": False, "axes": None}


def gpt2(dynamo):
    config = transformers.GPT2Config(attn_implementation="eager")
    ids = torch.randint(0, config.vocab_size, (1, 128))
    names = ["logits"]
    for layer in range(config.n_layer):
        names += [f"present.{layer}.key", f"present.{layer}.value"]
    return {"module": Prefill(livelier(transformers.GPT2LMHeadModel(config))),
            "inputs": {"": {"input_ids": ids, "attention_mask": torch.ones_like(ids)}},
            "outputs": names, "opset": 18 if dynamo else 17, "dynamo": dynamo, "axes": None}


# Name -> maker. Cases: suffix of the npz files -> batch, length, padded.
MODELS = {
    "minilm_1x128": encoder_model(MINILM, {"": (1, 128, False)}),
    "minilm_dynamic": encoder_model(MINILM, {"1x128": (1, 128, False), "4x32": (4, 32, True)}, dynamic=True),
    "bert_base_1x128": encoder_model(BERT, {"": (1, 128, False)}, attention="eager"),
    "bert_base_8x200": encoder_model(BERT, {"": (8, 200, True)}),
    "bert_base_dynamic": encoder_model(BERT, {"1x128": (1, 128, False), "8x200": (8, 200, True)},
                               dynamic=True, attention="eager", opset=14),
    "vit_b16": vit,
    "gpt2_1x128": lambda: gpt2(False),
    "minilm_1x128_dynamo": encoder_model(MINILM, {"": (1, 128, False)}, opset=18, dynamo=True),
    "gpt2_1x128_dynamo": lambda: gpt2(True),
}


def export(spec, path):
    arguments = next(iter(spec["inputs"].values()))
    more = {}
    if spec["axes"]:
        more["dynamic_axes"] = {name: spec["axes"] for name in arguments}
    if spec["dynamo"]:
        more["external_data"] = True
    else:
        more["do_constant_folding"] = True
    spec["module"].eval()
    with torch.no_grad():
        torch.onnx.export(spec["module"], tuple(arguments.values()), path,
                          input_names=list(arguments), output_names=spec["outputs"],
                          opset_version=spec["opset"], dynamo=spec["dynamo"], **more)


def unoptimised(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def record(name, spec, folder):
    """Inputs and expected outputs of every case; the rows of cases.json."""
    path = os.path.join(folder, name, "model.onnx")
    session = unoptimised(path)
    wanted = [i.name for i in session.get_inputs()]
    names = [o.name for o in session.get_outputs()]
    rows = []
    for case, tensors in spec["inputs"].items():
        inputs = {n: tensors[n].numpy() for n in wanted}
        suffix = f"_{case}" if case else ""
        files = {what: os.path.join(name, f"{what}{suffix}.npz") for what in ["inputs", "expected"]}
        np.savez(os.path.join(folder, files["inputs"]), **inputs)
        outputs = session.run(names, inputs)
        assert all(np.isfinite(o).all() for o in outputs), f"{name}: outputs are not finite"
        np.savez(os.path.join(folder, files["expected"]), **dict(zip(names, outputs)))
        rows.append({"case": name + suffix, "model": os.path.join(name, "model.onnx"), **files})
    graph = onnx.load(path, load_external_data=False).graph
    size = sum(os.path.getsize(os.path.join(folder, name, f))
               for f in os.listdir(os.path.join(folder, name)) if f.startswith("model"))
    print(f"{name}: {len(graph.node)} nodes, {size / 1e6:.0f} MB, cases "
          f"{', '.join(row['case'] for row in rows)}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--folder", default=DEFAULT_FOLDER)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)} (default: all)")
    options = parser.parse_args()
    unknown = set(options.names) - set(MODELS)
    if unknown:
        sys.exit(f"make_models: no model named {', '.join(sorted(unknown))}")
    list_path = os.path.join(options.folder, "cases.json")
    for name in options.names or MODELS:
        torch.manual_seed(0)
        os.makedirs(os.path.join(options.folder, name), exist_ok=True)
        spec = MODELS[name]()
        export(spec, os.path.join(options.folder, name, "model.onnx"))
        rows = record(name, spec, options.folder)
        kept = []
        if os.path.exists(list_path):
            with open(list_path) as file:
                kept = [row for row in json.load(file) if os.path.dirname(row["model"]) != name]
        with open(list_path, "w") as file:
            json.dump(kept + rows, file, indent=1)


if __name__ == "__main__":
    main()
