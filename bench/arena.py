"""Bytes of temporaries: heddle's plan against ONNX Runtime's arena on the same networks.

    python bench/arena.py [--heddle build/release/heddle] [--models build/bench-models] [CASE ...]

ONNX Runtime's number is what its arena takes for one run with a memory pattern, according to its own log:
the first run traces, and the arena is emptied after it; the second allocates the pattern. The arena
grows by the requested size, outputs are bound outside it, and there is one thread. Without CASE: every
available case of cases.json. Ends with the largest ratio; 1 is equal, lower is better.
"""
import argparse
import json
import os
import re
import subprocess
import sys

EXTENDED = re.compile(r"Extended allocation by (\d+) bytes")


def run_peer(model, inputs):
    """In a process of its own: its log is on standard error."""
    import numpy as np
    import onnxruntime as ort

    ort.set_default_logger_severity(1)
    as_requested = ort.OrtArenaCfg({"arena_extend_strategy": 1, "initial_chunk_size_bytes": 256})
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0,
                               ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, as_requested)
    options = ort.SessionOptions()
    options.enable_mem_pattern = True
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.use_env_allocators", "1")
    # Weights lie elsewhere.
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    emptied = ort.RunOptions()
    emptied.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    with np.load(inputs) as values:
        feeds = {name: values[name] for name in values.files}
    outputs = session.run(None, feeds)
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, np.ascontiguousarray(value))
    kept = [np.empty_like(np.ascontiguousarray(output)) for output in outputs]
    for port, output in zip(session.get_outputs(), kept):
        binding.bind_output(port.name, "cpu", 0, output.dtype, output.shape, output.ctypes.data)
    for number in range(3):
        print(f"\nrun {number}", file=sys.stderr, flush=True)
        session.run_with_iobinding(binding, emptied)


def peer_bytes(model, inputs):
    """By run; the arena is empty in front of each."""
    done = subprocess.run([sys.executable, __file__, "--peer", model, inputs], check=False,
                          stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    runs = done.stderr.split("\nrun ")[1:]
    return [sum(map(int, EXTENDED.findall(run))) for run in runs]


def our_bytes(heddle, model, inputs):
    import numpy as np

    command = [heddle, "explain", model, "--json", "-"]
    with np.load(inputs) as values:
        for name in values.files:
            if values[name].ndim > 0:
                command += ["--shape", f"{name}={'x'.join(map(str, values[name].shape))}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["memory_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--models", default="build/bench-models")
    parser.add_argument("--json", help="file for the table")
    parser.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        run_peer(*options.peer)
        return 0
    with open(os.path.join(options.models, "cases.json"), encoding="utf-8") as file:
        cases = [case for case in json.load(file)
                 if not options.cases or case["case"] in options.cases]
    table, failed = [], []
    print(f"{'case':24} {'bound':>12} {'plan':>12} {'optimal':>8} {'arena':>12} {'ratio':>6}")
    for case in cases:
        model, inputs = (os.path.join(options.models, case[what]) for what in ["model", "inputs"])
        try:
            ours = our_bytes(options.heddle, model, inputs)
            arena = peer_bytes(model, inputs)[-1]
        except RuntimeError as failure:
            failed.append(f"{case['case']}: {failure}")
            continue
        row = {"case": case["case"], "arena": arena,
               **{key: ours[key] for key in ["temporaries", "temporaries_lower_bound",
                                             "temporaries_optimal"]}}
        row["ratio"] = row["temporaries"] / max(arena, 1)
        table.append(row)
        print(f"{row['case']:24} {row['temporaries_lower_bound']:12} {row['temporaries']:12} "
              f"{'yes' if row['temporaries_optimal'] else 'NO':>8} {arena:12} {row['ratio']:6.3f}",
              flush=True)
    for line in failed:
        print(f"failed: {line}")
    if table:
        print(f"largest ratio {max(row['ratio'] for row in table):.3f}; not optimal: "
              f"{sum(not row['temporaries_optimal'] for row in table)} of {len(table)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
