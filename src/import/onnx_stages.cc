// Values that decide shapes: inputs that are bound to their values, and stages, the parts of a
// graph that compute such a value. Where a handler cannot do without one, the walk over the graph
// ends there; what was walked over until then is a stage, and the next walk has the value.
#include <algorithm>
#include <map>
#include <set>

#include "hlo/first_rows.h"
#include "import/onnx_importer.h"
#include "tensor/npz.h"

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

Type Importer::type_of_input(const std::string& name) const {
  for (const Instr* parameter : entry_->parameters())
    if (result_.input_names[static_cast<size_t>(parameter->parameter_number())] == name)
      return parameter->shape().type();
  HEDDLE_CHECK(false, "no parameter {}", name);
}

bool Importer::is_input(const Value& value) const {
  return value.instr != nullptr && value.instr->is(Opcode::parameter) &&
         value.instr->parent() == entry_;
}

std::string Decisions::next_key(std::string_view name) {
  const auto at = met.try_emplace(std::string(name), 0).first;
  return fmt::format("{}@{}", name, at->second++);
}

// Smaller ones gain nothing, and there would not be two others to compare with.
constexpr int64_t kLeastBound = 4;

Count Op::count(Instr* extent, int64_t most, const char* what) {
  Value* needs = inputs_[0];
  if (limits_.decisions != nullptr) {
    Decisions& decisions = *limits_.decisions;
    const Options& options = *decisions.options;
    const std::string key = decisions.next_key(fmt::format("{}:{}", node_.outputs[0], what));
    if (const auto known = options.decided.find(key); known != options.decided.end())
      return {known->second.get_s64(0), nullptr};
    // Of a bound that is too large there is mostly much less.
    const bool guess = most > options.max_count && (most == kAnyCount || options.max_count > 0);
    if (guess) {
      most = options.guessed_count;
      decisions.guessed->insert(key);
    }
    if (most >= kLeastBound && most <= options.max_count && !options.exact_counts.contains(key)) {
      open_count_ = key;
      return {most - options.less_counts, extent};
    }
    if (options.stages) {
      needs = &decisions.asked.emplace_back();
      needs->key = key;
      needs->instr = extent;
    }
  }
  fail_needing(needs, "{}: the {} depends on the model's inputs", describe(), what);
}

bool Op::may_count() const {
  return limits_.decisions != nullptr &&
         (limits_.decisions->options->stages || limits_.decisions->options->guessed_count > 0);
}

Instr* Op::first_rows(Instr* x, const Count& count) {
  if (count.computed == nullptr) return x;
  Instr* call = hlo::first_rows(b, x, b.convert(count.computed, Type::s32));
  limits_.decisions->calls->emplace(call->name(), open_count_);
  return call;
}

// What was decided is known from here on; what an earlier stage has computed is a parameter.
void Importer::name_computed(const std::string& name, Value& value) {
  for (size_t i = 0; i < value.elements.size(); ++i)
    name_computed(fmt::format("{}#{}", name, i), *value.elements[i]);
  if (!value.is_tensor() || value.literal || !value.key.empty() || is_input(value)) return;
  value.key = decisions_.next_key(name);
  if (const auto decided = options_.decided.find(value.key); decided != options_.decided.end()) {
    if (!(decided->second.shape() == value.shape()))
      fail("value {} is {}, decided was {}", quoted(name), to_string(value.shape()),
           to_string(decided->second.shape()));
    value.literal = decided->second;
    value.instr = nullptr;
    return;
  }
  const auto carried = options_.carried.find(value.key);
  if (carried == options_.carried.end() || !(carried->second == value.shape())) return;
  const auto number = static_cast<int64_t>(result_.input_names.size());
  result_.input_names.push_back(value.key);
  result_.input_aliases.emplace_back();
  value.instr = hlo::Builder(entry_).parameter(number, value.shape(), value.key);
}

// `rest` are the nodes from the one that ended the run, in this scope.
void Importer::carry_what_is_read(std::span<const proto::Node> rest, const Scope& scope,
                                  Failure& failure) {
  if (!failure.placed) to_carry_.clear();  // of a way that was given up
  failure.placed = true;
  const auto carry = [&](const Value* value) {
    if (value != nullptr && value->is_tensor() && !value->literal && !value->key.empty() &&
        !is_input(*value))
      to_carry_.emplace(value->key, value);
  };
  std::vector<std::string_view> names = names_read(rest);
  names.insert(names.end(), scope.results.begin(), scope.results.end());
  for (const std::string_view name : names) {
    bool known = false;
    const Value* value = scope.find(name, known);
    carry(value);
    if (value == nullptr) continue;
    for (const Value* element : value->elements) carry(element);
  }
}

bool Importer::cut_to(const Value& value) {
  if (value.key.empty() || value.instr == nullptr || value.instr->parent() != entry_) return false;
  result_.undecided = value.key;
  result_.output_names = {value.key};
  std::vector<Instr*> results{value.instr};
  for (const auto& [key, carried] : to_carry_) {
    if (key == value.key || carried->instr->parent() != entry_) continue;
    result_.output_names.push_back(key);
    results.push_back(carried->instr);
  }
  hlo::Builder builder(entry_);
  entry_->set_root(builder.tuple(results));
  for (const auto& computation : result_.module->computations()) computation->remove_dead();
  result_.module->remove_dead_computations();
  return true;
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

// Inputs of at most so many integers decide by themselves: what is computed from them is computed
// at import.
constexpr int64_t kMostDeciding = 256;

bool are_few_integers(const std::vector<std::string>& inputs, const Options& options) {
  int64_t elems = 0;
  for (const std::string& name : inputs) {
    const Literal& value = options.hints.at(name);
    elems += value.elems();
    if (tensor::is_float(value.type()) || tensor::is_complex(value.type())) return false;
  }
  return elems <= kMostDeciding;
}

// Runs the import, and again with more inputs bound to their hints as long as an operator asks for
// values that depend on such inputs.
void import_graph(const ModelFacts& facts, const std::vector<Input>& inputs, const Options& options,
                  TensorSource& source, Imported& result) {
  Options bound = options;
  std::map<std::string, std::string> reasons;  // of inputs that were bound
  for (;;) {
    Imported attempt;
    attempt.notes = result.notes;
    attempt.unbound = result.unbound;
    TensorSource fresh = source;
    Importer importer(facts, bound, fresh, attempt);
    try {
      importer.run(inputs);
    } catch (Failure& failure) {
      if (failure.needs == nullptr) throw;
      const std::vector<std::string> behind = importer.inputs_behind(*failure.needs);
      const auto has_hint = [&](const std::string& name) { return options.hints.contains(name); };
      const bool known = !behind.empty() && std::all_of(behind.begin(), behind.end(), has_hint);
      const bool at_once =
          known && (importer.is_input(*failure.needs) || are_few_integers(behind, options));
      if (!at_once && options.stages && importer.cut_to(*failure.needs)) {
        attempt.undecided_why = failure.error.message;
      } else if (known) {
        for (const std::string& name : behind) {
          const Type type = importer.type_of_input(name);
          bound.values.emplace(name, value_or_throw(tensor::as_type(options.hints.at(name), type)));
          reasons.emplace(name, failure.error.message);
        }
        continue;
      } else {
        if (!behind.empty())
          failure.error.message += fmt::format("; give {} a value (--input NAME=SPEC, --inputs)",
                                               fmt::join(behind, ", "));
        throw;
      }
    }
    const std::vector<std::string>& all = importer.all_inputs();
    for (size_t place = 0, number = 0; place < all.size(); ++place) {
      if (const auto reason = reasons.find(all[place]); reason != reasons.end()) {
        attempt.bound.push_back({all[place], static_cast<int64_t>(number),
                                 bound.values.at(all[place]).shape(), reason->second});
        attempt.notes.push_back(
            fmt::format("input {} decides shapes: {}", quoted(all[place]), reason->second));
      }
      if (!options.values.contains(all[place])) ++number;
    }
    attempt.input_dims.merge(dim_names(facts.model->graph.inputs));
    attempt.output_dims = dim_names(facts.model->graph.outputs);
    result = std::move(attempt);
    return;
  }
}

}  // namespace heddle::import
