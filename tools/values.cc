#include "values.h"

#include <algorithm>

#include "command_line.h"

namespace heddle::tools {
namespace {

using tensor::Literal;
using tensor::NamedLiterals;
using tensor::Shape;
using tensor::Type;

bool is_file(const std::string& spec) { return spec.ends_with(".npy"); }

bool has_name(const heddle_port& port, const std::string& name) {
  return name == port.name || (port.alias[0] != '\0' && name == port.alias);
}

Result<Literal> fit(const Literal& value, const heddle_model* model, int64_t number) {
  const heddle_port port = input_of(model, number);
  Result<Literal> typed = tensor::as_type(value, static_cast<Type>(port.type));
  if (!typed) return error_in(fmt::format("input {}", port.name), typed.error());
  const std::vector<int64_t> wanted(port.dims, port.dims + port.rank);
  if (typed->shape().extents() != wanted)
    return user_error("input {}: got {}, wanted {}; {}", port.name,
                      tensor::to_string(value.shape(), false), shape_text(port),
                      info_of(model).is_program
                          ? "compile the model for this shape"
                          : "dynamic dimensions are bound by --dim or --shape");
  return typed;
}

Status check_names(const heddle_model* model, const NamedLiterals& given) {
  std::string names;
  const int64_t count = info_of(model).inputs;
  for (int64_t i = 0; i < count; ++i) {
    const heddle_port port = input_of(model, i);
    names += (i == 0 ? "" : ", ") + std::string(port.name);
    if (port.alias[0] != '\0') names += fmt::format(" ({})", port.alias);
  }
  for (const auto& [name, value] : given) {
    bool found = false;
    for (int64_t i = 0; i < count && !found; ++i) found = has_name(input_of(model, i), name);
    if (!found)
      return user_error("input {}: the model has none of that name; its inputs are: {}", name,
                        names.empty() ? "none" : names);
  }
  return {};
}

}  // namespace

void InputChoices::declare(CommandLine& line) {
  line.group("Values");
  line.text(file, "--inputs", "F.npz", "values of the inputs, by name (else random)");
  line.list(specs, "--input", "NAME=SPEC", "one value: F.npy, or such as 2x2xf32=1 2 3 4");
  line.number(seed, "--seed", "N", "of random inputs (0)");
}

Result<NamedLiterals> InputChoices::read() const {
  NamedLiterals given;
  if (!file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(given, tensor::read_npz(file));
  }
  for (const std::string& text : specs) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return user_error("--input {}: wanted NAME=SPEC, such as x=2x2xf32=1 2 3 4 or x=x.npy", text);
    const std::string name = text.substr(0, equals), spec = text.substr(equals + 1);
    Result<Literal> value =
        is_file(spec) ? tensor::read_npy(spec) : tensor::parse_literal_spec(spec);
    if (!value) return error_in("--input " + name, value.error());
    std::erase_if(given, [&](const auto& known) { return known.first == name; });
    given.emplace_back(name, std::move(*value));
  }
  return given;
}

Result<InputValues> InputChoices::values(const heddle_model* model,
                                         const NamedLiterals& given) const {
  HEDDLE_RETURN_IF_ERROR(check_names(model, given));
  InputValues result;
  const int64_t count = info_of(model).inputs;
  std::vector<const Literal*> chosen(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const heddle_port port = input_of(model, i);
    for (const auto& [name, value] : given)
      if (has_name(port, name)) chosen[static_cast<size_t>(i)] = &value;
    if (chosen[static_cast<size_t>(i)] == nullptr && port.bytes > 0)
      result.random.push_back(port.name);
  }
  for (int64_t i = 0; i < count; ++i) {
    const Literal* value = chosen[static_cast<size_t>(i)];
    // Where all are given there is nothing to draw; else every input gets memory to draw into.
    if (value != nullptr && result.random.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(Literal fitting, fit(*value, model, i));
      result.values.push_back(std::move(fitting));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(Literal zeros, literal_of(input_of(model, i)));
      result.values.push_back(std::move(zeros));
    }
  }
  if (!result.random.empty()) {
    std::vector<void*> buffers;
    for (Literal& value : result.values)
      buffers.push_back(value.bytes() > 0 ? value.mutable_data() : nullptr);
    HEDDLE_RETURN_IF_ERROR(
        to_status(heddle_model_random_inputs(model, seed_or_default(), buffers.data())));
    for (int64_t i = 0; i < count; ++i) {
      const Literal* value = chosen[static_cast<size_t>(i)];
      if (value == nullptr) continue;
      HEDDLE_ASSIGN_OR_RETURN(result.values[static_cast<size_t>(i)], fit(*value, model, i));
    }
  }
  if (count == 0) result.description = "none";
  if (!given.empty()) result.description = "as given";
  if (!result.random.empty()) {
    const char* integers = info_of(model).is_program ? "integers 0 or 1"
                                                     : "integers small and in the range they index";
    result.description += fmt::format("{}random, seed {}: floats in [-1, 1], {}, masks ones ({})",
                                      given.empty() ? "" : "; ", seed_or_default(), integers,
                                      fmt::join(result.random, ", "));
  }
  return result;
}

Result<Literal> literal_of(const heddle_port& port) {
  if (port.type == HEDDLE_TOKEN) return Literal();
  const std::vector<int64_t> dims(port.dims, port.dims + port.rank);
  Result<Literal> made = Literal::make(Shape::array(static_cast<Type>(port.type), dims));
  if (!made) return error_in(port.name, made.error());
  return made;
}

std::string shape_text(const heddle_port& port) {
  if (port.type == HEDDLE_TOKEN) return "token[]";
  const std::vector<int64_t> dims(port.dims, port.dims + port.rank);
  return tensor::to_string(Shape::array(static_cast<Type>(port.type), dims), false);
}

Status bind(heddle_context* context, std::vector<Literal>& inputs, std::vector<Literal>& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_bind_input(
        context, static_cast<int64_t>(i), inputs[i].bytes() > 0 ? inputs[i].data() : nullptr)));
  for (size_t i = 0; i < outputs.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(to_status(
        heddle_context_bind_output(context, static_cast<int64_t>(i),
                                   outputs[i].bytes() > 0 ? outputs[i].mutable_data() : nullptr)));
  return {};
}

Result<std::vector<Literal>> make_outputs(const heddle_program* program) {
  std::vector<Literal> outputs;
  for (int64_t i = 0; i < info_of(program).outputs; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(Literal literal, literal_of(output_of(program, i)));
    outputs.push_back(std::move(literal));
  }
  return outputs;
}

Result<std::vector<Literal>> run_once(heddle_program* program, std::vector<Literal>& inputs) {
  heddle_context* created = nullptr;
  HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_create(program, &created)));
  const ContextHandle context(created);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Literal> outputs, make_outputs(program));
  HEDDLE_RETURN_IF_ERROR(bind(context.get(), inputs, outputs));
  HEDDLE_RETURN_IF_ERROR(to_status(heddle_context_run(context.get())));
  return outputs;
}

Status write_outputs(const std::string& path, const heddle_model* model,
                     const std::vector<Literal>& outputs) {
  NamedLiterals named;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].shape().is_array())
      named.emplace_back(output_of(model, static_cast<int64_t>(i)).name, outputs[i]);
  return tensor::write_npz(path, named);
}

}  // namespace heddle::tools
