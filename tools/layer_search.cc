#include "layer_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/second_reference.h"
#include "hlo/module.h"
#include "hlo/state_arrays.h"
#include "session_options.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using tensor::Literal;
using Names = std::vector<std::string>;

constexpr int64_t kMostBytes = int64_t{64} << 20;  // of the results of one program
constexpr size_t kMostResults = 200;

bool is_compared(const hlo::Instr& instr) {
  return instr.shape().is_array() && !instr.is(hlo::Opcode::constant) &&
         !instr.is(hlo::Opcode::parameter);
}

// The instructions to compare, in the order of the graph, in parts of a bounded size.
std::vector<Names> parts_of(const hlo::Module& module) {
  std::vector<Names> parts;
  int64_t bytes = 0;
  for (const hlo::Instr* instr : module.entry()->instrs()) {
    if (!is_compared(*instr)) continue;
    const int64_t its = instr->shape().bytes();
    if (parts.empty() || bytes + its > kMostBytes || parts.back().size() == kMostResults) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().push_back(instr->name());
    bytes += its;
  }
  return parts;
}

// The module with these values as its results.
std::unique_ptr<hlo::Module> showing(const hlo::Module& whole, const Names& part) {
  std::unique_ptr<hlo::Module> module = whole.clone();
  hlo::Computation* entry = module->entry();
  std::vector<hlo::Instr*> values;
  std::vector<tensor::Shape> shapes;
  for (const std::string& name : part) {
    values.push_back(entry->find(name));
    shapes.push_back(values.back()->shape().without_layout());
  }
  module->input_output_alias.clear();
  module->entry_layout.reset();
  hlo::set_states(module.get(), {});
  entry->set_root(
      entry->add(hlo::Opcode::tuple, tensor::Shape::make_tuple(std::move(shapes)), values));
  entry->sort();
  entry->remove_dead();
  return module;
}

Result<std::vector<Literal>> run(api::Model& model, const api::CompileOptions& options,
                                 const std::vector<Literal>& inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<api::Program> program,
                          api::Program::compile(model, options));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<api::Context> context, program->make_context());
  for (size_t i = 0; i < inputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(context->bind_input(static_cast<int64_t>(i), inputs[i].data()));
  std::vector<Literal> outputs;
  for (const api::Port& port : program->outputs()) {
    outputs.emplace_back(port.shape.without_layout());
    HEDDLE_RETURN_IF_ERROR(context->bind_output(static_cast<int64_t>(outputs.size()) - 1,
                                                outputs.back().mutable_data()));
  }
  HEDDLE_RETURN_IF_ERROR(context->run());
  return outputs;
}

// The first of a part that differs.
Result<std::optional<LayerSearch::Found>> search_part(const hlo::Module& whole, const Names& part,
                                                      const api::CompileOptions& options,
                                                      const std::vector<Literal>& inputs) {
  const std::unique_ptr<api::Model> model = api::Model::from_module(showing(whole, part));
  api::CompileOptions reference;
  reference.device = "interp";
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> want, run(*model, reference, inputs));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Literal> got, run(*model, options, inputs));
  std::vector<const void*> bytes;
  for (const Literal& value : inputs) bytes.push_back(value.data());
  std::optional<api::SecondReference> second;
  for (size_t i = 0; i < part.size(); ++i) {
    OutputCheck check = check_output(part[i], got[i], want[i], model->tolerance(i));
    if (!check.equal()) {
      if (!second) second.emplace(*model, bytes);
      HEDDLE_ASSIGN_OR_RETURN(check, recheck(check, i, got[i], want[i], *second));
    }
    if (check.equal()) continue;
    const hlo::Instr* instr = whole.entry()->find(part[i]);
    const std::vector<std::string_view> nodes = instr->nodes().list();
    return LayerSearch::Found{std::string(hlo::opcode_text(instr->opcode())),
                              {nodes.begin(), nodes.end()},
                              std::move(check)};
  }
  return std::optional<LayerSearch::Found>();
}

}  // namespace

Result<LayerSearch> search_layers(const heddle_model* opened, const CompileChoices& choices,
                                  const std::vector<Literal>& inputs) {
  const api::Model& model = api::unwrap(opened);
  if (model.module() == nullptr)
    return user_error("--layers: {} is compiled; give the model", model.name());
  if (model.bounded() != nullptr || model.late() != nullptr)
    return user_error("--layers: shapes of {} are open; bind them with --dim NAME=N and --fix NAME",
                      model.name());
  std::vector<Literal> all = inputs;
  for (const Literal& state : hlo::states_of(*model.module())) all.push_back(state);
  const std::vector<Names> parts = parts_of(*model.module());
  HEDDLE_ASSIGN_OR_RETURN(api::CompileOptions plain, session_options(choices));
  plain.explain = plain.background = plain.consume_model = false;
  LayerSearch search;
  Progress progress;
  for (size_t i = 0; i < parts.size() && !search.first; ++i) {
    progress.show(
        fmt::format("{} comparing instructions",
                    Progress::bar(static_cast<int64_t>(i), static_cast<int64_t>(parts.size()))));
    HEDDLE_ASSIGN_OR_RETURN(search.first, search_part(*model.module(), parts[i], plain, all));
    search.instructions += static_cast<int64_t>(parts[i].size());
  }
  return search;
}

std::string to_string(const LayerSearch& search) {
  if (!search.first)
    return fmt::format(
        "layers: all {} instructions are right where each is a result; a difference of the outputs "
        "comes from fusion (try --fuse off)",
        search.instructions);
  const LayerSearch::Found& found = *search.first;
  return fmt::format("layers: the first that differs is {} ({}{}{}): {}", found.check.name,
                     found.operation, found.nodes.empty() ? "" : ", of ",
                     fmt::join(found.nodes, ", "), to_string(found.check));
}

nlohmann::ordered_json to_json(const LayerSearch& search) {
  nlohmann::ordered_json json = {{"instructions", search.instructions}, {"first", nullptr}};
  if (search.first)
    json["first"] = {{"operation", search.first->operation},
                     {"nodes", search.first->nodes},
                     {"check", to_json(search.first->check)}};
  return json;
}

}  // namespace heddle::tools
