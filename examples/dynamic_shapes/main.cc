// A model with a dimension that differs from run to run: one program for all extents up to a bound.
//
//   dynamic_shapes model.onnx batch 64
#include <heddle/heddle.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Zeros for every input, with this extent where the dimension is bounded.
heddle::Tensors inputs_at(const heddle::Program& program, const std::string& name,
                          std::int64_t extent) {
  heddle::Tensors inputs;
  for (const heddle::Port& port : program.inputs()) {
    heddle::Shape shape = port.shape();
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (port.dims[d].is_bounded() && port.dims[d].name == name) shape[d] = extent;
    inputs[port.name] = heddle::Tensor::zeros(port.type, shape);
  }
  return inputs;
}

void run(const char* path, const std::string& name, std::int64_t bound) {
  heddle::OpenOptions options;
  options.bounds[name] = bound;
  const heddle::Program program = heddle::Program::open(path, options);
  heddle::Context context = program.context();
  for (const std::int64_t extent : {bound, std::int64_t{1}, bound / 2, bound / 2 + 1}) {
    const heddle::Tensors outputs = context.run(inputs_at(program, name, extent));
    std::printf("%s=%lld:", name.c_str(), static_cast<long long>(extent));
    for (const auto& [output, tensor] : outputs)
      std::printf(" %s %s", output.c_str(), tensor.to_string().c_str());
    std::printf("\n");
  }
  std::printf("%lld compilations\n", static_cast<long long>(program.info().compilations));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "error: wanted dynamic_shapes MODEL DIMENSION BOUND\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], std::atoll(argv[3]));
    return 0;
  } catch (const heddle::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
