#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>

#include "api/bounded.h"
#include "api/counts.h"
#include "api/family.h"
#include "api/late.h"
#include "api/ports.h"

#include "api/session.h"
#include "api/size_buckets.h"
#include "api/tolerance.h"
#include "hlo/module.h"
#include "hlo/state_arrays.h"
#include "hlo/text.h"
#include "import/hlo_proto.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "import/stablehlo.h"
#include "interp/random_inputs.h"
#include "program/file.h"
#include "program/saved.h"

namespace heddle::api {
namespace {

using Clock = std::chrono::steady_clock;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

import::Options import_options(const OpenOptions& options) {
  import::Options result;
  result.dims = options.dims;
  result.shapes = options.shapes;
  for (const auto& [name, shape] : options.hints)  // shapes win; scales have those of their caches
    if (options.kv_cache != "int8" || !name.ends_with(".scale"))
      if (result.shapes.emplace(name, shape).second) result.shapes_of_values.insert(name);
  for (const auto& [name, value] : options.values) {
    if (options.kv_cache == "int8" && name.ends_with(".scale")) continue;
    if (result.shapes.emplace(name, value.shape().extents()).second)
      result.shapes_of_values.insert(name);
    result.hints.emplace(name, value);
  }
  result.values = options.constants;
  result.vocabulary = options.vocabulary;
  result.module_name = options.module_name;
  result.random_constants = options.random_constants;
  result.kv_cache = options.kv_cache;
  result.unsupported = options.unsupported;
  return result;
}

bool is_fixed(import::Format format) {
  return format == import::Format::hlo_text || format == import::Format::hlo_proto;
}

// `why`: explains what the model accepts. `dims`: dims and bounds are errors, too.
Status check_fixed_shapes(const OpenOptions& options, std::string_view why, bool dims = false) {
  if ((dims || (options.dims.empty() && options.bounds.empty())) && options.shapes.empty() &&
      !options.late)
    return {};
  return user_error("dimensions and shapes can be given to ONNX models only; {}", why);
}

// Integers and booleans whose name contains "mask".
bool is_mask(const Port& port) {
  const Type type = port.shape.type();
  if (!tensor::is_integer(type) && type != Type::pred) return false;
  for (std::string name : {port.name, port.alias}) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.find("mask") != std::string::npos) return true;
  }
  return false;
}

void fill_ones(const Port& port, void* buffer) {
  const int64_t each = tensor::type_bytes(port.shape.type());
  std::memset(buffer, 0, static_cast<size_t>(port.bytes));
  for (int64_t at = 0; at < port.bytes; at += each) static_cast<char*>(buffer)[at] = 1;
}

// Copies the leaves of an argument to memory.
void copy_leaves(const Literal& value, std::span<void* const> buffers, size_t& next) {
  if (value.shape().is_tuple()) {
    for (const Literal& element : value.elements()) copy_leaves(element, buffers, next);
    return;
  }
  if (value.bytes() > 0)
    std::memcpy(buffers[next], value.data(), static_cast<size_t>(value.bytes()));
  ++next;
}

// A number in [0, 1) from a counter (splitmix64).
double unit_of(uint64_t counter) {
  uint64_t x = counter * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

// For a compiled program the use of most integers is unknown: 0 and 1 are nearly always in range.
// Floats are as for the model.
void fill_unknown(const Port& port, uint64_t seed, int64_t number, void* buffer) {
  const Shape shape = Shape::array(port.shape.type(), port.dims);
  Literal value(shape);
  if (tensor::is_complex(shape.type()) || tensor::is_float(shape.type())) {
    value = interp::random_floats(shape, seed, number);
  } else {
    seed += static_cast<uint64_t>(number) << 40;
    for (int64_t i = 0; i < value.elems(); ++i)
      value.set_bits(i, unit_of(seed + static_cast<uint64_t>(i) + 1) < 0.5 ? 0 : 1);
  }
  if (value.bytes() > 0) std::memcpy(buffer, value.data(), static_cast<size_t>(value.bytes()));
}

// For indices checked in this input: values outside of all of their ranges (`anew`: all values) are
// replaced by valid indices.
void fill_indices(std::span<const tensor::IndexCheck> checks, const Port& port, uint64_t seed,
                  int64_t number, bool anew, void* buffer) {
  for (const tensor::IndexCheck& check : checks) {
    if (check.input != number || port.bytes == 0) continue;
    Literal value(Shape::array(port.shape.type(), port.dims));
    std::memcpy(value.mutable_data(), buffer, static_cast<size_t>(port.bytes));
    for (int64_t i = 0; i < value.elems(); ++i) {
      const auto& range = check.ranges[static_cast<size_t>(i) % check.ranges.size()];
      if (!anew && range.contains(value.get_s64(i))) continue;
      const double unit =
          unit_of(seed + (static_cast<uint64_t>(number) << 40) + static_cast<uint64_t>(i) + 1);
      value.set_s64(i, static_cast<int64_t>(unit * (static_cast<double>(range.high) + 1)));
    }
    std::memcpy(buffer, value.data(), static_cast<size_t>(port.bytes));
    anew = false;
  }
}

}  // namespace

Model::Model() = default;
Model::~Model() = default;

void Model::take(import::Imported imported) {
  std::unique_ptr<hlo::Module> module = std::move(imported.module);
  hlo::set_states(module.get(), {});  // states from a pass become ordinary inputs and outputs
  name_ = module->name();
  notes_ = std::move(imported.notes);
  unbound_ = std::move(imported.unbound);
  files_ = std::move(imported.files);
  origin_ = std::move(imported.origin);
  index_checks_ = std::move(imported.index_checks);
  assertions_ = std::move(imported.assertions);
  const std::vector<std::string>&input_names = imported.input_names,
        &input_aliases = imported.input_aliases, &output_names = imported.output_names;
  const hlo::Computation& entry = *module->entry();
  std::vector<Shape> shapes;
  for (const hlo::Instr* parameter : entry.parameters()) append_leaves(parameter->shape(), shapes);
  HEDDLE_CHECK(shapes.size() == input_names.size(), "{} inputs, {} names", shapes.size(),
               input_names.size());
  for (size_t i = 0; i < shapes.size(); ++i)
    inputs_.push_back(
        make_port(input_names[i], i < input_aliases.size() ? input_aliases[i] : "", shapes[i]));
  shapes.clear();
  append_leaves(entry.root()->shape(), shapes);
  const auto hidden = static_cast<size_t>(tensor::hidden_outputs(index_checks_));
  HEDDLE_CHECK(shapes.size() == output_names.size() + hidden, "{} outputs, {} names, {} hidden",
               shapes.size(), output_names.size(), hidden);
  for (size_t i = 0; i < output_names.size(); ++i)
    outputs_.push_back(make_port(output_names[i], "", shapes[i]));
  tolerances_ = derive_tolerances(*module);
  tolerances_.resize(outputs_.size());
  for (const auto& computation : module->computations())
    instructions_ += static_cast<int64_t>(computation->instrs().size());
  module_ = std::move(module);
  name_dims(imported.input_dims, inputs_);
  name_dims(imported.output_dims, outputs_);
  if (!imported.texts.empty()) vocabulary_ = std::move(imported.vocabulary);
  for (std::vector<Port>* ports : {&inputs_, &outputs_})
    for (Port& port : *ports) port.is_text = imported.texts.contains(port.name);
}

Result<std::unique_ptr<Model>> Model::from_program(const program::Program& program) {
  std::unique_ptr<Model> model(new Model());
  model->format_ = import::format_name(import::Format::program);
  model->is_program_ = true;
  model->name_ = program.name;
  model->notes_ = program.notes;
  model->index_checks_ = program.index_checks;
  for (const bool input : {true, false}) {
    const auto ports = input ? std::span(program.inputs).first(program::shown_inputs(program))
                             : std::span(program.outputs).first(program::shown_outputs(program));
    for (const program::Port& port : ports) {
      if (port.shape.layout() && !port.shape.layout()->is_row_major())
        return user_error("{} has a layout; a program's inputs and outputs are row-major",
                          port.name);
      (input ? model->inputs_ : model->outputs_)
          .push_back(make_port(port.name, port.alias_name, port.shape));
    }
  }
  // The path to the outputs is unknown: assumes the longest reduction in models.
  constexpr int64_t kLongest = 1 << 16;
  for (const Port& port : model->outputs_) {
    const Type type = port.shape.type();
    const Type component = tensor::is_complex(type) ? tensor::complex_component(type) : type;
    model->tolerances_.push_back(tensor::is_float(component)
                                     ? tensor::derived_tolerance(component, kLongest)
                                     : tensor::Tolerance());
  }
  return model;
}

Result<std::unique_ptr<Model>> Model::of_saved(const std::string& path, program::Saved saved,
                                               const OpenOptions& options) {
  const bool fixed = saved.symbols.empty();
  if (!options.constants.empty())
    return user_error("{}: a compiled program takes no fixed values of inputs", path);
  if (Status status = check_fixed_shapes(
          options,
          fixed ? "a compiled program has them fixed" : "a compiled program takes --dim NAME=N",
          !fixed);
      !status)
    return error_in(path, status.error());
  auto model = from_program(saved.variants[0].program);
  if (!model) return error_in(path, model.error());
  if (!fixed) {
    auto bounded = bounded_of(saved, options);
    if (!bounded) return error_in(path, bounded.error());
    (*model)->bounded_ = *bounded;
    set_ports(**bounded, saved.variants[0], (*model)->inputs_, (*model)->outputs_, saved.symbols);
  }
  (*model)->saved_ = std::make_shared<const program::Saved>(std::move(saved));
  return model;
}

// `bytes`: the program in memory, if there is no file.
Result<std::unique_ptr<Model>> Model::open_program(const std::string& path,
                                                   const OpenOptions& options,
                                                   const std::string_view* bytes) {
  if (!options.module_name.empty())
    return user_error("{}: a compiled program has no modules to choose from", path);
  HEDDLE_ASSIGN_OR_RETURN(program::Saved saved, bytes != nullptr ? program::load_saved(path, *bytes)
                                                                 : program::load_saved(path));
  return of_saved(path, std::move(saved), options);
}

Result<std::unique_ptr<Model>> Model::open(const std::string& path, const OpenOptions& options) {
  const Clock::time_point begin = Clock::now();
  std::unique_ptr<Model> model(new Model());
  import::Format format;
  {
    HEDDLE_ASSIGN_OR_RETURN(const import::ModelFile file, import::open_model_file(path));
    format = file.format;
  }
  model->format_ = import::format_name(format);
  if (format == import::Format::program) {
    HEDDLE_ASSIGN_OR_RETURN(model, open_program(path, options));
  } else {
    const bool is_hlo = is_fixed(format);
    if (is_hlo)
      if (Status fixed = check_fixed_shapes(options, "HLO has them fixed"); !fixed)
        return error_in(path, fixed.error());
    import::Options wanted = import_options(options);
    if (is_hlo) {
      wanted.shapes.clear();
      wanted.hints.clear();
    }
    if (!options.bounds.empty() && format != import::Format::onnx)
      return user_error("{}: --dim NAME=N<=MOST is for ONNX models", path);
    const auto import = [path](const import::Options& with) {
      return import::import_model(path, with);
    };
    HEDDLE_RETURN_IF_ERROR(model->take_open(import, std::move(wanted), options));
  }
  model->import_ms_ = ms_since(begin);
  return model;
}

Result<std::unique_ptr<Model>> Model::parse(const std::string& name, std::string_view bytes,
                                            const OpenOptions& options) {
  const Clock::time_point begin = Clock::now();
  const import::Format format = import::sniff(bytes);
  if (format == import::Format::program) {
    HEDDLE_ASSIGN_OR_RETURN(auto model, open_program(name, options, &bytes));
    model->import_ms_ = ms_since(begin);
    return model;
  }
  if (!options.bounds.empty() && format != import::Format::onnx)
    return user_error("{}: bounds are for ONNX models", name);
  std::function<Result<import::Imported>(std::string_view, const import::Options&)> read;
  if (format == import::Format::onnx) {
    read = [](std::string_view text, const import::Options& with) {
      return import::import_onnx_bytes(text, {}, with);
    };
  } else if (is_fixed(format)) {
    if (Status fixed = check_fixed_shapes(options, "HLO has them fixed"); !fixed)
      return error_in(name, fixed.error());
    read = import::import_hlo_text;
    if (format == import::Format::hlo_proto)
      read = [](std::string_view proto, const import::Options& with) {
        const auto owner = std::make_shared<const std::string>(proto);
        return import::import_hlo_proto(*owner, owner, with);
      };
  } else if (import::is_stablehlo(format)) {
    read = import::import_stablehlo_bytes;
  } else if (format == import::Format::unknown) {
    return user_error("{}: not a model: neither ONNX nor HLO nor StableHLO", name);
  } else {
    return user_error("{}: {} cannot be read from memory; ONNX, HLO and StableHLO can", name,
                      import::format_name(format));
  }
  // Later imports need the bytes again.
  std::shared_ptr<const std::string> copy;
  if (options.late || !options.values.empty() || !options.bounds.empty())
    copy = std::make_shared<const std::string>(bytes);
  const auto import = [read, copy, bytes, name](const import::Options& with) {
    Result<import::Imported> imported = read(copy ? std::string_view(*copy) : bytes, with);
    if (!imported) return Result<import::Imported>(error_in(name, imported.error()));
    return imported;
  };
  std::unique_ptr<Model> model(new Model());
  model->format_ = import::format_name(format);
  import::Options wanted = import_options(options);
  if (is_fixed(format)) {
    wanted.shapes.clear();
    wanted.hints.clear();
  }
  HEDDLE_RETURN_IF_ERROR(model->take_open(import, std::move(wanted), options));
  model->import_ms_ = ms_since(begin);
  return model;
}

Result<std::unique_ptr<Model>> Model::of_family(Family family, const OpenOptions& options) {
  const Clock::time_point begin = Clock::now();
  std::unique_ptr<Model> model(new Model());
  model->format_ = import::format_name(import::Format::hlo_text);
  HEDDLE_RETURN_IF_ERROR(
      model->take_open(family_import(std::move(family)), import_options(options), options));
  if (model->late_ != nullptr) {
    Late late = *model->late_;
    late.sizes_differ = true;
    model->late_ = std::make_shared<const Late>(std::move(late));
  }
  model->import_ms_ = ms_since(begin);
  return model;
}

Status Model::take_open(
    const std::function<Result<import::Imported>(const import::Options&)>& import,
    import::Options wanted, const OpenOptions& options) {
  const CountingImport counting(import);
  if (options.bounds.empty()) return take_late(counting, std::move(wanted), options.late);
  wanted.shapes = options.shapes;
  wanted.open_shapes = options.hints;
  return take_bounded(counting, std::move(wanted), options);
}

Status Model::take_bounded(
    const std::function<Result<import::Imported>(const import::Options&)>& import,
    import::Options wanted, const OpenOptions& options) {
  wanted.hints.clear();
  wanted.max_fold_elems = kMostFolded;
  const auto import_at = [import, wanted, steps = options.steps](const Extents& extents) {
    import::Options at = wanted;
    at.bounded = extents;
    for (const auto& [name, extent] : extents) {
      const int64_t elements = extent * (steps.contains(name) ? steps.at(name) : 1);
      const auto computed = at.named_extents.find(name);
      (computed == at.named_extents.end() ? at.dims[name] : computed->second) = elements;
    }
    return import(at);
  };
  HEDDLE_ASSIGN_OR_RETURN(bounded_, find_bounded(import_at, options));
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, import_at(at(*bounded_, bounded_->first)));
  take(std::move(imported));
  for (const import::OpenOutput& open : bounded_->counts.open) {
    Port& port = outputs_[static_cast<size_t>(open.output)];
    std::vector<int64_t> dims = port.dims;
    dims[static_cast<size_t>(open.dimension)] = open.bound;
    port = with_dims(port, dims);
  }
  tell_bounds(*bounded_, inputs_, outputs_);
  return {};
}

Result<std::unique_ptr<Model>> Model::of_bounded(
    const std::function<Result<import::Imported>(const import::Options&)>& import,
    import::Options wanted, const OpenOptions& with, const std::map<std::string, int64_t>& least) {
  std::unique_ptr<Model> model(new Model());
  HEDDLE_RETURN_IF_ERROR(model->take_bounded(import, std::move(wanted), with));
  model->bounded_ = with_one_bucket(*model->bounded_, least);
  return model;
}

std::unique_ptr<Model> Model::from_imported(import::Imported imported) {
  std::unique_ptr<Model> model(new Model());
  model->take(std::move(imported));
  return model;
}

std::unique_ptr<Model> Model::from_module(std::unique_ptr<hlo::Module> module) {
  std::unique_ptr<Model> model(new Model());
  model->format_ = import::format_name(import::Format::hlo_text);
  Names names = hlo_names(*module);
  import::Imported imported;
  imported.module = std::move(module);
  imported.input_names = std::move(names.inputs);
  imported.input_aliases = std::move(names.input_aliases);
  imported.output_names = std::move(names.outputs);
  model->take(std::move(imported));
  return model;
}

std::unique_ptr<Model> Model::clone() const {
  HEDDLE_CHECK(module_ != nullptr, "{} has no graph", name_);
  std::unique_ptr<Model> copy(new Model());
  copy->name_ = name_;
  copy->format_ = format_;
  copy->inputs_ = inputs_;
  copy->outputs_ = outputs_;
  copy->tolerances_ = tolerances_;
  copy->notes_ = notes_;
  copy->origin_ = origin_;
  copy->index_checks_ = index_checks_;
  copy->assertions_ = assertions_;
  copy->vocabulary_ = vocabulary_;
  copy->import_ms_ = import_ms_;
  copy->instructions_ = instructions_;
  copy->late_ = late_;
  copy->module_ = module_->clone();
  return copy;
}

Status Model::random_inputs(uint64_t seed, std::span<void* const> buffers) const {
  HEDDLE_RETURN_IF_ERROR(check_ports(inputs_, "input"));
  if (is_program_) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].bytes > 0) fill_unknown(inputs_[i], seed, static_cast<int64_t>(i), buffers[i]);
  } else {
    if (!module_)
      return user_error("model {} was consumed by its compilation; make its inputs first", name_);
    // Inputs that decide shapes keep the first run's values.
    std::vector<void*> drawn;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const bool decides = late_ && late_->deciding.contains(static_cast<int64_t>(i));
      if (!decides) drawn.push_back(buffers[i]);
      if (decides && inputs_[i].bytes > 0)
        std::memcpy(buffers[i], late_->first.at(inputs_[i].name).data(),
                    static_cast<size_t>(inputs_[i].bytes));
    }
    size_t next = 0;
    for (const Literal& argument : interp::random_arguments(*module_, seed))
      copy_leaves(argument, drawn, next);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].bytes > 0 && is_mask(inputs_[i])) fill_ones(inputs_[i], buffers[i]);
    fill_indices(index_checks_, inputs_[i], seed, static_cast<int64_t>(i), is_program_, buffers[i]);
  }
  return {};
}

}  // namespace heddle::api
