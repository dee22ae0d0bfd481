"""A program that uses every public name of heddle with types: types_test.py runs and checks it.

    python typed_program.py model.onnx          # f32[batch, 3] -> f32[batch, 4]
"""
from __future__ import annotations

import asyncio
import pathlib
import sys
import warnings
from typing import Any

import heddle
import heddle.backend
import heddle.ort
import heddle.reports
import numpy as np
from heddle.typing import (ArrayInput, Exported, Info, Inputs, Model, ModelProto, ONNXProgram,
                           Origin, Outputs, SupportsDLPack, Unsupported)
from numpy.typing import NDArray

X = np.ones((2, 3), np.float32)


class Tensor:
    """An array that is neither numpy's nor a list."""

    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return X.__dlpack_device__()


class Proto:
    """What onnx, torch.onnx and jax.export give, in one."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def SerializeToString(self) -> bytes:
        return self.path.read_bytes()

    @property
    def model_proto(self) -> Proto:
        return self

    @property
    def mlir_module_serialized(self) -> bytes:
        return self.SerializeToString()


def models(path: pathlib.Path) -> list[Model]:
    proto: ModelProto = Proto(path)
    program: ONNXProgram = Proto(path)
    exported: Exported = Proto(path)
    return [path, str(path), path.read_bytes(), bytearray(path.read_bytes()), proto, program,
            exported]


def sessions(path: pathlib.Path) -> None:
    for model in models(path):
        heddle.compile(model, cache="off")
    session = heddle.Session(path, threads=1, disable=["dce"], bounds={"batch": 8})
    tensor: SupportsDLPack = Tensor()
    arrays: list[ArrayInput] = [X, X.tolist(), tensor]
    feeds: list[Inputs] = [*({"x": array} for array in arrays), *([array] for array in arrays)]
    results: list[NDArray[Any]] = [session.run(None, feed)[0] for feed in feeds]
    out: Outputs = {"y": np.empty((2, 4), np.float32)}
    session.run(["y"], {"x": X}, out)
    results += asyncio.run(session.run_async(None, [X]))
    results.append(session(X))
    assert all(np.array_equal(result, results[0]) for result in results)
    port: heddle.Port = session.inputs[0]
    extents: tuple[int | str | None, ...] = port.shape or ()
    dtype: np.dtype[Any] = session.outputs[0].dtype
    print(port.name, extents, dtype.itemsize, port.type, session.notes, session.wait(1.0))
    info: Info = session.info
    origin: Origin = session.origin
    print(info["level"].lower(), info["compile_ms"] + 1.0, origin["opsets"].get("ai.onnx"))
    session.save("model.heddle")
    loaded: heddle.Session = heddle.load(pathlib.Path("model.heddle"))
    loaded.cancel()
    family = heddle.Family(lambda extents: "HloModule m\nENTRY e { x = f32[%d] parameter(0)\n"
                           "ROOT y = f32[%d] negate(x) }" % (extents["n"], extents["n"]),
                           [("arg0", 0, "n")])
    print(heddle.Session(family, shapes={"arg0": [3]}), sorted(heddle.option_names())[0].upper())


def failures(path: pathlib.Path) -> list[Unsupported]:
    session = heddle.Session(path)
    wrong: dict[type[heddle.Error], Inputs] = {
        heddle.MissingInput: {}, heddle.UnknownName: {"x": X, "z": X}, heddle.ShapeError: [X[0]],
        heddle.InputError: [X.astype(np.int8)]}
    for kind, feed in wrong.items():
        try:
            session.run(None, feed)
        except kind as error:
            print(kind.__name__, error)
    for rare in (heddle.Cancelled, heddle.DeviceError, heddle.OutOfMemory, heddle.MachineError):
        assert issubclass(rare, heddle.errors.Error)
    try:
        heddle.Session(path.read_bytes().replace(b"MatMul", b"MatFoo"))
    except heddle.UnsupportedOperators as error:
        return error.unsupported
    return []


def reports(path: pathlib.Path) -> None:
    session = heddle.Session(path, dims={"batch": 2})
    benchmark: heddle.reports.Benchmark = heddle.bench(session, [X], duration=0.01, iterations=2)
    check: heddle.reports.Check = heddle.check(session, {"x": X}, rtol=1e-3)
    tuning: heddle.reports.Tuning = heddle.tune(path, dims={"batch": 2}, budget=1)
    explanation: heddle.reports.Explanation = session.explain(all=True)
    profile: heddle.reports.Profile = heddle.reports.Profile("text", {"kernels": []})
    page: heddle.reports.Report = session.report("page.html", [X])
    every: list[heddle.reports.Report] = [benchmark, check, tuning, explanation, profile,
                                          page]
    print(benchmark.median_ms + 1.0, benchmark.ratios, check.ok, bool(check), profile.kernels)
    print([len(one.text.splitlines()) for one in every], explanation.kernels[0]["label"])
    check.html(pathlib.Path("check.html"))
    try:
        small: heddle.reports.Quantized = heddle.quantize(session, "small.onnx", [{"x": X}])
        print(small)
    except heddle.Error as error:
        print(error)


def backend(path: pathlib.Path) -> None:
    if heddle.backend.supports_device("CPU") and heddle.backend.is_compatible(path):
        prepared: heddle.backend.PreparedModel = heddle.backend.prepare(path, "CPU")
        first: tuple[NDArray[Any], ...] = prepared.run(X)
        print(first[0].shape, heddle.backend.run_model(path, [X])[0].dtype,
              heddle.backend.run_node.__name__)


def onnxruntime_names(path: pathlib.Path) -> None:
    ort = heddle.ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.add_free_dimension_override_by_name("batch", 2)
    ort.set_default_logger_severity(3)
    ort.set_default_logger_verbosity(0)
    ort.disable_telemetry_events()
    ort.enable_telemetry_events()
    session = ort.InferenceSession(path, options, providers=[("CPUExecutionProvider", {})])
    inputs: list[ort.NodeArg] = session.get_inputs()
    metadata: ort.ModelMetadata = session.get_modelmeta()
    results: list[NDArray[Any]] = session.run(None, {inputs[0].name: X}, ort.RunOptions())
    value: ort.OrtValue = ort.OrtValue.ortvalue_from_numpy(X)
    device: ort.OrtDevice = ort.OrtDevice.make("cpu", 0)
    binding: ort.IOBinding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], results[0])
    again: list[ort.OrtValue] = session.run_with_ort_values(["y"], {"x": value})
    print(again[0].shape(), metadata.producer_name, metadata.custom_metadata_map, inputs[0].shape,
          device.device_id(), ort.OrtMemType.DEFAULT.name, ort.OrtAllocatorType.INVALID.name,
          ort.get_device(), ort.get_build_info(), ort.get_version_string().split("."),
          ort.get_all_providers()[0], ort.get_available_providers()[-1])


def main() -> None:
    warnings.simplefilter("error")
    path = pathlib.Path(sys.argv[1])
    sessions(path)
    print([one["what"] + one["place"] for one in failures(path)])
    reports(path)
    backend(path)
    onnxruntime_names(path)


if __name__ == "__main__":
    main()
