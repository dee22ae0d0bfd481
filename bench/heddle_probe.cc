// Runs one model through the C interface as a server, so that its rounds can be interleaved with
// those of others and this process is idle in between. Buffers are bound once; without INPUTS.npz,
// which also says the shapes of an ONNX model, values are random.
//
//   heddle_probe MODEL THREADS [LEVEL[,FUSE[,LIBRARY]] [INPUTS.npz [NUMERICS [AMP]]]]
//
// For every line on standard input that holds a count, runs once unmeasured and then that often,
// and answers with one line of JSON: the wall and the caller's CPU nanoseconds of every run.
#include <string>
#include <string_view>
#include <utility>

#include "api/heddle.h"
#include "probe.h"
#include "tensor/npz.h"

namespace {

using heddle::bench::allocate;

void must(heddle_status* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "heddle_probe: %s\n", heddle_status_message(status));
  std::exit(heddle_status_kind(status));
}

// As copy_probe allocates: the yardstick and what it measures stand on the same pages.
void* allocate_for(const heddle_port& port) {
  return allocate(static_cast<size_t>(port.bytes == 0 ? 64 : port.bytes));
}

heddle::tensor::NamedLiterals read(const char* path) {
  auto values = heddle::tensor::read_npz(path);
  if (!values) {
    std::fprintf(stderr, "heddle_probe: %s\n", values.error().message.c_str());
    std::exit(2);
  }
  return std::move(*values);
}

heddle_model* open(const char* path, const heddle::tensor::NamedLiterals& values) {
  std::vector<std::vector<int64_t>> extents;
  for (const auto& [name, value] : values) extents.push_back(value.shape().extents());
  std::vector<heddle_shape> shapes;
  const bool has_fixed_shapes = std::string_view(path).ends_with(".hlo");
  for (size_t i = 0; !has_fixed_shapes && i < values.size(); ++i)
    shapes.push_back(
        {values[i].first.c_str(), extents[i].data(), static_cast<int64_t>(extents[i].size())});
  heddle_open_options options = {};
  options.struct_size = sizeof options;
  options.shapes = shapes.data();
  options.shape_count = shapes.size();
  options.random_constants = 1;  // the networks of models/ are written without their weights
  heddle_model* model = nullptr;
  must(heddle_model_open(path, &options, &model));
  return model;
}

// Buffers with the values of the file, or random ones where it has none.
std::vector<void*> make_inputs(const heddle_model* model, int64_t count,
                               const heddle::tensor::NamedLiterals& values) {
  std::vector<heddle_port> ports(static_cast<size_t>(count));
  std::vector<void*> inputs;
  for (heddle_port& port : ports) {
    port.struct_size = sizeof port;
    heddle_model_input(model, &port - ports.data(), &port);
    inputs.push_back(allocate_for(port));
  }
  must(heddle_model_random_inputs(model, 0, inputs.data()));
  for (size_t i = 0; i < ports.size(); ++i)
    for (const auto& [name, value] : values)
      if (name == ports[i].name && value.bytes() == ports[i].bytes)
        std::memcpy(inputs[i], value.data(), static_cast<size_t>(ports[i].bytes));
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 7 || std::atoi(argv[2]) < 1) {
    std::fprintf(
        stderr,
        "usage: heddle_probe MODEL THREADS [LEVEL[,FUSE[,LIBRARY]] [INPUTS.npz [NUMERICS]]]\n");
    return 2;
  }
  heddle::tensor::NamedLiterals values;
  if (argc >= 5) values = read(argv[4]);
  heddle_model* model = open(argv[1], values);
  heddle_model_info model_info = {};
  model_info.struct_size = sizeof model_info;
  heddle_model_get_info(model, &model_info);
  const std::vector<void*> inputs = make_inputs(model, model_info.inputs, values);
  heddle_compile_options options = {};
  options.struct_size = sizeof options;
  options.threads = std::atoi(argv[2]);
  std::string level = argc >= 4 ? argv[3] : "", fuse, library;
  for (auto [from, to] : {std::pair(&level, &fuse), std::pair(&fuse, &library)}) {
    const size_t comma = from->find(',');
    if (comma == std::string::npos) continue;
    *to = from->substr(comma + 1);
    from->resize(comma);
  }
  options.level = level.empty() ? nullptr : level.c_str();
  options.fuse = fuse.empty() ? nullptr : fuse.c_str();
  options.library = library.empty() ? nullptr : library.c_str();
  options.numerics = argc >= 6 ? argv[5] : nullptr;
  options.amp = argc >= 7 ? argv[6] : nullptr;
  heddle_program* program = nullptr;
  must(heddle_compile(model, &options, &program));
  heddle_context* context = nullptr;
  must(heddle_context_create(program, &context));
  for (int64_t i = 0; i < model_info.inputs; ++i) {
    must(heddle_context_bind_input(context, i, inputs[static_cast<size_t>(i)]));
  }
  for (int64_t i = 0; i < model_info.outputs; ++i) {
    heddle_port port = {};
    port.struct_size = sizeof port;
    heddle_program_output(program, i, &port);
    must(heddle_context_bind_output(context, i, allocate_for(port)));
  }
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const int count = std::atoi(line);
    heddle::bench::print_times(
        heddle::bench::measure(count, [&] { must(heddle_context_run(context)); }));
    std::printf("\n");
    std::fflush(stdout);
  }
  heddle_context_free(context);
  heddle_program_free(program);
  heddle_model_free(model);
  return 0;
}
