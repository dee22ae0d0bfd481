// Models and their ports of heddle.hpp, which includes this header.
#ifndef HEDDLE_API_HEDDLE_MODEL_HPP
#define HEDDLE_API_HEDDLE_MODEL_HPP

#include <string_view>

#include "heddle_tensor.hpp"

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

// A dimension of a port; see heddle_port_dim.
struct Dim {
  std::string name;  // in the model; or empty
  std::int64_t extent = 0, least = 0, most = 0;
  bool is_bounded() const { return least < most; }
};

// An input or an output.
struct Port {
  std::string name, alias;
  Type type = Type::f32;
  bool is_known = true;  // false: its shape is unknown until a context is prepared
  bool is_text = false;  // strings, as numbers: Model::text
  std::vector<Dim> dims;

  Shape shape() const {
    Shape extents;
    for (const Dim& dim : dims) extents.push_back(dim.extent);
    return extents;
  }
  // "f32[batch<=8,3]"
  std::string to_string() const {
    std::string text = std::string(name_of(type)) + "[";
    for (std::size_t d = 0; d < dims.size(); ++d)
      text += (d > 0 ? "," : "") + (dims[d].is_bounded()
                                        ? dims[d].name + "<=" + std::to_string(dims[d].most)
                                        : std::to_string(dims[d].extent));
    return is_known ? text + "]" : std::string(name_of(type)) + "[...]";
  }
};

// The index of a port in a list, by its name or alias. Error: there is none.
inline Result<std::size_t> number_of(const std::vector<Port>& ports, std::string_view name,
                                     const char* what) {
  std::string names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name || (!ports[i].alias.empty() && ports[i].alias == name)) return i;
    names += (names.empty() ? "" : ", ") + ports[i].name;
  }
  return detail::failed<std::size_t>(
      detail::wrong(std::string("no ") + what + " '" + std::string(name) + "'; " +
                    (names.empty() ? "there are none" : "there are " + names)));
}

// Options of Model::open; see heddle_open_options.
struct OpenOptions {
  std::map<std::string, std::int64_t> dims, bounds;
  std::map<std::string, Shape> shapes, hints;
  Tensors constants, values;
  std::vector<std::string> texts;
  std::string module, kv_cache;
  bool random_constants = false, late = false;
};

// The origin of a model file; see heddle_model_origin.
struct Origin {
  std::string producer, producer_version, domain, description, graph, graph_description;
  std::int64_t ir_version = 0, version = 0, opset = 0;
  std::vector<std::pair<std::string, std::int64_t>> opsets;  // domain, version
  std::map<std::string, std::string> metadata;
};

// See heddle_model_info.
struct ModelInfo {
  std::string format, name;
  std::vector<std::string> notes, files;
  std::vector<std::pair<std::string, std::int64_t>> unbound;
  std::int64_t instructions = 0;
  double import_ms = 0;
  bool is_program = false;
};

namespace detail {

template <typename Handle>
struct Free;
template <>
struct Free<heddle_model> {
  void operator()(heddle_model* model) const { heddle_model_free(model); }
};
template <>
struct Free<heddle_program> {
  void operator()(heddle_program* program) const { heddle_program_free(program); }
};
template <>
struct Free<heddle_context> {
  void operator()(heddle_context* context) const { heddle_context_free(context); }
};
template <typename Handle>
using Owner = std::unique_ptr<Handle, Free<Handle>>;

inline Port port_of(const heddle_port& from) {
  Port port;
  port.name = from.name;
  port.alias = from.alias;
  port.type = static_cast<Type>(from.type);
  port.is_known = from.rank >= 0;
  port.is_text = from.is_text != 0;
  for (std::int32_t d = 0; d < from.rank; ++d)
    port.dims.push_back({"", from.dims[d], from.dims[d], from.dims[d]});
  return port;
}

// All inputs, or all outputs, with their dimensions.
template <typename Handle>
Result<std::vector<Port>> ports_of(const Handle* handle, std::int64_t count,
                                   void (*port_at)(const Handle*, std::int64_t, heddle_port*),
                                   heddle_status* (*dim_at)(const Handle*, std::int64_t,
                                                            std::int64_t, heddle_port_dim*)) {
  std::vector<Port> ports;
  for (std::int64_t i = 0; i < count; ++i) {
    heddle_port from{};
    from.struct_size = sizeof from;
    port_at(handle, i, &from);
    Port port = port_of(from);
    for (std::size_t d = 0; d < port.dims.size(); ++d) {
      heddle_port_dim dim{};
      dim.struct_size = sizeof dim;
      HEDDLE_CHECK_STATUS(std::vector<Port>, dim_at(handle, i, static_cast<std::int64_t>(d), &dim));
      port.dims[d] = {dim.name, dim.extent, dim.least, dim.most};
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

// OpenOptions for the C interface: holds pointers into `from`, which must outlive it.
class OpenArguments {
 public:
  explicit OpenArguments(const OpenOptions& from) {
    for (const auto& [name, size] : from.dims) dims_.push_back({name.c_str(), size});
    for (const auto& [name, size] : from.bounds) bounds_.push_back({name.c_str(), size});
    add(from.shapes, shapes_);
    add(from.hints, hints_);
    add(from.constants, constants_);
    add(from.values, values_);
    for (const std::string& text : from.texts) texts_.push_back(text.c_str());
    options_.struct_size = sizeof options_;
    options_.dims = dims_.data();
    options_.dim_count = dims_.size();
    options_.bounds = bounds_.data();
    options_.bound_count = bounds_.size();
    options_.shapes = shapes_.data();
    options_.shape_count = shapes_.size();
    options_.hints = hints_.data();
    options_.hint_count = hints_.size();
    options_.constants = constants_.data();
    options_.constant_count = constants_.size();
    options_.values = values_.data();
    options_.value_count = values_.size();
    options_.texts = texts_.data();
    options_.text_count = texts_.size();
    options_.module = from.module.empty() ? nullptr : from.module.c_str();
    options_.kv_cache = from.kv_cache.empty() ? nullptr : from.kv_cache.c_str();
    options_.random_constants = from.random_constants ? 1 : 0;
    options_.late = from.late ? 1 : 0;
  }
  OpenArguments(const OpenArguments&) = delete;
  OpenArguments& operator=(const OpenArguments&) = delete;
  const heddle_open_options* get() const { return &options_; }

 private:
  static void add(const std::map<std::string, Shape>& from, std::vector<heddle_shape>& to) {
    for (const auto& [name, shape] : from)
      to.push_back({name.c_str(), shape.data(), static_cast<std::int64_t>(shape.size())});
  }
  static void add(const Tensors& from, std::vector<heddle_value>& to) {
    for (const auto& [name, tensor] : from)
      to.push_back({name.c_str(), static_cast<heddle_type>(tensor.type()), tensor.shape().data(),
                    static_cast<std::int64_t>(tensor.shape().size()), tensor.data()});
  }

  std::vector<heddle_dim> dims_, bounds_;
  std::vector<heddle_shape> shapes_, hints_;
  std::vector<heddle_value> constants_, values_;
  std::vector<const char*> texts_;
  heddle_open_options options_{};
};

}  // namespace detail

class Program;
struct CompileOptions;

// An open model of any kind. Several threads may read one Model at the same time. A moved-from
// Model is empty: it has no ports, and its other functions are user errors.
class Model {
 public:
  // The kind is detected from the content. The file must not be written while the Model or a
  // Program of it is alive.
  static Result<Model> open(const std::string& path, const OpenOptions& options = {}) {
    const detail::OpenArguments arguments(options);
    heddle_model* opened = nullptr;
    HEDDLE_CHECK_STATUS(Model, heddle_model_open(path.c_str(), arguments.get(), &opened));
    return adopt(opened);
  }
  // The same from memory, which is copied. `name` is for messages.
  static Result<Model> parse(const std::string& name, std::string_view bytes,
                             const OpenOptions& options = {}) {
    const detail::OpenArguments arguments(options);
    heddle_model* opened = nullptr;
    HEDDLE_CHECK_STATUS(Model, heddle_model_parse(name.c_str(), bytes.data(), bytes.size(),
                                                  arguments.get(), &opened));
    return adopt(opened);
  }
  // Takes ownership of a handle.
  static Result<Model> adopt(heddle_model* handle) {
    Model model(handle);
    heddle_model_info info{};
    info.struct_size = sizeof info;
    heddle_model_get_info(handle, &info);
    HEDDLE_TRY(Model, inputs,
               detail::ports_of<heddle_model>(handle, info.inputs, heddle_model_input,
                                              heddle_model_input_dim));
    HEDDLE_TRY(Model, outputs,
               detail::ports_of<heddle_model>(handle, info.outputs, heddle_model_output,
                                              heddle_model_output_dim));
    model.inputs_ = std::move(inputs);
    model.outputs_ = std::move(outputs);
    return model;
  }
  heddle_model* get() const { return handle_.get(); }

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  Result<Port> input(std::string_view name) const {
    HEDDLE_TRY(Port, number, number_of(inputs_, name, "input"));
    return inputs_[number];
  }
  Result<Port> output(std::string_view name) const {
    HEDDLE_TRY(Port, number, number_of(outputs_, name, "output"));
    return outputs_[number];
  }

  Result<ModelInfo> info() const {
    HEDDLE_TRY_VOID(ModelInfo, check("info"));
    heddle_model_info from{};
    from.struct_size = sizeof from;
    heddle_model_get_info(get(), &from);
    ModelInfo to;
    to.format = from.format;
    to.name = from.name;
    for (std::int64_t i = 0; i < from.notes; ++i)
      to.notes.emplace_back(heddle_model_note(get(), i));
    for (std::int64_t i = 0;; ++i) {
      const char* const file = heddle_model_file(get(), i);
      if (file == nullptr) break;
      to.files.emplace_back(file);
    }
    for (std::int64_t i = 0;; ++i) {
      const heddle_dim dim = heddle_model_unbound(get(), i);
      if (dim.name == nullptr) break;
      to.unbound.emplace_back(dim.name, dim.size);
    }
    to.instructions = from.instructions;
    to.import_ms = from.import_ms;
    to.is_program = from.is_program != 0;
    return to;
  }

  Result<Origin> origin() const {
    HEDDLE_TRY_VOID(Origin, check("origin"));
    heddle_model_origin from{};
    from.struct_size = sizeof from;
    heddle_model_get_origin(get(), &from);
    Origin to;
    to.producer = from.producer;
    to.producer_version = from.producer_version;
    to.domain = from.domain;
    to.description = from.description;
    to.graph = from.graph;
    to.graph_description = from.graph_description;
    to.ir_version = from.ir_version;
    to.version = from.version;
    to.opset = from.opset;
    for (std::int64_t i = 0; i < from.opsets; ++i) {
      const heddle_opset opset = heddle_model_opset(get(), i);
      to.opsets.emplace_back(opset.domain, opset.version);
    }
    for (std::int64_t i = 0; i < from.metadata; ++i) {
      const char *key = nullptr, *value = nullptr;
      HEDDLE_CHECK_STATUS(Origin, heddle_model_metadata(get(), i, &key, &value));
      to.metadata.emplace(key, value);
    }
    return to;
  }

  // Random values that suit the model; the same for the same seed.
  Result<Tensors> random_inputs(std::uint64_t seed = 0) const {
    HEDDLE_TRY_VOID(Tensors, check("random_inputs"));
    Tensors made;
    std::vector<void*> memory;
    for (const Port& port : inputs_) {
      HEDDLE_TRY(Tensors, tensor, Tensor::zeros(port.type, port.shape()));
      memory.push_back(const_cast<void*>(tensor.data()));
      made.emplace(port.name, std::move(tensor));
    }
    memory.push_back(nullptr);  // for a model without inputs
    HEDDLE_CHECK_STATUS(Tensors, heddle_model_random_inputs(get(), seed, memory.data()));
    return made;
  }

  // A model represents strings by numbers of type u32: the number of a string, and its inverse.
  Result<std::uint32_t> text_id(std::string_view text) const {
    std::uint32_t id = 0;
    const char* const data = text.data() == nullptr ? "" : text.data();
    HEDDLE_CHECK_STATUS(std::uint32_t, heddle_model_text_id(get(), data, text.size(), &id));
    return id;
  }
  Result<std::string> text(std::uint32_t id) const {
    const char* text = nullptr;
    std::size_t size = 0;
    HEDDLE_CHECK_STATUS(std::string, heddle_model_text(get(), id, &text, &size));
    return std::string(text, size);
  }

  // With CompileOptions::consume_model no other thread may use the model.
  Result<Program> compile() const;
  Result<Program> compile(const CompileOptions& options) const;

 private:
  explicit Model(heddle_model* handle) : handle_(handle) {}
  Result<void> check(const char* function) const {
    if (handle_ != nullptr) return detail::done();
    return detail::failed<void>(
        detail::wrong(std::string("heddle::Model::") + function + ": the model was moved from"));
  }

  detail::Owner<heddle_model> handle_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

#endif  // HEDDLE_API_HEDDLE_MODEL_HPP
