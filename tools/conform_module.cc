#include "conform_module.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "api/host_interp.h"
#include "api/second_reference.h"
#include "comparison.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "program/program.h"

namespace heddle::tools {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

double elems_of(const Shape& shape) {
  double sum = 0;
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) sum += elems_of(element);
  } else if (shape.is_array()) {
    sum = static_cast<double>(shape.elems());
  }
  return sum;
}

// Scalar operations, about.
double work_of(const Instr& instr) {
  double work = elems_of(instr.shape());
  for (const Instr* operand : instr.operands()) work += elems_of(operand->shape());
  double each = 1;
  if (instr.is(Opcode::dot)) {
    for (int64_t d : instr.attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
      each *= static_cast<double>(instr.operand(0)->shape().dim(d));
  } else if (instr.is(Opcode::convolution)) {
    const auto& dims = instr.attrs_as<hlo::ConvolutionAttrs>().dims;
    const Shape& kernel = instr.operand(1)->shape();
    each = elems_of(kernel) /
           static_cast<double>(std::max<int64_t>(kernel.dim(dims.kernel_output_feature), 1));
  } else if (instr.is(Opcode::reduce_window) || instr.is(Opcode::select_and_scatter)) {
    for (const auto& dim : instr.attrs_as<hlo::WindowAttrs>().window.dims)
      each *= static_cast<double>(dim.size);
  }
  return work + elems_of(instr.shape()) * each;
}

}  // namespace

double work_of(const hlo::Module& module) {
  double work = 0;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->instrs()) work += work_of(*instr);
  return work;
}

namespace {

std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

// parse(print(m)) prints as m does.
std::string round_trip_fault(const hlo::Module& module) {
  const std::string once = hlo::to_string(module);
  auto again = hlo::parse_module(once);
  if (!again) return "its text does not parse: " + first_line(again.error().message);
  const std::string twice = hlo::to_string(**again);
  if (once == twice) return "";
  size_t at = 0;
  while (at < once.size() && at < twice.size() && once[at] == twice[at]) ++at;
  const size_t line =
      std::count(once.begin(), once.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return fmt::format("its text changes in line {}", line + 1);
}

Result<Literal> zeros_of(const api::Port& port) {
  if (!port.shape.is_array()) return Literal();
  return Literal::make(port.shape);
}

// Memory for every port, and where it is.
struct Buffers {
  std::vector<Literal> values;
  std::vector<void*> data;
};

Result<Buffers> make_buffers(const std::vector<api::Port>& ports) {
  Buffers buffers;
  for (const api::Port& port : ports) {
    HEDDLE_ASSIGN_OR_RETURN(Literal zeros, zeros_of(port));
    buffers.values.push_back(std::move(zeros));
  }
  for (Literal& value : buffers.values)
    buffers.data.push_back(value.bytes() > 0 ? value.mutable_data() : nullptr);
  return buffers;
}

bool same_bytes(const Literal& a, const Literal& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0);
}

// The input whose memory output `i` may take; -1: none.
int64_t aliased_input(const api::Program& program, size_t i) {
  const program::Program* compiled = program.compiled();
  if (compiled == nullptr || !compiled->outputs[i].buffer.valid()) return -1;
  const program::BufferId alias = compiled->buffers[compiled->outputs[i].buffer.index()].alias;
  return alias.valid() ? compiled->buffers[alias.index()].number : -1;
}

// One run. Donated: outputs that alias an input are bound to its memory.
Result<std::vector<Literal>> run(const api::Model& model, const api::Program& program,
                                 api::Context& context, const Buffers& inputs, bool donated) {
  HEDDLE_ASSIGN_OR_RETURN(Buffers outputs, make_buffers(model.outputs()));
  for (size_t i = 0; i < inputs.data.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context.bind_input(static_cast<int64_t>(i), inputs.data[i]));
  std::vector<void*> at = outputs.data;
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t input = donated ? aliased_input(program, i) : -1;
    if (input >= 0) at[i] = inputs.data[static_cast<size_t>(input)];
    HEDDLE_RETURN_IF_ERROR(context.bind_output(static_cast<int64_t>(i), at[i]));
  }
  HEDDLE_RETURN_IF_ERROR(context.run());
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] != outputs.data[i])
      std::memcpy(outputs.data[i], at[i], static_cast<size_t>(outputs.values[i].bytes()));
  return std::move(outputs.values);
}

api::CompileOptions on(const char* device) {
  api::CompileOptions options;
  options.device = device;
  return options;
}

Result<std::vector<Literal>> run_on(api::Model& model, const api::CompileOptions& options,
                                    const Buffers& inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const auto program, api::Program::compile(model, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto context, program->make_context());
  return run(model, *program, *context, inputs, false);
}

// What differs from `want`; empty: nothing.
Result<std::string> difference(api::Model& model, const Buffers& inputs,
                               const std::vector<Literal>& got, const std::vector<Literal>& want) {
  std::optional<api::SecondReference> second;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!got[i].shape().is_array()) continue;
    const std::string& name = model.outputs()[i].name;
    OutputCheck check = check_output(name, got[i], want[i], model.tolerance(i));
    if (check.equal()) continue;
    if (!second)
      second.emplace(model, std::vector<const void*>(inputs.data.begin(), inputs.data.end()));
    HEDDLE_ASSIGN_OR_RETURN(check, recheck(check, i, got[i], want[i], *second));
    if (!check.equal()) return to_string(check);
  }
  return "";
}

// Runs of one context: two that leave the inputs as they are, and one whose donated inputs are
// overwritten.
Result<ModuleOutcome> compare(api::Model& model, const ConformChoices& choices) {
  HEDDLE_ASSIGN_OR_RETURN(const Buffers inputs, make_buffers(model.inputs()));
  HEDDLE_RETURN_IF_ERROR(model.random_inputs(choices.seed, inputs.data));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> want, run_on(model, on("interp"), inputs));
  HEDDLE_ASSIGN_OR_RETURN(auto program, api::Program::compile(model, choices.compile));
  HEDDLE_ASSIGN_OR_RETURN(auto context, program->make_context());
  const bool goes_on = api::draws_random_numbers(*model.module());
  bool aliases = false, first = true;
  for (size_t i = 0; i < model.outputs().size(); ++i)
    aliases = aliases || aliased_input(*program, i) >= 0;
  for (const bool donated : {false, false, true}) {
    if (donated && !aliases) continue;
    if (goes_on && !std::exchange(first, false)) {  // the reference drew the first numbers
      HEDDLE_ASSIGN_OR_RETURN(program, api::Program::compile(model, choices.compile));
      HEDDLE_ASSIGN_OR_RETURN(context, program->make_context());
    }
    HEDDLE_ASSIGN_OR_RETURN(Buffers given, make_buffers(model.inputs()));
    for (size_t i = 0; i < given.data.size(); ++i)
      if (given.data[i] != nullptr)
        std::memcpy(given.data[i], inputs.data[i], static_cast<size_t>(inputs.values[i].bytes()));
    const auto got = run(model, *program, *context, given, donated);
    // What compiles must run.
    if (!got) return ModuleOutcome{"error", first_line(got.error().message)};
    HEDDLE_ASSIGN_OR_RETURN(const std::string fault, difference(model, inputs, *got, want));
    if (!fault.empty()) return ModuleOutcome{"mismatch", fault + (donated ? ", donated" : "")};
    for (size_t i = 0; i < given.data.size() && !donated; ++i)
      if (!same_bytes(given.values[i], inputs.values[i]))
        return ModuleOutcome{"mismatch", model.inputs()[i].name + " was overwritten"};
  }
  return ModuleOutcome{"equal", ""};
}

}  // namespace

ModuleOutcome conform_module(std::unique_ptr<hlo::Module> module, const ConformChoices& choices) {
  if (const std::string fault = round_trip_fault(*module); !fault.empty())
    return {"round trip", fault};
  if (Status verified = hlo::verify(*module); !verified)
    return {"invalid", first_line(verified.error().message)};
  if (const double work = work_of(*module); work > choices.max_work)
    return {"too big", fmt::format("too much for the interpreter (about {:.1e} operations)", work)};
  const auto model = api::Model::from_module(std::move(module));
  Result<ModuleOutcome> outcome = compare(*model, choices);
  if (!outcome) return {"refused", first_line(outcome.error().message)};
  return *outcome;
}

}  // namespace heddle::tools
