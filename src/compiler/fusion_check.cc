#include "compiler/fusion_check.h"

#include <cstring>
#include <functional>
#include <map>

#include "compiler/join_kernels.h"
#include "compiler/make_kernel.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "tensor/compare.h"

namespace heddle::compiler {

using tensor::Literal;

namespace {

std::vector<Literal> leaves(const Literal& literal) {
  if (!literal.shape().is_tuple()) return {literal};
  std::vector<Literal> result;
  for (const Literal& element : literal.elements())
    for (Literal& leaf : leaves(element)) result.push_back(std::move(leaf));
  return result;
}

constexpr double kRoundings = 8;  // before steps that magnify them

// Every float a unit in the last place further from zero.
std::vector<Literal> nudged(std::vector<Literal> arguments) {
  for (Literal& argument : arguments) {
    if (!argument.shape().is_array() || !tensor::is_float(argument.type())) continue;
    const double step = 2 * tensor::float_format(argument.type()).unit_roundoff;
    for (int64_t i = 0; i < argument.elems(); ++i)
      argument.set_f64(i, argument.get_f64(i) * (1 + step));
  }
  return arguments;
}

// Results may be sums with cancellation, so the largest one sets the scale; arguments are of order
// one, so cancelled terms may leave rounding of that size.
// `nudged`: the same output for arguments that are off by a unit in the last place. The difference
// is a rounding of any step as magnified by later ones (exponentials of exponentials).
bool close(const Literal& got, const Literal& want, tensor::Type coarsest, int64_t reduction_length,
           const std::function<Literal()>& nudged, std::string* failure) {
  const bool is_float = tensor::is_float(want.type());
  tensor::Tolerance tolerance =
      tensor::derived_tolerance(is_float ? coarsest : want.type(), reduction_length);
  tolerance.relative_to_max = tolerance.absolute = tolerance.relative;
  tensor::Comparison comparison = tensor::compare(got, want, tolerance);
  if (!comparison.equal && is_float) {
    const tensor::Comparison moved = tensor::compare(nudged(), want, {});
    if (moved.max_want > 0)
      tolerance.relative_to_max += kRoundings * moved.worst_error / moved.max_want;
    comparison = tensor::compare(got, want, tolerance);
  }
  if (!comparison.equal) *failure = comparison.describe();
  return comparison.equal;
}

// A value that is widened after its operators has the rounding of the narrow type: f32 stands for
// all narrow types, since small floats are computed in it.
tensor::Type coarsest_type(const hlo::Module& module) {
  for (const hlo::Instr* instr : module.entry()->instrs())
    if (instr->shape().is_array() && tensor::is_float(instr->shape().type()) &&
        instr->shape().type() != tensor::Type::f64)
      return tensor::Type::f32;
  return tensor::Type::f64;
}

const pass::RunOptions kVerified = {.verify = true, .check_changed = true};

// The kernel of a fusion of fusions, each part of which must have a place.
stitch::Stitched joined(const hlo::Computation& computation, hlo::Join join,
                        const target::Target& target, FusionCheck* check) {
  std::map<const hlo::Instr*, stitch::Stitched> parts;
  for (const hlo::Instr* part : computation.instrs()) {
    if (!part->is(hlo::Opcode::fusion)) continue;
    const stage::PlacedFusion placed = schedule::place(*part->called()[0], target);
    if (!placed.decision) {
      check->failure = "refused: " + placed.decision.reason();
      return {};
    }
    stitch::Stitched& made =
        parts.emplace(part, *make_kernel(placed, "part", target, {}, kVerified)).first->second;
    made.kernel.schedule.clear();  // it names operators, so equal kernels would differ
  }
  const Options options;
  std::vector<std::string> changes;
  Status lost_dump;  // nothing is dumped
  return join_kernels(
      computation, join, "test", target,
      [&](const hlo::Instr* part) -> const stitch::Stitched& { return parts.at(part); },
      run_pass_of(options, target, &changes, &lost_dump));
}

stitch::Stitched kernel_of(const hlo::Computation& computation, hlo::Join join,
                           const target::Target& target, const std::vector<bool>& streamed,
                           FusionCheck* check) {
  if (join != hlo::Join::none) return joined(computation, join, target, check);
  check->placed = schedule::place(computation, target);
  if (check->placed.decision) {
    check->text = stage::to_string(check->placed.schedule, check->placed.graph);
    return *make_kernel(check->placed, "test", target, streamed, kVerified);
  }
  check->failure = "refused: " + check->placed.decision.reason();
  return {};
}

constexpr int64_t kFewElems = 8192;

// Runs again, with results in the inputs that they may overwrite: the bits must be equal. `memory`
// is overwritten.
void check_in_place(const stitch::Stitched& stitched, std::vector<void*> memory,
                    const std::vector<Literal>& wanted, uint64_t seed, FusionCheck* check) {
  const size_t inputs = memory.size() - wanted.size() - stitched.workspace_bytes.size();
  bool any = false;
  for (size_t o = 0; o < stitched.in_place.size(); ++o) {
    if (stitched.in_place[o] < 0) continue;
    memory[inputs + o] = memory[static_cast<size_t>(stitched.in_place[o])];
    any = true;
  }
  if (!any) return;
  const kernel::InterpReport report = kernel::interpret(stitched.kernel, memory, {}, seed + 1);
  if (!report.faults.empty()) check->failure = "in place: " + report.faults[0];
  for (size_t o = 0; o < stitched.in_place.size() && check->failure.empty(); ++o)
    if (stitched.in_place[o] >= 0 && std::memcmp(memory[inputs + o], wanted[o].data(),
                                                 static_cast<size_t>(wanted[o].bytes())) != 0)
      check->failure = fmt::format("in place of input {}: other bits", stitched.in_place[o]);
}

}  // namespace

FusionCheck check_fusion(const hlo::Module& module, const target::Target& target, uint64_t seed,
                         int64_t reduction_length, const std::vector<bool>& streamed,
                         hlo::Join join) {
  FusionCheck check;
  stitch::Stitched stitched = kernel_of(*module.entry(), join, target, streamed, &check);
  if (!check.failure.empty()) return check;
  check.text += kernel::to_string(stitched.kernel);
  if (Status verified = kernel::verify(stitched.kernel); !verified) {
    check.failure = verified.error().message;
    return check;
  }
  std::vector<Literal> arguments = interp::random_arguments(module, seed);
  Result<Literal> want = interp::evaluate(module, arguments);
  if (!want) {
    check.failure = want.error().message;
    return check;
  }
  std::vector<Literal> wanted = leaves(*want), got;
  std::vector<void*> memory;
  for (Literal& argument : arguments) memory.push_back(argument.mutable_data());
  for (const Literal& one : wanted) got.emplace_back(one.shape());
  for (size_t o = 0; o < stitched.in_part.size(); ++o)
    if (stitched.in_part[o]) got[o] = arguments[static_cast<size_t>(stitched.in_place[o])];
  for (Literal& one : got) memory.push_back(one.mutable_data());
  std::vector<std::vector<char>> workspaces;
  for (int64_t bytes : stitched.workspace_bytes) workspaces.emplace_back(bytes);
  for (auto& workspace : workspaces) memory.push_back(workspace.data());
  check.report = kernel::interpret(stitched.kernel, memory, {}, seed);
  if (!check.report.faults.empty()) check.failure = check.report.faults[0];
  auto nudged_leaf = [&](size_t i) {
    Result<Literal> moved = interp::evaluate(module, nudged(arguments));
    return moved ? leaves(*moved)[i] : wanted[i];
  };
  for (size_t i = 0; i < wanted.size() && check.failure.empty(); ++i)
    close(
        got[i], wanted[i],
        wanted[i].type() == tensor::Type::f64 ? coarsest_type(module) : wanted[i].type(),
        reduction_length, [&] { return nudged_leaf(i); }, &check.failure);
  if (check.failure.empty() && wanted[0].elems() <= kFewElems)
    check_in_place(stitched, std::move(memory), got, seed, &check);
  check.in_place = std::move(stitched.in_place);
  check.workspace_bytes = std::move(stitched.workspace_bytes);
  check.kernel = std::move(stitched.kernel);
  return check;
}

}  // namespace heddle::compiler
