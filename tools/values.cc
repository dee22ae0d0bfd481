#include "values.h"

#include <algorithm>
#include <set>

#include "command_line.h"
#include "output_file.h"
#include "tensor/limits.h"

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

// What to do about a value of another shape.
const char* way_out(const heddle_model_info& info) {
  if (info.is_program != 0) return "compile the model for this shape";
  return std::string_view(info.format) == "ONNX" ? "bind dynamic dimensions with --dim or --shape"
                                                 : "HLO text has fixed shapes";
}

Result<Literal> fit(const Literal& value, const std::string& source, const heddle_port& port,
                    const heddle_model_info& info) {
  Result<Literal> typed = tensor::as_type(value, static_cast<Type>(port.type));
  if (!typed) return error_in(source, typed.error());
  const std::vector<int64_t> wanted(port.dims, port.dims + port.rank);
  if (typed->shape().extents() != wanted)
    return user_error("{}: got {}, wanted {}; {}", source, tensor::to_string(value.shape(), false),
                      shape_text(port), way_out(info));
  return typed;
}

Result<Literal> ids_of_texts(const heddle_model* model, const Literal& points) {
  Status status;
  Literal ids = tensor::ids_of_texts(points, [&](const std::string& text) {
    uint32_t id = 0;
    if (status) status = to_status(heddle_model_text_id(model, text.data(), text.size(), &id));
    return id;
  });
  if (!status) return tl::unexpected(status.error());
  return ids;
}

Result<Literal> texts_of_ids(const heddle_model* model, const Literal& ids) {
  Status status;
  Result<Literal> points = tensor::texts_of_ids(ids, [&](uint32_t id) {
    const char* text = "";
    size_t size = 0;
    if (status) status = to_status(heddle_model_text(model, id, &text, &size));
    return std::string(text, size);
  });
  if (!status) return tl::unexpected(status.error());
  return points;
}

std::string names_of(const heddle_port& port) {
  return port.alias[0] == '\0' ? port.name : fmt::format("{} ({})", port.name, port.alias);
}

std::string names_of_inputs(const heddle_model* model) {
  std::string names;
  for (int64_t i = 0; i < info_of(model).inputs; ++i) {
    names += (i == 0 ? "" : ", ") + names_of(input_of(model, i));
  }
  return names.empty() ? "none" : names;
}

// Inputs that this machine cannot hold are refused before memory is taken for any of them.
Status check_memory_of_inputs(const heddle_model* model) {
  int64_t sum = 0;
  for (int64_t i = 0; i < info_of(model).inputs; ++i) {
    const heddle_port port = input_of(model, i);
    if (__builtin_add_overflow(sum, port.bytes, &sum) || sum > tensor::memory_limit_bytes())
      return user_error("input {}: {} needs {} bytes{}, this machine has {}; use a smaller shape",
                        port.name, shape_text(port), port.bytes,
                        sum == port.bytes ? "" : " on top of the inputs before it",
                        tensor::memory_limit_bytes());
  }
  return {};
}

}  // namespace

void InputChoices::declare(CommandLine& line) {
  declare_values(line);
  line.flag(random_rest, "--random-rest", "draws random values for the inputs that are not given");
  line.number(seed, "--seed", "N", "seed of the random inputs (default: 0)");
}

void InputChoices::declare_values(CommandLine& line) {
  line.group("Values");
  line.text(file, "--inputs", "F.npz", "values of the inputs, by name (default: random)");
  line.list(specs, "--input", "NAME=SPEC",
            "one value: F.npy, or a literal such as 2x2xf32=1 2 3 4");
  line.files()->reads([this](const FileUse::Add& add) {
    add("--inputs", file);
    for (const std::string& text : specs)
      if (is_file(text)) add("--input", text.substr(text.find('=') + 1));
  });
}

Result<NamedLiterals> InputChoices::read() const {
  NamedLiterals given;
  texts_.clear();
  if (!file.empty()) {
    if (is_file(file))
      return user_error("--inputs {}: is one array, wanted F.npz; give it with --input NAME={}",
                        file, file);
    Result<NamedLiterals> read = tensor::read_npz(file, &texts_);
    if (!read) return error_in("--inputs", read.error());
    given = std::move(*read);
    if (given.empty()) return user_error("--inputs {}: holds no arrays", file);
  }
  std::set<std::string> seen;
  for (const std::string& text : specs) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return user_error("--input {}: wanted NAME=SPEC, such as x=2x2xf32=1 2 3 4 or x=x.npy", text);
    const std::string name = text.substr(0, equals), spec = text.substr(equals + 1);
    if (!seen.insert(name).second) return user_error("--input {}: is given twice", name);
    bool strings = false;
    Result<Literal> value =
        is_file(spec) ? tensor::read_npy(spec, &strings) : tensor::parse_literal_spec(spec);
    if (!value) return error_in("--input " + name, value.error());
    texts_.erase(name);
    if (strings) texts_.insert(name);
    std::erase_if(given, [&](const auto& known) { return known.first == name; });
    given.emplace_back(name, std::move(*value));
  }
  return given;
}

std::string InputChoices::source_of(const std::string& name) const {
  for (const std::string& text : specs)
    if (text.starts_with(name + "=")) return "--input " + name;
  // Samples of a calibration set come by no option of this kind.
  if (file.empty()) return fmt::format("entry {}", name);
  return fmt::format("--inputs {}, entry {}", file, name);
}

Error InputChoices::with_sources(Error error, const NamedLiterals& given) const {
  for (const auto& [name, value] : given) {
    const std::string said = fmt::format("the value of input '{}'", name);
    const size_t at = error.message.find(said);
    if (at != std::string::npos) error.message.replace(at, said.size(), source_of(name));
  }
  return error;
}

// By input, of its type and shape; nothing where none was given.
Result<InputChoices::Chosen> InputChoices::choose(const heddle_model* model,
                                                  const NamedLiterals& given) const {
  const heddle_model_info info = info_of(model);
  Chosen chosen(static_cast<size_t>(info.inputs));
  std::vector<std::string> sources(chosen.size());
  for (const auto& [name, value] : given) {
    const std::string source = source_of(name);
    size_t place = 0;
    while (place < chosen.size() && !has_name(input_of(model, static_cast<int64_t>(place)), name))
      ++place;
    if (place == chosen.size())
      return user_error("{}: the model has no such input; its inputs are: {}", source,
                        names_of_inputs(model));
    // An input has two names where it has an alias; --input stands after the file and wins.
    constexpr const char* kOne = "--input ";
    if (chosen[place] && sources[place].starts_with(kOne) == source.starts_with(kOne))
      return user_error("{}: {} gives the same input", source, sources[place]);
    const heddle_port port = input_of(model, static_cast<int64_t>(place));
    const bool text = texts_.contains(name);
    if (text != (port.is_text != 0))
      return user_error("{}: got {}, wanted {}{}; {}", source, text ? "strings" : "numbers",
                        port.is_text != 0 ? "strings " : "", shape_text(port),
                        text ? "convert the array" : "give an array of numpy's <U");
    Literal ids = value;
    if (text) {
      HEDDLE_ASSIGN_OR_RETURN(ids, ids_of_texts(model, value));
    }
    HEDDLE_ASSIGN_OR_RETURN(chosen[place], fit(ids, source, port, info));
    sources[place] = source;
  }
  return chosen;
}

Result<InputValues> InputChoices::values(const heddle_model* model,
                                         const NamedLiterals& given) const {
  HEDDLE_RETURN_IF_ERROR(check_memory_of_inputs(model));
  HEDDLE_ASSIGN_OR_RETURN(Chosen chosen, choose(model, given));
  InputValues result;
  std::string missing;
  const auto count = static_cast<int64_t>(chosen.size());
  for (int64_t i = 0; i < count; ++i) {
    const heddle_port port = input_of(model, i);
    if (chosen[static_cast<size_t>(i)] || port.bytes == 0) continue;
    missing +=
        fmt::format("{}{} {}", missing.empty() ? "" : ", ", names_of(port), shape_text(port));
    result.random.push_back(port.name);
  }
  if (!given.empty() && !missing.empty() && !random_rest)
    return user_error("no value was given for: {}; give it, or --random-rest", missing);
  HEDDLE_RETURN_IF_ERROR(fill(model, std::move(chosen), result));
  if (count == 0) result.description = "none";
  if (!given.empty()) result.description = "as given";
  if (result.random.empty()) return result;
  result.all_random = given.empty();
  const char* integers = info_of(model).is_program
                             ? "integers 0 or 1"
                             : "integers small, and in range where they are indices";
  result.description += fmt::format("{}random, seed {}: floats in [-1, 1], {}, masks all ones ({})",
                                    given.empty() ? "" : "; ", seed_or_default(), integers,
                                    fmt::join(result.random, ", "));
  return result;
}

Status InputChoices::fill(const heddle_model* model, Chosen chosen, InputValues& result) const {
  // Where all are given there is nothing to draw; else every input gets memory to draw into.
  const bool draw = !result.random.empty();
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!draw && chosen[i]) {
      result.values.push_back(std::move(*chosen[i]));
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Literal zeros, literal_of(input_of(model, static_cast<int64_t>(i))));
    result.values.push_back(std::move(zeros));
  }
  if (!draw) return {};
  std::vector<void*> buffers;
  for (Literal& value : result.values)
    buffers.push_back(value.bytes() > 0 ? value.mutable_data() : nullptr);
  HEDDLE_RETURN_IF_ERROR(
      to_status(heddle_model_random_inputs(model, seed_or_default(), buffers.data())));
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) result.values[i] = std::move(*chosen[i]);
  return {};
}

Result<Literal> literal_of(const heddle_port& port) {
  if (port.type == HEDDLE_TOKEN) return Literal();
  if (port.type == HEDDLE_OPAQUE)
    return user_error("{}: an opaque value cannot be passed in or out", port.name);
  const std::vector<int64_t> dims(port.dims, port.dims + port.rank);
  Result<Literal> made = Literal::make(Shape::array(static_cast<Type>(port.type), dims));
  if (!made) return error_in(port.name, made.error());
  return made;
}

std::string shape_text(const heddle_port& port) {
  if (port.type == HEDDLE_TOKEN) return "token[]";
  if (port.type == HEDDLE_OPAQUE) return "opaque[]";
  if (port.rank < 0) return "of a shape that a run tells";
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

Status write_outputs(const OutputFile& file, const heddle_model* model,
                     const std::vector<Literal>& outputs) {
  NamedLiterals named;
  std::set<std::string> texts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].shape().is_array()) continue;
    const heddle_port port = output_of(model, static_cast<int64_t>(i));
    named.emplace_back(port.name, outputs[i]);
    if (port.is_text == 0) continue;
    texts.insert(port.name);
    HEDDLE_ASSIGN_OR_RETURN(named.back().second, texts_of_ids(model, outputs[i]));
  }
  return file.publish(tensor::write_npz(file.work_path(), named, texts));
}

}  // namespace heddle::tools
