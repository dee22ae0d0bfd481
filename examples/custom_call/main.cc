// An operator of your own: a custom call of an HLO module, which a function of this program
// computes.
#include <heddle/heddle.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

// y = clamp(x + 1) from below; the call's config says by what.
constexpr const char* kModule = R"(HloModule clamped
ENTRY main {
  x = f32[4] parameter(0)
  one = f32[] constant(1)
  ones = f32[4] broadcast(one), dimensions={}
  sum = f32[4] add(x, ones)
  ROOT y = f32[4] custom-call(sum), custom_call_target="example.at_least", backend_config="0.5"
}
)";

// Called by several threads at once, with dense arrays. A result other than 0 fails the run, and
// `error` says why.
int32_t at_least(const heddle_custom_call* call, void*) {
  if (call->argument_count != 1 || call->arguments[0].type != HEDDLE_F32) {
    std::snprintf(call->error, static_cast<size_t>(call->error_bytes), "wanted one f32 array");
    return 1;
  }
  // The config is as it stands in the module, with its quotes.
  const float least = std::strtof(call->config + (call->config[0] == '"' ? 1 : 0), nullptr);
  const heddle_array& from = call->arguments[0];
  int64_t count = 1;
  for (int64_t d = 0; d < from.rank; ++d) count *= from.dims[d];
  const auto* x = static_cast<const float*>(from.data);
  auto* y = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < least ? least : x[i];
  return 0;
}

}  // namespace

int main() {
  heddle_register_custom_call("example.at_least", at_least, nullptr);
  try {
    const heddle::Program program = heddle::Program::parse("clamped", kModule);
    heddle::Context context = program.context();
    const auto x = heddle::Tensor::of<float>({4}, {-3, -1, 0, 2});
    const heddle::Tensors outputs = context.run({{"x", x}});
    for (const float y : outputs.at("out0").span<const float>())
      std::printf("%g ", static_cast<double>(y));
    std::printf("\n");
  } catch (const heddle::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
