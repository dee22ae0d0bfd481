// Whole programs on a GPU, without one: compiled for sm_90, run by the executor on the cuda device
// over a driver that launches kernels in the kernel interpreter (interp_cuda.h), and compared with
// the reference interpreter. The cubin is stood in for; NVRTC's part is gpu_rows_test's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/host_interp.h"
#include "compiled_run.h"
#include "gpu_check.h"
#include "hlo/text.h"
#include "interp_cuda.h"
#include "pass/random_module.h"
#include "program/views.h"
#include "row_kernels.h"
#include "runtime/cuda_device.h"

namespace heddle {
namespace {

using tensor::Literal;

Result<std::vector<uint8_t>> no_assembler(const std::string& text, const std::string&) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

struct Ran {
  std::string failure;
  std::vector<Literal> outputs;
  int64_t launches = 0, host_calls = 0;
};

void count_host_calls(const program::Program& program, int64_t* count) {
  for (const auto* section : {&program.once, &program.commands})
    program::for_each_command(
        program, *section, section == &program.once ? program.once_info : program.command_info,
        [&](const program::Command& command, const program::CommandInfo&, int) {
          *count += std::holds_alternative<program::HostCall>(command);
        });
}

Ran run_on_gpu(std::unique_ptr<hlo::Module> module, const std::vector<Literal>& leaves,
               compiler::Options options = {}) {
  Ran result;
  options.gpu_assembler = no_assembler;
  const target::Target target = *target::find_target("sm_90");
  auto program = compiler::compile(std::move(module), {}, target, options);
  if (!program) return result.failure = program.error().message, result;
  count_host_calls(*program, &result.host_calls);
  InterpCuda& gpu = InterpCuda::get();
  if (result.failure = gpu.know(*program); !result.failure.empty()) return result;
  auto device = runtime::CudaDevice::open(gpu.driver());
  if (!device) return result.failure = device.error().message, result;
  auto executable =
      runtime::Executable::load(std::move(*program), (*device)->device(), api::host_functions());
  if (!executable) return result.failure = executable.error().message, result;
  auto context = (*executable)->make_context();
  if (!context) return result.failure = context.error().message, result;
  const program::Program& loaded = (*executable)->program();
  for (const program::Port& port : loaded.outputs)
    result.outputs.emplace_back(port.shape.without_layout());
  for (size_t i = 0; i < loaded.inputs.size(); ++i)
    (void)(*context)->bind_input(static_cast<int64_t>(i), leaves[i].data());
  for (size_t i = 0; i < result.outputs.size(); ++i)
    (void)(*context)->bind_output(static_cast<int64_t>(i), result.outputs[i].mutable_data());
  gpu.fault.clear();
  const int64_t before = gpu.launches;
  // What the first run leaves behind does not matter; the second one is recorded and replayed.
  for (int run = 0; run < 2; ++run)
    if (Status ran = (*context)->run(); !ran) {
      result.failure = ran.error().message + "\n" + gpu.fault;
      return result;
    }
  result.launches = (gpu.launches - before) / 2;
  return result;
}

// Runs a module and compares; how many launches and host calls a run took.
Ran expect_equal(const hlo::Module& module, const std::vector<Literal>& arguments,
                 tensor::Type coarsest, int64_t length, const compiler::Options& options = {}) {
  Ran ran;
  auto want = interp::evaluate(module, arguments);
  EXPECT_TRUE(want) << want.error().message;
  if (!want) return ran;
  std::vector<Literal> wanted, leaves;
  append_leaves(*want, &wanted);
  for (const Literal& argument : arguments) append_leaves(argument, &leaves);
  ran = run_on_gpu(module.clone(), leaves, options);
  EXPECT_EQ(ran.failure, "") << hlo::to_string(module);
  EXPECT_EQ(ran.outputs.size(), wanted.size());
  if (!ran.failure.empty() || ran.outputs.size() != wanted.size()) return ran;
  for (size_t i = 0; i < wanted.size(); ++i) {
    tensor::Type type = wanted[i].type();
    if (tensor::is_float(type) &&
        tensor::float_format(type).unit_roundoff < tensor::float_format(coarsest).unit_roundoff)
      type = coarsest;
    tensor::Tolerance tolerance = tensor::derived_tolerance(type, length);
    tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
    const auto comparison = tensor::compare(ran.outputs[i], wanted[i], tolerance);
    EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.describe() << "\n"
                                  << hlo::to_string(module);
  }
  return ran;
}

Ran expect_equal(const std::string& text, const compiler::Options& options = {}) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  if (!module) return {};
  return expect_equal(**module, interp::random_arguments(**module, 1), tensor::Type::f32, 1100,
                      options);
}

class GpuPrograms : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(GpuPrograms, RowsComputeWhatTheInterpreterDoes) {
  const std::string text = read_text(GetParam().second);
  auto module = hlo::parse_module(substituted(text, small_extents(text)));
  ASSERT_TRUE(module) << module.error().message;
  std::vector<Literal> arguments = interp::random_arguments(**module, 1);
  for (Literal& argument : arguments)
    for (int64_t i = 0; is_positive(text) && i < argument.elems(); ++i)
      argument.set_f64(i, std::fabs(argument.get_f64(i)));
  const Ran ran = expect_equal(**module, arguments, tensor::Type::f32, kLongestGpuReduction);
  fmt::print("{}: {} launches, {} host calls\n", GetParam().first, ran.launches, ran.host_calls);
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuPrograms, ::testing::ValuesIn(row_files()),
                         [](const auto& info) { return info.param.first; });

// A small encoder layer's worth: products, a softmax between them, a norm behind, constants.
TEST(GpuNetworks, ProductsAndRows) {
  const Ran ran = expect_equal(R"(HloModule attention
larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[2,33,48] parameter(0)
  w = f32[48,96] parameter(1)
  v = f32[96,40] parameter(2)
  h = f32[2,33,96] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  q = f32[2,33,33] dot(h, h), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2,33] reduce(q, least), dimensions={2}, to_apply=larger
  mb = f32[2,33,33] broadcast(m), dimensions={0,1}
  d = f32[2,33,33] subtract(q, mb)
  e = f32[2,33,33] exponential(d)
  s = f32[2,33] reduce(e, zero), dimensions={2}, to_apply=sum
  sb = f32[2,33,33] broadcast(s), dimensions={0,1}
  p = f32[2,33,33] divide(e, sb)
  o = f32[2,33,96] dot(p, h), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  y = f32[2,33,40] dot(o, v), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT t = f32[2,33,40] tanh(y)
})");
  EXPECT_GE(ran.launches, 4);
  EXPECT_EQ(ran.host_calls, 0);
}

TEST(GpuNetworks, ConvolutionsAndPools) {
  const Ran ran = expect_equal(R"(HloModule convolution
larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY main {
  x = f32[2,3,12,12] parameter(0)
  w = f32[8,3,3,3] parameter(1)
  c = f32[2,8,12,12] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
  zero = f32[] constant(0)
  zeros = f32[2,8,12,12] broadcast(zero), dimensions={}
  r = f32[2,8,12,12] maximum(c, zeros)
  least = f32[] constant(-inf)
  ROOT p = f32[2,8,6,6] reduce-window(r, least), window={size=1x1x2x2 stride=1x1x2x2}, to_apply=larger
})");
  EXPECT_GE(ran.launches, 1);
  EXPECT_EQ(ran.host_calls, 0);
}

// The condition is read from the device's memory before every trip.
TEST(GpuNetworks, LoopsReadTheirConditionFromTheDevice) {
  const Ran ran = expect_equal(R"(HloModule loop
body {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  half = f32[] constant(0.5)
  halves = f32[64] broadcast(half), dimensions={}
  y = f32[64] multiply(x, halves)
  ROOT t = (s32[], f32[64]) tuple(next, y)
}
condition {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  first = f32[1] slice(x), slice={[0:1]}
  f = f32[] reshape(first)
  least = f32[] constant(0.001)
  a = f32[] abs(f)
  big = pred[] compare(a, least), direction=GT
  five = s32[] constant(5)
  few = pred[] compare(i, five), direction=LT
  ROOT c = pred[] and(big, few)
}
ENTRY main {
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[64]) tuple(zero, x)
  w = (s32[], f32[64]) while(s), condition=condition, body=body
  ROOT y = f32[64] get-tuple-element(w), index=1
})");
  EXPECT_GE(ran.launches, 2);
}

TEST(GpuNetworks, BranchesReadTheirNumberFromTheDevice) {
  expect_equal(R"(HloModule branch
yes { x = f32[50] parameter(0) ROOT y = f32[50] negate(x) }
no { x = f32[50] parameter(0) ROOT y = f32[50] tanh(x) }
ENTRY main {
  x = f32[50] parameter(0)
  first = f32[1] slice(x), slice={[0:1]}
  f = f32[] reshape(first)
  zero = f32[] constant(0)
  c = pred[] compare(f, zero), direction=GT
  ROOT y = f32[50] conditional(c, x, x), true_computation=yes, false_computation=no
})");
}

// What has no kernel is done by the host, on copies.
TEST(GpuNetworks, TheHostDoesWhatNoKernelDoes) {
  const Ran ran = expect_equal(R"(HloModule sorted
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
ENTRY main {
  x = f32[7,40] parameter(0)
  e = f32[7,40] exponential(x)
  s = f32[7,40] sort(e), dimensions={1}, to_apply=less
  ROOT y = f32[7,40] negate(s)
})");
  EXPECT_GE(ran.launches, 1);
  EXPECT_GE(ran.host_calls, 1);
}

// Rows in lanes, lists in registers; a long row's list would be shared, so the host does it.
TEST(GpuNetworks, ShortRowsHaveTopKOnTheDevice) {
  const auto text = [](int64_t rows, int64_t n, int64_t k) {
    return fmt::format(R"(HloModule top
ENTRY main {{
  p = f32[{0},{1}] parameter(0)
  x = f32[{0},{1}] tanh(p)
  t = (f32[{0},{2}], s32[{0},{2}]) topk(x), k={2}, largest=true
  v = f32[{0},{2}] get-tuple-element(t), index=0
  i = s32[{0},{2}] get-tuple-element(t), index=1
  w = f32[{0},{2}] exponential(v)
  ROOT r = (f32[{0},{2}], s32[{0},{2}]) tuple(w, i)
}})",
                       rows, n, k);
  };
  for (const auto& [rows, n, k] : {std::tuple{37, 40, 5}, {64, 64, 8}, {5, 9, 1}}) {
    const Ran ran = expect_equal(text(rows, n, k));
    EXPECT_EQ(ran.host_calls, 0) << rows << " " << n << " " << k;
  }
  EXPECT_EQ(expect_equal(text(2, 700, 10)).host_calls, 1);
}

// Constants lie on the device; a result that is one is copied from there.
TEST(GpuNetworks, ConstantsAndUnchangedInputsAreResults) {
  expect_equal(R"(HloModule constants
ENTRY main {
  x = f32[3] parameter(0)
  c = f32[3] constant({1,2,3})
  s = f32[3] add(x, c)
  ROOT t = (f32[3], f32[3], f32[3]) tuple(s, c, x)
})");
}

TEST(GpuNetworks, EveryLevelAndMode) {
  constexpr const char* kText = R"(HloModule two
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[20,70] parameter(0)
  y = f32[20,70] tanh(x)
  zero = f32[] constant(0)
  s = f32[20] reduce(y, zero), dimensions={1}, to_apply=sum
  b = f32[20,70] broadcast(s), dimensions={0}
  ROOT z = f32[20,70] subtract(y, b)
})";
  for (const auto level : {compiler::Level::O0, compiler::Level::O1, compiler::Level::O2}) {
    for (const auto fuse : {compiler::Fuse::off, compiler::Fuse::greedy, compiler::Fuse::xla,
                            compiler::Fuse::stitch}) {
      compiler::Options options;
      options.level = level;
      options.fuse = fuse;
      const Ran ran = expect_equal(kText, options);
      EXPECT_EQ(ran.host_calls, 0);
      const bool fused = level != compiler::Level::O0 && fuse != compiler::Fuse::off;
      if (fused && fuse != compiler::Fuse::xla) {
        EXPECT_EQ(ran.launches, 1);
      }
    }
  }
}

class GpuRandomPrograms : public ::testing::TestWithParam<uint64_t> {};

TEST_P(GpuRandomPrograms, ComputeWhatTheInterpreterDoes) {
  constexpr uint64_t kShards = 4, kSeeds = 120;
  for (uint64_t seed = GetParam(); seed < kSeeds && !HasFailure(); seed += kShards) {
    pass::RandomModuleOptions shape;
    shape.steps = 4 + static_cast<int>(seed % 8);
    shape.control = seed % 3 == 0;
    shape.max_elems = 1024;
    const std::unique_ptr<hlo::Module> module = pass::random_module(seed, shape);
    tensor::Type coarsest = tensor::Type::f64;
    for (const auto& computation : module->computations())
      for (const hlo::Instr* instr : computation->instrs()) {
        if (!instr->shape().is_array() || !tensor::is_float(instr->shape().type())) continue;
        const tensor::Type type = instr->shape().type();
        if (tensor::float_format(type).unit_roundoff > tensor::float_format(coarsest).unit_roundoff)
          coarsest = type;
      }
    SCOPED_TRACE(seed);
    compiler::Options options;
    for (const bool spaces : {false, true}) {
      options.own_memory = spaces;
      expect_equal(*module, interp::random_arguments(*module, seed), coarsest, 4096, options);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, GpuRandomPrograms, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace heddle
