"""ONNX operators at their edges: NaN, infinities, ties, empty dimensions, integers that overflow.
All cases are one model; the interpreter and the levels must give the same, which is what
docs/numerics.md says. Needs the packages onnx and numpy."""
import sys
import unittest

try:
    import numpy as np
    from onnx import helper, numpy_helper
except ImportError:
    print("the packages numpy and onnx are missing: tests of edge cases are skipped")
    sys.exit(77)

from cli import CliTest

NAN, INF = float("nan"), float("inf")
ROWS = [[1, 3, 3, 2], [NAN, 1, NAN, 2], [INF, -INF, INF, 0], [-1, -1, -1, -1]]


def f32(values, shape=None):
    array = np.array(values, np.float32)
    return array if shape is None else array.reshape(shape)


def i64(*values):
    return np.array(values, np.int64)


def empty(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


# name, operator, inputs (None: left out), attributes, wanted outputs
CASES = [
    # A NaN is larger than every number (smaller for ArgMin), the first of several wins.
    ("arg_max", "ArgMax", [f32(ROWS)], {"axis": 1, "keepdims": 0}, [i64(1, 0, 0, 0)]),
    ("arg_max_last", "ArgMax", [f32(ROWS)], {"axis": 1, "keepdims": 0, "select_last_index": 1},
     [i64(2, 2, 2, 3)]),
    ("arg_min_last", "ArgMin", [f32(ROWS)], {"axis": 1, "keepdims": 0, "select_last_index": 1},
     [i64(0, 2, 1, 3)]),
    ("arg_max_long", "ArgMax", [f32([[0] * 5 + [NAN] + [1] * 20 + [NAN] * 14])],
     {"axis": 1, "keepdims": 0}, [i64(5)]),
    ("hardmax", "Hardmax", [f32(ROWS)], {},
     [f32([[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])]),
    ("max_pool", "MaxPool", [f32([1, NAN, 2, 3, NAN, NAN, 5, 0], (1, 1, 8))],
     {"kernel_shape": [2], "strides": [2]},
     [f32([NAN, 3, NAN, 5], (1, 1, 4)), i64(1, 3, 4, 6).reshape(1, 1, 4)]),
    # Padding is nowhere, also where all elements are as low as it.
    ("max_pool_lowest", "MaxPool", [np.array([0, 0, 0, 7], np.uint8).reshape(1, 1, 4)],
     {"kernel_shape": [3], "strides": [2], "pads": [1, 1]},
     [np.array([0, 7], np.uint8).reshape(1, 1, 2), i64(0, 3).reshape(1, 1, 2)]),
    ("max_pool_of_minus_infinity", "MaxPool", [f32([-INF, -INF, 1], (1, 1, 3))],
     {"kernel_shape": [2], "pads": [1, 0]},
     [f32([-INF, -INF, 1], (1, 1, 3)), i64(0, 0, 2).reshape(1, 1, 3)]),
    ("global_max_pool", "GlobalMaxPool", [f32([1, NAN, 2], (1, 1, 3))], {},
     [f32([NAN], (1, 1, 1))]),
    ("scatter_min", "ScatterElements",
     [f32([1, 2, NAN, 4]), i64(0, 1, 2, 3), f32([NAN, 1, 0, 5])], {"axis": 0, "reduction": "min"},
     [f32([NAN, 1, NAN, 4])]),
    ("layer_norm", "LayerNormalization", [f32([[INF, 0], [1, -1]]), f32([1, 1])],
     {"axis": -1, "epsilon": 0.0}, [f32([[NAN, NAN], [1, -1]])]),
    # Integers are modulo 2^bits; what is a function of their sum sees the exact one.
    ("pow", "Pow", [np.array([2, 3, -2, 2, -1], np.int32), np.array([40, 40, 31, -1, -3], np.int32)],
     {}, [np.array([0, 689956897, -2147483648, 0, -1], np.int32)]),
    ("sum_square", "ReduceSumSquare", [np.array([70000, 2], np.int32)], {"keepdims": 0},
     [np.array(605032708, np.int32)]),
    ("l2", "ReduceL2", [np.array([70000, 400], np.uint32)], {"keepdims": 0},
     [np.array(70001, np.uint32)]),
    ("l1", "ReduceL1", [np.array([200, 50], np.uint32)], {"keepdims": 0},
     [np.array(250, np.uint32)]),
    ("log_sum", "ReduceLogSum", [np.array([20, 100], np.int32)], {"keepdims": 0},
     [np.array(4, np.int32)]),
    ("log_sum_exp", "ReduceLogSumExp", [np.array([20, 10], np.int32)], {"keepdims": 0},
     [np.array(20, np.int32)]),
    ("mean", "ReduceMean", [np.array([2147483647, 2147483645], np.int32)], {"keepdims": 0},
     [np.array(2147483646, np.int32)]),
    ("mean_down", "ReduceMean", [np.array([-3, -4], np.int32)], {"keepdims": 0},
     [np.array(-3, np.int32)]),
    # Of nothing: the neutral value, NaN for a mean, 0 for one of integers.
    ("mean_empty", "ReduceMean", [empty(2, 0, 3), i64(1)], {"keepdims": 1},
     [f32([NAN] * 6, (2, 1, 3))]),
    ("mean_empty_s32", "ReduceMean", [empty(2, 0, dtype=np.int32), i64(1)], {"keepdims": 0},
     [np.array([0, 0], np.int32)]),
    ("prod_empty", "ReduceProd", [empty(2, 0, 3), i64(1)], {"keepdims": 0}, [f32([1] * 6, (2, 3))]),
    ("prod_of_rest", "ReduceProd", [empty(2, 0, 3), i64(0)], {"keepdims": 0}, [empty(0, 3)]),
    ("l2_empty", "ReduceL2", [empty(2, 0, 3), i64(0, 1)], {}, [f32([0] * 3, (1, 1, 3))]),
    ("square_empty", "ReduceSumSquare", [empty(0, 3)], {"keepdims": 0}, [f32(0)]),
    ("max_empty", "ReduceMax", [empty(0, 3, dtype=np.int32), i64(0)], {"keepdims": 0},
     [np.array([-2147483648] * 3, np.int32)]),
    # Windows.
    ("same_upper", "ConvTranspose", [f32([1, 2, 3], (1, 1, 3)), f32([1], (1, 1, 1))],
     {"auto_pad": "SAME_UPPER", "strides": [2]}, [f32([0, 1, 0, 2, 0, 3], (1, 1, 6))]),
    ("lp_pool", "LpPool", [f32([1, 2, 3, 4], (1, 1, 4))],
     {"kernel_shape": [3], "strides": [2], "ceil_mode": 1, "p": 1}, [f32([6, 7], (1, 1, 2))]),
    ("average_pool", "AveragePool", [np.arange(1.0, 9.0).reshape(1, 1, 8)],
     {"kernel_shape": [3], "strides": [2], "dilations": [2], "pads": [1, 1], "ceil_mode": 1,
      "count_include_pad": 1}, [np.array([2.0, 4, 6, 7]).reshape(1, 1, 4)]),
    # A quotient that is summed in one vector: lanes beyond the row hold nothing.
    ("quotients", ["Div", "ReduceMean"], [f32([[1, 2, 3, 4, 5, 6, 7, 8]]), f32([[2] * 8])],
     {"keepdims": 0}, [f32(2.25)]),
    # Types and extents that the operators allow.
    ("abs", "Abs", [np.array([0, 5, 200], np.uint8)], {}, [np.array([0, 5, 200], np.uint8)]),
    ("sign", "Sign", [np.array([0, 5, 200], np.uint8)], {}, [np.array([0, 1, 1], np.uint8)]),
    ("pad_edge", "Pad", [empty(0, 2), i64(0, 1, 0, 1)], {"mode": "edge"}, [empty(0, 4)]),
    ("pad_reflect", "Pad", [empty(0, 2), i64(0, 1, 0, 1)], {"mode": "reflect"}, [empty(0, 4)]),
    ("gather", "Gather", [empty(0, 2), i64()], {"axis": 0}, [empty(0, 2)]),
    ("gather_elements", "GatherElements", [empty(0, 2), empty(0, 2, dtype=np.int64)], {"axis": 0},
     [empty(0, 2)]),
]
# Inputs that must be known when the model is read.
CONSTANT = {"ReduceProd": 1, "ReduceL2": 1, "ReduceMean": 1, "ReduceMax": 1, "ReduceSumSquare": 1,
            "Pad": 1}
REFUSED = [
    ("EyeLike", [empty(2, 3, 4)], {}, "2 dimensions"),
    ("Trilu", [empty(3)], {}, "2 or more dimensions"),
    ("Pad", [empty(0, 2), i64(1, 0, 0, 0)], {"mode": "edge"}, "empty dimension"),
    ("GatherElements", [empty(0, 2), empty(1, 2, dtype=np.int64)], {"axis": 0}, "nothing to take"),
    ("PRelu", [f32([1, 2]), f32([[[1, 2]]])], {}, "does not broadcast"),
]


def model_of(cases):
    """Bytes of one model of all cases, its inputs and the wanted outputs by name."""
    nodes, inputs, constants, wanted = [], {}, [], {}
    for name, operators, values, attributes, outputs in cases:
        operators = operators if isinstance(operators, list) else [operators]
        names = []
        for i, value in enumerate(values):
            names.append(f"{name}_in{i}")
            if i >= CONSTANT.get(operators[-1], 9) and len(operators) == 1:
                constants.append(numpy_helper.from_array(value, names[-1]))
            else:
                inputs[names[-1]] = value
        results = [f"{name}_{i}" for i in range(len(outputs))]
        for operator in operators[:-1]:
            nodes.append(helper.make_node(operator, names, [name + "_between"]))
            names = [name + "_between"]
        nodes.append(helper.make_node(operators[-1], names, results, **attributes))
        wanted.update(zip(results, outputs))
    info = [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype),
                                          value.shape) for key, value in inputs.items()]
    graph = helper.make_graph(nodes, "edges", info,
                              [helper.make_empty_tensor_value_info(key) for key in wanted],
                              constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model.SerializeToString(), inputs, wanted


class OnnxEdgesTest(CliTest):
    def test_values(self):
        data, inputs, wanted = model_of(CASES)
        model = self.file("edges.onnx", data)
        np.savez(self.folder / "in.npz", **inputs)
        for way in (["--device", "interp"], ["--level", "O0"], ["--level", "O1"], ["--level", "O2"]):
            outputs = self.folder / "out.npz"
            self.ok("run", model, "--inputs", self.folder / "in.npz", "--outputs", outputs, *way)
            got = np.load(outputs)
            for name, value in wanted.items():
                with self.subTest(name=name, way=way):
                    self.assertEqual(value.dtype, got[name].dtype)
                    np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=0)

    def test_what_is_refused_says_why(self):
        for operator, values, attributes, reason in REFUSED:
            with self.subTest(operator=operator):
                data, _, _ = model_of([("y", operator, values, attributes, [empty(1)])])
                model = self.file("refused.onnx", data)
                self.assertIn(reason, self.fails(2, "run", model))


if __name__ == "__main__":
    unittest.main(verbosity=2)
