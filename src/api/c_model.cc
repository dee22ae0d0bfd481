// Models: the C functions over Model.
#include "api/c_handles.h"
#include "api/c_status.h"
#include "api/family.h"
#include "api/log.h"
#include "import/onnx_support.h"

namespace heddle::api {
namespace {

using tensor::Type;

// The numbers in heddle.h never change; those of tensor may. Today they are equal.
#define HEDDLE_SAME(c_name, name) \
  static_assert(static_cast<int>(Type::name) == c_name, "heddle.h and tensor/type.h differ")
HEDDLE_SAME(HEDDLE_PRED, pred);
HEDDLE_SAME(HEDDLE_S64, s64);
HEDDLE_SAME(HEDDLE_U8, u8);
HEDDLE_SAME(HEDDLE_U64, u64);
HEDDLE_SAME(HEDDLE_F16, f16);
HEDDLE_SAME(HEDDLE_BF16, bf16);
HEDDLE_SAME(HEDDLE_F32, f32);
HEDDLE_SAME(HEDDLE_F64, f64);
HEDDLE_SAME(HEDDLE_F8E5M2, f8e5m2);
HEDDLE_SAME(HEDDLE_F8E4M3, f8e4m3);
HEDDLE_SAME(HEDDLE_F8E4M3FN, f8e4m3fn);
HEDDLE_SAME(HEDDLE_F8E4M3B11FNUZ, f8e4m3b11fnuz);
HEDDLE_SAME(HEDDLE_F8E3M4, f8e3m4);
HEDDLE_SAME(HEDDLE_F8E5M2FNUZ, f8e5m2fnuz);
HEDDLE_SAME(HEDDLE_F8E4M3FNUZ, f8e4m3fnuz);
HEDDLE_SAME(HEDDLE_F8E8M0FNU, f8e8m0fnu);
HEDDLE_SAME(HEDDLE_F6E3M2FN, f6e3m2fn);
HEDDLE_SAME(HEDDLE_F6E2M3FN, f6e2m3fn);
HEDDLE_SAME(HEDDLE_F4E2M1FN, f4e2m1fn);
HEDDLE_SAME(HEDDLE_C64, c64);
HEDDLE_SAME(HEDDLE_C128, c128);
HEDDLE_SAME(HEDDLE_OPAQUE, opaque);
HEDDLE_SAME(HEDDLE_TOKEN, token);
#undef HEDDLE_SAME

using std::string_view;

constexpr int64_t kMostRank = 1024;  // limit here; the importer has its own
constexpr int64_t kMostExtent = INT64_MAX;

std::string element(string_view list, size_t i, const char* member) {
  return fmt::format("options->{}[{}].{}", list, i, member);
}

Status check_dims(const Call& call, string_view list, const heddle_dim* dims, size_t count,
                  int64_t least) {
  HEDDLE_RETURN_IF_ERROR(call.array(fmt::format("options->{}", list), dims, count));
  for (size_t i = 0; i < count; ++i) {
    if (dims[i].name == nullptr)
      return call.wrong(element(list, i, "name"), "NULL", "the name of a dimension");
    if (dims[i].size < least)
      return call.in_range(element(list, i, "size"), dims[i].size, least, kMostExtent);
  }
  return {};
}

// Checks one shape, element i of `list`.
Status check_extents(const Call& call, string_view list, size_t i, const char* name,
                     const int64_t* dims, int64_t rank) {
  if (name == nullptr) return call.wrong(element(list, i, "name"), "NULL", "the name of an input");
  HEDDLE_RETURN_IF_ERROR(call.in_range(element(list, i, "rank"), rank, 0, kMostRank));
  HEDDLE_RETURN_IF_ERROR(call.array(element(list, i, "dims"), dims, static_cast<uint64_t>(rank)));
  for (int64_t d = 0; d < rank; ++d)
    if (dims[d] < 0)
      return call.in_range(fmt::format("options->{}[{}].dims[{}]", list, i, d), dims[d], 0,
                           kMostExtent);
  return {};
}

Status check_shapes(const Call& call, string_view list, const heddle_shape* shapes, size_t count) {
  HEDDLE_RETURN_IF_ERROR(call.array(fmt::format("options->{}", list), shapes, count));
  for (size_t i = 0; i < count; ++i)
    HEDDLE_RETURN_IF_ERROR(
        check_extents(call, list, i, shapes[i].name, shapes[i].dims, shapes[i].rank));
  return {};
}

Status add_value(const Call& call, string_view list, size_t i, const heddle_value& value,
                 std::map<std::string, tensor::Literal>& to) {
  HEDDLE_RETURN_IF_ERROR(check_extents(call, list, i, value.name, value.dims, value.rank));
  HEDDLE_RETURN_IF_ERROR(
      call.in_range(element(list, i, "type"), value.type, HEDDLE_PRED, HEDDLE_C128));
  const std::vector<int64_t> dims(value.dims, value.dims + value.rank);
  HEDDLE_ASSIGN_OR_RETURN(tensor::Literal literal, tensor::Literal::make(tensor::Shape::array(
                                                       static_cast<Type>(value.type), dims)));
  if (literal.bytes() > 0) {
    if (value.data == nullptr)
      return call.wrong(element(list, i, "data"), "NULL",
                        fmt::format("memory of {} bytes", literal.bytes()));
    std::memcpy(literal.mutable_data(), value.data, static_cast<size_t>(literal.bytes()));
  }
  to.insert_or_assign(value.name, std::move(literal));
  return {};
}

std::vector<int64_t> dims_of(const heddle_shape& shape) {
  return std::vector<int64_t>(shape.dims, shape.dims + shape.rank);
}

Result<OpenOptions> open_options(const Call& call, const heddle_open_options* from) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle_open_options c, call.read("options", from));
  HEDDLE_RETURN_IF_ERROR(check_dims(call, "dims", c.dims, c.dim_count, 0));
  HEDDLE_RETURN_IF_ERROR(check_dims(call, "bounds", c.bounds, c.bound_count, 1));
  HEDDLE_RETURN_IF_ERROR(check_shapes(call, "shapes", c.shapes, c.shape_count));
  HEDDLE_RETURN_IF_ERROR(check_shapes(call, "hints", c.hints, c.hint_count));
  HEDDLE_RETURN_IF_ERROR(call.array("options->constants", c.constants, c.constant_count));
  OpenOptions options;
  for (size_t i = 0; i < c.dim_count; ++i) options.dims[c.dims[i].name] = c.dims[i].size;
  for (size_t i = 0; i < c.bound_count; ++i) options.bounds[c.bounds[i].name] = c.bounds[i].size;
  for (size_t i = 0; i < c.shape_count; ++i)
    options.shapes[c.shapes[i].name] = dims_of(c.shapes[i]);
  for (size_t i = 0; i < c.hint_count; ++i) options.hints[c.hints[i].name] = dims_of(c.hints[i]);
  for (size_t i = 0; i < c.constant_count; ++i)
    HEDDLE_RETURN_IF_ERROR(add_value(call, "constants", i, c.constants[i], options.constants));
  HEDDLE_RETURN_IF_ERROR(call.array("options->values", c.values, c.value_count));
  for (size_t i = 0; i < c.value_count; ++i)
    HEDDLE_RETURN_IF_ERROR(add_value(call, "values", i, c.values[i], options.values));
  options.late = c.late != 0;
  if (c.module != nullptr) options.module_name = c.module;
  options.random_constants = c.random_constants != 0;
  if (c.kv_cache != nullptr) options.kv_cache = c.kv_cache;
  HEDDLE_RETURN_IF_ERROR(call.array("options->texts", c.texts, c.text_count));
  if (c.text_count > 0) options.vocabulary = std::make_shared<tensor::Vocabulary>();
  for (size_t i = 0; i < c.text_count; ++i) {
    const std::string place = fmt::format("options->texts[{}]", i);
    if (c.texts[i] == nullptr) return call.wrong(place, "NULL", "a string");
    if (options.vocabulary->id(c.texts[i]) != i + 1)
      return call.wrong(place, fmt::format("'{}'", c.texts[i]), "a string that is there once");
  }
  return options;
}

Result<Family> read_family(const Call& call, const heddle_family& c) {
  HEDDLE_RETURN_IF_ERROR(call.array("family->dims", c.dims, c.dim_count));
  if (c.text_at == nullptr) return call.wrong("family->text_at", "NULL", "a function");
  Family family;
  family.name = c.name == nullptr ? "model" : c.name;
  for (size_t i = 0; i < c.dim_count; ++i) {
    const heddle_family_dim& dim = c.dims[i];
    const std::string place = fmt::format("family->dims[{}].", i);
    if (dim.input == nullptr) return call.wrong(place + "input", "NULL", "the name of an input");
    if (dim.name == nullptr) return call.wrong(place + "name", "NULL", "the name of a dimension");
    HEDDLE_RETURN_IF_ERROR(call.in_range(place + "dimension", dim.dimension, 0, kMostRank - 1));
    family.dims.push_back({dim.input, dim.dimension, dim.name});
  }
  return family;
}

// `owner` releases the context when the last copy of the function is destroyed.
void ask_texts(const heddle_family& c, std::shared_ptr<void> owner, Family* family) {
  family->text_at = [at = c.text_at, owner = std::move(owner), name = family->name](
                        const std::map<std::string, int64_t>& extents) -> Result<std::string> {
    std::vector<heddle_dim> dims;
    for (const auto& [dim, extent] : extents) dims.push_back({dim.c_str(), extent});
    const char* why = nullptr;
    const char* text = at(owner.get(), dims.data(), dims.size(), &why);
    if (text != nullptr) return std::string(text);
    std::string said;
    for (const auto& [dim, extent] : extents) said += fmt::format(" {}={}", dim, extent);
    if (why != nullptr) said += fmt::format(": {}", why);
    return user_error("{}: there is no text for{}", name, said);
  };
}

void tell_opened(const Model& model) {
  log(LogLevel::info, "opened {} ({}): {} inputs, {} outputs, {:.1f} ms", model.name(),
      model.format(), model.inputs().size(), model.outputs().size(), model.import_ms());
  for (const std::string& note : model.notes())
    log(LogLevel::warning, "{}: {}", model.name(), note);
}

Status give(Result<std::unique_ptr<Model>> opened, heddle_model** model) {
  if (!opened) return tl::unexpected(std::move(opened).error());
  tell_opened(**opened);
  *model = new heddle_model{std::move(*opened)};
  return {};
}

using Wanted = std::shared_ptr<std::vector<import::Unsupported>>;

// Calls open(call, wanted) -> Status; if operators are unsupported, the status gets the list in
// `wanted`.
template <typename Open>
heddle_status* open_with(const char* function, const Open& open) {
  Wanted unsupported;
  heddle_status* status = guarded(function, [&](const Call& call) {
    unsupported = std::make_shared<std::vector<import::Unsupported>>();
    return open(call, unsupported);
  });
  if (heddle_status_code(status) == HEDDLE_CODE_UNSUPPORTED)
    set_unsupported(status, std::move(*unsupported));
  return status;
}

}  // namespace

Status write_port(const Call& call, const char* owner, const std::vector<Port>* ports,
                  int64_t number, heddle_port* to) {
  heddle_port result{};
  if (ports != nullptr && is_place(number, ports->size())) {
    const Port& port = (*ports)[static_cast<size_t>(number)];
    result.name = port.name.c_str();
    result.alias = port.alias.c_str();
    result.type = static_cast<heddle_type>(port.shape.type());
    result.rank = port.is_known ? static_cast<int32_t>(port.dims.size()) : -1;
    result.dims = port.dims.data();
    result.bytes = port.bytes;
    result.is_text = port.is_text ? 1 : 0;
  }
  HEDDLE_RETURN_IF_ERROR(call.write("port", to, result));
  HEDDLE_RETURN_IF_ERROR(call.given({{owner, ports}}));
  return call.in_range("number", number, 0, std::ssize(*ports) - 1);
}

Status write_dim(const Call& call, const std::vector<Port>& ports, int64_t number,
                 int64_t dimension, heddle_port_dim* to) {
  HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(ports) - 1));
  const Port& port = ports[static_cast<size_t>(number)];
  HEDDLE_RETURN_IF_ERROR(call.in_range("dimension", dimension, 0, std::ssize(port.dims) - 1));
  const auto d = static_cast<size_t>(dimension);
  heddle_port_dim result{};
  result.extent = result.least = result.most = port.dims[d];
  result.name = "";
  if (d < port.named.size()) {
    result.name = port.named[d].name.c_str();
    if (port.named[d].most > 0) {  // bounded
      result.least = port.named[d].least;
      result.most = port.named[d].most;
    }
  }
  return call.write("dim", to, result);
}

const Model& unwrap(const heddle_model* model) { return *model->model; }
Model& unwrap(heddle_model* model) { return *model->model; }

}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are in no namespace
using api::answered;
using api::Call;
using api::guarded;
using api::told;

extern "C" {

heddle_status* heddle_model_open(const char* path, const heddle_open_options* options,
                                 heddle_model** model) {
  return api::open_with(__func__, [&](const Call& call, const api::Wanted& unsupported) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"path", path}, {"model", model}}));
    HEDDLE_ASSIGN_OR_RETURN(api::OpenOptions wanted, api::open_options(call, options));
    wanted.unsupported = unsupported;
    return api::give(api::Model::open(path, wanted), model);
  });
}

heddle_status* heddle_model_parse(const char* name, const void* bytes, size_t size,
                                  const heddle_open_options* options, heddle_model** model) {
  return api::open_with(__func__, [&](const Call& call, const api::Wanted& unsupported) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"name", name}, {"bytes", bytes}, {"model", model}}));
    if (size == 0) return call.wrong("size", "0", "the bytes of a model");
    if (size > static_cast<size_t>(PTRDIFF_MAX))
      return call.wrong("size", std::to_string(size), "the bytes of a model");
    HEDDLE_ASSIGN_OR_RETURN(api::OpenOptions wanted, api::open_options(call, options));
    wanted.unsupported = unsupported;
    return api::give(api::Model::parse(name, {static_cast<const char*>(bytes), size}, wanted),
                     model);
  });
}

heddle_status* heddle_model_of_family(const heddle_family* family,
                                      const heddle_open_options* options, heddle_model** model) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"family", family}, {"model", model}}));
    HEDDLE_ASSIGN_OR_RETURN(const heddle_family c, call.read("family", family));
    const auto release = [free = c.release](void* context) {
      if (free != nullptr) free(context);
    };
    std::shared_ptr<void> owner(c.context, release);
    HEDDLE_ASSIGN_OR_RETURN(api::Family wanted, api::read_family(call, c));
    api::ask_texts(c, std::move(owner), &wanted);
    HEDDLE_ASSIGN_OR_RETURN(const api::OpenOptions open, api::open_options(call, options));
    return api::give(api::Model::of_family(std::move(wanted), open), model);
  });
}

void heddle_model_free(heddle_model* model) { delete model; }

void heddle_model_get_info(const heddle_model* model, heddle_model_info* info) {
  told(__func__, [&](const Call& call) -> Status {
    heddle_model_info result{};
    if (model != nullptr) {
      const api::Model& from = *model->model;
      result.format = from.format().c_str();
      result.name = from.name().c_str();
      result.inputs = std::ssize(from.inputs());
      result.outputs = std::ssize(from.outputs());
      result.notes = std::ssize(from.notes());
      result.instructions = from.instructions();
      result.import_ms = from.import_ms();
      result.is_program = from.is_program();
    }
    HEDDLE_RETURN_IF_ERROR(call.write("info", info, result));
    return call.given({{"model", model}});
  });
}

heddle_status* heddle_model_text_id(const heddle_model* model, const char* text, size_t size,
                                    uint32_t* id) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"text", text}, {"id", id}}));
    const auto& vocabulary = model->model->vocabulary();
    if (vocabulary == nullptr)
      return call.wrong("model", "one without strings", "one with strings");
    *id = vocabulary->id({text, size});
    return {};
  });
}

heddle_status* heddle_model_text(const heddle_model* model, uint32_t id, const char** text,
                                 size_t* size) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"text", text}, {"size", size}}));
    const auto& vocabulary = model->model->vocabulary();
    if (vocabulary == nullptr)
      return call.wrong("model", "one without strings", "one with strings");
    const std::string& found = vocabulary->text(id);
    *text = found.c_str();
    *size = found.size();
    return {};
  });
}

const char* heddle_model_note(const heddle_model* model, int64_t number) {
  return answered<const char*>(__func__, nullptr, [&](const Call& call) -> Result<const char*> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    const auto& notes = model->model->notes();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(notes) - 1));
    return notes[static_cast<size_t>(number)].c_str();
  });
}

const char* heddle_model_file(const heddle_model* model, int64_t number) {
  return answered<const char*>(__func__, nullptr, [&](const Call& call) -> Result<const char*> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    const auto& files = model->model->files();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(files) - 1));
    return files[static_cast<size_t>(number)].c_str();
  });
}

heddle_dim heddle_model_unbound(const heddle_model* model, int64_t number) {
  return answered<heddle_dim>(__func__, {nullptr, 0}, [&](const Call& call) -> Result<heddle_dim> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    const auto& all = model->model->unbound();
    HEDDLE_RETURN_IF_ERROR(call.in_range("number", number, 0, std::ssize(all) - 1));
    const auto& [name, extent] = all[static_cast<size_t>(number)];
    return heddle_dim{name.c_str(), extent};
  });
}

void heddle_model_input(const heddle_model* model, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(call, "model", model == nullptr ? nullptr : &model->model->inputs(),
                           number, port);
  });
}

void heddle_model_output(const heddle_model* model, int64_t number, heddle_port* port) {
  told(__func__, [&](const Call& call) -> Status {
    return api::write_port(call, "model", model == nullptr ? nullptr : &model->model->outputs(),
                           number, port);
  });
}

heddle_status* heddle_model_input_dim(const heddle_model* model, int64_t number, int64_t dimension,
                                      heddle_port_dim* dim) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    return api::write_dim(call, model->model->inputs(), number, dimension, dim);
  });
}

heddle_status* heddle_model_output_dim(const heddle_model* model, int64_t number, int64_t dimension,
                                       heddle_port_dim* dim) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    return api::write_dim(call, model->model->outputs(), number, dimension, dim);
  });
}

heddle_status* heddle_model_random_inputs(const heddle_model* model, uint64_t seed,
                                          void* const* buffers) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    const std::vector<api::Port>& inputs = model->model->inputs();
    HEDDLE_RETURN_IF_ERROR(call.array("buffers", buffers, inputs.size()));
    HEDDLE_RETURN_IF_ERROR(api::memory_of(call, "buffers", inputs, buffers));
    return model->model->random_inputs(seed, {buffers, inputs.size()});
  });
}

void heddle_model_tolerance(const heddle_model* model, int64_t number,
                            heddle_tolerance* tolerance) {
  told(__func__, [&](const Call& call) -> Status {
    heddle_tolerance result{};
    const int64_t count = model == nullptr ? 0 : std::ssize(model->model->outputs());
    if (number >= 0 && number < count) {
      const tensor::Tolerance& from = model->model->tolerance(static_cast<size_t>(number));
      result.absolute = from.absolute;
      result.relative = from.relative;
      result.relative_to_max = from.relative_to_max;
    }
    HEDDLE_RETURN_IF_ERROR(call.write("tolerance", tolerance, result));
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    return call.in_range("number", number, 0, count - 1);
  });
}

int64_t heddle_model_assertions(const heddle_model* model) {
  return answered<int64_t>(__func__, 0, [&](const Call& call) -> Result<int64_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}}));
    return std::ssize(model->model->assertions());
  });
}

heddle_status* heddle_model_check_outputs(const heddle_model* model, const void* const* outputs,
                                          char** failures) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"model", model}, {"failures", failures}}));
    const std::vector<api::Port>& ports = model->model->outputs();
    HEDDLE_RETURN_IF_ERROR(call.array("outputs", outputs, ports.size()));
    HEDDLE_RETURN_IF_ERROR(api::memory_of(call, "outputs", ports, outputs));
    const auto value_of = [&](size_t i) {
      return tensor::Literal::view(ports[i].shape, outputs[i], nullptr);
    };
    std::string text;
    for (const import::Assertion& assertion : model->model->assertions()) {
      const std::string fault =
          import::failure_of(assertion, value_of(assertion.got), value_of(assertion.want));
      if (!fault.empty()) text += (text.empty() ? "" : "\n") + fault;
    }
    char* copy = nullptr;
    if (!text.empty()) {
      copy = static_cast<char*>(std::malloc(text.size() + 1));
      if (copy == nullptr) throw std::bad_alloc();
      std::memcpy(copy, text.c_str(), text.size() + 1);
    }
    *failures = copy;
    return {};
  });
}

}  // extern "C"
