// Opening and reading models.
#include <cmath>
#include <limits>

#include "wrong_calls.h"

namespace heddle::wrong_calls {
namespace {

using Change = std::function<void(heddle_open_options&)>;

const heddle_dim kNoName{nullptr, 2}, kNegative{"batch", -1}, kZero{"batch", 0};
constexpr int64_t kDims[2] = {2, 3}, kBadDims[2] = {2, -3};
const heddle_shape kShapes[] = {{nullptr, kDims, 2},  // 0
                                {"x", kDims, -1},     // 1
                                {"x", kDims, 5000},   // 2
                                {"x", nullptr, 2},    // 3
                                {"x", kBadDims, 2}};  // 4
const char* const kOfShapes[] = {"name", "rank", "rank", "dims", "dims[1]"};
constexpr float kData[6] = {};
const heddle_value kValues[] = {
    {nullptr, HEDDLE_F32, kDims, 2, kData}, {"x", -1, kDims, 2, kData},
    {"x", HEDDLE_OPAQUE, kDims, 2, kData},  {"x", HEDDLE_TOKEN, kDims, 2, kData},
    {"x", 1000, kDims, 2, kData},           {"x", HEDDLE_F32, kDims, -1, kData},
    {"x", HEDDLE_F32, nullptr, 2, kData},   {"x", HEDDLE_F32, kBadDims, 2, kData},
    {"x", HEDDLE_F32, kDims, 2, nullptr}};
const char* const kOfValues[] = {"name", "type", "type",    "type", "type",
                                 "rank", "dims", "dims[1]", "data"};

const char* const kNoText[] = {nullptr};
const char* const kTwice[] = {"a", "a"};
const char* const kEmptyText[] = {""};

// By member: the first wrong options of each kind.
std::vector<std::pair<std::string, Change>> wrong_options() {
  std::vector<std::pair<std::string, Change>> all;
  all.emplace_back("options->struct_size", [](auto& o) { o.struct_size = 0; });
  all.emplace_back("options->struct_size", [](auto& o) { o.struct_size = 4; });
  all.emplace_back("options->struct_size", [](auto& o) { o.struct_size = 20; });
  all.emplace_back("options->struct_size", [](auto& o) { o.struct_size = SIZE_MAX; });
  all.emplace_back("options->dims", [](auto& o) { o.dim_count = 1; });
  all.emplace_back("options->dims", [](auto& o) { o.dims = &kZero, o.dim_count = SIZE_MAX; });
  all.emplace_back("options->dims[0].name", [](auto& o) { o.dims = &kNoName, o.dim_count = 1; });
  all.emplace_back("options->dims[0].size", [](auto& o) { o.dims = &kNegative, o.dim_count = 1; });
  all.emplace_back("options->bounds", [](auto& o) { o.bound_count = 1; });
  all.emplace_back("options->bounds[0].name",
                   [](auto& o) { o.bounds = &kNoName, o.bound_count = 1; });
  all.emplace_back("options->bounds[0].size",
                   [](auto& o) { o.bounds = &kZero, o.bound_count = 1; });
  all.emplace_back("options->bounds[0].size",
                   [](auto& o) { o.bounds = &kNegative, o.bound_count = 1; });
  all.emplace_back("options->shapes", [](auto& o) { o.shape_count = 1; });
  all.emplace_back("options->hints", [](auto& o) { o.hint_count = 1; });
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    all.emplace_back(std::string("options->shapes[0].") + kOfShapes[i],
                     [i](auto& o) { o.shapes = &kShapes[i], o.shape_count = 1; });
    all.emplace_back(std::string("options->hints[0].") + kOfShapes[i],
                     [i](auto& o) { o.hints = &kShapes[i], o.hint_count = 1; });
  }
  all.emplace_back("options->texts", [](auto& o) { o.text_count = 1; });
  for (const char* const* texts : {kNoText, kTwice, kEmptyText})
    all.emplace_back(texts == kTwice ? "options->texts[1]" : "options->texts[0]",
                     [texts](auto& o) { o.texts = texts, o.text_count = texts == kTwice ? 2 : 1; });
  all.emplace_back("options->constants", [](auto& o) { o.constant_count = 1; });
  for (size_t i = 0; i < std::size(kValues); ++i)
    all.emplace_back(std::string("options->constants[0].") + kOfValues[i],
                     [i](auto& o) { o.constants = &kValues[i], o.constant_count = 1; });
  return all;
}

}  // namespace

std::vector<Row> open_rows() {
  std::vector<Row> rows;
  constexpr const char* kText = "HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }\n";
  CALL(heddle_model_open, "path", nullptr, nullptr, &g.no_model);
  CALL(heddle_model_open, "model", "m.onnx", nullptr, nullptr);
  CALL(heddle_model_parse, "name", nullptr, kText, 10, nullptr, &g.no_model);
  CALL(heddle_model_parse, "bytes", "m", nullptr, 10, nullptr, &g.no_model);
  CALL(heddle_model_parse, "size", "m", kText, 0, nullptr, &g.no_model);
  CALL(heddle_model_parse, "size", "m", kText, SIZE_MAX, nullptr, &g.no_model);
  CALL(heddle_model_parse, "model", "m", kText, 10, nullptr, nullptr);
  static auto family = sized<heddle_family>();
  CALL(heddle_model_of_family, "family", nullptr, nullptr, &g.no_model);
  CALL(heddle_model_of_family, "family->text_at", &family, nullptr, &g.no_model);
  CALL(heddle_model_of_family, "model", &family, nullptr, nullptr);
  static const heddle_family_dim nameless{"arg0", 0, nullptr}, negative{"arg0", -1, "n"};
  static auto with_nameless = family, with_negative = family, with_none = family;
  with_none.text_at = with_nameless.text_at = with_negative.text_at =
      [](void*, const heddle_dim*, size_t, const char**) -> const char* { return nullptr; };
  with_nameless.dims = &nameless;
  with_negative.dims = &negative;
  with_nameless.dim_count = with_negative.dim_count = with_none.dim_count = 1;
  CALL(heddle_model_of_family, "family->dims[0].name", &with_nameless, nullptr, &g.no_model);
  CALL(heddle_model_of_family, "family->dims[0].dimension", &with_negative, nullptr, &g.no_model);
  CALL(heddle_model_of_family, "family->dims", &with_none, nullptr, &g.no_model);
  const Later<heddle_family> later_family;
  CALL(heddle_model_of_family, "family", &later_family.known, nullptr, &g.no_model);
  for (const auto& [member, change] : wrong_options()) {
    auto options = sized<heddle_open_options>();
    change(options);
    CALL(heddle_model_open, member, "m.onnx", &options, &g.no_model);
  }
  static uint32_t id = 0;
  static const char* text = nullptr;
  static size_t size = 0;
  CALL(heddle_model_text_id, "model", nullptr, "a", 1, &id);
  CALL(heddle_model_text_id, "model", g.model, "a", 1, &id);
  CALL(heddle_model_text_id, "text", g.model, nullptr, 1, &id);
  CALL(heddle_model_text_id, "id", g.model, "a", 1, nullptr);
  CALL(heddle_model_text, "model", nullptr, 0, &text, &size);
  CALL(heddle_model_text, "model", g.model, 0, &text, &size);
  CALL(heddle_model_text, "text", g.model, 0, nullptr, &size);
  CALL(heddle_model_text, "size", g.model, 0, &text, nullptr);
  auto options = sized<heddle_open_options>();
  options.struct_size = 0;
  CALL(heddle_model_parse, "options->struct_size", "m", kText, 10, &options, &g.no_model);
  options.struct_size = sizeof options;
  options.dim_count = 1;
  CALL(heddle_model_parse, "options->dims", "m", kText, 10, &options, &g.no_model);
  const Later<heddle_open_options> later;
  CALL(heddle_model_open, "options", "m.onnx", &later.known, &g.no_model);
  CALL(heddle_model_parse, "options", "m", kText, 10, &later.known, &g.no_model);
  return rows;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  auto info = std::make_shared<heddle_model_info>(sized<heddle_model_info>());
  auto port = std::make_shared<heddle_port>(sized<heddle_port>());
  auto dim = std::make_shared<heddle_port_dim>(sized<heddle_port_dim>());
  auto tolerance = std::make_shared<heddle_tolerance>(sized<heddle_tolerance>());
  auto no_size = std::make_shared<heddle_port>();
  auto no_dim_size = std::make_shared<heddle_port_dim>();
  static const void* const kNoOutputs[] = {nullptr};
  SILENT(heddle_model_get_info, "model", nullptr, info.get());
  SILENT(heddle_model_get_info, "info", g.model, nullptr);
  for (const size_t size : {size_t{0}, size_t{4}, size_t{100'000}}) {
    auto wrong = std::make_shared<heddle_model_info>();
    wrong->struct_size = size;
    SILENT(heddle_model_get_info, "info->struct_size", g.model, wrong.get());
  }
  SILENT(heddle_model_note, "model", nullptr, 0);
  SILENT(heddle_model_note, "number", g.model, -1);
  SILENT(heddle_model_note, "number", g.model, 99);
  SILENT(heddle_model_file, "model", nullptr, 0);
  SILENT(heddle_model_file, "number", g.model, -1);
  SILENT(heddle_model_file, "number", g.model, 99);
  SILENT(heddle_model_unbound, "model", nullptr, 0);
  SILENT(heddle_model_unbound, "number", g.model, -1);
  SILENT(heddle_model_unbound, "number", g.model, 99);
  SILENT(heddle_model_assertions, "model", nullptr);
  auto origin = std::make_shared<heddle_model_origin>(sized<heddle_model_origin>());
  auto no_origin_size = std::make_shared<heddle_model_origin>();
  SILENT(heddle_model_get_origin, "model", nullptr, origin.get());
  SILENT(heddle_model_get_origin, "origin", g.model, nullptr);
  SILENT(heddle_model_get_origin, "origin->struct_size", g.model, no_origin_size.get());
  SILENT(heddle_model_opset, "model", nullptr, 0);
  SILENT(heddle_model_opset, "number", g.model, 0);
  SILENT(heddle_model_opset, "number", g.model, -1);
  static const char *key = nullptr, *value = nullptr;
  CALL(heddle_model_metadata, "model", nullptr, 0, &key, &value);
  CALL(heddle_model_metadata, "key", g.model, 0, nullptr, &value);
  CALL(heddle_model_metadata, "value", g.model, 0, &key, nullptr);
  CALL(heddle_model_metadata, "number", g.model, 0, &key, &value);
  CALL(heddle_model_metadata, "number", g.model, INT64_MIN, &key, &value);
  auto unsupported = std::make_shared<heddle_unsupported>(sized<heddle_unsupported>());
  SILENT(heddle_status_unsupported, "status", nullptr, 0, unsupported.get());
  SILENT(heddle_status_unsupported, "unsupported", nullptr, 0, nullptr);
  CALL(heddle_model_check_outputs, "model", nullptr, kNoOutputs, &g.no_text);
  CALL(heddle_model_check_outputs, "failures", g.model, kNoOutputs, nullptr);
  CALL(heddle_model_check_outputs, "outputs", g.model, nullptr, &g.no_text);
  CALL(heddle_model_check_outputs, "outputs[0]", g.model, kNoOutputs, &g.no_text);
  SILENT(heddle_model_input, "model", nullptr, 0, port.get());
  SILENT(heddle_model_input, "port", g.model, 0, nullptr);
  SILENT(heddle_model_input, "port->struct_size", g.model, 0, no_size.get());
  SILENT(heddle_model_output, "model", nullptr, 0, port.get());
  SILENT(heddle_model_output, "port", g.model, 0, nullptr);
  SILENT(heddle_model_output, "port->struct_size", g.model, 0, no_size.get());
  for (const int64_t number : {int64_t{-1}, int64_t{1}, INT64_MIN, INT64_MAX}) {
    SILENT(heddle_model_input, "number", g.model, number, port.get());
    SILENT(heddle_model_output, "number", g.model, number, port.get());
    SILENT(heddle_model_tolerance, "number", g.model, number, tolerance.get());
    CALL(heddle_model_input_dim, "number", g.model, number, 0, dim.get());
    CALL(heddle_model_output_dim, "number", g.model, number, 0, dim.get());
  }
  CALL(heddle_model_input_dim, "model", nullptr, 0, 0, dim.get());
  CALL(heddle_model_output_dim, "model", nullptr, 0, 0, dim.get());
  for (const int64_t dimension : {-1, 2}) {
    CALL(heddle_model_input_dim, "dimension", g.model, 0, dimension, dim.get());
    CALL(heddle_model_output_dim, "dimension", g.model, 0, dimension, dim.get());
  }
  CALL(heddle_model_input_dim, "dim", g.model, 0, 0, nullptr);
  CALL(heddle_model_output_dim, "dim", g.model, 0, 0, nullptr);
  CALL(heddle_model_input_dim, "dim->struct_size", g.model, 0, 0, no_dim_size.get());
  CALL(heddle_model_output_dim, "dim->struct_size", g.model, 0, 0, no_dim_size.get());
  static void* const kNone[1] = {nullptr};
  CALL(heddle_model_random_inputs, "model", nullptr, 0, g.outputs);
  CALL(heddle_model_random_inputs, "buffers", g.model, 0, nullptr);
  CALL(heddle_model_random_inputs, "buffers[0]", g.model, 0, kNone);
  SILENT(heddle_model_tolerance, "model", nullptr, 0, tolerance.get());
  SILENT(heddle_model_tolerance, "tolerance", g.model, 0, nullptr);
  tolerance = std::make_shared<heddle_tolerance>();
  SILENT(heddle_model_tolerance, "tolerance->struct_size", g.model, 0, tolerance.get());
  return rows;
}

}  // namespace heddle::wrong_calls
