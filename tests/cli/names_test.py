"""A model's own node names are found again in heddle profile, explain, the trace and programs."""
import json
import sys
import unittest

from cli import MODELS, CliTest

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    sys.exit(77)

LEAST_SHARE = 0.95


def node_names(path):
    """Of all nodes, also of those that are constants and shape arithmetic: the name, else that of
    the first output."""
    graph = onnx.load(path, load_external_data=False).graph
    return {node.name or next(name for name in node.output if name) for node in graph.node}


def shown(rows):
    return {name for row in rows for name in row["nodes"]}


class NamesTest(CliTest):
    def profiled(self, model, *options):
        return self.json("profile", model, "--iterations", "1", *options)

    def test_exports_keep_their_names(self):
        for name in ["bert", "bert_dynamo", "bert_dynamic", "minilm", "resnet50", "dien",
                     "dien_dynamo", "gpt2_decode"]:
            with self.subTest(name):
                path = MODELS / name / "model.onnx"
                names = node_names(path)
                found = shown(self.profiled(path)["kernels"]) & names
                lost = sorted(names - found)
                self.assertGreaterEqual(len(found) / len(names), LEAST_SHARE, lost)

    def test_unfused_programs_keep_them_too(self):
        path = MODELS / "bert" / "model.onnx"
        names = node_names(path)
        for options in [["--level", "O0"], ["--level", "O1"], ["--fuse", "off"]]:
            with self.subTest(options):
                found = shown(self.profiled(path, *options)["kernels"]) & names
                self.assertGreaterEqual(len(found) / len(names), LEAST_SHARE, names - found)

    def test_everything_that_shows_commands_shows_names(self):
        path = MODELS / "bert" / "model.onnx"
        trace, program = self.folder / "trace.json", self.folder / "bert.heddle"
        rows = self.profiled(path, "--trace", trace)["kernels"]
        names = shown(rows)
        kernels = [row for row in rows if row["kernel"]]
        labels = [row["label"] for row in kernels]
        self.assertEqual(len(set(labels)), len(labels))  # a kernel, a label
        self.assertTrue(any(label.startswith("dot") for label in labels), labels)
        traced = {e["args"]["nodes"].split(", ")[0] for e in
                  json.loads(trace.read_text())["traceEvents"] if "nodes" in e.get("args", {})}
        self.assertTrue(traced)
        self.assertLessEqual(traced, names)
        explained = self.json("explain", path)
        self.assertEqual(shown(explained["commands"]), names)
        of_kernel = {k["name"]: k["label"] for k in explained["kernels"] if not k["once"]}
        self.assertEqual(of_kernel, {row["kernel"]: row["label"] for row in kernels})
        text = self.ok("profile", path, "--iterations", "1").stdout
        self.assertIn(labels[0], text)
        self.assertIn(kernels[0]["nodes"][0], text)
        kernel = self.ok("explain", path, "--kernel", labels[0]).stdout
        self.assertIn(kernels[0]["kernel"], kernel)
        # A saved program has both.
        page = self.folder / "page.html"
        self.ok("explain", path, "--html", page)
        data = page.read_text().split('id="data">')[1].split("</script>")[0]
        self.assertEqual(set(json.loads(data)["nodes"]), names)
        self.ok("compile", path, "-o", program)
        saved = self.profiled(program)["kernels"]
        self.assertEqual(shown(saved), names)
        self.assertEqual({row["label"] for row in saved if row["kernel"]}, set(labels))
        self.assertEqual(shown(self.json("inspect", program)["program"]["commands"]), names)

    def test_kernels_and_bits_do_not_depend_on_names(self):
        path = MODELS / "bert" / "model.onnx"
        model = onnx.load(path)
        for number, node in enumerate(model.graph.node):
            node.name = f"layer{number}/{node.op_type};%3B \"{number}\""
        other = self.folder / "other.onnx"
        onnx.save(model, other)
        kernels = [[(row["kernel"], row["label"], row["commands"])
                    for row in self.profiled(one, "--commands")["commands"]]
                   for one in (path, other)]
        self.assertEqual(*kernels)
        names = node_names(other)
        found = shown(self.profiled(other)["kernels"])
        self.assertGreaterEqual(len(found & names) / len(names), LEAST_SHARE)
        self.assertFalse(found - names)
        # The cache knows the two apart: names are part of a program.
        cache = ["--cache", self.folder / "cache"]
        for one in (path, other, path, other):
            self.assertEqual(shown(self.profiled(one, *cache)["kernels"]) - node_names(one), set())

    def function_model(self):
        half = helper.make_function(
            "own", "Half", ["a"], ["b"],
            [helper.make_node("Constant", [], ["h"], name="half",
                              value=helper.make_tensor("", TensorProto.FLOAT, [], [0.5])),
             helper.make_node("Mul", ["a", "h"], ["t"], name="scale"),
             helper.make_node("Tanh", ["t"], ["b"])],
            [helper.make_opsetid("", 18)])
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("Half", ["x"], ["y"], name="block.0", domain="own"),
             helper.make_node("Half", ["y"], ["z"], name="block.1", domain="own"),
             helper.make_node("Relu", ["z"], ["out"])],
            "g", [info("x", TensorProto.FLOAT, [64])], [info("out", TensorProto.FLOAT, [64])])
        path = self.folder / "function.onnx"
        onnx.save(helper.make_model(graph, functions=[half], ir_version=9, opset_imports=[
            helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]), path)
        return path

    def saved(self, name, nodes, outputs):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [4, 8])],
                                  [info(output, TensorProto.FLOAT, None) for output in outputs])
        path = self.folder / f"{name}.onnx"
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)
        return path

    def assert_all_shown(self, path, names):
        for options in [[], ["--level", "O0"], ["--device", "interp"]]:
            with self.subTest(options):
                self.assertEqual(shown(self.profiled(path, *options)["kernels"]), names)

    @staticmethod
    def constant(name, kind, dims, values):
        return helper.make_node("Constant", [], [name], name=f"/{name}/Constant",
                                value=helper.make_tensor("", kind, dims, values))

    @staticmethod
    def branch(nodes, output):
        return helper.make_graph(nodes, "b", [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])

    def test_a_branch_that_is_known_names_its_condition(self):
        node = helper.make_node
        taken = self.branch([node("Mul", ["x", "twice"], ["t"], name="/if/then/Mul"),
                             node("Tanh", ["t"], ["a"], name="/if/then/Tanh")], "a")
        other = self.branch([node("Neg", ["x"], ["b"], name="/if/else/Neg")], "b")
        passed = self.branch([node("Identity", ["y"], ["c"], name="/pass/then/Identity")], "c")
        nodes = [node("Shape", ["x"], ["shape"], name="/if/Shape"),
                 self.constant("rows", TensorProto.INT64, [2], [4, 8]),
                 node("Equal", ["shape", "rows"], ["same"], name="/if/Equal"),
                 node("Cast", ["same"], ["ints"], name="/if/Cast", to=TensorProto.INT64),
                 node("ReduceMin", ["ints"], ["all"], name="/if/ReduceMin", keepdims=0),
                 node("Cast", ["all"], ["is"], name="/if/Cast_1", to=TensorProto.BOOL),
                 self.constant("two", TensorProto.FLOAT, [], [2]),
                 node("Add", ["two", "two"], ["twice"], name="/twice/Add"),
                 node("If", ["is"], ["y"], name="/if/If", then_branch=taken, else_branch=other),
                 node("If", ["is"], ["z"], name="/pass/If", then_branch=passed, else_branch=other)]
        names = {n.name for n in nodes} | {"/if/then/Mul", "/if/then/Tanh", "/pass/then/Identity"}
        self.assert_all_shown(self.saved("known", nodes, ["z"]), names)

    def test_what_branches_and_loops_read_names_what_made_it(self):
        node, info = helper.make_node, helper.make_tensor_value_info
        one = self.branch([node("Add", ["x", "twice"], ["a"], name="/if/then/Add")], "a")
        other = self.branch([node("Neg", ["x"], ["b"], name="/if/else/Neg")], "b")
        body = helper.make_graph(
            [node("Tanh", ["carried"], ["next"], name="/loop/body/Tanh"),
             node("Identity", ["on"], ["again"], name="/loop/body/Identity"),
             node("Relu", ["next"], ["slice"], name="/loop/body/Relu")], "body",
            [info("i", TensorProto.INT64, []), info("on", TensorProto.BOOL, []),
             info("carried", TensorProto.FLOAT, [4, 8])],
            [info("again", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, [4, 8]),
             info("slice", TensorProto.FLOAT, [4, 8])])
        for trips in (2, 5):  # written out; a loop
            nodes = [self.constant("two", TensorProto.FLOAT, [], [2]),
                     node("Add", ["two", "two"], ["twice"], name="/twice/Add"),
                     node("ReduceSum", ["x"], ["sum"], name="/if/ReduceSum", keepdims=0),
                     node("Greater", ["sum", "two"], ["is"], name="/if/Greater"),
                     node("If", ["is"], ["y"], name="/if/If", then_branch=one, else_branch=other),
                     self.constant("trips", TensorProto.INT64, [], [trips]),
                     self.constant("true", TensorProto.BOOL, [], [True]),
                     node("Not", ["true"], ["false"], name="/loop/Not"),
                     node("Not", ["false"], ["go"], name="/loop/Not_1"),
                     node("Loop", ["trips", "go", "y"], ["z", "all"], name="/loop/Loop", body=body)]
            names = {n.name for n in nodes} | {"/if/then/Add", "/if/else/Neg"} | {n.name for n in body.node}
            self.assert_all_shown(self.saved(f"trips{trips}", nodes, ["z", "all"]), names)

    def test_bodies_of_functions_say_who_calls(self):
        found = shown(self.profiled(self.function_model())["kernels"])
        self.assertEqual(found, {f"block.{b}/{n}" for b in (0, 1) for n in ("half", "scale", "b")}
                         | {"out"})


if __name__ == "__main__":
    sys.exit(unittest.main())
