// Models: the C functions over Model.
#include "api/c_handles.h"
#include "api/c_status.h"

namespace heddle::api {
namespace {

using tensor::Type;

// The numbers of heddle.h are for ever; those of tensor are its own. They agree today.
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

Status add_constant(const heddle_value& value, OpenOptions& options) {
  if (value.name == nullptr || value.type < 0 || value.type > HEDDLE_C128 || value.rank < 0 ||
      (value.rank > 0 && value.dims == nullptr))
    return user_error("open: a constant without a name, a type or its dimensions");
  const std::vector<int64_t> dims(value.dims, value.dims + value.rank);
  HEDDLE_ASSIGN_OR_RETURN(tensor::Literal literal, tensor::Literal::make(tensor::Shape::array(
                                                       static_cast<Type>(value.type), dims)));
  if (literal.bytes() > 0)
    std::memcpy(literal.mutable_data(), value.data, static_cast<size_t>(literal.bytes()));
  options.constants.insert_or_assign(value.name, std::move(literal));
  return {};
}

std::vector<int64_t> dims_of(const heddle_shape& shape) {
  return std::vector<int64_t>(shape.dims, shape.dims + shape.rank);
}

Result<OpenOptions> open_options(const heddle_open_options* from) {
  const heddle_open_options c = read_struct(from);
  OpenOptions options;
  for (size_t i = 0; i < c.dim_count; ++i) options.dims[c.dims[i].name] = c.dims[i].size;
  for (size_t i = 0; i < c.bound_count; ++i) options.bounds[c.bounds[i].name] = c.bounds[i].size;
  for (size_t i = 0; i < c.shape_count; ++i)
    options.shapes[c.shapes[i].name] = dims_of(c.shapes[i]);
  for (size_t i = 0; i < c.hint_count; ++i) options.hints[c.hints[i].name] = dims_of(c.hints[i]);
  for (size_t i = 0; i < c.constant_count; ++i)
    HEDDLE_RETURN_IF_ERROR(add_constant(c.constants[i], options));
  if (c.module != nullptr) options.module_name = c.module;
  return options;
}

Status give(Result<std::unique_ptr<Model>> opened, heddle_model** model) {
  if (!opened) return tl::unexpected(std::move(opened).error());
  *model = new heddle_model{std::move(*opened)};
  return {};
}

}  // namespace

heddle_port c_port(const std::vector<Port>& ports, int64_t number) {
  heddle_port result{};
  if (!is_place(number, ports.size())) return result;
  const Port& port = ports[static_cast<size_t>(number)];
  result.name = port.name.c_str();
  result.alias = port.alias.c_str();
  result.type = static_cast<heddle_type>(port.shape.type());
  result.rank = static_cast<int32_t>(port.dims.size());
  result.dims = port.dims.data();
  result.bytes = port.bytes;
  return result;
}

const Model& unwrap(const heddle_model* model) { return *model->model; }

}  // namespace heddle::api

using namespace heddle;  // NOLINT: the C functions are outside of all namespaces
using api::guarded;
using api::write_struct;

extern "C" {

heddle_status* heddle_model_open(const char* path, const heddle_open_options* options,
                                 heddle_model** model) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const api::OpenOptions wanted, api::open_options(options));
    return api::give(api::Model::open(path, wanted), model);
  });
}

heddle_status* heddle_model_parse(const char* name, const void* bytes, size_t size,
                                  const heddle_open_options* options, heddle_model** model) {
  return guarded([&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const api::OpenOptions wanted, api::open_options(options));
    return api::give(api::Model::parse(name, {static_cast<const char*>(bytes), size}, wanted),
                     model);
  });
}

void heddle_model_free(heddle_model* model) { delete model; }

void heddle_model_get_info(const heddle_model* model, heddle_model_info* info) {
  const api::Model& from = *model->model;
  heddle_model_info result{};
  result.format = from.format().c_str();
  result.name = from.name().c_str();
  result.inputs = static_cast<int64_t>(from.inputs().size());
  result.outputs = static_cast<int64_t>(from.outputs().size());
  result.notes = static_cast<int64_t>(from.notes().size());
  result.instructions = from.instructions();
  result.import_ms = from.import_ms();
  result.is_program = from.is_program();
  write_struct(info, result);
}

const char* heddle_model_note(const heddle_model* model, int64_t number) {
  const auto& notes = model->model->notes();
  return api::is_place(number, notes.size()) ? notes[static_cast<size_t>(number)].c_str() : nullptr;
}

void heddle_model_input(const heddle_model* model, int64_t number, heddle_port* port) {
  write_struct(port, api::c_port(model->model->inputs(), number));
}

void heddle_model_output(const heddle_model* model, int64_t number, heddle_port* port) {
  write_struct(port, api::c_port(model->model->outputs(), number));
}

heddle_status* heddle_model_random_inputs(const heddle_model* model, uint64_t seed,
                                          void* const* buffers) {
  return guarded(
      [&] { return model->model->random_inputs(seed, {buffers, model->model->inputs().size()}); });
}

void heddle_model_tolerance(const heddle_model* model, int64_t number,
                            heddle_tolerance* tolerance) {
  heddle_tolerance result{};
  if (api::is_place(number, model->model->outputs().size())) {
    const tensor::Tolerance& from = model->model->tolerance(static_cast<size_t>(number));
    result.absolute = from.absolute;
    result.relative = from.relative;
    result.relative_to_max = from.relative_to_max;
  }
  write_struct(tolerance, result);
}

}  // extern "C"
