"""Writes onnx_contrib/: operators of com.microsoft, each a small model in the layout of ONNX's
backend tests, with the outputs of ONNX Runtime, or of standard operators where it has no kernel for a CPU. Needs numpy, onnx and onnxruntime."""
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


def model_of(name, nodes, inputs, constants, results, kinds):
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(value.dtype),
                                       value.shape) for i, value in inputs.items()],
        [helper.make_tensor_value_info(key, kind, None) for key, kind in zip(results, kinds)],
        [numpy_helper.from_array(np.asarray(value), f"x{i}") for i, value in constants.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])


def write(name, op, inputs, outputs=1, constants=(), domain="com.microsoft", kind=TensorProto.FLOAT,
          **attributes):
    """inputs, constants: {place: array}. `kind`: of the outputs."""
    inputs, constants = dict(inputs), dict(constants)
    places = {**inputs, **constants}
    names = [f"x{i}" if i in places else "" for i in range(max(places) + 1)]
    results = [f"y{i}" for i in range(outputs)]
    nodes = [helper.make_node(op, names, results, domain=domain, **attributes)]
    kinds = [TensorProto.INT32 if op == "EmbedLayerNormalization" and i == 1 else kind
             for i in range(outputs)]
    model = model_of(name, nodes, inputs, constants, results, kinds)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    wanted = session.run(results, {f"x{i}": value for i, value in inputs.items()})
    keep(name, model, inputs, wanted)


def keep(name, model, inputs, wanted):
    data = FOLDER / name / "test_data_set_0"
    data.mkdir(parents=True)
    (FOLDER / name / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs.values()), ("output", wanted)):
        for number, value in enumerate(values):
            tensor = numpy_helper.from_array(np.asarray(value))
            (data / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())


def rewrite(of_model, name, constants, **attributes):
    """The inputs and outputs of a model, computed from other constants."""
    shutil.copytree(FOLDER / of_model, FOLDER / name)
    model = onnx.load(FOLDER / name / "model.onnx")
    graph, node = model.graph, model.graph.node[0]
    inputs = [value.name for value in graph.input]
    places = {f"x{i}" for i in constants} | set(inputs)
    new = helper.make_node(node.op_type, [f"x{i}" if f"x{i}" in places else "" for i in
                                          range(max(constants) + 1)], node.output,
                           domain=node.domain, **attributes)
    del graph.node[:], graph.initializer[:]
    graph.node.append(new)
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), f"x{i}")
                             for i, value in constants.items())
    (FOLDER / name / "model.onnx").write_bytes(model.SerializeToString())


def byte(kind, *shape):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(kind)


def of(kind, *numbers):
    """Scales as f32, zero points in `kind`, in turn."""
    return [np.asarray(n, np.float32 if i % 2 == 0 else kind) for i, n in enumerate(numbers)]


def quantised():
    u8, s8 = TensorProto.UINT8, TensorProto.INT8
    for kind, tensor, zero in [(np.uint8, u8, 120), (np.int8, s8, -7)]:
        name = np.dtype(kind).name
        xs, xz, ys, yz = of(kind, 0.0517, zero, 0.0831, zero + 3)
        for op, shape, more in [("QLinearSigmoid", (2, 33), {}), ("QLinearLeakyRelu", (2, 33), {"alpha": 0.25}),
                                ("QLinearGlobalAveragePool", (2, 3, 4, 4), {"channels_last": 0}),
                                ("QLinearAveragePool", (1, 2, 6, 5), {"kernel_shape": [2, 2], "strides": [2, 1]}),
                                ("QLinearSoftmax", (3, 17), {"axis": -1, "opset": 13})]:
            scale = np.float32(1 / 256) if op in ("QLinearSoftmax", "QLinearSigmoid") else ys
            write(f"{op.lower()}_{name}", op, {0: byte(kind, *shape)}, constants={1: xs, 2: xz, 3: scale, 4: yz},
                  kind=tensor, **more)
        for op in ["QLinearAdd", "QLinearMul"]:
            write(f"{op.lower()}_{name}", op, {0: byte(kind, 4, 9), 3: byte(kind, 9)},
                  constants={1: xs, 2: xz, 4: np.float32(0.0313), 5: yz, 6: np.float32(0.317), 7: xz}, kind=tensor)
        write(f"qlinearconcat_{name}", "QLinearConcat", {2: byte(kind, 2, 3), 5: byte(kind, 2, 4)},
              constants={0: ys, 1: yz, 3: xs, 4: xz, 6: np.float32(1 / 4), 7: yz}, kind=tensor, axis=1)
        write(f"qgemm_{name}", "QGemm", {0: byte(kind, 5, 12)},
              constants={1: xs, 2: xz, 3: byte(np.int8, 7, 12), 4: np.full(7, 1 / 64, np.float32),
                         5: np.zeros(7, np.int8), 6: RANDOM.integers(-500, 500, 7).astype(np.int32), 7: np.float32(1 / 2),
                         8: xz}, kind=tensor, transB=1)
        write(f"qlinearwhere_{name}", "QLinearWhere", {0: RANDOM.random((3, 5)) < 0.5, 1: byte(kind, 3, 5),
                                                       4: byte(kind, 5)},
              constants={2: xs, 3: xz, 5: np.float32(1 / 32), 6: yz, 7: ys, 8: yz}, kind=tensor)
    write("matmul_integer_to_float", "MatMulIntegerToFloat", {0: byte(np.uint8, 3, 8)},
          constants={1: byte(np.int8, 8, 6), 2: np.float32(0.02), 3: np.full(6, 0.03, np.float32), 4: np.uint8(11),
                     5: np.zeros(6, np.int8), 6: normal(6)})
    write("dynamic_quantize_matmul", "DynamicQuantizeMatMul", {0: normal(3, 8)},
          constants={1: byte(np.int8, 8, 6), 2: np.float32(0.02), 3: np.int8(0), 4: normal(6)})
    for bits, size, zeros in [(4, 32, False), (4, 16, True), (8, 32, False), (4, 64, True)]:
        k, n = 192, 24
        blocks = -(-k // size)
        for rows in [1, 5]:
            constants = {1: byte(np.uint8, n, blocks, size * bits // 8),
                         2: np.abs(normal(n, blocks)) * np.float32(0.01)}
            if zeros:
                constants[3] = byte(np.uint8, n, -(-blocks * bits // 8))
            write(f"matmul_nbits_{bits}_{size}{'_zeros' if zeros else ''}_{rows}", "MatMulNBits", {0: normal(rows, k)},
                  constants=constants, K=k, N=n, bits=bits, block_size=size)


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


def packed(numbers, bits):
    """Numbers of so many bits along the last dimension, the lowest first."""
    each = 8 // bits
    numbers = np.concatenate([numbers, numbers[..., :-numbers.shape[-1] % each]], -1)
    parts = [numbers[..., i::each] << (bits * i) for i in range(each)]
    return np.bitwise_or.reduce(parts).astype(np.uint8)


def experts():
    width, inner = 8, 6
    for rows, count, k in [(5, 4, 2), (1, 6, 2)]:
        scores = normal(rows, count)
        first, second = normal(count, inner, width), normal(count, width, inner)
        weights = {2: first, 3: normal(count, inner), 4: second, 5: normal(count, width)}
        for kind, normed in [("relu", 0), ("gelu", 1), ("silu", 0), ("identity", 1)]:
            write(f"moe_{kind}_{rows}", "MoE", {0: normal(rows, width), 1: scores},
                  constants=weights, k=k, activation_type=kind, normalize_routing_weights=normed)
        weights[2], weights[3] = normal(count, 2 * inner, width), normal(count, 2 * inner)
        gated = dict(k=k, activation_type="swiglu", normalize_routing_weights=1,
                     activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.5)
        write(f"moe_swiglu_{rows}", "MoE", {0: normal(1, rows, width), 1: scores},
              constants=weights, swiglu_fusion=1, **gated)
        # Two layouts that the runtime has on GPUs only: the same numbers in another order.
        even, odd = slice(0, None, 2), slice(1, None, 2)
        rest = {4: weights[4], 5: weights[5]}
        for name, others, more in [
                ("halves", {2: np.concatenate([weights[2][:, even], weights[2][:, odd]], 1),
                            3: np.concatenate([weights[3][:, even], weights[3][:, odd]], 1)},
                 {"swiglu_fusion": 2}),
                ("apart", {2: weights[2][:, even], 3: weights[3][:, even], 6: weights[2][:, odd],
                           7: weights[3][:, odd]}, {})]:
            rewrite(f"moe_swiglu_{rows}", f"moe_swiglu_{name}_{rows}", {**rest, **others}, **gated,
                    **more)
    width = inner = 32
    # (8 bits in blocks: the runtime rounds the rows to bytes as well.)
    for bits, block, zeros, rows in [(4, 16, True, 3), (4, 0, False, 1), (8, 0, True, 3)]:
        count = 4
        weights = {}
        for i, (outputs, inputs) in enumerate([(2 * inner, width), (width, inner)]):
            scales = (count, outputs) + ((inputs // block,) if block else ())
            numbers = RANDOM.integers(0, 1 << bits, (count, outputs, inputs))
            weights[2 + 3 * i] = packed(numbers, bits)
            weights[3 + 3 * i] = RANDOM.uniform(0.01, 0.1, scales).astype(np.float32) / bits
            weights[4 + 3 * i] = normal(count, outputs)
            if zeros:
                weights[11 + i] = packed(RANDOM.integers(0, 1 << bits, scales), bits)
        more = {"block_size": block} if block else {}
        write(f"qmoe_{bits}_{block}", "QMoE", {0: normal(rows, width), 1: normal(rows, count)},
              constants=weights, k=2, activation_type="swiglu", swiglu_fusion=1,
              normalize_routing_weights=1, expert_weight_bits=bits, weights_prepacked=0, **more)


def record(name, op, inputs, wanted, constants=(), **attributes):
    """An operator that ONNX Runtime has on GPUs only, with outputs that were computed here."""
    places = {**inputs, **dict(constants)}
    names = [f"x{i}" if i in places else "" for i in range(max(places) + 1)]
    results = [f"y{i}" for i in range(len(wanted))]
    node = helper.make_node(op, names, results, domain="com.microsoft", **attributes)
    kinds = [TensorProto.FLOAT] * len(wanted)
    keep(name, model_of(name, [node], inputs, dict(constants), results, kinds), inputs, wanted)


def standard(nodes, inputs, results):
    """What ONNX Runtime makes of standard operators."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(key, TensorProto.FLOAT, value.shape)
                     for key, value in inputs.items()],
        [helper.make_tensor_value_info(key, TensorProto.FLOAT, None) for key in results])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(results, inputs)


def images():
    x, skip, bias, gamma, beta = normal(2, 3, 5, 8), normal(2, 8), normal(8), normal(8), normal(8)
    node = helper.make_node
    back = [node("Transpose", ["n"], ["y"], perm=[0, 2, 3, 1])]
    normed = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
              node("GroupNormalization", ["t", "g", "b"], ["m"], num_groups=4, epsilon=1e-5)]
    silu = [node("Sigmoid", ["m"], ["s"]), node("Mul", ["m", "s"], ["n"])]
    sides = {"g": gamma, "b": beta}
    constants = {1: gamma, 2: beta}
    record("group_norm", "GroupNorm", {0: x}, standard(
        [*normed, node("Identity", ["m"], ["n"]), *back], {"x": x, **sides}, ["y"]), constants,
           groups=4, activation=0)
    record("group_norm_silu", "GroupNorm", {0: x}, standard(
        [*normed, *silu, *back], {"x": x, **sides}, ["y"]), constants, groups=4, activation=1)
    total = x + skip[:, None, None] + bias
    record("skip_group_norm", "SkipGroupNorm", {0: x, 3: skip}, standard(
        [*normed, *silu, *back], {"x": total, **sides}, ["y"]) + [total], {**constants, 4: bias},
           groups=4, activation=1)
    wide = normal(2, 3, 8)
    record("bias_split_gelu", "BiasSplitGelu", {0: wide, 1: bias}, standard(
        [node("Add", ["x", "b"], ["a"]), node("Split", ["a"], ["l", "r"], axis=2, num_outputs=2),
         node("Constant", [], ["k"], value_float=0.5 ** 0.5), node("Mul", ["r", "k"], ["q"]),
         node("Erf", ["q"], ["e"]), node("Constant", [], ["one"], value_float=1.0),
         node("Add", ["e", "one"], ["f"]), node("Mul", ["r", "f"], ["h"]),
         node("Constant", [], ["half"], value_float=0.5), node("Mul", ["h", "half"], ["g"]),
         node("Mul", ["l", "g"], ["y"])], {"x": wide, "b": bias}, ["y"]))
    record("bias_add", "BiasAdd", {0: wide, 1: bias, 2: wide * 2}, [wide * 3 + bias])
    kernel, added = normal(6, 4, 2, 3), normal(6)
    record("nhwc_conv", "NhwcConv", {0: x}, standard(
        [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
         node("Conv", ["t", "w", "b"], ["n"], group=2, pads=[0, 1, 1, 1], strides=[1, 2]), *back],
        {"x": x, "w": kernel, "b": added}, ["y"]),
           {1: kernel.transpose(0, 2, 3, 1), 2: added}, group=2,
           pads=[0, 1, 1, 1], strides=[1, 2])


def decoders():
    """What quantised and later decoders have: sinks, tables in blocks, attention of bytes."""
    batch, heads, shared, width = 2, 4, 2, 16
    parts = {0: normal(batch, 3, heads * width), 1: normal(batch, 3, shared * width),
             2: normal(batch, 3, shared * width), 5: np.array([2, 2], np.int32)}
    more = dict(num_heads=heads, kv_num_heads=shared)
    write("group_query_smooth", "GroupQueryAttention", parts, outputs=3,
          constants={6: np.int32(3)}, smooth_softmax=1, **more)
    write("group_query_sink", "GroupQueryAttention", parts, outputs=3,
          constants={6: np.int32(3), 11: normal(heads)}, **more)
    rows = np.array([[3, -1], [0, 2]], np.int64)
    for bits, zeros in [(4, True), (8, False), (4, False)]:
        table = RANDOM.integers(0, 1 << bits, (5, 48))
        scales = RANDOM.uniform(0.01, 0.1, (5, 3)).astype(np.float32)
        constants = {0: packed(table, bits), 2: scales}
        if zeros:
            constants[3] = packed(RANDOM.integers(0, 1 << bits, (5, 3)), bits)
        write(f"gather_block_{bits}_{int(zeros)}", "GatherBlockQuantized", {1: rows},
              constants=constants, bits=bits, block_size=16, gather_axis=0, quantize_axis=1)
    weights = {1: byte(np.int8, 6, 3 * ALL), 2: normal(3 * ALL), 4: np.float32(0.02),
               7: np.int8(0)}
    scale = {3: np.float32(0.015), 6: np.uint8(117)}
    x = byte(np.uint8, 2, 3, 6)
    write("q_attention", "QAttention", {0: x, 5: np.array([3, 2], np.int32)},
          constants={**weights, **scale}, num_heads=HEADS)
    write("q_attention_past", "QAttention", {0: x, 8: normal(2, 2, HEADS, 4, WIDTH)}, outputs=2,
          constants={**weights, **scale, 4: np.full(3 * ALL, 0.02, np.float32),
                     7: np.zeros(3 * ALL, np.int8)}, num_heads=HEADS, unidirectional=1)


def relative():
    """T5's buckets as its paper's code has them, in numpy."""
    table = normal(8, HEADS)
    for both_ways in (0, 1):
        distance = np.arange(7)[None, :] - np.arange(5)[:, None]
        buckets, first = (4, (distance > 0) * 4) if both_ways else (8, 0)
        length = np.abs(distance) if both_ways else np.maximum(-distance, 0)
        near = buckets // 2
        far = np.log(np.maximum(length, 1) / near) / np.log(6 / near) * (buckets - near)
        far = np.minimum(near + far.astype(np.int64), buckets - 1)
        wanted = table[first + np.where(length < near, length, far)].transpose(2, 0, 1)[None]
        record(f"relative_{both_ways}", "RelativePositionBias", {0: table}, [wanted],
               {1: np.array([5], np.int64), 2: np.array([7], np.int64)}, max_distance=6,
               is_bidirectional=both_ways)


def standard_names():
    x = normal(3, 4)
    write("trilu", "Trilu", {0: x}, constants={1: np.int64(-1)}, upper=0)
    write("transpose_matmul", "TransposeMatMul", {0: x, 1: normal(3, 2)}, transA=1, alpha=0.5)
    write("expand_dims", "ExpandDims", {0: x}, constants={1: np.int32(-2)})
    write("gather_nd", "GatherND", {0: x, 1: np.array([[1, 2], [2, 0]], np.int64)})
    write("pad", "Pad", {0: x}, constants={1: np.array([1, 0, 0, 2], np.int64),
                                           2: np.array([7], np.float32)})


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for family in (products, pointwise, normalisations, attention, rotary, group_query, quantised,
                   experts, images, decoders, relative, standard_names):
        family()


if __name__ == "__main__":
    main()
