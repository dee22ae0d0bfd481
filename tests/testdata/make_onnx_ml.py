"""Writes onnx_ml/: operators of ai.onnx.ml and of strings, each a small model in the layout of
ONNX's backend tests, with the outputs of ONNX Runtime. Needs numpy, onnx and onnxruntime."""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "onnx_ml"
RANDOM = np.random.default_rng(7)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def ml(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain="ai.onnx.ml", **attributes)


def write(name, nodes, inputs, outputs, ml_opset=3, opset=20, folder=None):
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype)
                                       if value.dtype.kind not in "UO" else onnx.TensorProto.STRING,
                                       value.shape) for key, value in inputs.items()],
        [onnx.ValueInfoProto(name=key) for key in outputs])
    model = helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml_opset)])
    typed = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(typed.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    wanted = session.run(outputs, inputs)
    target = (folder or FOLDER) / name
    data = target / "test_data_set_0"
    data.mkdir(parents=True)
    (target / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", inputs.values()), ("output", wanted)):
        for number, value in enumerate(values):
            value = np.asarray(value)
            if value.dtype.kind == "U":
                value = value.astype(object)
            (data / f"{kind}_{number}.pb").write_bytes(
                numpy_helper.from_array(value).SerializeToString())


def features(rows, count, missing=False, dtype=np.float32):
    """Small whole numbers, so that tests for equality meet some."""
    x = RANDOM.integers(-3, 4, (rows, count)).astype(dtype)
    if missing:
        x[RANDOM.random(x.shape) < 0.2] = np.nan
        x[0, 0], x[-1, -1] = np.inf, -np.inf
    return x


def forest(kind, trees, depth, columns, targets, modes=MODES, missing=False, sign=True):
    """Attributes of random trees; `kind` is "class" or "target"."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values",
                                 "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}

    def add(tree, level):
        number = sum(1 for t in nodes["treeids"] if t == tree)
        leaf = level == 0 or (level < depth and RANDOM.random() < 0.2)
        for key, value in (("treeids", tree), ("nodeids", number),
                           ("featureids", 0 if leaf else int(RANDOM.integers(columns))),
                           ("modes", "LEAF" if leaf else str(RANDOM.choice(modes))),
                           ("values", float(RANDOM.integers(-3, 4))), ("truenodeids", 0),
                           ("falsenodeids", 0),
                           ("missing_value_tracks_true", int(missing and RANDOM.integers(2)))):
            nodes[key].append(value)
        at = len(nodes["treeids"]) - 1
        if leaf:
            for target in targets:
                weight = float(RANDOM.standard_normal())
                for key, value in (("treeids", tree), ("nodeids", number), ("ids", int(target)),
                                   ("weights", weight if sign else abs(weight) / trees)):
                    leaves[key].append(value)
        else:
            nodes["truenodeids"][at] = add(tree, level - 1)
            nodes["falsenodeids"][at] = add(tree, level - 1)
        return number

    for tree in range(trees):
        add(tree, depth)
    return {**{f"nodes_{key}": value for key, value in nodes.items()},
            **{f"{kind}_{key}": value for key, value in leaves.items()}}


def trees(folder=None):
    for missing in (False, True):
        write(f"tree_modes{'_missing' * missing}",
              [ml("TreeEnsembleRegressor", "x", "y", n_targets=2,
                  **forest("target", 4, 4, 3, range(2), missing=missing))],
              {"x": features(12, 3, missing)}, ["y"], folder=folder)
    for name in ("AVERAGE", "MIN", "MAX"):
        for count in (1, 3):
            write(f"tree_{name.lower()}_{count}",
                  [ml("TreeEnsembleRegressor", "x", "y", n_targets=count, aggregate_function=name,
                      base_values=[0.5 * k + 1 for k in range(count)],
                      **forest("target", 5, 3, 4, range(count), modes=MODES[:1]))],
                  {"x": features(9, 4)}, ["y"], folder=folder)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        base = [] if transform in ("NONE", "SOFTMAX_ZERO") else [0.1, -0.2, 0.3]
        write(f"tree_classes_{transform.lower()}",
              [ml("TreeEnsembleClassifier", "x", "label p", post_transform=transform,
                  classlabels_int64s=[3, 1, 7], **({"base_values": base} if base else {}),
                  **forest("class", 4, 3, 4, range(3)))],
              {"x": features(9, 4)}, ["label", "p"], folder=folder)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        for sign in (False, True):
            for base in ([], [0.25]):
                name = f"tree_binary_{transform.lower()}{'_signed' * sign}{'_base' * bool(base)}"
                write(name,
                      [ml("TreeEnsembleClassifier", "x", "label p", post_transform=transform,
                          classlabels_strings=["no", "yes"], **({"base_values": base} if base else {}),
                          **forest("class", 4, 3, 4, range(1), sign=sign))],
                      {"x": features(9, 4)}, ["label", "p"], folder=folder)
    wide = forest("class", 4, 3, 4, range(3))
    for key in ("nodes_values", "class_weights"):
        values = np.array(wide.pop(key))
        wide[key + "_as_tensor"] = numpy_helper.from_array(values, key)
    write("tree_doubles", [ml("TreeEnsembleClassifier", "x", "label p",
                              classlabels_int64s=[0, 1, 2], **wide)],
          {"x": features(9, 4, dtype=np.float64)}, ["label", "p"], folder=folder)
    write("tree_integers", [ml("TreeEnsembleClassifier", "x", "label p",
                               classlabels_int64s=[0, 1, 2], **forest("class", 4, 3, 4, range(3)))],
          {"x": features(9, 4).astype(np.int64)}, ["label", "p"], folder=folder)


def weights(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def linear(folder=None):
    x = {"x": weights(5, 4)}
    write("linear_regressor", [ml("LinearRegressor", "x", "y", targets=2, intercepts=[1.0, -1.0],
                                  coefficients=weights(8).tolist())], x, ["y"], folder=folder)
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        write(f"linear_classes_{transform.lower()}",
              [ml("LinearClassifier", "x", "label p", post_transform=transform,
                  classlabels_ints=[5, 2, 9], intercepts=weights(3).tolist(),
                  coefficients=weights(12).tolist())], x, ["label", "p"], folder=folder)
        write(f"linear_binary_{transform.lower()}",
              [ml("LinearClassifier", "x", "label p", post_transform=transform,
                  classlabels_strings=["a", "b"], intercepts=[0.1],
                  coefficients=weights(4).tolist())], x, ["label", "p"], folder=folder)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        write(f"svm_regressor_{kernel.lower()}",
              [ml("SVMRegressor", "x", "y", kernel_type=kernel, kernel_params=[0.3, 0.2, 3.0],
                  n_supports=6, support_vectors=weights(24).tolist(), rho=[0.4],
                  coefficients=weights(6).tolist())], x, ["y"], folder=folder)
    write("svm_one_class", [ml("SVMRegressor", "x", "y", kernel_type="RBF", one_class=1,
                               kernel_params=[0.3, 0.0, 0.0], n_supports=6, rho=[-0.1],
                               support_vectors=weights(24).tolist(),
                               coefficients=weights(6).tolist())], x, ["y"], folder=folder)
    for classes in (2, 3):
        for probabilities in (False, True):
            pairs = classes * (classes - 1) // 2
            extra = {"prob_a": (-1 - np.abs(weights(pairs))).tolist(),
                     "prob_b": weights(pairs).tolist()} if probabilities else {}
            write(f"svm_{classes}_classes{'_probabilities' * probabilities}",
                  [ml("SVMClassifier", "x", "label p", kernel_type="RBF",
                      kernel_params=[0.3, 0.0, 3.0], classlabels_ints=list(range(classes)),
                      vectors_per_class=[3] * classes, rho=weights(pairs).tolist(),
                      support_vectors=weights(3 * classes * 4).tolist(),
                      coefficients=weights((classes - 1) * 3 * classes).tolist(), **extra)],
                  x, ["label", "p"], folder=folder)


def columns(folder=None):
    x = features(5, 3)
    write("scaler", [ml("Scaler", "x", "y", offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, -1.0])], {"x": x}, ["y"],
          folder=folder)
    for norm in ("MAX", "L1", "L2"):
        write(f"normalizer_{norm.lower()}", [ml("Normalizer", "x", "y", norm=norm)],
              {"x": np.abs(x)}, ["y"], folder=folder)
    write("imputer", [ml("Imputer", "x", "y", imputed_value_floats=[1.0, 2.0, 3.0],
                         replaced_value_float=float("nan"))],
          {"x": features(5, 3, True)}, ["y"], folder=folder)
    write("imputer_integers", [ml("Imputer", "x", "y", imputed_value_int64s=[9],
                                  replaced_value_int64=2)],
          {"x": x.astype(np.int64)}, ["y"], folder=folder)
    write("feature_vectorizer", [ml("FeatureVectorizer", "a b", "y", inputdimensions=[3, 2])],
          {"a": x, "b": features(5, 2)}, ["y"], folder=folder)


def lookups(folder=None):
    words = np.array([["red", "blue"], ["grün", "red"]], object)
    write("label_strings", [ml("LabelEncoder", "x", "y", keys_strings=["red", "grün"],
                               values_int64s=[5, 7], default_int64=-3)], {"x": words}, ["y"],
          ml_opset=2, folder=folder)
    write("label_to_strings", [ml("LabelEncoder", "x", "y", keys_int64s=[4, -2, 10**12],
                                  values_strings=["a", "ü", "c"], default_string="?")],
          {"x": np.array([10**12, 4, 0, -2, -2**63])}, ["y"], ml_opset=2, folder=folder)
    write("label_floats", [ml("LabelEncoder", "x", "y", keys_floats=[0.0, 1.5, float("nan"), -2.25],
                              values_floats=[1.0, 2.0, 3.0, 4.0], default_float=-1.0)],
          {"x": np.array([1.5, -2.25, 0.5, np.nan, 0.0], np.float32)}, ["y"], ml_opset=4,
          folder=folder)
    write("category_mapper", [ml("CategoryMapper", "x", "y", cats_strings=["red", "blue"],
                                 cats_int64s=[4, 8], default_int64=-1)], {"x": words}, ["y"],
          ml_opset=1, folder=folder)
    write("one_hot_strings", [ml("OneHotEncoder", "x", "y", cats_strings=["blue", "red"])],
          {"x": words}, ["y"], ml_opset=1, folder=folder)
    write("one_hot_numbers", [ml("OneHotEncoder", "x", "y", cats_int64s=[7, 3, 100000])],
          {"x": np.array([3.0, 100000.0, 5.0], np.float32)}, ["y"], ml_opset=1, folder=folder)
    write("strings_move", [helper.make_node("Transpose", ["x"], ["t"]),
                           helper.make_node("Concat", ["x", "t"], ["y"], axis=0),
                           helper.make_node("Equal", ["x", "t"], ["same"])],
          {"x": words}, ["y", "same"], folder=folder)


def main(folder=None):
    if folder is None:
        shutil.rmtree(FOLDER, ignore_errors=True)
    for family in (trees, linear, columns, lookups):
        family(folder)


if __name__ == "__main__":
    if len(sys.argv) > 1:  # many other ones: make_onnx_ml.py FOLDER SEED
        RANDOM = np.random.default_rng(int(sys.argv[2]))
        main(pathlib.Path(sys.argv[1]))
    else:
        main()
