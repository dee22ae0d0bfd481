"""Writes onnx_contrib/: operators of com.microsoft, each a small model in the layout of ONNX's
backend tests, with the outputs of ONNX Runtime. Needs numpy, onnx and onnxruntime."""
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "onnx_contrib"
RANDOM = np.random.default_rng(7)
HEADS, WIDTH = 2, 4
ALL = HEADS * WIDTH


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def write(name, op, inputs, outputs=1, constants=(), domain="com.microsoft", **attributes):
    """inputs, constants: {place: array}. All outputs are floats, or {place: type}."""
    inputs, constants = dict(inputs), dict(constants)
    places = {**inputs, **constants}
    names = [f"x{i}" if i in places else "" for i in range(max(places) + 1)]
    results = [f"y{i}" for i in range(outputs)]
    nodes = [helper.make_node(op, names, results, domain=domain, **attributes)]
    kinds = [TensorProto.INT32 if op == "EmbedLayerNormalization" and i == 1 else TensorProto.FLOAT
             for i in range(outputs)]
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype),
                                       value.shape) for i, value in inputs.items()],
        [helper.make_tensor_value_info(key, kind, None) for key, kind in zip(results, kinds)],
        [numpy_helper.from_array(np.asarray(value), f"x{i}") for i, value in constants.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    wanted = session.run(results, {f"x{i}": value for i, value in inputs.items()})
    data = FOLDER / name / "test_data_set_0"
    data.mkdir(parents=True)
    (FOLDER / name / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs.values()), ("output", wanted)):
        for number, value in enumerate(values):
            tensor = numpy_helper.from_array(np.asarray(value))
            (data / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())


def products():
    write("fused_matmul", "FusedMatMul", {0: normal(2, 4, 3), 1: normal(2, 5, 4)}, alpha=0.5,
          transA=1, transB=1)
    write("fused_matmul_batches", "FusedMatMul", {0: normal(3, 2, 4), 1: normal(5, 2, 4)},
          transB=1, transBatchA=1, transBatchB=1)
    write("fused_gemm", "FusedGemm", {0: normal(4, 3), 1: normal(5, 4), 2: normal(5)}, alpha=1.5,
          beta=0.5, transA=1, transB=1, activation="LeakyRelu", activation_alpha=0.2)
    for name, more in (("relu", {}), ("leaky", {"activation_params": [0.3]}),
                       ("clip", {"activation_params": [-0.5, 0.75]}),
                       ("hard", {"activation_params": [0.3, 0.4]})):
        activation = {"relu": "Relu", "leaky": "LeakyRelu", "clip": "Clip", "hard": "HardSigmoid"}
        inputs = {0: normal(1, 3, 6, 5), 1: normal(4, 3, 3, 3), 2: normal(4)}
        if name == "relu":
            inputs[3] = normal(1, 4, 6, 5)
        write(f"fused_conv_{name}", "FusedConv", inputs, activation=activation[name],
              pads=[1, 1, 1, 1], **more)


def pointwise():
    write("gelu", "Gelu", {0: normal(3, 5)})
    write("bias_gelu", "BiasGelu", {0: normal(2, 3, 5), 1: normal(5)})
    write("fast_gelu", "FastGelu", {0: normal(2, 3, 5), 1: normal(5)})
    write("quick_gelu", "QuickGelu", {0: normal(2, 7)}, alpha=1.5)


def normalisations():
    x, skip, row = normal(2, 3, 8), normal(2, 3, 8), {i: normal(8) for i in (2, 3, 4)}
    write("skip_layer_norm", "SkipLayerNormalization", {0: x, 1: skip, **row}, epsilon=1e-5)
    write("skip_simplified", "SkipSimplifiedLayerNormalization",
          {0: x, 1: skip, 2: row[2], 3: row[3]}, epsilon=1e-5)
    write("simplified", "SimplifiedLayerNormalization", {0: x, 1: row[2]}, domain="", axis=-1,
          epsilon=1e-5)
    ids = RANDOM.integers(0, 9, (2, 5)).astype(np.int32)
    segments = RANDOM.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    tables = {2: normal(9, 8), 3: normal(6, 8), 4: normal(2, 8), 5: normal(8), 6: normal(8)}
    write("embed_layer_norm", "EmbedLayerNormalization", {0: ids, 1: segments, 7: mask}, outputs=2,
          constants=tables)


def attention():
    batch, queries = 2, 3
    x = normal(batch, queries, 6)
    weights = {1: normal(6, 3 * ALL) / 2, 2: normal(3 * ALL) / 2}
    ends = np.array([3, 2], np.int32)
    write("attention", "Attention", {0: x, 3: ends}, constants=weights, num_heads=HEADS)
    raw = np.array([[1, 1, 0], [0, 1, 1]], np.int32)
    write("attention_raw_mask", "Attention", {0: x, 3: raw}, constants=weights, num_heads=HEADS)
    past = normal(2, batch, HEADS, 4, WIDTH)
    write("attention_past", "Attention", {0: x, 4: past}, outputs=2, constants=weights,
          num_heads=HEADS, unidirectional=1)
    write("attention_bias", "Attention", {0: x, 5: normal(1, HEADS, queries, queries)},
          constants=weights, num_heads=HEADS, scale=0.7)
    keys = 5
    q, k, v = normal(batch, queries, ALL), normal(batch, keys, ALL), normal(batch, keys, ALL)
    write("multi_head", "MultiHeadAttention", {0: q, 1: k, 2: v, 3: normal(3 * ALL)},
          num_heads=HEADS)
    mask = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 0, 0]], np.int32)
    write("multi_head_mask", "MultiHeadAttention",
          {0: q, 1: k, 2: v, 4: mask, 5: normal(batch, HEADS, queries, keys)}, num_heads=HEADS)
    k, v = normal(batch, queries, ALL), normal(batch, queries, ALL)
    write("multi_head_past", "MultiHeadAttention",
          {0: q, 1: k, 2: v, 6: normal(batch, HEADS, 2, WIDTH), 7: normal(batch, HEADS, 2, WIDTH)},
          outputs=3, num_heads=HEADS, unidirectional=1)


def rotary():
    angle = RANDOM.uniform(0, 3, (12, WIDTH // 2)).astype(np.float32)
    tables = {2: np.cos(angle), 3: np.sin(angle)}
    positions = np.array([[3, 4, 5], [0, 1, 2]], np.int64)
    for interleaved in (0, 1):
        write(f"rotary_{interleaved}", "RotaryEmbedding",
              {0: normal(2, HEADS, 3, WIDTH), 1: positions}, constants=tables,
              interleaved=interleaved)
    write("rotary_flat", "RotaryEmbedding", {0: normal(2, 3, ALL), 1: np.array([2], np.int64)},
          constants=tables)


def group_query():
    batch, heads, shared, width = 2, 4, 2, 16  # the runtime rotates widths of 16
    angle = RANDOM.uniform(0, 3, (16, width // 2)).astype(np.float32)
    tables = {7: np.cos(angle), 8: np.sin(angle)}

    def parts(queries):
        return {0: normal(batch, queries, heads * width), 1: normal(batch, queries, shared * width),
                2: normal(batch, queries, shared * width)}

    write("group_query_prompt", "GroupQueryAttention",
          {**parts(5), 5: np.array([4, 4], np.int32)}, outputs=3,
          constants={6: np.int32(5), **tables}, num_heads=heads, kv_num_heads=shared, do_rotary=1)
    cache = {3: normal(batch, shared, 6, width), 4: normal(batch, shared, 6, width)}
    write("group_query_step", "GroupQueryAttention",
          {**parts(1), **cache, 5: np.array([6, 4], np.int32)}, outputs=3,
          constants={6: np.int32(7), **tables}, num_heads=heads, kv_num_heads=shared, do_rotary=1,
          rotary_interleaved=1)
    packed = normal(batch, 1, (heads + 2 * shared) * width)
    write("group_query_window", "GroupQueryAttention",
          {0: packed, **cache, 5: np.array([6, 6], np.int32)}, outputs=3,
          constants={6: np.int32(7)}, num_heads=heads, kv_num_heads=shared, local_window_size=3,
          softcap=2.0, scale=0.6)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for family in (products, pointwise, normalisations, attention, rotary, group_query):
        family()


if __name__ == "__main__":
    main()
