// Runs a model once on random inputs; prints what it is and the first value of every f32 output.
#include <heddle/heddle.hpp>

#include <cstdio>

namespace {

void describe(const heddle::Model& model) {
  const heddle::Origin origin = model.origin();
  std::printf("%s", model.info().format.c_str());
  if (origin.opset > 0)
    std::printf(", opset %lld, by '%s'", static_cast<long long>(origin.opset),
                origin.producer.c_str());
  std::printf("\n");
  for (const heddle::Port& port : model.inputs())
    std::printf("input %s: %s\n", port.name.c_str(), port.to_string().c_str());
}

void run(const char* path) {
  const heddle::Model model = heddle::Model::open(path);
  describe(model);
  const heddle::Program program = model.compile();
  heddle::Context context = program.context();
  for (const auto& [name, tensor] : context.run(model.random_inputs()))
    if (tensor.type() == heddle::Type::f32 && tensor.elements() > 0)
      std::printf("%s[0] = %g\n", name.c_str(), static_cast<double>(tensor.span<const float>()[0]));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "model.onnx");
    return 0;
  } catch (const heddle::UnsupportedError& error) {
    std::fprintf(stderr, "error: not all of it is supported:\n");
    for (const heddle::Unsupported& one : error.unsupported())
      std::fprintf(stderr, "  %s (%lld places, first: %s): %s\n", one.what.c_str(),
                   static_cast<long long>(one.count), one.place.c_str(), one.way_out.c_str());
    return static_cast<int>(error.kind());
  } catch (const heddle::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
