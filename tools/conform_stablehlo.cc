#include "conform_stablehlo.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "import/mapped_file.h"
#include "import/stablehlo.h"

namespace heddle::tools {
namespace {

using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;

std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

// Constants of more than one element become parameters, behind those there are: their values.
// Those that an assertion compares with stay, and scalars (where reductions start, and the like).
std::vector<Literal> lift_constants(import::Imported& imported) {
  hlo::Computation& entry = *imported.module->entry();
  std::unordered_set<const Instr*> wanted;
  for (const import::Assertion& assertion : imported.assertions)
    if (assertion.want < entry.root()->operands().size())
      wanted.insert(entry.root()->operand(assertion.want));
  std::vector<Literal> values;
  const std::vector<Instr*> instrs = entry.instrs();
  for (Instr* instr : instrs) {
    if (!instr->is(Opcode::constant) || instr->shape().rank() == 0 || instr->shape().elems() < 2 ||
        wanted.contains(instr) || instr->users().empty())
      continue;
    hlo::ParameterAttrs attrs;
    attrs.number = static_cast<int64_t>(entry.parameters().size());
    Instr* parameter = entry.add(Opcode::parameter, instr->shape(), {}, attrs);
    imported.input_names.push_back("arg" + std::to_string(attrs.number));
    imported.input_aliases.emplace_back();
    values.push_back(instr->literal());
    entry.replace_all_uses(instr, parameter);
  }
  return values;
}

Result<std::vector<Literal>> zeros_of(const std::vector<api::Port>& ports) {
  std::vector<Literal> values;
  for (const api::Port& port : ports) {
    if (!port.shape.is_array()) {
      values.emplace_back();
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Literal zeros, Literal::make(port.shape));
    values.push_back(std::move(zeros));
  }
  return values;
}

void* data_of(Literal& value) { return value.bytes() > 0 ? value.mutable_data() : nullptr; }

// Inputs: random ones, and behind them `lifted`.
Result<std::vector<Literal>> inputs_of(const api::Model& model, std::vector<Literal> lifted,
                                       uint64_t seed) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> inputs, zeros_of(model.inputs()));
  std::vector<void*> data;
  for (Literal& input : inputs) data.push_back(data_of(input));
  HEDDLE_RETURN_IF_ERROR(model.random_inputs(seed, data));
  for (size_t i = 0; i < lifted.size(); ++i)
    inputs[inputs.size() - lifted.size() + i] = std::move(lifted[i]);
  return inputs;
}

// Ends with an outcome; an Error is a refusal.
Result<StablehloOutcome> run_model(api::Model& model, std::vector<Literal> lifted,
                                   const std::vector<import::Assertion>& assertions,
                                   const ConformChoices& choices) {
  StablehloOutcome outcome;
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> inputs,
                          inputs_of(model, std::move(lifted), choices.seed));
  HEDDLE_ASSIGN_OR_RETURN(const auto program, api::Program::compile(model, choices.compile));
  HEDDLE_ASSIGN_OR_RETURN(const auto context, program->make_context());
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> outputs, zeros_of(model.outputs()));
  for (size_t i = 0; i < inputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), data_of(inputs[i])));
  for (size_t i = 0; i < outputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(i), data_of(outputs[i])));
  if (const Status ran = context->run(); !ran)
    return StablehloOutcome{"", "error", first_line(ran.error().message)};
  outcome.outcome = assertions.empty() ? "runs" : "pass";
  for (const import::Assertion& assertion : assertions) {
    const std::string fault =
        import::failure_of(assertion, outputs[assertion.got], outputs[assertion.want]);
    if (!fault.empty()) return StablehloOutcome{"", "mismatch", fault};
  }
  return outcome;
}

StablehloOutcome work_on(const import::MlirModule& source, const ConformChoices& choices) {
  Result<import::Imported> imported = import::import_stablehlo(source, {});
  if (!imported) return {"", "refused", first_line(imported.error().message)};
  if (const double work = work_of(*imported->module); work > choices.max_work)
    return {"", "too big", fmt::format("about {:.1e} operations", work)};
  const std::vector<import::Assertion> assertions = imported->assertions;
  std::vector<Literal> lifted = lift_constants(*imported);
  const auto model = api::Model::from_imported(std::move(*imported));
  Result<StablehloOutcome> outcome = run_model(*model, std::move(lifted), assertions, choices);
  if (!outcome) return {"", "refused", first_line(outcome.error().message)};
  return *outcome;
}

}  // namespace

void conform_stablehlo(const std::string& path, const ConformChoices& choices,
                       const std::function<void(const std::string& module)>& begin,
                       const std::function<void(const StablehloOutcome&)>& end) {
  const auto file = import::MappedFile::open(path);
  if (!file) return end({"", "unparsable", file.error().message});
  const std::string_view text = (*file)->bytes();
  const bool disabled = text.find("RUN-DISABLED") != std::string_view::npos;
  const std::vector<import::StablehloPart> parts = import::split_stablehlo(text);
  if (parts.empty()) return end({"", "no module", ""});
  for (const import::StablehloPart& part : parts) {
    const Result<import::MlirModule> source = import::parse_stablehlo(part);
    if (!source) {
      end({fmt::format("line {}", part.line), "unparsable", first_line(source.error().message)});
      continue;
    }
    const std::string name = import::name_of_module(*source);
    begin(name);
    StablehloOutcome outcome = work_on(*source, choices);
    outcome.module = name;
    if (disabled && outcome.outcome != "pass")
      outcome = {name, "disabled", outcome.outcome + ": " + outcome.reason};
    end(outcome);
  }
}

}  // namespace heddle::tools
