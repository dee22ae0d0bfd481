// Inputs that become constants because an operator needs their values: what a value depends on, and
// the import again with them bound.
#include <set>

#include "import/onnx_importer.h"

namespace heddle::import {

std::vector<std::string> Importer::inputs_behind(const Value& value) const {
  std::vector<std::string> names;
  std::set<const Instr*> seen;
  std::vector<const Instr*> todo;
  const auto visit = [&](const Instr* instr) {
    if (instr != nullptr && seen.insert(instr).second) todo.push_back(instr);
  };
  visit(value.instr);
  for (const Value* element : value.elements) visit(element->instr);
  while (!todo.empty()) {
    const Instr* instr = todo.back();
    todo.pop_back();
    if (instr->is(Opcode::parameter) && instr->parent() == entry_)
      names.push_back(result_.input_names[static_cast<size_t>(instr->parameter_number())]);
    for (const Instr* operand : instr->operands()) visit(operand);
  }
  return names;
}

// What the model calls the dimensions of tensors, also of those that optionals hold.
std::map<std::string, std::vector<std::string>> dim_names(
    const std::vector<proto::ValueInfo>& values) {
  std::map<std::string, std::vector<std::string>> result;
  for (const proto::ValueInfo& value : values) {
    const proto::ValueInfo& tensor = value.element != nullptr ? *value.element : value;
    std::vector<std::string>& names = result[std::string(value.name)];
    for (const proto::DimInfo& dim : tensor.dims)
      names.emplace_back(dim.kind == proto::DimInfo::Kind::symbol ? dim.symbol : "");
  }
  return result;
}

// Runs the import, and again with more inputs bound to their hints as long as an operator asks for
// values that depend on such inputs.
void import_graph(const ModelFacts& facts, const std::vector<Input>& inputs, const Options& options,
                  TensorSource& source, Imported& result) {
  Options bound = options;
  for (;;) {
    Imported attempt;
    attempt.notes = result.notes;
    attempt.unbound = result.unbound;
    TensorSource fresh = source;
    Importer importer(facts, bound, fresh, attempt);
    try {
      importer.run(inputs);
    } catch (const Failure& failure) {
      if (failure.needs == nullptr) throw;
      bool more = false;
      for (const std::string& name : importer.inputs_behind(*failure.needs)) {
        const auto hint = options.hints.find(name);
        if (hint == options.hints.end()) throw;
        more = bound.values.emplace(name, hint->second).second || more;
      }
      if (!more) throw;
      continue;
    }
    for (const auto& [name, value] : bound.values) {
      if (options.values.contains(name)) continue;
      attempt.bound.push_back(name);
      attempt.notes.push_back(
          fmt::format("input {} decides shapes: bound to its value", quoted(name)));
    }
    attempt.input_dims = dim_names(facts.model->graph.inputs);
    attempt.output_dims = dim_names(facts.model->graph.outputs);
    result = std::move(attempt);
    return;
  }
}

}  // namespace heddle::import
